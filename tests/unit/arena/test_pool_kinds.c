/* Requests for rare kinds of memory: other usages, alignments, flags. However many there are, each is served. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "core/arena/arena.h"
#include "core/pool/pool.h"
#include "support/explained.h"
#include "support/pool_blocks.h"

#define MIB (UINT64_C(1) << 20)

enum { USAGES = 32, LEAST_SHIFT = 8, MOST_SHIFT = 20, KINDS = (USAGES - 1) * (MOST_SHIFT - LEAST_SHIFT) };

static void bench_open(pool_bench *bench, bool no_vmm) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BEST_FIT, .no_vmm = no_vmm};
  pool_bench_open(bench, "null", "null:capacity=8G", &params);
}

static gm_block take_as(pool_bench *bench, const gm_request *request) {
  gm_block block = {0};
  const gm_acquire answer = gm_alloc(bench->pool, request, &block);
  if (answer > GM_ACQUIRE_FRESH) fail_msg("usage %u, align %u: %d", request->usage, request->align, answer);
  if (request->align) assert_int_equal(block.address % request->align, 0);
  return block;
}

/* More kinds than a pool can have arenas; then plain requests, which need one, too. */
static void test_any_number_of_kinds(void **state) {
  (void)state;
  for (int no_vmm = 0; no_vmm < 2; no_vmm++) {
    pool_bench bench;
    gm_block blocks[KINDS];
    int count = 0;
    bench_open(&bench, no_vmm);
    for (uint32_t usage = 1; usage < USAGES; usage++) {
      for (uint32_t shift = LEAST_SHIFT; shift < MOST_SHIFT; shift++) {
        const gm_request request = {.bytes = 256, .usage = usage, .align = UINT32_C(1) << shift};
        blocks[count++] = take_as(&bench, &request);
      }
    }
    assert_in_range(pool_bench_stats(&bench).reserved_bytes, 1, 64 * MIB);
    assert_in_range(atomic_load(&bench.pool->heap.arenas.count), 2, 20);
    const gm_block plain = take_as(&bench, &(gm_request){.bytes = 256});
    give(&bench, &plain, NULL);
    while (count) give(&bench, &blocks[--count], NULL);
    pool_bench_close(&bench);
  }
}

/* Memory that can do more serves, where that costs nothing; memory that the host reads is another kind. */
static void test_a_kind_that_can_more_serves(void **state) {
  (void)state;
  static const gm_request asked[] = {{.bytes = 256, .align = 65536, .usage = GM_USAGE_UNIFORM | GM_USAGE_INDIRECT},
                                     {.bytes = 256, .align = 65536, .usage = GM_USAGE_UNIFORM},
                                     {.bytes = 256, .align = 8192, .usage = GM_USAGE_INDIRECT},
                                     {.bytes = 256, .align = 8192, .usage = GM_USAGE_UNIFORM | GM_USAGE_READBACK}};
  pool_bench bench;
  gm_block blocks[4];
  bench_open(&bench, true);
  for (size_t i = 0; i < 4; i++) blocks[i] = take_as(&bench, &asked[i]);
  assert_int_equal(blocks[1].memory, blocks[0].memory);
  assert_int_equal(blocks[2].memory, blocks[0].memory);
  assert_int_not_equal(blocks[3].memory, blocks[0].memory);
  assert_int_equal(gm__arena_of_block(&bench.pool->heap.arenas, &blocks[0])->segments->allocation->usage,
                   asked[0].usage);
  for (size_t i = 0; i < 4; i++) give(&bench, &blocks[i], NULL);
  check_trim_to_nothing(&bench);
  pool_bench_close(&bench);
}

/* A new segment of an arena can all that the arena's kind can, whatever less the request wants. */
static void test_a_segment_is_of_the_whole_kind(void **state) {
  (void)state;
  pool_bench bench;
  bench_open(&bench, true);
  const gm_block block = take_as(&bench, &(gm_request){.bytes = 256, .usage = GM_USAGE_TRANSFER});
  assert_int_equal(gm__arena_of_block(&bench.pool->heap.arenas, &block)->segments->allocation->usage,
                   GM_USAGE_TRANSFER | GM_USAGE_STORAGE);
  give(&bench, &block, NULL);
  check_trim_to_nothing(&bench);
  pool_bench_close(&bench);
}

