/* Pools under several threads and in a forked child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/thread.h"
#include "core/pool/pool.h"
#include "gm/cleanup.h"
#include "gm/quota.h"
#include "support/pool_bench.h"
#include "support/random.h"

enum { THREADS = 4, TURNS = 400 };

typedef struct racer {
  gm_pool *pool;
  uint64_t random;
  uint64_t refused, beyond; /* times that the device held more than `bound` */
  uint64_t bound;
} racer;

static void race(void *argument) {
  racer *r = argument;
  gm_block blocks[8] = {{0}};
  for (int i = 0; i < TURNS; i++) {
    gm_block *block = &blocks[test_random(&r->random) % 8];
    if (block->bytes) {
      gm_free(r->pool, block, NULL);
      block->bytes = 0;
      if (i % 7 == 0) gm_pool_trim(r->pool, 0);
      continue;
    }
    gm_request request = {.bytes = test_random(&r->random) % (1 << 20) + 1};
    gm_acquire answer = gm_alloc(r->pool, &request, block);
    if (answer > GM_ACQUIRE_NEEDS_BARRIER) {
      block->bytes = 0;
      r->refused++;
    }
    if (atomic_load(&r->pool->device->own_bytes) > r->bound) r->beyond++;
  }
  for (int i = 0; i < 8; i++) {
    if (blocks[i].bytes) gm_free(r->pool, &blocks[i], NULL);
  }
}

/* All threads at once on the given pools; the number of refusals. */
static uint64_t run_race(gm_pool *const *pools, uint64_t bound) {
  gm__thread threads[THREADS];
  racer racers[THREADS];
  uint64_t refused = 0;
  for (int i = 0; i < THREADS; i++) {
    racers[i] = (racer){.pool = pools[i], .random = (uint64_t)i, .bound = bound};
    pool_bench_ok(gm__thread_create(&threads[i], "race", race, &racers[i], err));
  }
  for (int i = 0; i < THREADS; i++) {
    gm__thread_join(&threads[i]);
    assert_int_equal(racers[i].beyond, 0);
    refused += racers[i].refused;
  }
  return refused;
}

static void test_the_cap_holds_while_threads_race_for_it(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 1 << 20};
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  gm_pool *pools[THREADS] = {bench.pool, bench.pool, bench.pool, bench.pool};
  assert_true(run_race(pools, 1 << 20) > 0);
  gm_stats stats = pool_bench_stats(&bench);
  assert_true(stats.peak_reserved_bytes <= 1 << 20);
  assert_int_equal(stats.active, 0);
  assert_int_equal(stats.in_use_bytes, 0);
  pool_bench_close(&bench);
}

static void test_the_fraction_holds_while_pools_race_for_it(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=2M", NULL);
  pool_bench_ok(gm_config_set(bench.ctx, "memory_fraction", "0.5", err));
  gm_pool *pools[THREADS] = {bench.pool};
  for (int i = 1; i < THREADS; i++) pool_bench_ok(gm_pool_create(bench.device, NULL, &pools[i], err));
  assert_true(run_race(pools, 1 << 20) > 0);
  for (int i = 1; i < THREADS; i++) pool_bench_ok(gm_pool_destroy(pools[i], err));
  pool_bench_close(&bench);
}

/* One pool after the other: used, and ended, while others may be taking what it keeps. */
static void come_and_go(void *argument) {
  racer *r = argument;
  gm_device *device = r->pool->device;
  for (int i = 0; i < TURNS; i++) {
    const gm_pool_params params = {.struct_size = sizeof params,
                                   .strategy = i % 3 ? GM_STRATEGY_BEST_FIT : GM_STRATEGY_BUCKET,
                                   .no_vmm = i % 2 == 0};
    const gm_request request = {.bytes = test_random(&r->random) % (24 << 20) + 1};
    gm_block block;
    gm_pool *pool;
    pool_bench_ok(gm_pool_create(device, &params, &pool, err));
    const gm_acquire answer = gm_alloc(pool, &request, &block);
    if (answer <= GM_ACQUIRE_FRESH) assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
    pool_bench_ok(gm_pool_destroy(pool, err));
  }
}

