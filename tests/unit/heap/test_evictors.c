/* Evictors: caches of the program that give memory up when a request would fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gm/copy.h"
#include "gm/debug.h"
#include "gm/size.h"
#include "support/evicting_cache.h"
#include "support/explained.h"

/* ---- a full device, and a full pool ---- */

static void test_a_full_device_is_served(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    pool_bench bench;
    gm_block block;
    cache own = {0};
    pool_bench_open(&bench, "null", "null:capacity=16M", &kinds[i]);
    cache_register(&own, bench.device, 0, 0);
    cache_fill(&own, bench.pool, 14);
    assert_int_equal(own.calls, 0);
    assert_true(gm_acquired(ask(bench.pool, 4 * MIB, &block)));
    assert_true(own.calls >= 1 && own.calls <= 3);
    assert_int_equal(own.wanted[0], 2 * MIB); /* what is missing, no more */
    const gm_stats stats = pool_bench_stats(&bench);
    assert_int_equal(stats.evictions, own.calls);
    assert_int_equal(stats.evicted_bytes, (14 - own.count) * MIB);
    give(&bench, &block, NULL);
    cache_end(&own);
    pool_bench_close(&bench);
  }
}

static void check_cap(const char *backend, const gm_pool_params *params) {
  pool_bench bench;
  gm_block block;
  cache own = {0};
  gm_pool_params capped = *params;
  capped.max_bytes = 16 * MIB;
  pool_bench_open(&bench, backend, NULL, &capped);
  cache_register(&own, bench.device, 0, 0);
  cache_fill(&own, bench.pool, 15);
  assert_true(gm_acquired(ask(bench.pool, 4 * MIB, &block)));
  assert_true(own.calls >= 1);
  assert_int_equal(own.wanted[0], 3 * MIB);
  give(&bench, &block, NULL);
  cache_end(&own);
  pool_bench_close(&bench);
}

static void test_a_full_pool_is_served(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    check_cap("null", &kinds[i]);
    check_cap("cpu", &kinds[i]);
  }
}

/* The driver refuses where gm sets no bound. The missing bytes are not known then. */
static void test_a_drivers_refusal_is_served(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    pool_bench bench;
    gm_block block;
    cache own = {0};
    gm_pool_params free = kinds[i];
    free.memory_fraction = 1;
    free.min_free_bytes = GM_NO_LIMIT;
    pool_bench_open(&bench, "null", "null:capacity=16M", &free);
    cache_register(&own, bench.device, 0, 0);
    cache_fill(&own, bench.pool, 14);
    assert_true(gm_acquired(ask(bench.pool, 4 * MIB, &block)));
    assert_int_equal(own.wanted[0], 4 * MIB);
    give(&bench, &block, NULL);
    cache_end(&own);
    pool_bench_close(&bench);
  }
}

/* Idle memory of all pools goes first. */
static void test_idle_memory_goes_first(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block, idle;
  gm_pool *other;
  cache own = {0};
  pool_bench_open(&bench, "null", "null:capacity=16M", &kinds[1]);
  pool_bench_ok(gm_pool_create(bench.device, &kinds[1], &other, err));
  assert_true(gm_acquired(ask(other, 4 * MIB, &idle)));
  cache_register(&own, bench.device, 0, 0);
  cache_fill(&own, bench.pool, 8);
  assert_int_equal(gm_free(other, &idle, NULL), GM_OK);
  assert_true(gm_acquired(ask(bench.pool, 6 * MIB, &block)));
  assert_int_equal(own.calls, 0);
  give(&bench, &block, NULL);
  cache_end(&own);
  pool_bench_ok(gm_pool_destroy(other, err));
  pool_bench_close(&bench);
}

/* ---- order, and how much ---- */

static void test_priority_then_cost_then_age(void **state) {
  (void)state;
  static const struct {
    int32_t priority;
    uint64_t cost, expected;
  } cases[] = {{1, 5, 4}, {1, 3, 2}, {-1, 9, 1}, {2, 0, 5}, {1, 3, 3}};
  enum { CASES = sizeof cases / sizeof *cases };
  pool_bench bench;
  gm_block block;
  cache caches[CASES] = {0};
  uint32_t clock = 0;
  pool_bench_open(&bench, "null", "null:capacity=16M", &kinds[2]);
  for (int i = 0; i < CASES; i++) {
    caches[i].clock = &clock;
    cache_register(&caches[i], bench.device, cases[i].priority, cases[i].cost);
    cache_fill(&caches[i], bench.pool, 3);
  }
  assert_true(gm_acquired(ask(bench.pool, 16 * MIB, &block)));
  for (int i = 0; i < CASES; i++) {
    assert_int_equal(caches[i].at, cases[i].expected);
    assert_int_equal(caches[i].wanted[0], 15 * MIB - (cases[i].expected - 1) * 3 * MIB);
  }
  give(&bench, &block, NULL);
  for (int i = 0; i < CASES; i++) cache_end(&caches[i]);
  pool_bench_close(&bench);
}

