/* Blocks of several memories: when they are made, what they cost, what takes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gm/batch.h"
#include "gm/buffer.h"
#include "gm/cleanup.h"
#include "gm/debug.h"
#include "gm/quota.h"
#include "gm/share.h"
#include "gm/spans.h"
#include "support/explained.h"
#include "support/narrow_card.h"

enum { LARGEST = NARROW_CARD_LARGEST, WANTED = 10, SPANS = 3 }; /* MiB, MiB, memories */

static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

static gm_block take(const pool_bench *bench, uint64_t bytes, gm_stream *stream) {
  gm_block block;
  const gm_request request = {.bytes = bytes, .flags = GM_ALLOW_SPANS, .stream = stream};
  const gm_acquire answer = gm_alloc(bench->pool, &request, &block);
  if (answer > GM_ACQUIRE_FRESH) fail_msg("answer %d", (int)answer);
  return block;
}

static uint32_t spans_of(const pool_bench *bench, const gm_block *block, gm_block_span *out) {
  uint32_t count = 0;
  pool_bench_ok(gm_block_spans(bench->pool, block, 0, GM_BLOCK_SPANS_MOST, out, &count, err));
  return count;
}

static void test_larger_than_the_largest(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_block_span spans[GM_BLOCK_SPANS_MOST];
    gm_block block;
    narrow_card_open(&bench, 64 * MIB, strategies[s], (gm_pool_params){0});
    const gm_request plain = {.bytes = WANTED * MIB};
    assert_int_equal(gm_alloc(bench.pool, &plain, &block), GM_ACQUIRE_EXHAUSTED);
    assert_int_equal(pool_bench_stats(&bench).failures, 1);
    block = take(&bench, WANTED * MIB, NULL);
    assert_int_equal(block.address, 0);
    assert_true(block.bytes >= WANTED * MIB);
    assert_int_equal(spans_of(&bench, &block, spans), SPANS);
    uint64_t at = 0;
    for (int i = 0; i < SPANS; i++) {
      assert_int_equal(spans[i].offset, at);
      assert_true(spans[i].block.address != 0 && spans[i].bytes <= LARGEST * MIB);
      assert_true(spans[i].bytes <= spans[i].block.bytes);
      at += spans[i].bytes;
    }
    assert_int_equal(at, block.bytes);
    const gm_stats stats = pool_bench_stats(&bench);
    assert_int_equal(stats.failures, 1); /* it has not failed */
    assert_int_equal(stats.requested_bytes, WANTED * MIB);
    assert_int_equal(stats.active, SPANS);
    assert_int_equal(gm_pool_destroy(bench.pool, NULL), GM_ERR_BUSY);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_ERR_INVALID_ARGUMENT);
    narrow_card_check_quiet(&bench);
    pool_bench_close(&bench);
  }
}

/* All memories of a block wait for the engine's point, and go back together. */
static void test_a_free_at_a_point(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_stream *stream;
    gm_point point = {0}, passed = {0};
    narrow_card_open(&bench, 64 * MIB, strategies[s], (gm_pool_params){0});
    pool_bench_ok(gm_stream_create(bench.device, &stream, err));
    gm_block block = take(&bench, WANTED * MIB, stream);
    pool_bench_ok(gm_stream_record(stream, &point, err));
    pool_bench_ok(gm_free_at(bench.pool, &block, &point, err));
    assert_int_equal(gm_free_at(bench.pool, &block, &point, NULL), GM_ERR_INVALID_ARGUMENT); /* twice */
    assert_int_equal(pool_bench_stats(&bench).in_use_bytes, 0);
    block = take(&bench, WANTED * MIB, stream);
    pool_bench_ok(gm_free_at(bench.pool, &block, &passed, err));
    gm_point_release(bench.device, &point);
    pool_bench_ok(gm_stream_close(stream, err));
    assert_true(gm_pool_clear(bench.pool) >= WANTED * MIB);
    narrow_card_check_quiet(&bench);
    pool_bench_close(&bench);
  }
}

