/* Fragmentation is what lies between blocks, and nothing else: healthy pools have none, idle memory is none. */
#include "gm/fragmentation.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gm/advice.h"
#include "gm/cleanup.h"
#include "gm/pool_set.h"
#include "support/relocation_bench.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1024) * 1024)

enum { MANY = 64 };

static gm_fragmentation told(gm_pool *pool) {
  gm_fragmentation out = {.struct_size = sizeof out};
  pool_bench_ok(gm_pool_fragmentation(pool, &out, err));
  assert_true(out.scattered_bytes <= out.hole_bytes && out.largest_hole_bytes <= out.hole_bytes);
  assert_true(out.hole_bytes + out.idle_bytes <= out.reserved_bytes);
  assert_true(out.ratio >= 0 && out.ratio < 1);
  return out;
}

/* The statistics say what the call says, where one thread uses the pool. */
static gm_fragmentation told_twice(pool_bench *bench) {
  const gm_fragmentation out = told(bench->pool);
  const gm_stats stats = pool_bench_stats(bench);
  assert_int_equal(stats.hole_bytes, out.hole_bytes);
  assert_int_equal(stats.scattered_bytes, out.scattered_bytes);
  assert_int_equal(stats.largest_hole_bytes, out.largest_hole_bytes);
  assert_true(gm_stats_fragmentation(&stats) == out.ratio);
  return out;
}

static gm_block take(gm_pool *pool, uint64_t bytes) {
  const gm_request request = {.bytes = bytes};
  gm_block block;
  assert_in_range(gm_alloc(pool, &request, &block), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  return block;
}

static void give(gm_pool *pool, const gm_block *block) { assert_int_equal(gm_free(pool, block, NULL), GM_OK); }

/* A pool of one segment, or range of pages, with 64 blocks of 1 MiB that touch. */
static void open_full(pool_bench *bench, bool no_vmm, gm_block *blocks) {
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = no_vmm};
  pool_bench_open_device(bench, "null", "null:capacity=1G");
  if (no_vmm) pool_bench_ok(gm_config_set(bench->ctx, "segment_size", "64M", err));
  pool_bench_ok(gm_pool_create(bench->device, &params, &bench->pool, err));
  for (int i = 0; i < MANY; i++) blocks[i] = take(bench->pool, MIB);
  assert_int_equal(pool_bench_stats(bench).reserved_bytes, MANY * MIB);
}

static void close_full(pool_bench *bench, const gm_block *blocks, int first, int step) {
  for (int i = first; i < MANY; i += step) give(bench->pool, &blocks[i]);
  pool_bench_close(bench);
}

static bool even_place(const gm_block *block) { return block->address / MIB % 2 == 0; }

/* The emptiest of pools is not the most fragmented one. */
static void test_nothing_alive_is_no_fragmentation(void **state) {
  (void)state;
  for (int no_vmm = 0; no_vmm < 2; no_vmm++) {
    pool_bench bench;
    gm_block blocks[MANY];
    open_full(&bench, no_vmm, blocks);
    assert_true(told_twice(&bench).ratio == 0);
    for (int i = 0; i < MANY; i++) give(bench.pool, &blocks[i]);
    const gm_fragmentation all = told_twice(&bench);
    assert_true(all.ratio == 0 && all.holes == 0 && all.hole_bytes == 0);
    assert_int_equal(all.idle_bytes, MANY * MIB);
    assert_int_equal(gm_pool_trim(bench.pool, 0), all.idle_bytes);
    assert_int_equal(told_twice(&bench).idle_bytes, 0);
    pool_bench_close(&bench);
  }
}

/* 200 small blocks that stay, and 300 that come and go. */
static void test_a_young_pool_has_no_fragmentation(void **state) {
  (void)state;
  static const gm_pool_params params[] = {{.struct_size = sizeof *params},
                                          {.struct_size = sizeof *params, .no_vmm = true},
                                          {.struct_size = sizeof *params, .strategy = GM_STRATEGY_BUCKET}};
  static const uint64_t sizes[] = {256, 700000};
  for (int i = 0; i < 6; i++) {
    pool_bench bench;
    void *blocks[200];
    pool_bench_open(&bench, "null", "null:capacity=8G", &params[i / 2]);
    for (int k = 0; k < 200; k++) {
      blocks[k] = gm_malloc(bench.pool, i % 2 ? sizes[1] + (uint64_t)k : sizes[0], NULL);
      assert_non_null(blocks[k]);
    }
    for (int k = 0; k < 300; k++) gm_free_ptr(bench.pool, gm_malloc(bench.pool, 512, NULL), 0, NULL);
    const gm_fragmentation now = told_twice(&bench);
    const gm_stats stats = pool_bench_stats(&bench);
    if (gm_stats_fragmentation(&stats) >= 0.3) {
      fail_msg("pool %d, size %d: %g, %llu holes of %llu bytes, %llu scattered of %llu", i / 2, i % 2, now.ratio,
               (unsigned long long)now.holes, (unsigned long long)now.hole_bytes,
               (unsigned long long)now.scattered_bytes, (unsigned long long)now.reserved_bytes);
    }
    assert_int_equal(gm_advise(&stats, NULL, NULL, 0), 0);
    for (int k = 0; k < 200; k++) gm_free_ptr(bench.pool, blocks[k], 0, NULL);
    pool_bench_close(&bench);
  }
}