/* The first one suffices, so the second one keeps what it has. */
static void test_no_more_than_needed_are_asked(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  cache first = {0}, second = {0};
  pool_bench_open(&bench, "null", "null:capacity=16M", &kinds[2]);
  cache_register(&second, bench.device, 1, 0);
  cache_register(&first, bench.device, 0, 0);
  cache_fill(&first, bench.pool, 8);
  cache_fill(&second, bench.pool, 8);
  assert_int_equal(ask(bench.pool, 2 * MIB, &block), GM_ACQUIRE_FRESH);
  assert_int_equal(first.calls, 1);
  assert_int_equal(second.calls, 0);
  give(&bench, &block, NULL);
  cache_end(&first);
  cache_end(&second);
  pool_bench_close(&bench);
}

/* A pool at its own cap does not empty the caches of another pool. */
static void test_a_cap_asks_evictors_of_its_pool(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block, held;
  gm_pool *capped;
  cache other = {0};
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 4 * MIB};
  pool_bench_open(&bench, "null", "null:capacity=16M", NULL);
  pool_bench_ok(gm_pool_create(bench.device, &params, &capped, err));
  const gm_evictor_params of_pool = {.struct_size = sizeof of_pool,
                                     .pool = bench.pool,
                                     .evictable = cache_evictable,
                                     .evict = cache_evict,
                                     .user = &other};
  pool_bench_ok(gm_evictor_register(bench.device, &of_pool, &other.evictor, err));
  cache_fill(&other, bench.pool, 8);
  assert_true(gm_acquired(ask(capped, 4 * MIB, &held)));
  assert_int_equal(ask(capped, MIB, &block), GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(other.calls, 0);
  assert_int_equal(gm_free(capped, &held, NULL), GM_OK);
  cache_end(&other);
  pool_bench_ok(gm_pool_destroy(capped, err));
  pool_bench_close(&bench);
}

/* ---- refusals ---- */

static void check_refused(pool_bench *bench, const cache *own, const gm_request *request, uint32_t calls) {
  gm_block block;
  const uint32_t count = own->count;
  assert_false(gm_acquired(explained_alloc(bench->pool, request, &block)));
  assert_int_equal(own->calls, calls);
  assert_int_equal(own->count, count);
  assert_int_equal(pool_bench_stats(bench).evicted_bytes, 0);
}

static void test_what_would_not_help_is_not_asked(void **state) {
  (void)state;
  pool_bench bench;
  cache own = {0};
  gm_block held;
  pool_bench_open(&bench, "null", "null:capacity=16M", &kinds[2]);
  assert_true(gm_acquired(ask(bench.pool, 8 * MIB, &held)));
  cache_register(&own, bench.device, 0, 0);
  cache_fill(&own, bench.pool, 6);
  check_refused(&bench, &own, &(gm_request){.bytes = 10 * MIB}, 0); /* all of it would not do */
  check_refused(&bench, &own, &(gm_request){.bytes = 17 * MIB}, 0); /* nor would an empty device */
  check_refused(&bench, &own, &(gm_request){.bytes = 4 * MIB, .flags = GM_POOLED_ONLY}, 0);
  pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 3 * MIB, err));
  check_refused(&bench, &own, &(gm_request){.bytes = 4 * MIB}, 0);
  give(&bench, &held, NULL);
  cache_end(&own);
  pool_bench_close(&bench);
}

static uint64_t always(void *user, uint64_t bytes) {
  ++*(uint32_t *)user;
  return bytes;
}

