/* Buffers that move: by the caller between places, and by gm within a pool and before a refusal. The card is the CPU
 * backend in disguise: memory of its own that can run out, and a type of pinned host memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/cleanup.h"
#include "gm/pressure.h"
#include "support/pinned_card.h"
#include "support/relocation_bench.h"

static void test_buffers_move_on_the_cpu(void **state) {
  (void)state;
  const gm_context_params params = {.struct_size = sizeof params};
  relocation_on_device("cpu", &params);
}

static void test_a_buffer_visits_all_places(void **state) {
  (void)state;
  static const gm_location way[] = {GM_LOCATION_PINNED, GM_LOCATION_HOST,   GM_LOCATION_DEVICE, GM_LOCATION_HOST,
                                    GM_LOCATION_PINNED, GM_LOCATION_PINNED, GM_LOCATION_DEVICE};
  pool_bench bench;
  gm_error failure;
  open_card(&bench, 16 * MIB, 16 * MIB);
  gm_buffer *buffer = relocation_make(bench.pool, MIB, 0);
  relocation_fill(buffer);
  for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
    pool_bench_ok(gm_buffer_move(buffer, way[i], NULL, err));
    assert_int_equal(gm_buffer_location(buffer), way[i]);
    assert_int_equal(pool_bench_stats(&bench).fallback_bytes, way[i] == GM_LOCATION_DEVICE ? 0 : MIB);
    relocation_check(buffer);
  }
  assert_int_equal(gm_buffer_move(buffer, (gm_location)3, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_buffer_move(NULL, GM_LOCATION_HOST, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, err));
  gm_pool_clear(bench.pool);
  card.local_left = card.pinned_left = 0;
  assert_int_equal(gm_buffer_move(buffer, GM_LOCATION_DEVICE, NULL, &failure), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(gm_buffer_move(buffer, GM_LOCATION_PINNED, NULL, &failure), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_HOST);
  relocation_check(buffer);
  gm_buffer_release(buffer, NULL);
  card.local_left = 16 * MIB;
  pool_bench_close(&bench);
}

static void test_a_move_that_fails_changes_nothing(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  open_card(&bench, 16 * MIB, 16 * MIB);
  gm_buffer *buffer = relocation_make(bench.pool, MIB, 0);
  relocation_fill(buffer);
  card.break_copies = true;
  assert_int_equal(gm_buffer_move(buffer, GM_LOCATION_PINNED, NULL, &failure), GM_ERR_DRIVER);
  card.break_copies = false;
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_DEVICE);
  relocation_check(buffer);
  assert_int_equal(pool_bench_stats(&bench).active, 1);
  gm_buffer_release(buffer, NULL);
  pool_bench_close(&bench);
}

static void test_a_locked_buffer_stays(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  gm_block block, again;
  open_card(&bench, 16 * MIB, 16 * MIB);
  gm_buffer *buffer = relocation_make(bench.pool, MIB, GM_RELOCATABLE);
  relocation_fill(buffer);
  assert_int_equal(gm_buffer_block(buffer, &block, &failure), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_buffer_lock(buffer, &block, err));
  pool_bench_ok(gm_buffer_lock(buffer, NULL, err));
  pool_bench_ok(gm_buffer_block(buffer, &again, err));
  assert_memory_equal(&again, &block, sizeof block);
  assert_int_equal(gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, &failure), GM_ERR_BUSY);
  assert_int_equal(gm_pool_sleep(bench.pool, true, NULL, NULL, &failure), GM_ERR_BUSY);
  assert_int_equal(gm_buffer_promote(buffer, NULL, &failure), GM_ERR_BUSY);
  pool_bench_ok(gm_buffer_unlock(buffer, NULL, err));
  assert_int_equal(gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, &failure), GM_ERR_BUSY);
  pool_bench_ok(gm_buffer_unlock(buffer, NULL, err));
  assert_int_equal(gm_buffer_unlock(buffer, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, err));
  assert_int_equal(gm_buffer_lock(buffer, &block, &failure), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_buffer_unlock(buffer, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_buffer_lock(NULL, &block, &failure), GM_ERR_INVALID_ARGUMENT);
  relocation_check(buffer);
  gm_buffer_release(buffer, NULL);
  pool_bench_close(&bench);
}

/* Two of three buffers go, so each segment has one left, and locks keep them there. */
static void test_compaction_leaves_locked_buffers(void **state) {
  (void)state;
  pool_bench bench;
  gm_buffer *buffers[RELOCATION_MOST];
  gm_block block, after;
  open_card(&bench, 64 * MIB, 0);
  relocation_fill_pool(bench.pool, buffers);
  relocation_thin(buffers, 3);
  for (int i = 0; i < RELOCATION_MOST; i += 3) pool_bench_ok(gm_buffer_lock(buffers[i], NULL, err));
  gm_compact_report report = relocation_compact(bench.pool);
  assert_int_equal(report.moves, 0);
  assert_true(report.stayed > 0);
  pool_bench_ok(gm_buffer_block(buffers[0], &block, err));
  for (int i = 3; i < RELOCATION_MOST; i += 3) pool_bench_ok(gm_buffer_unlock(buffers[i], NULL, err));
  report = relocation_compact(bench.pool);
  assert_true(report.moves > 0);
  pool_bench_ok(gm_buffer_block(buffers[0], &after, err));
  assert_memory_equal(&after, &block, sizeof block);
  for (int i = 0; i < RELOCATION_MOST; i += 3) {
    relocation_check(buffers[i]);
    gm_buffer_release(buffers[i], NULL);
  }
  pool_bench_close(&bench);
}