/* Each second block is free: 32 holes of 1 MiB. */
static void test_holes_between_blocks(void **state) {
  (void)state;
  for (int no_vmm = 0; no_vmm < 2; no_vmm++) {
    pool_bench bench;
    gm_block blocks[MANY];
    open_full(&bench, no_vmm, blocks);
    for (int i = 0; i < MANY; i++) {
      if (even_place(&blocks[i])) give(bench.pool, &blocks[i]);
    }
    const gm_fragmentation now = told_twice(&bench);
    assert_int_equal(now.holes, MANY / 2);
    assert_int_equal(now.hole_bytes, MANY / 2 * MIB);
    assert_int_equal(now.largest_hole_bytes, MIB);
    assert_int_equal(now.scattered_bytes, (MANY / 2 - 1) * MIB);
    assert_int_equal(now.idle_bytes, 0);
    assert_true(now.ratio > 0.96 && now.ratio < 0.97);
    gm_explanation why = {.struct_size = sizeof why};
    pool_bench_ok(gm_explain(bench.pool, NULL, &why, err));
    assert_true(why.fragmentation == now.ratio);
    assert_int_equal(why.largest_pooled_bytes, MIB);
    for (int i = 0; i < MANY; i++) {
      if (!even_place(&blocks[i])) give(bench.pool, &blocks[i]);
    }
    assert_true(told_twice(&bench).ratio == 0);
    pool_bench_close(&bench);
  }
}

/* A whole segment that nobody uses is kept apart from the holes of another. */
static void test_idle_segments_are_apart(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[MANY];
  open_full(&bench, true, blocks);
  const gm_block more = take(bench.pool, 64 * MIB); /* a second segment */
  for (int i = 0; i < MANY; i++) {
    if (even_place(&blocks[i])) give(bench.pool, &blocks[i]);
  }
  const gm_fragmentation before = told_twice(&bench);
  give(bench.pool, &more);
  const gm_fragmentation after = told_twice(&bench);
  assert_int_equal(after.idle_bytes, 64 * MIB);
  assert_int_equal(after.hole_bytes, before.hole_bytes);
  assert_true(after.ratio == before.ratio && after.largest_hole_bytes == MIB);
  assert_int_equal(gm_pool_trim(bench.pool, 0), 64 * MIB);
  assert_true(told_twice(&bench).ratio == before.ratio);
  for (int i = 0; i < MANY; i++) {
    if (!even_place(&blocks[i])) give(bench.pool, &blocks[i]);
  }
  pool_bench_close(&bench);
}

static void test_buckets_have_idle_blocks_only(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BUCKET};
  pool_bench bench;
  gm_block blocks[MANY];
  pool_bench_open(&bench, "null", "null:capacity=1G", &params);
  for (int i = 0; i < MANY; i++) blocks[i] = take(bench.pool, MIB);
  for (int i = 0; i < MANY; i += 2) give(bench.pool, &blocks[i]);
  const gm_fragmentation now = told_twice(&bench);
  assert_true(now.ratio == 0 && now.holes == 0);
  assert_int_equal(now.idle_bytes, pool_bench_stats(&bench).pooled_bytes);
  close_full(&bench, blocks, 1, 2);
}