static void test_one_piece_where_there_is_one(void **state) {
  (void)state;
  pool_bench bench;
  gm_block_span spans[GM_BLOCK_SPANS_MOST];
  uint32_t count = 0;
  narrow_card_open(&bench, 64 * MIB, GM_STRATEGY_BEST_FIT, (gm_pool_params){0});
  const gm_block block = take(&bench, 3 * MIB, NULL);
  assert_int_equal(spans_of(&bench, &block, spans), 1);
  assert_memory_equal(&spans[0].block, &block, sizeof block);
  assert_int_equal(spans[0].bytes, block.bytes);
  pool_bench_ok(gm_block_spans(bench.pool, &block, 1, 1, spans, &count, err));
  assert_int_equal(count, 1);
  assert_int_equal(gm_block_spans(bench.pool, &block, 0, 1, NULL, &count, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_spans(bench.pool, &block, 0, 0, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_spans(bench.pool, NULL, 0, 0, NULL, &count, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  assert_int_equal(gm_block_spans(bench.pool, &block, 0, 0, NULL, &count, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_close(&bench);
}

/* A device full of blocks, every other one free: the sum is there, and nowhere in one piece. */
static void fragment(const pool_bench *bench, gm_block *blocks, int count, uint64_t bytes) {
  const gm_request each = {.bytes = bytes};
  for (int i = 0; i < count; i++) assert_true(gm_alloc(bench->pool, &each, &blocks[i]) <= GM_ACQUIRE_FRESH);
  for (int i = 0; i < count; i += 2) assert_int_equal(gm_free(bench->pool, &blocks[i], NULL), GM_OK);
}

/* Holes of a segment that is in use: nobody can give them back, so that only pieces do. */
static void test_holes_of_one_segment(void **state) {
  (void)state;
  enum { BLOCKS = 16 };
  pool_bench bench;
  gm_block blocks[BLOCKS], block;
  gm_block_span spans[GM_BLOCK_SPANS_MOST];
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BEST_FIT, .no_vmm = true};
  pool_bench_open_device(&bench, "null", "null:capacity=64M");
  pool_bench_ok(gm_config_set(bench.ctx, "segment_size", "64M", err));
  pool_bench_ok(gm_pool_create(bench.device, &params, &bench.pool, err));
  fragment(&bench, blocks, BLOCKS, 4 * MIB);
  const gm_request plain = {.bytes = 24 * MIB}, spanned = {.bytes = 24 * MIB, .flags = GM_ALLOW_SPANS};
  assert_true(explained_alloc(bench.pool, &plain, &block) > GM_ACQUIRE_FRESH);
  assert_true(explained(bench.pool, &plain).largest_pooled_bytes < 24 * MIB);
  assert_true(explained_alloc(bench.pool, &spanned, &block) <= GM_ACQUIRE_FRESH); /* no refusal, though pieces were */
  assert_true(spans_of(&bench, &block, spans) >= 6);
  const gm_request more = {.bytes = 16 * MIB, .flags = GM_ALLOW_SPANS};
  const gm_stats before = pool_bench_stats(&bench);
  assert_true(explained_alloc(bench.pool, &more, blocks) > GM_ACQUIRE_FRESH); /* nothing of it stays */
  assert_int_equal(pool_bench_stats(&bench).requested_bytes, before.requested_bytes);
  assert_int_equal(pool_bench_stats(&bench).active, before.active);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  for (int i = 1; i < BLOCKS; i += 2) assert_int_equal(gm_free(bench.pool, &blocks[i], NULL), GM_OK);
  narrow_card_check_quiet(&bench);
  pool_bench_close(&bench);
}

static unsigned char *pattern_of(uint64_t bytes, unsigned seed) {
  unsigned char *made = malloc(bytes);
  assert_non_null(made);
  for (uint64_t i = 0; i < bytes; i++) made[i] = (unsigned char)(i * 7 + i / 251 + seed);
  return made;
}

static void check_bytes(const pool_bench *bench, const gm_block *block, const unsigned char *expected) {
  unsigned char *seen = calloc(WANTED, MIB);
  pool_bench_ok(gm_block_read(bench->pool, block, 0, seen, WANTED * MIB, NULL, NULL, err));
  assert_memory_equal(seen, expected, WANTED * MIB);
  free(seen);
}

static void test_copies_cross_the_borders(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_point point;
    gm_stream *stream;
    narrow_card_open(&bench, 64 * MIB, strategies[s], (gm_pool_params){0});
    pool_bench_ok(gm_stream_create(bench.device, &stream, err));
    gm_block a = take(&bench, WANTED * MIB, stream), b = take(&bench, WANTED * MIB, NULL);
    const gm_block small = take(&bench, 3 * MIB, NULL);
    unsigned char *bytes = pattern_of(WANTED * MIB, 1);
    pool_bench_ok(gm_block_write(bench.pool, &a, 0, bytes, WANTED * MIB, stream, &point, err));
    pool_bench_ok(gm_point_wait(bench.device, &point, UINT64_MAX, err));
    gm_point_release(bench.device, &point);
    check_bytes(&bench, &a, bytes);
    pool_bench_ok(gm_block_copy(bench.pool, &b, 0, bench.pool, &a, 0, WANTED * MIB, NULL, NULL, err));
    check_bytes(&bench, &b, bytes);
    /* across a border at another place on each side; and through a block of one memory */
    pool_bench_ok(gm_block_copy(bench.pool, &b, 5, bench.pool, &a, 2 * MIB + 1, 7 * MIB, stream, NULL, err));
    memmove(bytes + 5, bytes + 2 * MIB + 1, 7 * MIB);
    check_bytes(&bench, &b, bytes);
    pool_bench_ok(gm_block_copy(bench.pool, &small, 1, bench.pool, &b, 3 * MIB, 2 * MIB, NULL, NULL, err));
    pool_bench_ok(gm_block_copy(bench.pool, &b, 6 * MIB + 3, bench.pool, &small, 1, 2 * MIB, NULL, NULL, err));
    memcpy(bytes + 6 * MIB + 3, bytes + 3 * MIB, 2 * MIB);
    check_bytes(&bench, &b, bytes);
    /* the pattern goes on behind a border as before it */
    pool_bench_ok(gm_block_fill(bench.pool, &b, 1, 9 * MIB, "abcdefgh", 8, NULL, NULL, err));
    for (uint64_t i = 0; i < 9 * MIB; i++) bytes[1 + i] = (unsigned char)"abcdefgh"[i % 8];
    check_bytes(&bench, &b, bytes);
    pool_bench_ok(gm_block_write(bench.pool, &b, b.bytes, bytes, 0, NULL, NULL, err));
    assert_int_equal(gm_block_write(bench.pool, &b, b.bytes, bytes, 1, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_block_write(bench.pool, &b, 0, NULL, 1, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
    free(bytes);
    assert_int_equal(gm_use_on(bench.pool, &b, stream), GM_OK);
    assert_int_equal(gm_free(bench.pool, &small, NULL), GM_OK);
    assert_int_equal(gm_free(bench.pool, &b, NULL), GM_OK);
    assert_int_equal(gm_free(bench.pool, &a, stream), GM_OK);
    pool_bench_ok(gm_stream_sync(stream, err));
    narrow_card_check_quiet(&bench);
    pool_bench_ok(gm_stream_close(stream, err));
    pool_bench_close(&bench);
  }
}

static void test_copies_that_overlap(void **state) {
  (void)state;
  pool_bench bench;
  gm_block_span spans[GM_BLOCK_SPANS_MOST];
  narrow_card_open(&bench, 64 * MIB, GM_STRATEGY_BEST_FIT, (gm_pool_params){0});
  gm_pool *pool = bench.pool;
  const gm_block a = take(&bench, WANTED * MIB, NULL);
  spans_of(&bench, &a, spans);
  assert_int_equal(gm_block_copy(pool, &a, 3 * MIB, pool, &a, 0, 5 * MIB, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_copy(pool, &a, 0, pool, &a, 4 * MIB, 5 * MIB, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_copy(pool, &a, 3 * MIB, pool, &spans[1].block, 0, MIB, NULL, NULL, NULL),
                   GM_ERR_INVALID_ARGUMENT); /* the same bytes by another name */
  pool_bench_ok(gm_block_copy(pool, &a, 5 * MIB, pool, &a, 0, 5 * MIB, NULL, NULL, err));
  assert_int_equal(gm_free(pool, &a, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void check_not_supported(gm_status status, const gm_error *why) {
  assert_int_equal(status, GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(why->message, "gm_block_spans"));
}

static void test_what_is_for_one_memory(void **state) {
  (void)state;
  pool_bench bench;
  gm_error why;
  void *host;
  uint64_t view = 0, offset;
  gm_memory memory;
  gm_shared shared = {.struct_size = sizeof shared};
  gm_native_memory native = {0};
  gm_block_span spans[GM_BLOCK_SPANS_MOST];
  narrow_card_open(&bench, 64 * MIB, GM_STRATEGY_BEST_FIT, (gm_pool_params){0});
  gm_pool *pool = bench.pool;
  const gm_block block = take(&bench, WANTED * MIB, NULL);
  check_not_supported(gm_block_map(pool, &block, 0, 1, GM_MAP_READ, NULL, &host, &why), &why);
  check_not_supported(gm_block_unmap(pool, &block, &host, NULL, &why), &why);
  check_not_supported(gm_block_native(pool, &block, &native, &why), &why);
  check_not_supported(gm_block_view_create(pool, &block, 0, 4096, &view, &why), &why);
  check_not_supported(gm_block_export(pool, &block, &shared, &why), &why);
  assert_int_equal(gm_block_memory(pool, &block, &memory, &offset), GM_ERR_NOT_SUPPORTED);
  /* each of its memories takes them; while one is mapped nothing is freed */
  spans_of(&bench, &block, spans);
  assert_int_equal(gm_block_memory(pool, &spans[2].block, &memory, &offset), GM_OK);
  pool_bench_ok(gm_block_map(pool, &spans[2].block, 0, 100, GM_MAP_READ, NULL, &host, err));
  assert_int_equal(gm_free(pool, &block, NULL), GM_ERR_BUSY);
  assert_int_equal(pool_bench_stats(&bench).active, SPANS);
  pool_bench_ok(gm_block_unmap(pool, &spans[2].block, host, NULL, err));
  assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
  assert_int_equal(gm_block_memory(pool, &block, &memory, &offset), GM_ERR_INVALID_ARGUMENT);
  narrow_card_check_quiet(&bench);
  pool_bench_close(&bench);
}

static void check_wrong_frees(pool_bench *bench) {
  gm_block_span spans[GM_BLOCK_SPANS_MOST];
  gm_pool *pool = bench->pool;
  gm_block block = take(bench, WANTED * MIB, NULL), altered = block, found;
  gm_pointer_info info = {.struct_size = sizeof info};
  spans_of(bench, &block, spans);
  void *inside = (void *)(uintptr_t)(spans[1].block.address + 100), *begin = (void *)(uintptr_t)spans[1].block.address;
  for (int i = 0; i < SPANS; i++) assert_int_equal(gm_free(pool, &spans[i].block, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free_ptr(pool, begin, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  altered.bytes--;
  assert_int_equal(gm_free(pool, &altered, NULL), GM_ERR_INVALID_ARGUMENT);
  altered = block;
  altered.check++;
  assert_int_equal(gm_free(pool, &altered, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_of(pool, inside, &found), GM_OK);
  assert_memory_equal(&found, &block, sizeof block);
  assert_int_equal(gm_pointer_find(bench->device, inside, &info), GM_OK);
  assert_memory_equal(&info.block, &block, sizeof block);
  assert_int_equal(info.offset, spans[1].offset + 100);
  assert_int_equal(info.requested_bytes, WANTED * MIB);
  assert_int_equal(pool_bench_stats(bench).active, SPANS);
  assert_int_equal(gm_free(pool, &found, NULL), GM_OK);
  assert_int_equal(gm_use_on(pool, &block, NULL), GM_ERR_INVALID_ARGUMENT);
  for (int i = 0; i < SPANS; i++) assert_int_equal(gm_free(pool, &spans[i].block, NULL), GM_ERR_INVALID_ARGUMENT);
  const gm_block again = take(bench, WANTED * MIB, NULL); /* the same memories under another name */
  assert_int_equal(gm_free(pool, &block, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(pool, &again, NULL), GM_OK);
}

static void test_wrong_frees_and_look_ups(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    for (uint32_t debug = 0; debug <= GM_DEBUG_CHECK_FREED; debug++) {
      pool_bench bench;
      narrow_card_open(&bench, 64 * MIB, strategies[s],
                       (gm_pool_params){.debug = debug, .red_zone_bytes = debug ? 64 : 0});
      check_wrong_frees(&bench);
      pool_bench_ok(gm_pool_check(bench.pool, NULL, err));
      narrow_card_check_quiet(&bench);
      pool_bench_close(&bench);
    }
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_larger_than_the_largest),  cmocka_unit_test(test_one_piece_where_there_is_one),
    cmocka_unit_test(test_holes_of_one_segment),     cmocka_unit_test(test_copies_cross_the_borders),
    cmocka_unit_test(test_copies_that_overlap),      cmocka_unit_test(test_what_is_for_one_memory),
    cmocka_unit_test(test_wrong_frees_and_look_ups), cmocka_unit_test(test_a_free_at_a_point),
};

int main(void) { return cmocka_run_group_tests(tests, NULL, NULL); }