/* Makes buffers of 256 KiB until the card has no more memory. Returns their number. */
static int fill_card(const pool_bench *bench, gm_buffer *buffers[RELOCATION_MOST]) {
  const gm_buffer_params params = {.struct_size = sizeof params,
                                   .request = {.bytes = 256 * RELOCATION_KIB, .flags = GM_RELOCATABLE},
                                   .fallback = GM_FALLBACK_REFUSE};
  int count = 0;
  while (count < RELOCATION_MOST && gm_buffer_create(bench->pool, &params, &buffers[count], NULL) == GM_OK) {
    relocation_fill(buffers[count++]);
  }
  return count;
}

static uint64_t memory_of(gm_buffer *buffer) {
  gm_block block;
  pool_bench_ok(gm_buffer_lock(buffer, &block, err));
  pool_bench_ok(gm_buffer_unlock(buffer, NULL, err));
  return block.memory;
}

/* All segments are full but for one hole, which is far too small for what the emptiest segment has. */
static void test_a_segment_that_cannot_be_emptied_keeps_its_buffers(void **state) {
  (void)state;
  pool_bench bench;
  gm_buffer *buffers[RELOCATION_MOST];
  uint64_t before[RELOCATION_MOST] = {0};
  open_card(&bench, 16 * MIB, 0);
  const int count = fill_card(&bench, buffers);
  gm_buffer_release(buffers[0], NULL);
  for (int i = 1; i < count; i++) before[i] = memory_of(buffers[i]);
  assert_int_not_equal(before[1], before[count - 1]);
  relocation_compact(bench.pool);
  for (int i = 1; i < count; i++) {
    assert_int_equal(memory_of(buffers[i]), before[i]);
    relocation_check(buffers[i]);
    gm_buffer_release(buffers[i], NULL);
  }
  pool_bench_close(&bench);
}