/* Two streams freed every second block each. Memory that a stream may still use is free memory nevertheless. */
static void test_busy_streams_are_no_fragmentation(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[MANY];
  gm_stream *streams[2];
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true};
  pool_bench_open_device(&bench, "null", "null:capacity=1G,latency=1000000000000");
  pool_bench_ok(gm_config_set(bench.ctx, "segment_size", "64M", err));
  pool_bench_ok(gm_pool_create(bench.device, &params, &bench.pool, err));
  for (int s = 0; s < 2; s++) pool_bench_ok(gm_stream_create(bench.device, &streams[s], err));
  for (int i = 0; i < MANY; i++) {
    const gm_request request = {.bytes = MIB, .stream = streams[i % 2]};
    assert_in_range(gm_alloc(bench.pool, &request, &blocks[i]), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    gm_point point;
    pool_bench_ok(gm_block_fill(bench.pool, &blocks[i], 0, 1, "", 1, streams[i % 2], &point, err));
    gm_point_release(bench.device, &point);
  }
  for (int i = 0; i < MANY; i++) assert_int_equal(gm_free(bench.pool, &blocks[i], streams[i % 2]), GM_OK);
  const gm_fragmentation now = told_twice(&bench);
  assert_int_equal(pool_bench_stats(&bench).reclaimable_bytes, 0); /* no stream is done */
  assert_true(now.ratio == 0 && now.holes == 0);
  assert_int_equal(now.idle_bytes, MANY * MIB);
  for (int s = 0; s < 2; s++) pool_bench_ok(gm_stream_close(streams[s], err));
  pool_bench_close(&bench);
}

/* ---- advice ---- */

static size_t advised(pool_bench *bench, gm_advice *out) {
  told(bench->pool);
  const gm_stats stats = pool_bench_stats(bench);
  size_t count = gm_advise(&stats, NULL, out, 1);
  if (count && out->kind == GM_ADVICE_WARM_UP) count = 0; /* a short test */
  return count;
}

/* The call that the advice names joins the holes, and then there is nothing to advise. */
static void test_the_call_advised_helps(void **state) {
  (void)state;
  pool_bench bench;
  gm_buffer *buffers[MANY];
  gm_advice advice;
  pool_bench_open(&bench, "null", "null:capacity=1G", NULL);
  for (int i = 0; i < MANY; i++) buffers[i] = relocation_make(bench.pool, MIB, GM_RELOCATABLE);
  assert_int_equal(advised(&bench, &advice), 0);
  for (int i = 0; i < MANY; i += 2) gm_buffer_release(buffers[i], NULL);
  assert_true(told_twice(&bench).ratio > 0.9);
  assert_int_equal(advised(&bench, &advice), 1);
  assert_string_equal(advice.call, "gm_pool_compact");
  pool_bench_ok(gm_pool_compact(bench.pool, NULL, NULL, err));
  assert_true(told_twice(&bench).ratio < 0.1);
  assert_int_equal(advised(&bench, &advice), 0);
  for (int i = 1; i < MANY; i += 2) gm_buffer_release(buffers[i], NULL);
  pool_bench_close(&bench);
}

/* ---- threads ---- */

typedef struct worker {
  gm_pool *pool;
  gm_block block;
  pthread_barrier_t *turn;
} worker;

static void *work(void *user) {
  worker *self = user;
  self->block = take(self->pool, MIB);
  pthread_barrier_wait(self->turn);
  pthread_barrier_wait(self->turn);
  return NULL;
}

/* Each of four threads has a segment of its own with one hole: none of them is short of a larger piece. */
static void test_threads_with_a_hole_each(void **state) {
  (void)state;
  enum { THREADS = 4 };
  pool_bench bench;
  pthread_barrier_t turn;
  pthread_t threads[THREADS];
  worker workers[THREADS];
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true};
  pool_bench_open_device(&bench, "null", "null:capacity=1G");
  pool_bench_ok(gm_config_set(bench.ctx, "segment_size", "64M", err));
  pool_bench_ok(gm_pool_create(bench.device, &params, &bench.pool, err));
  pthread_barrier_init(&turn, NULL, THREADS + 1);
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){.pool = bench.pool, .turn = &turn};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  pthread_barrier_wait(&turn);
  const gm_fragmentation now = told(bench.pool); /* also of threads that run */
  assert_int_equal(now.holes, THREADS);
  assert_int_equal(now.hole_bytes, THREADS * 63 * MIB);
  assert_int_equal(now.largest_hole_bytes, 63 * MIB);
  assert_true(now.ratio == 0);
  const gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(stats.hole_bytes, now.hole_bytes); /* of the look just now */
  assert_int_equal(stats.largest_hole_bytes, 63 * MIB);
  pthread_barrier_wait(&turn);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < THREADS; i++) give(bench.pool, &workers[i].block);
  pthread_barrier_destroy(&turn);
  pool_bench_close(&bench);
}

/* ---- sums ---- */

