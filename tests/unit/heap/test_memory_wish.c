/* The memory that a request wishes for: flags that it requires or prefers, types by index, dedicated and mapped
 * blocks. On a disguised card. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gm/batch.h"
#include "gm/copy.h"
#include "support/explained.h"
#include "support/host_upstream.h"
#include "support/wish_card.h"

/* Which type serves the request. */
static uint32_t served_by(pool_bench *bench, gm_request request) {
  gm_block block;
  uint64_t offset;
  request.bytes = BYTES;
  if (!gm_acquired(explained_alloc(bench->pool, &request, &block))) {
    fail_msg("%s", explained(bench->pool, &request).text);
  }
  const uint32_t type = type_of(bench->pool, &block, &offset);
  assert_int_equal(gm_free(bench->pool, &block, NULL), GM_OK);
  return type;
}

static void each_strategy(void (*run)(pool_bench *bench)) {
  static const gm_strategy strategies[] = {GM_STRATEGY_BEST_FIT, GM_STRATEGY_BUCKET};
  for (int i = 0; i < 2; i++) {
    pool_bench bench;
    const gm_pool_params pool = {.struct_size = sizeof pool, .strategy = strategies[i], .no_vmm = true};
    open_card(&bench, &pool);
    run(&bench);
    pool_bench_close(&bench);
  }
}

/* Several rounds: pooled memory of one wish serves no other one. */
static void run_types(pool_bench *bench) {
  for (int round = 0; round < 3; round++) {
    assert_int_equal(served_by(bench, (gm_request){0}), OWN);
    assert_int_equal(served_by(bench, (gm_request){ANY, .flags = GM_HOST_VISIBLE, .require = GM_MEMORY_SYSTEM}),
                     CACHED);
    assert_int_equal(served_by(bench, (gm_request){ANY, .require = GM_MEMORY_SYSTEM | GM_MEMORY_WRITE_COMBINED}),
                     COMBINED);
    assert_int_equal(served_by(bench, (gm_request){ANY, .require = GM_MEMORY_HOST_COHERENT}), WINDOW);
    assert_int_equal(served_by(bench, (gm_request){ANY, .require = GM_MEMORY_HOST_CACHED}), CACHED);
    assert_int_equal(served_by(bench, (gm_request){ANY, .memory_types = 1 << COMBINED}), COMBINED);
    assert_int_equal(served_by(bench, (gm_request){ANY, .memory_types = 1 << COMBINED | 1 << CACHED}), CACHED);
    assert_int_equal(served_by(bench, (gm_request){ANY, .prefer = GM_MEMORY_HOST_CACHED}), CACHED);
    assert_int_equal(served_by(bench, (gm_request){.prefer = GM_MEMORY_HOST_VISIBLE}), WINDOW);
    assert_int_equal(served_by(bench, (gm_request){.prefer = GM_MEMORY_HOST_CACHED}), OWN); /* no such type serves */
    assert_int_equal(
        served_by(bench, (gm_request){ANY, .require = GM_MEMORY_SYSTEM, .prefer = GM_MEMORY_HOST_COHERENT}), COMBINED);
    assert_int_equal(served_by(bench, (gm_request){ANY, .prefer = GM_MEMORY_SYSTEM | GM_MEMORY_HOST_COHERENT}),
                     COMBINED);
    assert_int_equal(served_by(bench, (gm_request){ANY, .flags = GM_MAPPED, .usage = GM_USAGE_READBACK}), CACHED);
  }
  /* what serves is kept: the second round and the third asked the driver for nothing */
  const uint32_t before = card.allocs;
  assert_int_equal(served_by(bench, (gm_request){ANY, .prefer = GM_MEMORY_HOST_CACHED}), CACHED);
  assert_int_equal(card.allocs, before);
}

static void test_types(void **state) {
  (void)state;
  each_strategy(run_types);
}