/* The table of arenas is full: what is there serves if it can, and else both answer and report say why not. */
static void test_a_full_table_of_arenas(void **state) {
  (void)state;
  static const gm_request kinds[] = {{.bytes = 256, .align = 65536}, {.bytes = 256, .flags = GM_COMMIT}};
  pool_bench bench;
  gm_block blocks[2];
  bench_open(&bench, true);
  const gm_block plain = take_as(&bench, &(gm_request){.bytes = 256});
  blocks[0] = take_as(&bench, &kinds[0]);
  const uint32_t count = atomic_load(&bench.pool->heap.arenas.count);
  atomic_store(&bench.pool->heap.arenas.count, GM__ARENA_SET_ARENAS - 1); /* the others are none */
  const gm_block more = take_as(&bench, &(gm_request){.bytes = 256, .align = 1 << 20});
  assert_int_equal(gm__arena_of_block(&bench.pool->heap.arenas, &more)->number,
                   gm__arena_of_block(&bench.pool->heap.arenas, &blocks[0])->number);
  assert_int_equal(explained_alloc(bench.pool, &kinds[1], &blocks[1]), GM_ACQUIRE_EXHAUSTED);
  const gm_explanation why = explained(bench.pool, &kinds[1]);
  assert_int_equal(why.last_failure.status, GM_ERR_OUT_OF_HOST_MEMORY);
  assert_non_null(strstr(why.last_failure.message, "as many threads and kinds of memory"));
  atomic_store(&bench.pool->heap.arenas.count, count);
  blocks[1] = take_as(&bench, &kinds[1]);
  for (size_t i = 0; i < 2; i++) give(&bench, &blocks[i], NULL);
  give(&bench, &more, NULL);
  give(&bench, &plain, NULL);
  check_trim_to_nothing(&bench);
  pool_bench_close(&bench);
}

/* A second of virtual work on the stream. */
static void work(const pool_bench *bench, const gm_stream *stream) {
  const gm_memory nowhere = {.handle = 1, .bytes = 64};
  gm_backend_point point;
  const gm_status status =
      gm__null_backend.fill(bench->device->handle, stream->handle, &nowhere, 0, 64, "", 1, &point, NULL);
  assert_int_equal(status, GM_OK);
}

/* The arena that they share is of a smaller alignment; a block in it that needs a wait serves all the same. */
static void test_a_wait_is_had_where_kinds_share_an_arena(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BEST_FIT, .no_vmm = true};
  pool_bench bench;
  gm_stream *a, *b;
  gm_block kinds[9];
  pool_bench_open(&bench, "null", "null:capacity=8G,latency=1000000000", &params);
  pool_bench_ok(gm_stream_create(bench.device, &a, err));
  pool_bench_ok(gm_stream_create(bench.device, &b, err));
  for (uint32_t i = 0; i < 9; i++) {
    const uint32_t flags = i < 5 ? 0 : GM_COMMIT;
    kinds[i] = take_as(&bench, &(gm_request){.bytes = 256, .usage = 1u << i % 5, .align = 8192, .flags = flags});
  }
  gm_request request = {.bytes = MIB, .usage = GM_USAGE_UNIFORM | GM_USAGE_INDIRECT, .align = 65536, .stream = a};
  gm_block block = take_as(&bench, &request);
  assert_true(gm__arena_of_block(&bench.pool->heap.arenas, &block)->kind.align < request.align);
  work(&bench, a);
  give(&bench, &block, a);
  request.stream = b;
  request.flags = GM_POOLED_ONLY | GM_INSERT_WAIT;
  block = take_as(&bench, &request);
  give(&bench, &block, b);
  for (int i = 0; i < 9; i++) give(&bench, &kinds[i], NULL);
  gm__null_advance(bench.device->handle, UINT64_C(10000000000));
  pool_bench_ok(gm_stream_close(a, err));
  pool_bench_ok(gm_stream_close(b, err));
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_wait_is_had_where_kinds_share_an_arena),
      cmocka_unit_test(test_any_number_of_kinds),
      cmocka_unit_test(test_a_kind_that_can_more_serves),
      cmocka_unit_test(test_a_segment_is_of_the_whole_kind),
      cmocka_unit_test(test_a_full_table_of_arenas),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