static void test_sums_of_pools(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[MANY];
  gm_pool *other;
  gm_stats sum = {.struct_size = sizeof sum}, of_context = {.struct_size = sizeof of_context};
  open_full(&bench, true, blocks);
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true};
  pool_bench_ok(gm_pool_create(bench.device, &params, &other, err));
  const gm_block one = take(other, 4 * MIB);
  for (int i = 0; i < MANY; i++) {
    if (even_place(&blocks[i])) give(bench.pool, &blocks[i]);
  }
  told(bench.pool);
  pool_bench_ok(gm_device_stats(bench.device, &sum, err));
  assert_int_equal(sum.hole_bytes, GM_UNKNOWN_BYTES); /* of the other pool nobody knows */
  assert_true(gm_stats_fragmentation(&sum) == -1);
  told(other);
  pool_bench_ok(gm_device_stats(bench.device, &sum, err));
  assert_int_equal(sum.hole_bytes, 32 * MIB + 60 * MIB);
  assert_int_equal(sum.scattered_bytes, 31 * MIB);
  assert_int_equal(sum.largest_hole_bytes, 60 * MIB);
  pool_bench_ok(gm_context_stats(bench.ctx, &of_context, err));
  assert_memory_equal(&sum, &of_context, sizeof sum);
  gm_stats twice = sum;
  gm_stats_add(&twice, &sum);
  assert_int_equal(twice.hole_bytes, 2 * sum.hole_bytes);
  assert_int_equal(twice.largest_hole_bytes, sum.largest_hole_bytes);
  give(other, &one);
  pool_bench_ok(gm_pool_destroy(other, err));
  for (int i = 0; i < MANY; i++) {
    if (!even_place(&blocks[i])) give(bench.pool, &blocks[i]);
  }
  pool_bench_close(&bench);
}

/* Statistics are read often: they count no holes, and do not say that there are none. */
static void test_before_the_first_look_nobody_knows(void **state) {
  (void)state;
  pool_bench bench;
  char text[2048];
  pool_bench_open(&bench, "null", "null:capacity=1G", NULL);
  const gm_block block = take(bench.pool, MIB);
  const gm_stats before = pool_bench_stats(&bench);
  assert_int_equal(before.hole_bytes, GM_UNKNOWN_BYTES);
  assert_int_equal(before.scattered_bytes, GM_UNKNOWN_BYTES);
  assert_int_equal(before.largest_hole_bytes, GM_UNKNOWN_BYTES);
  assert_true(gm_stats_fragmentation(&before) == -1);
  gm_advice advice = {.kind = GM_ADVICE_WARM_UP};
  assert_true(gm_advise(&before, NULL, &advice, 1) == 0 || advice.kind == GM_ADVICE_WARM_UP);
  assert_true(gm_stats_format(&before, text, sizeof text) < sizeof text);
  assert_non_null(strstr(text, "hole_bytes unknown\n"));
  told_twice(&bench);
  give(bench.pool, &block);
  pool_bench_close(&bench);
}

static void test_figures_that_no_pool_has(void **state) {
  (void)state;
  gm_stats stats = {.struct_size = sizeof stats, .reserved_bytes = 100, .pooled_bytes = 100};
  assert_true(gm_stats_fragmentation(&stats) == 0);
  stats.hole_bytes = 8;
  stats.scattered_bytes = 6;
  assert_true(gm_stats_fragmentation(&stats) == 0.75);
  assert_true(gm_stats_fragmentation(NULL) == 0);
}

static void test_failures(void **state) {
  (void)state;
  pool_bench bench;
  gm_fragmentation out = {.struct_size = sizeof out}, small = {.struct_size = 4};
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  assert_int_equal(gm_pool_fragmentation(NULL, &out, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_fragmentation(bench.pool, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_fragmentation(bench.pool, &small, NULL), GM_ERR_INVALID_ARGUMENT);
  const gm_fragmentation none = told_twice(&bench);
  assert_true(none.reserved_bytes == 0 && none.idle_bytes == 0 && none.holes == 0);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_alive_is_no_fragmentation),
      cmocka_unit_test(test_a_young_pool_has_no_fragmentation),
      cmocka_unit_test(test_holes_between_blocks),
      cmocka_unit_test(test_idle_segments_are_apart),
      cmocka_unit_test(test_buckets_have_idle_blocks_only),
      cmocka_unit_test(test_busy_streams_are_no_fragmentation),
      cmocka_unit_test(test_the_call_advised_helps),
      cmocka_unit_test(test_threads_with_a_hole_each),
      cmocka_unit_test(test_sums_of_pools),
      cmocka_unit_test(test_before_the_first_look_nobody_knows),
      cmocka_unit_test(test_figures_that_no_pool_has),
      cmocka_unit_test(test_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