/* GM_HOST_VISIBLE is the short word for a flag that is required: both find each other's memory. */
static void run_short_word(pool_bench *bench) {
  assert_int_equal(served_by(bench, (gm_request){.flags = GM_HOST_VISIBLE}), WINDOW);
  const uint32_t before = card.allocs;
  assert_int_equal(served_by(bench, (gm_request){.require = GM_MEMORY_HOST_VISIBLE}), WINDOW);
  assert_int_equal(card.allocs, before);
}

static void test_the_short_word(void **state) {
  (void)state;
  each_strategy(run_short_word);
}

/* A full type hands over to the next best; a required one does not. */
static void run_full(pool_bench *bench) {
  gm_block block;
  card.full = 1 << CACHED;
  assert_int_equal(served_by(bench, (gm_request){ANY, .prefer = GM_MEMORY_HOST_CACHED | GM_MEMORY_SYSTEM}), COMBINED);
  const gm_request request = {.bytes = BYTES, ANY, .require = GM_MEMORY_HOST_CACHED};
  assert_int_equal(explained_alloc(bench->pool, &request, &block), GM_ACQUIRE_EXHAUSTED);
}

static void test_a_full_type(void **state) {
  (void)state;
  each_strategy(run_full);
}

/* The request is INVALID, with that status and those words. */
static void refused(pool_bench *bench, gm_request request, gm_status status, const char *words) {
  gm_block block;
  request.bytes = BYTES;
  assert_int_equal(explained_alloc(bench->pool, &request, &block), GM_ACQUIRE_INVALID);
  const gm_explanation why = explained(bench->pool, &request);
  if (why.status != status || !strstr(why.text, words)) fail_msg("\"%s\" is not in: %s", words, why.text);
}

/* All wishes at once: there is room for 159 bytes of them. */
static void refused_with_many_wishes(pool_bench *bench) {
  const gm_request request = {.bytes = BYTES,
                              .flags = GM_HOST_VISIBLE | GM_MAPPED,
                              .require = GM_MEMORY_HOST_COHERENT | GM_MEMORY_HOST_CACHED | GM_MEMORY_HOST_POINTER |
                                         GM_MEMORY_PINNED | GM_MEMORY_WRITE_COMBINED | GM_MEMORY_SYSTEM,
                              .memory_types = 1 << OWN};
  gm_block block;
  assert_int_equal(explained_alloc(bench->pool, &request, &block), GM_ACQUIRE_INVALID);
  const gm_explanation why = explained(bench->pool, &request);
  const char *wishes =
      strstr(why.text, "GM_DEVICE_LOCAL and GM_HOST_VISIBLE and GM_MAPPED and GM_MEMORY_HOST_COHERENT");
  if (!wishes || strlen(wishes) != 159) fail_msg("%s", why.text);
}

static void run_refusals(pool_bench *bench) {
  const gm_status none = GM_ERR_NOT_SUPPORTED, wrong = GM_ERR_INVALID_ARGUMENT;
  refused(bench, (gm_request){ANY, .require = GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_SYSTEM}, none,
          "GM_MEMORY_DEVICE_LOCAL and GM_MEMORY_SYSTEM");
  refused(bench, (gm_request){.require = GM_MEMORY_SYSTEM}, none, "GM_DEVICE_LOCAL and GM_MEMORY_SYSTEM");
  refused(bench, (gm_request){ANY, .require = GM_MEMORY_PINNED}, none, "GM_MEMORY_PINNED");
  refused(bench, (gm_request){ANY, .require = GM_MEMORY_HOST_CACHED, .memory_types = 1 << COMBINED}, none,
          "GM_MEMORY_HOST_CACHED and of memory_types 0x8");
  refused(bench, (gm_request){.flags = GM_MAPPED, .memory_types = 1 << OWN}, none, "GM_MAPPED");
  refused_with_many_wishes(bench);
  refused(bench, (gm_request){.memory_types = 1 << TYPES}, wrong, "`memory_types` is 0x10");
  refused(bench, (gm_request){.memory_types = UINT32_MAX}, wrong, "`memory_types`");
  refused(bench, (gm_request){.require = UINT32_C(1) << 31}, wrong, "`require` has unknown bits");
  refused(bench, (gm_request){.prefer = UINT32_C(1) << 20}, wrong, "`prefer` has unknown bits");
  refused(bench, (gm_request){.require = GM_MEMORY_MANAGED}, wrong, "GM_MEMORY_MANAGED");
  refused(bench, (gm_request){.prefer = GM_MEMORY_APART}, wrong, "GM_MEMORY_APART");
  refused(bench, (gm_request){.flags = GM_DEDICATED | GM_ALLOW_SPANS}, wrong, "GM_DEDICATED and GM_ALLOW_SPANS");
  refused(bench, (gm_request){.flags = GM_MAPPED | GM_ALLOW_SPANS}, wrong, "GM_MAPPED and GM_ALLOW_SPANS");
}