/* Nobody waits for anybody for ever, and a pool that others look at stays until they are done. */
static void test_pools_take_what_others_keep(void **state) {
  (void)state;
  pool_bench bench;
  gm__thread threads[THREADS];
  racer racers[THREADS];
  pool_bench_open(&bench, "null", "null:capacity=32M", NULL);
  for (int i = 0; i < THREADS; i++) {
    racers[i] = (racer){.pool = bench.pool, .random = (uint64_t)i};
    pool_bench_ok(gm__thread_create(&threads[i], "pools", come_and_go, &racers[i], err));
  }
  for (int i = 0; i < THREADS; i++) gm__thread_join(&threads[i]);
  const gm_request request = {.bytes = 32 << 20};
  gm_block block;
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* Settings that may be changed at any time, changed while others allocate; the widest of it is `bound`. */
static void change(void *argument) {
  racer *r = argument;
  gm_context *ctx = r->pool->device->ctx;
  static const char *const shares[] = {"0.2", "0.5", "0.9"};
  for (int i = 0; i < TURNS; i++) {
    const uint64_t any = test_random(&r->random) % 3;
    pool_bench_ok(gm_config_set(ctx, "memory_fraction", shares[any], err));
    pool_bench_ok(gm_config_set(ctx, "coalescing_threshold", shares[2 - any], err));
    pool_bench_ok(gm_config_set(ctx, "cleanup.threshold", shares[any], err));
    pool_bench_ok(gm_config_set(ctx, "min_free_bytes", any ? "64K" : "0", err));
    pool_bench_ok(gm_pool_set_max_bytes(r->pool, r->bound >> any, err));
    pool_bench_ok(gm_pool_set_quota(r->pool, 0, any ? r->bound >> any : GM_NO_QUOTA, 0, 0, err));
    gm_pool_coalesce(r->pool, any == 0);
    gm_pool_shrink(r->pool, r->bound >> (any + 1));
  }
}

static void change_in_a_race(gm_strategy strategy) {
  pool_bench bench;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy, .max_bytes = 4 << 20};
  pool_bench_open(&bench, "null", "null:capacity=8M", &params);
  racer changer = {.pool = bench.pool, .random = 3, .bound = 4 << 20};
  gm__thread thread;
  gm_pool *pools[THREADS] = {bench.pool, bench.pool, bench.pool, bench.pool};
  pool_bench_ok(gm__thread_create(&thread, "change", change, &changer, err));
  run_race(pools, 4 << 20);
  gm__thread_join(&thread);
  const gm_stats stats = pool_bench_stats(&bench);
  assert_true(stats.peak_reserved_bytes <= 4 << 20);
  assert_int_equal(stats.active, 0);
  assert_int_equal(stats.in_use_bytes, 0);
  assert_int_equal(gm_pool_trim(bench.pool, 0), stats.reserved_bytes);
  pool_bench_close(&bench);
}

static void test_configuration_changes_while_threads_allocate(void **state) {
  (void)state;
  change_in_a_race(GM_STRATEGY_BUCKET);
  change_in_a_race(GM_STRATEGY_BEST_FIT);
}

/* Runs in the child: 0 when every call did what the contract says. */
static int in_the_child(pool_bench *bench, const gm_block *block) {
  gm_block other;
  gm_stats stats = {.struct_size = sizeof stats};
  gm_request request = {.bytes = 64};
  gm_error failure;
  if (gm_alloc(bench->pool, &request, &other) != GM_ACQUIRE_FAILED) return 1;
  if (gm_free(bench->pool, block, NULL) != GM_ERR_FORKED) return 2;
  if (gm_use_on(bench->pool, block, NULL) == GM_OK) return 3;
  if (gm_block_point(bench->pool, block).stream != 0) return 4;
  if (gm_pool_trim(bench->pool, 0) != 0) return 5;
  if (gm_block_of(bench->pool, (void *)(uintptr_t)block->address, &other) != GM_ERR_FORKED) return 6;
  if (gm_pool_set_max_bytes(bench->pool, 1, &failure) != GM_ERR_FORKED) return 7;
  gm_pool_stats(bench->pool, &stats);
  if (stats.active != 1) return 8;
  if (gm_pool_destroy(bench->pool, &failure)) return 9;
  if (gm_device_close(bench->device, &failure)) return 10;
  if (gm_context_destroy(bench->ctx, &failure)) return 11;
  return atomic_load(&bench->host.live_bytes) ? 12 : 0;
}

