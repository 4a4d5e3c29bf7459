/* The emergency clean-up asks evictors for all, and then gives back what they freed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gm/cleanup.h"
#include "gm/debug.h"
#include "support/evicting_cache.h"

static void test_a_device_is_cleaned(void **state) {
  (void)state;
  for (size_t k = 0; k < KINDS; k++) {
    pool_bench bench;
    cache early = {0}, late = {0};
    uint32_t clock = 0;
    uint64_t freed = 0;
    pool_bench_open(&bench, "null", "null:capacity=64M", &kinds[k]);
    early.clock = late.clock = &clock;
    cache_fill(&early, bench.pool, 4);
    cache_fill(&late, bench.pool, 8);
    cache_register(&late, bench.device, 2, 0);
    cache_register(&early, bench.device, 1, 0);
    pool_bench_ok(gm_device_cleanup(bench.device, &freed, err));
    assert_int_equal(early.at, 1);
    assert_int_equal(late.at, 2);
    assert_true(early.wanted[0] == GM_NO_LIMIT && late.wanted[0] == GM_NO_LIMIT);
    assert_int_equal(early.count + late.count, 0);
    assert_true(freed >=
                (kinds[k].strategy == GM_STRATEGY_BUCKET ? MIB : 12 * MIB)); /* a full bucket gives back at once */
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
    cache_end(&early);
    cache_end(&late);
    pool_bench_close(&bench);
  }
}

/* This is so for a device that has no pool, too, and one whose pool keeps its memory. */
static void test_a_context_is_cleaned(void **state) {
  (void)state;
  const gm_pool_params keeps = {.struct_size = sizeof keeps, .flags = GM_POOL_NO_TRIM};
  pool_bench bench;
  gm_device *bare, *other;
  gm_pool *pool;
  cache own = {0}, kept = {0}, none = {0};
  uint64_t freed = 1;
  pool_bench_open(&bench, "null", "null:capacity=64M,devices=3", NULL);
  pool_bench_ok(gm_device_open_index(bench.ctx, "null", 1, &bare, err));
  pool_bench_ok(gm_device_open_index(bench.ctx, "null", 2, &other, err));
  pool_bench_ok(gm_pool_create(other, &keeps, &pool, err));
  cache_fill(&own, bench.pool, 4);
  cache_fill(&kept, pool, 4);
  cache_register(&own, bench.device, 0, 0);
  cache_register(&kept, other, 0, 0);
  cache_register(&none, bare, 0, 0);
  pool_bench_ok(gm_context_cleanup(bench.ctx, &freed, err));
  assert_true(own.calls == 1 && kept.calls == 1 && none.calls == 1);
  assert_true(freed >= 4 * MIB && freed < 8 * MIB); /* of one pool: the other keeps its own */
  cache_end(&own);
  cache_end(&none);
  pool_bench_ok(gm_context_cleanup(bench.ctx, NULL, err));
  assert_true(own.calls == 1 && kept.calls == 2 && none.calls == 1);
  cache_end(&kept);
  pool_bench_ok(gm_pool_destroy(pool, err));
  pool_bench_ok(gm_device_close(bare, err));
  pool_bench_ok(gm_device_close(other, err));
  pool_bench_close(&bench);
}

static void clean_inside(cache *self) { pool_bench_ok(gm_device_cleanup(self->extra_of, NULL, err)); }

static void leave_inside(cache *self) {
  pool_bench_ok(gm_evictor_unregister(self->evictor, err));
  self->evictor = NULL;
}

/* An evictor that cleans up calls no evictor again. One that unregisters itself is gone afterwards. */
static void test_evictors_that_call_gm(void **state) {
  (void)state;
  pool_bench bench;
  cache first = {.extra = clean_inside}, second = {.extra = leave_inside};
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  first.extra_of = bench.device;
  cache_fill(&first, bench.pool, 2);
  cache_fill(&second, bench.pool, 2);
  cache_register(&first, bench.device, 0, 0);
  cache_register(&second, bench.device, 1, 0);
  pool_bench_ok(gm_context_cleanup(bench.ctx, NULL, err));
  assert_true(first.calls == 1 && second.calls == 1);
  pool_bench_ok(gm_device_cleanup(bench.device, NULL, err));
  assert_true(first.calls == 2 && second.calls == 1);
  cache_end(&first);
  cache_end(&second);
  pool_bench_close(&bench);
}

/* Freed blocks that wait for their check are memory that nobody uses. */
static void test_what_a_guard_holds_back_goes(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .debug = GM_DEBUG_CHECK_FREED, .no_vmm = true};
  pool_bench bench;
  cache guarded = {0};
  uint64_t freed = 0;
  pool_bench_open(&bench, "cpu", NULL, &params);
  cache_fill(&guarded, bench.pool, 4);
  cache_register(&guarded, bench.device, 0, 0);
  pool_bench_ok(gm_device_cleanup(bench.device, &freed, err));
  assert_true(freed >= 4 * MIB);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
  cache_end(&guarded);
  pool_bench_close(&bench);
}

/* In a forked child an evictor only gives host memory back. */
static void test_a_forked_child_unregisters(void **state) {
  (void)state;
  pool_bench bench;
  cache mine = {0}, more = {0};
  int answer = -1;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  cache_register(&mine, bench.device, 0, 0);
  cache_register(&more, bench.device, 0, 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    const bool forked = gm_context_cleanup(bench.ctx, NULL, NULL) == GM_ERR_FORKED;
    gm_evictor_unregister(more.evictor, NULL);
    gm_evictor_unregister(mine.evictor, NULL);
    gm_pool_destroy(bench.pool, NULL);
    gm_device_close(bench.device, NULL);
    _exit(forked && gm_context_destroy(bench.ctx, NULL) == GM_OK ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &answer, 0), child);
  assert_int_equal(answer, 0);
  cache_end(&mine);
  cache_end(&more);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_device_is_cleaned), cmocka_unit_test(test_a_context_is_cleaned),
      cmocka_unit_test(test_evictors_that_call_gm), cmocka_unit_test(test_what_a_guard_holds_back_goes),
      cmocka_unit_test(test_a_forked_child_unregisters)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