static void test_contradictions(void **state) {
  (void)state;
  each_strategy(run_refusals);
}

static void run_preference(pool_bench *bench) {
  const gm_request request = {.bytes = BYTES, .prefer = GM_MEMORY_PINNED | GM_MEMORY_HOST_VISIBLE};
  const gm_explanation why = explained(bench->pool, &request);
  assert_int_equal(why.status, GM_OK);
  assert_non_null(strstr(why.text, "No memory that may serve is GM_MEMORY_PINNED, which the request prefers."));
}

static void test_a_preference_that_nothing_meets_is_told(void **state) {
  (void)state;
  each_strategy(run_preference);
}

/* A fast request with a wish takes no plain block, in the very next moment. */
static void run_quick(pool_bench *bench) {
  const gm_request plain = {.bytes = 64};
  gm_block block;
  uint64_t offset;
  for (int i = 0; i < 4; i++) {
    gm_request wish = plain;
    if (i == 0) wish.memory_types = 1 << WINDOW;
    if (i == 1) wish.require = GM_MEMORY_SYSTEM; /* beside GM_DEVICE_LOCAL no memory can be that */
    if (i == 2) wish.prefer = GM_MEMORY_HOST_VISIBLE;
    if (i == 3) wish.flags = GM_DEDICATED;
    for (int turn = 0; turn < 3; turn++) {
      assert_true(gm_acquired(gm_alloc(bench->pool, &plain, &block)));
      assert_int_equal(type_of(bench->pool, &block, &offset), OWN);
      assert_int_equal(gm_free(bench->pool, &block, NULL), GM_OK);
      const gm_acquire answer = gm_alloc(bench->pool, &wish, &block);
      assert_int_equal(answer == GM_ACQUIRE_INVALID, i == 1);
      if (i == 1) continue;
      assert_int_equal(type_of(bench->pool, &block, &offset), i == 3 ? OWN : WINDOW);
      if (i == 3) assert_int_equal(block.bytes, 64);
      assert_int_equal(gm_free(bench->pool, &block, NULL), GM_OK);
    }
  }
}

static void test_the_fast_path_sees_wishes(void **state) {
  (void)state;
  each_strategy(run_quick);
}

/* ---- dedicated ---- */

static gm_block dedicated(pool_bench *bench, uint64_t bytes, uint32_t flags, gm_acquire *out) {
  const gm_request request = {.bytes = bytes, .flags = GM_DEDICATED | flags};
  gm_block block;
  uint64_t offset;
  *out = explained_alloc(bench->pool, &request, &block);
  if (!gm_acquired(*out)) return block;
  type_of(bench->pool, &block, &offset);
  assert_int_equal(offset, 0);
  assert_int_equal(block.bytes, (bytes + ATOM - 1) / ATOM * ATOM);
  return block;
}