static void test_in_a_forked_child_only_host_memory_is_given_back(void **state) {
  (void)state;
  static const char *const backends[] = {"null", "cpu"};
  for (size_t i = 0; i < 2; i++) {
    pool_bench bench;
    gm_pool_params params = {.struct_size = sizeof params, .track = true};
    pool_bench_open(&bench, backends[i], NULL, &params);
    gm_request request = {.bytes = 4096};
    gm_block block, pooled;
    assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
    assert_true(gm_alloc(bench.pool, &request, &pooled) <= GM_ACQUIRE_FRESH);
    assert_int_equal(gm_free(bench.pool, &pooled, NULL), GM_OK);
    gm__mutex_lock(&bench.pool->heap.provider.lock); /* as if another thread were in a call just now */
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(in_the_child(&bench, &block));
    }
    gm__mutex_unlock(&bench.pool->heap.provider.lock);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    pool_bench_close(&bench);
  }
}

typedef struct relay {
  gm_pool *pool;
  _Atomic int turn, failed; /* whose turn it is; calls that failed */
} relay;

/* All threads are there until the last one is done. */
static void run_in_turn(void *argument) {
  static _Atomic int number;
  relay *r = argument;
  gm_block blocks[16];
  const int own = atomic_fetch_add(&number, 1) % THREADS;
  while (atomic_load(&r->turn) != own) usleep(100);
  for (int i = 0; i < 16; i++) {
    r->failed += gm_alloc(r->pool, &(gm_request){.bytes = 1 << 20}, &blocks[i]) > GM_ACQUIRE_FRESH;
  }
  for (int i = 0; i < 16; i++) r->failed += gm_free(r->pool, &blocks[i], NULL) != GM_OK;
  atomic_fetch_add(&r->turn, 1);
  while (atomic_load(&r->turn) < THREADS) usleep(100);
}

static gm_stats stats_after_relay(gm_strategy strategy) {
  pool_bench bench;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy};
  pool_bench_open(&bench, "null", "null:capacity=1G", &params);
  relay r = {.pool = bench.pool};
  gm__thread threads[THREADS];
  for (int i = 0; i < THREADS; i++) pool_bench_ok(gm__thread_create(&threads[i], "relay", run_in_turn, &r, err));
  for (int i = 0; i < THREADS; i++) gm__thread_join(&threads[i]);
  assert_int_equal(r.failed, 0);
  const gm_stats stats = pool_bench_stats(&bench);
  pool_bench_close(&bench);
  return stats;
}

/* Exact in buckets; a bound where each thread counts for itself. */
static void test_peaks_of_threads_that_take_turns(void **state) {
  (void)state;
  const gm_stats exact = stats_after_relay(GM_STRATEGY_BUCKET), bound = stats_after_relay(GM_STRATEGY_BEST_FIT);
  assert_int_equal(exact.peak_requested_bytes, 16 << 20);
  assert_int_equal(exact.peak_in_use_bytes, 16 << 20);
  assert_in_range(bound.peak_requested_bytes, 16 << 20, bound.peak_in_use_bytes);
  assert_in_range(bound.peak_in_use_bytes, 16 << 20, bound.peak_reserved_bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_cap_holds_while_threads_race_for_it),
      cmocka_unit_test(test_the_fraction_holds_while_pools_race_for_it),
      cmocka_unit_test(test_pools_take_what_others_keep),
      cmocka_unit_test(test_configuration_changes_while_threads_allocate),
      cmocka_unit_test(test_peaks_of_threads_that_take_turns),
      cmocka_unit_test(test_in_a_forked_child_only_host_memory_is_given_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