static void test_compaction_keeps_its_bounds(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  gm_buffer *buffers[RELOCATION_MOST];
  open_card(&bench, 64 * MIB, 0);
  relocation_fill_pool(bench.pool, buffers);
  relocation_thin(buffers, 5);
  gm_compact_params params = {.struct_size = sizeof params, .max_bytes = 512 * RELOCATION_KIB};
  gm_compact_report report = {.struct_size = sizeof report};
  pool_bench_ok(gm_pool_compact(bench.pool, &params, &report, err));
  assert_true(report.moved_bytes <= 512 * RELOCATION_KIB);
  params = (gm_compact_params){.struct_size = sizeof params, .max_ns = 1};
  pool_bench_ok(gm_pool_compact(bench.pool, &params, &report, err));
  assert_int_equal(report.moves, 0);
  params.struct_size = 3;
  assert_int_equal(gm_pool_compact(bench.pool, &params, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_compact(NULL, NULL, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  card.break_copies = true;
  assert_int_equal(gm_pool_compact(bench.pool, NULL, &report, &failure), GM_ERR_DRIVER);
  assert_string_equal(failure.op, "gm_pool_compact");
  card.break_copies = false;
  for (int i = 0; i < RELOCATION_MOST; i += 5) gm_buffer_release(buffers[i], NULL);
  pool_bench_close(&bench);
}

/* The pool is at its cap, and full of holes: a request that fits in none of them is served after gm compacted. */
static void test_a_refusal_compacts_first(void **state) {
  (void)state;
  pool_bench bench;
  gm_buffer *buffers[RELOCATION_MOST];
  gm_block block;
  open_card(&bench, 16 * MIB, 0);
  const int count = fill_card(&bench, buffers);
  assert_true(count > 32);
  for (int i = 0; i < count; i++) {
    if (i % 4 == 0) continue;
    gm_buffer_release(buffers[i], NULL);
    buffers[i] = NULL;
  }
  const gm_request large = {.bytes = 6 * MIB};
  assert_true(gm_acquired(gm_alloc(bench.pool, &large, &block)));
  assert_true(pool_bench_stats(&bench).evictions > 0);
  for (int i = 0; i < count; i += 4) relocation_check(buffers[i]);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  for (int i = 0; i < count; i++) gm_buffer_release(buffers[i], NULL);
  pool_bench_close(&bench);
}

static void test_polls_compact_where_asked(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  gm_buffer *buffers[RELOCATION_MOST];
  open_card(&bench, 64 * MIB, 0);
  relocation_fill_pool(bench.pool, buffers);
  relocation_thin(buffers, 5);
  gm_pool_clear(bench.pool);
  const uint64_t before = pool_bench_stats(&bench).reserved_bytes;
  pool_bench_ok(gm_context_poll(bench.ctx, err));
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, before);
  gm_compact_params params = {.struct_size = sizeof params, .max_bytes = MIB};
  pool_bench_ok(gm_pool_compact_on_poll(bench.pool, &params, err));
  pool_bench_ok(gm_pool_compact_on_poll(bench.pool, NULL, err));
  pool_bench_ok(gm_context_poll(bench.ctx, err));
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, before);
  pool_bench_ok(gm_pool_compact_on_poll(bench.pool, &params, err));
  pool_bench_ok(gm_pool_configure(bench.pool, "coalescing_threshold", "1", err)); /* the pool's own: it never pays */
  for (int i = 0; i < 16; i++) pool_bench_ok(gm_context_poll(bench.ctx, err));
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, before);
  pool_bench_ok(gm_pool_configure(bench.pool, "coalescing_threshold", "0.1", err));
  for (int i = 0; i < 16; i++) pool_bench_ok(gm_context_poll(bench.ctx, err));
  const uint64_t after = pool_bench_stats(&bench).reserved_bytes;
  printf("  reserved %llu KiB before, %llu KiB after\n", (unsigned long long)(before >> 10),
         (unsigned long long)(after >> 10));
  assert_true(after < before / 2);
  const gm_request kept = {.bytes = 100};
  gm_block block;
  assert_true(gm_acquired(gm_alloc(bench.pool, &kept, &block)));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  for (int i = 0; i < RELOCATION_MOST; i += 5) relocation_check(buffers[i]);
  gm_stream *stream = NULL;
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  params.stream = stream;
  assert_int_equal(gm_pool_compact_on_poll(bench.pool, &params, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_compact_on_poll(NULL, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_stream_close(stream, err));
  for (int i = 0; i < RELOCATION_MOST; i += 5) gm_buffer_release(buffers[i], NULL);
  pool_bench_close(&bench);
}

static void test_wrong_relocatable_requests(void **state) {
  (void)state;
  static const uint32_t flags[] = {GM_MAPPED, GM_ALLOW_SPANS, GM_SHAREABLE};
  pool_bench bench;
  gm_error failure;
  gm_block block;
  gm_buffer *buffer = NULL;
  open_card(&bench, MIB, 0);
  for (int i = 0; i < 3; i++) {
    const gm_buffer_params params = {.struct_size = sizeof params,
                                     .request = {.bytes = 64, .flags = flags[i] | GM_RELOCATABLE}};
    assert_int_equal(gm_buffer_create(bench.pool, &params, &buffer, &failure), GM_ERR_INVALID_ARGUMENT);
  }
  const gm_request request = {.bytes = 64, .flags = GM_RELOCATABLE};
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_INVALID);
  assert_int_equal(gm_pool_sleep(NULL, true, NULL, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_wake(NULL, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  pool_bench_close(&bench);
}

/* Other memory takes the device's while the pool sleeps. */
static void test_waking_without_room_can_be_repeated(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  open_card(&bench, 4 * MIB, 0);
  gm_buffer *one = relocation_make(bench.pool, MIB, 0), *other = relocation_make(bench.pool, MIB, GM_RELOCATABLE);
  relocation_fill(one);
  relocation_fill(other);
  pool_bench_ok(gm_pool_sleep(bench.pool, true, NULL, NULL, err));
  const uint64_t all = card.local_left;
  card.local_left = 0;
  assert_int_equal(gm_pool_wake(bench.pool, NULL, &failure), GM_ERR_OUT_OF_DEVICE_MEMORY);
  relocation_check(one);
  card.local_left = all;
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  assert_int_equal(gm_buffer_location(one), GM_LOCATION_DEVICE);
  assert_int_equal(gm_buffer_location(other), GM_LOCATION_DEVICE);
  relocation_check(one);
  relocation_check(other);
  gm_buffer_release(one, NULL);
  gm_buffer_release(other, NULL);
  pool_bench_close(&bench);
}

/* Whichever host allocation fails, no byte is lost, and what could not be done can be done later. */
static void test_the_nth_host_allocation_fails(void **state) {
  (void)state;
  int failed = 0;
  for (size_t n = 1; n < 40; n++) {
    pool_bench bench;
    gm_buffer *buffers[24];
    gm_error failure;
    open_card(&bench, 32 * MIB, 0);
    for (int i = 0; i < 24; i++) {
      buffers[i] = relocation_make(bench.pool, 200 * RELOCATION_KIB, GM_RELOCATABLE | GM_EVICTABLE);
      if (i % 4 == 0) relocation_fill(buffers[i]); /* the others go at once */
    }
    for (int i = 0; i < 24; i++) {
      if (i % 4) gm_buffer_release(buffers[i], NULL);
    }
    bench.host.fail_at = atomic_load(&bench.host.calls) + n;
    bench.host.fail_count = 1;
    const gm_status compacted = gm_pool_compact(bench.pool, NULL, NULL, &failure);
    assert_true(compacted == GM_OK || compacted == GM_ERR_OUT_OF_HOST_MEMORY);
    const gm_status slept = gm_pool_sleep(bench.pool, true, NULL, NULL, &failure);
    assert_true(slept == GM_OK || slept == GM_ERR_OUT_OF_HOST_MEMORY);
    failed += compacted || slept;
    const gm_status woken = gm_pool_wake(bench.pool, NULL, &failure);
    if (woken) pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
    for (int i = 0; i < 24; i += 4) {
      relocation_check(buffers[i]);
      assert_int_equal(gm_buffer_location(buffers[i]), GM_LOCATION_DEVICE);
      gm_buffer_release(buffers[i], NULL);
    }
    pool_bench_close(&bench);
  }
  assert_true(failed > 0);
}

/* A lock that notes a stream needs host memory for that. */
static void test_an_unlock_that_fails_keeps_the_lock(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  gm_stream *stream = NULL;
  open_card(&bench, 4 * MIB, 0);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  gm_buffer *buffer = relocation_make(bench.pool, MIB, GM_RELOCATABLE);
  pool_bench_ok(gm_buffer_lock(buffer, NULL, err));
  bool refused = false;
  for (size_t n = 1; n < 8 && !refused; n++) {
    bench.host.fail_at = atomic_load(&bench.host.calls) + n;
    bench.host.fail_count = 1;
    refused = gm_buffer_unlock(buffer, stream, &failure) == GM_ERR_OUT_OF_HOST_MEMORY;
    if (!refused) pool_bench_ok(gm_buffer_lock(buffer, NULL, err));
  }
  bench.host.fail_at = 0;
  assert_true(refused);
  assert_int_equal(gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, &failure), GM_ERR_BUSY);
  pool_bench_ok(gm_buffer_unlock(buffer, stream, err));
  pool_bench_ok(gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, err));
  gm_buffer_release(buffer, NULL);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_buffers_move_on_the_cpu),
      cmocka_unit_test(test_a_buffer_visits_all_places),
      cmocka_unit_test(test_a_move_that_fails_changes_nothing),
      cmocka_unit_test(test_a_locked_buffer_stays),
      cmocka_unit_test(test_compaction_leaves_locked_buffers),
      cmocka_unit_test(test_a_segment_that_cannot_be_emptied_keeps_its_buffers),
      cmocka_unit_test(test_compaction_keeps_its_bounds),
      cmocka_unit_test(test_a_refusal_compacts_first),
      cmocka_unit_test(test_polls_compact_where_asked),
      cmocka_unit_test(test_wrong_relocatable_requests),
      cmocka_unit_test(test_the_nth_host_allocation_fails),
      cmocka_unit_test(test_an_unlock_that_fails_keeps_the_lock),
      cmocka_unit_test(test_waking_without_room_can_be_repeated),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