static void run_dedicated(pool_bench *bench) {
  gm_acquire answer;
  gm_block block = dedicated(bench, 3000001, 0, &answer);
  assert_int_equal(answer, GM_ACQUIRE_FRESH);
  assert_int_equal(card.last_bytes, block.bytes);
  assert_int_equal(card.dedicated, 1);
  const uint32_t before = card.allocs;
  assert_int_equal(pool_bench_stats(bench).in_use_bytes, block.bytes);
  assert_int_equal(gm_free(bench->pool, &block, NULL), GM_OK);
  assert_true(pool_bench_stats(bench).pooled_bytes >= block.bytes);
  block = dedicated(bench, 3000002, 0, &answer); /* as many whole atoms */
  assert_int_equal(answer, GM_ACQUIRE_OK);
  assert_int_equal(gm_free(bench->pool, &block, NULL), GM_OK);
  block = dedicated(bench, 3000003, GM_POOLED_ONLY, &answer);
  assert_int_equal(answer, GM_ACQUIRE_OK);
  assert_int_equal(card.allocs, before);
  assert_int_equal(gm_free(bench->pool, &block, NULL), GM_OK);
  dedicated(bench, 2900000, GM_POOLED_ONLY, &answer); /* a larger one does not serve */
  assert_int_equal(answer, GM_ACQUIRE_EXHAUSTED);
  const gm_request again = {.bytes = 2900000, .flags = GM_DEDICATED | GM_POOLED_ONLY};
  assert_non_null(strstr(explained(bench->pool, &again).text, "GM_DEDICATED"));
  assert_true(gm_pool_trim(bench->pool, 0) >= 3000000);
  assert_int_equal(pool_bench_stats(bench).reserved_bytes, 0);
}

static void test_dedicated(void **state) {
  (void)state;
  each_strategy(run_dedicated);
}

/* A free in the order of a stream; the stream's next request gets the block at once, the host only after it is done. */
static void run_dedicated_order(pool_bench *bench) {
  gm_stream *stream;
  gm_block block;
  pool_bench_ok(gm_stream_create(bench->device, &stream, err));
  gm_request request = {.bytes = 70000, .flags = GM_DEDICATED, .stream = stream};
  for (int i = 0; i < 20; i++) {
    assert_true(gm_acquired(gm_alloc(bench->pool, &request, &block)));
    pool_bench_ok(gm_block_fill(bench->pool, &block, 0, 70000, "x", 1, stream, NULL, err));
    assert_int_equal(gm_free(bench->pool, &block, stream), GM_OK);
  }
  assert_int_equal(card.allocs, 1);
  pool_bench_ok(gm_stream_sync(stream, err));
  request.stream = NULL;
  assert_true(gm_acquired(gm_alloc(bench->pool, &request, &block)));
  assert_int_equal(card.allocs, 1);
  assert_int_equal(gm_free(bench->pool, &block, NULL), GM_OK);
  pool_bench_ok(gm_stream_close(stream, err));
}

static void test_dedicated_in_stream_order(void **state) {
  (void)state;
  each_strategy(run_dedicated_order);
}