/* One that says nothing beforehand is asked. One that frees nothing ends it, and a liar is asked three times. */
static void test_evictors_that_free_nothing(void **state) {
  (void)state;
  uint64_t (*const evict[])(void *, uint64_t) = {never, always};
  static const uint32_t expected[] = {1, 3};
  for (int i = 0; i < 2; i++) {
    pool_bench bench;
    gm_block held, block;
    gm_evictor *evictor;
    uint32_t calls = 0;
    const gm_evictor_params params = {.struct_size = sizeof params, .evict = evict[i], .user = &calls};
    const gm_request request = {.bytes = 16 * MIB};
    pool_bench_open(&bench, "null", "null:capacity=16M", &kinds[2]);
    pool_bench_ok(gm_evictor_register(bench.device, &params, &evictor, err));
    assert_true(gm_acquired(ask(bench.pool, 8 * MIB, &held)));
    assert_int_equal(explained_alloc(bench.pool, &request, &block), GM_ACQUIRE_OVER_LIMIT);
    assert_int_equal(calls, expected[i]);
    give(&bench, &held, NULL);
    pool_bench_ok(gm_evictor_unregister(evictor, err));
    pool_bench_close(&bench);
  }
}

static void test_wrong_arguments(void **state) {
  (void)state;
  pool_bench bench;
  gm_evictor *evictor = NULL;
  gm_evictor_params params = {.struct_size = sizeof params, .evict = never};
  pool_bench_open(&bench, "null", NULL, NULL);
  assert_int_equal(gm_evictor_register(NULL, &params, &evictor, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_evictor_register(bench.device, NULL, &evictor, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_evictor_register(bench.device, &params, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  params.evict = NULL;
  assert_int_equal(gm_evictor_register(bench.device, &params, &evictor, NULL), GM_ERR_INVALID_ARGUMENT);
  params.struct_size = 0;
  assert_int_equal(gm_evictor_register(bench.device, &params, &evictor, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_null(evictor);
  assert_int_equal(gm_evictor_unregister(NULL, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* ---- what an evictor may do ---- */

static void allocate_too_much(cache *self) {
  gm_block block;
  assert_false(gm_acquired(ask(self->pool, 16 * MIB, &block)));
}

static void allocate_and_free(cache *self) {
  gm_block block;
  assert_int_equal(gm_free(self->pool, &self->blocks[--self->count], self->stream), GM_OK);
  assert_true(gm_acquired(ask(self->pool, MIB, &block)));
  assert_int_equal(gm_free(self->pool, &block, NULL), GM_OK);
}

static void unregister_self(cache *self) {
  pool_bench_ok(gm_evictor_unregister(self->evictor, err));
  self->evictor = NULL;
}

static void unregister_other(cache *self) {
  cache *other = self->extra_of;
  pool_bench_ok(gm_evictor_unregister(other->evictor, err));
  other->evictor = NULL;
}

/* An evictor that does `extra` in its call, and one behind it. */
static void check_extra(void (*extra)(cache *self), uint32_t calls_of_second) {
  for (int i = 0; i < KINDS; i++) {
    pool_bench bench;
    gm_block block = {0};
    cache first = {.extra = extra}, second = {0};
    first.extra_of = &second;
    pool_bench_open(&bench, "null", "null:capacity=16M", &kinds[i]);
    cache_register(&first, bench.device, 0, 0);
    cache_register(&second, bench.device, 1, 0);
    cache_fill(&first, bench.pool, 8);
    cache_fill(&second, bench.pool, 4);
    const gm_acquire answer = ask(bench.pool, 14 * MIB, &block);
    assert_int_equal(gm_acquired(answer), calls_of_second > 0);
    assert_true(first.calls >= 1);
    assert_int_equal(second.calls > 0, calls_of_second > 0);
    if (gm_acquired(answer)) give(&bench, &block, NULL);
    cache_end(&first);
    cache_end(&second);
    pool_bench_close(&bench);
  }
}

static void test_an_evictor_may_call_gm(void **state) {
  (void)state;
  check_extra(allocate_too_much, 1);
  check_extra(allocate_and_free, 1);
  check_extra(unregister_self, 1);
  check_extra(unregister_other, 0);
}

/* The stream is still at work when the cache frees, as a rule. */
static void keep_busy(cache *self) {
  for (int i = 0; i < 200; i++) {
    gm_point point;
    pool_bench_ok(gm_block_fill(self->pool, &self->blocks[0], 0, MIB, "", 1, self->stream, &point, err));
    gm_point_release(self->extra_of, &point);
  }
}

/* A guard holds freed blocks back until it has looked at them. No cache is emptied meanwhile. */
static void test_a_guarded_pool_is_served(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  cache own = {.extra = keep_busy};
  const gm_pool_params params = {.struct_size = sizeof params,
                                 .max_bytes = 17 * MIB,
                                 .strategy = GM_STRATEGY_BUCKET,
                                 .debug = GM_DEBUG_CHECK_FREED};
  pool_bench_open(&bench, "cpu", NULL, &params);
  own.extra_of = bench.device;
  pool_bench_ok(gm_stream_create(bench.device, &own.stream, err));
  cache_register(&own, bench.device, 0, 0);
  cache_fill(&own, bench.pool, 16);
  assert_true(gm_acquired(ask(bench.pool, 2 * MIB, &block)));
  assert_int_equal(own.calls, 1);
  assert_int_equal(own.count, 15);
  give(&bench, &block, NULL);
  const uint32_t calls = own.calls;
  assert_true(gm_acquired(ask(bench.pool, 2 * MIB, &block)));
  assert_int_equal(own.calls, calls); /* its own block was enough */
  give(&bench, &block, NULL);
  cache_end(&own);
  pool_bench_ok(gm_pool_destroy(bench.pool, err));
  pool_bench_ok(gm_stream_close(own.stream, err));
  pool_bench_ok(gm_pool_create(bench.device, NULL, &bench.pool, err));
  pool_bench_close(&bench);
}

/* A stream that is being captured waits for nothing and calls nobody. */
static void test_a_captured_stream_asks_nobody(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  cache own = {0};
  gm_stream *asks;
  const gm_pool_params params = {.struct_size = sizeof params, .flags = GM_POOL_CAPTURES};
  pool_bench_open(&bench, "null", "null:capacity=16M", &params);
  pool_bench_ok(gm_stream_create(bench.device, &asks, err));
  cache_register(&own, bench.device, 0, 0);
  cache_fill(&own, bench.pool, 16);
  pool_bench_ok(gm_stream_capture_begin(asks, err));
  const gm_request request = {.bytes = MIB, .stream = asks};
  assert_false(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  assert_int_equal(own.calls, 0);
  pool_bench_ok(gm_stream_capture_end(asks, err));
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  assert_true(own.calls > 0);
  give(&bench, &block, asks);
  cache_end(&own);
  pool_bench_ok(gm_stream_close(asks, err));
  pool_bench_close(&bench);
}

/* Memory that a stream may still use serves with a wait. */
static void test_busy_memory_serves_with_a_wait(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_point point;
  cache own = {0};
  pool_bench_open(&bench, "null", "null:capacity=16M,latency=1000000000", &kinds[2]);
  pool_bench_ok(gm_stream_create(bench.device, &own.stream, err));
  cache_register(&own, bench.device, 0, 0);
  cache_fill(&own, bench.pool, 16);
  pool_bench_ok(gm_block_fill(bench.pool, &own.blocks[15], 0, 1, "", 1, own.stream, &point, err));
  gm_point_release(bench.device, &point);
  gm_stream *asks;
  pool_bench_ok(gm_stream_create(bench.device, &asks, err));
  const gm_request request = {.bytes = MIB, .stream = asks};
  const gm_acquire answer = gm_alloc(bench.pool, &request, &block);
  assert_true(answer == GM_ACQUIRE_NEEDS_WAIT);
  assert_int_equal(own.calls, 1);
  give(&bench, &block, asks);
  cache_end(&own);
  pool_bench_ok(gm_stream_close(asks, err));
  pool_bench_ok(gm_stream_close(own.stream, err));
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_full_device_is_served),         cmocka_unit_test(test_a_full_pool_is_served),
      cmocka_unit_test(test_a_drivers_refusal_is_served),     cmocka_unit_test(test_idle_memory_goes_first),
      cmocka_unit_test(test_priority_then_cost_then_age),     cmocka_unit_test(test_no_more_than_needed_are_asked),
      cmocka_unit_test(test_a_cap_asks_evictors_of_its_pool), cmocka_unit_test(test_what_would_not_help_is_not_asked),
      cmocka_unit_test(test_evictors_that_free_nothing),      cmocka_unit_test(test_wrong_arguments),
      cmocka_unit_test(test_an_evictor_may_call_gm),          cmocka_unit_test(test_a_guarded_pool_is_served),
      cmocka_unit_test(test_a_captured_stream_asks_nobody),   cmocka_unit_test(test_busy_memory_serves_with_a_wait),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