static void test_a_group_is_not_dedicated(void **state) {
  (void)state;
  pool_bench bench;
  open_card(&bench, &card_pool);
  const gm_request requests[2] = {{.bytes = 10, .flags = GM_DEDICATED}, {.bytes = 20, .flags = GM_DEDICATED}};
  gm_batch_params params = {.struct_size = sizeof params, .requests = requests, .count = 2};
  gm_part parts[2];
  pool_bench_ok(gm_alloc_batch(bench.pool, &params, parts, NULL, err));
  pool_bench_ok(gm_free_batch(bench.pool, parts, 2, NULL, err));
  params.flags = GM_BATCH_GROUPED;
  assert_int_equal(gm_alloc_batch(bench.pool, &params, parts, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_close(&bench);
}

/* ---- mapped ---- */

static void run_mapped(pool_bench *bench) {
  const gm_request request = {.bytes = BYTES, .flags = GM_MAPPED}, hidden = {.bytes = BYTES, .memory_types = 1 << OWN};
  gm_block block;
  void *host = NULL, *one = NULL, *two = NULL;
  for (int i = 0; i < 3; i++) { /* fresh and pooled */
    assert_true(gm_acquired(gm_alloc(bench->pool, &request, &block)));
    pool_bench_ok(gm_block_host(bench->pool, &block, &host, err));
    assert_ptr_equal(host, (void *)(uintptr_t)block.address);
    memset(host, 7, BYTES);
    assert_int_equal(gm_free(bench->pool, &block, NULL), GM_OK); /* no unmap */
  }
  gm_pool_trim(bench->pool, 0); /* what is mapped once stays so */
  card.map_status = GM_ERR_DRIVER;
  assert_int_equal(gm_alloc(bench->pool, &request, &block), GM_ACQUIRE_FAILED);
  assert_non_null(strstr(explained(bench->pool, &request).text, "as it was told"));
  assert_int_equal(pool_bench_stats(bench).in_use_bytes, 0);
  card.map_status = GM_OK;
  assert_true(gm_acquired(gm_alloc(bench->pool, &hidden, &block)));
  assert_int_equal(gm_block_host(bench->pool, &block, &host, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_block_map(bench->pool, &block, 0, 8, GM_MAP_READ | GM_MAP_NO_WAIT, NULL, &host, NULL),
                   GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_block_flush(bench->pool, &block, 0, 8, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_free(bench->pool, &block, NULL), GM_OK);
  assert_true(gm_acquired(gm_alloc(bench->pool, &request, &block)));
  assert_int_equal(gm_block_host(bench->pool, &block, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_block_map(bench->pool, &block, 0, 8, GM_MAP_WRITE | GM_MAP_NO_WAIT, NULL, &one, err));
  pool_bench_ok(gm_block_map(bench->pool, &block, 0, 16, GM_MAP_READ, NULL, &two, err));
  assert_ptr_equal(one, two);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(gm_free(bench->pool, &block, NULL), GM_ERR_BUSY);
    pool_bench_ok(gm_block_unmap(bench->pool, &block, one, NULL, err));
  }
  assert_int_equal(gm_block_unmap(bench->pool, &block, one, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(bench->pool, &block, NULL), GM_OK);
}

static void test_mapped(void **state) {
  (void)state;
  each_strategy(run_mapped);
}

/* GM_MAP_NO_WAIT uses no stream. */
static void test_no_wait_takes_no_stream(void **state) {
  (void)state;
  pool_bench bench;
  gm_stream *stream;
  gm_block block;
  void *host;
  open_card(&bench, &card_pool);
  const gm_request request = {.bytes = BYTES, .flags = GM_HOST_VISIBLE};
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  assert_int_equal(gm_block_map(bench.pool, &block, 0, 8, GM_MAP_READ | GM_MAP_NO_WAIT, stream, &host, NULL),
                   GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_map(bench.pool, &block, 0, 8, GM_MAP_NO_WAIT, NULL, &host, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

/* ---- an upstream ---- */

static void test_an_upstream_chooses_its_memory(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .upstream = &host_upstream};
  pool_bench bench;
  gm_block block;
  pool_bench_open(&bench, "cpu", "", &params);
  refused(&bench, (gm_request){.require = GM_MEMORY_SYSTEM}, GM_ERR_NOT_SUPPORTED, "upstream");
  refused(&bench, (gm_request){.memory_types = 1}, GM_ERR_NOT_SUPPORTED, "`memory_types`");
  refused(&bench, (gm_request){.flags = GM_MAPPED}, GM_ERR_NOT_SUPPORTED, "GM_MAPPED");
  const gm_request request = {.bytes = BYTES, .flags = GM_DEDICATED, .prefer = GM_MEMORY_SYSTEM};
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_types),
                                     cmocka_unit_test(test_the_short_word),
                                     cmocka_unit_test(test_a_full_type),
                                     cmocka_unit_test(test_contradictions),
                                     cmocka_unit_test(test_a_preference_that_nothing_meets_is_told),
                                     cmocka_unit_test(test_the_fast_path_sees_wishes),
                                     cmocka_unit_test(test_dedicated),
                                     cmocka_unit_test(test_dedicated_in_stream_order),
                                     cmocka_unit_test(test_a_group_is_not_dedicated),
                                     cmocka_unit_test(test_mapped),
                                     cmocka_unit_test(test_no_wait_takes_no_stream),
                                     cmocka_unit_test(test_an_upstream_chooses_its_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
