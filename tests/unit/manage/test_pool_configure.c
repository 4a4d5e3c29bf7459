/* gm_pool_configure: a running pool is tuned, also while other threads allocate and free. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "gm/cleanup.h"
#include "gm/config.h"
#include "gm/pressure.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1) << 20)

enum { BLOCKS = 10, ROUNDS = 2000, THREADS = 3 };

static const gm_pool_params buckets = {.struct_size = sizeof buckets, .strategy = GM_STRATEGY_BUCKET};

static void take_and_give(gm_pool *pool, uint64_t bytes) {
  gm_block blocks[BLOCKS];
  const gm_request request = {.bytes = bytes};
  for (int i = 0; i < BLOCKS; i++) assert_true(gm_acquired(gm_alloc(pool, &request, &blocks[i])));
  for (int i = 0; i < BLOCKS; i++) assert_int_equal(gm_free(pool, &blocks[i], NULL), GM_OK);
}

static void test_bounds_of_buckets_change(void **state) {
  static const char *const keys[] = {"max_pooled_per_bucket", "cache.global", "cache_size"};
  (void)state;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    pool_bench bench;
    pool_bench_open(&bench, "null", NULL, &buckets);
    take_and_give(bench.pool, MIB);
    assert_int_equal(pool_bench_stats(&bench).pooled_bytes, 8 * MIB);
    pool_bench_ok(gm_pool_configure(bench.pool, "scaling.factor", "1", err)); /* bounds stay as they are set */
    pool_bench_ok(gm_pool_configure(bench.pool, keys[i], "2", err));
    take_and_give(bench.pool, MIB);
    assert_int_equal(pool_bench_stats(&bench).pooled_bytes, 2 * MIB);
    pool_bench_close(&bench);
  }
}

static void test_memory_above_a_new_bound_goes_at_once(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    pool_bench bench;
    pool_bench_open(&bench, "null", NULL, i ? &buckets : NULL);
    take_and_give(bench.pool, MIB);
    assert_true(pool_bench_stats(&bench).pooled_bytes >= 8 * MIB);
    pool_bench_ok(gm_pool_configure(bench.pool, "cache.max_bytes", "0", err));
    assert_int_equal(pool_bench_stats(&bench).pooled_bytes, 0);
    pool_bench_close(&bench);
  }
}

static void check_value(gm_pool *pool, const char *key, const char *wanted) {
  char text[32];
  pool_bench_ok(gm_pool_get_config(pool, key, text, sizeof text, err));
  assert_string_equal(text, wanted);
}

/* A pool finds the key's default, then what was set, and the same again once it is set as it was told. */
static void test_values_are_told(void **state) {
  static const struct {
    const char *key, *at_first, *set;
  } values[] = {
      {"cache.stream_local", "100", "7"},
      {"cache_size", "1000", "8"},
      {"cache.max_bytes", "auto", "4096"},
      {"cache.max_age", "auto", "250"},
      {"scaling.low", "0.3", "0.25"},
      {"scaling.high", "0.8", "0.75"},
      {"scaling.factor", "1.5", "2"},
      {"max_pool_bytes", "0", "1048576"},
      {"coalescing_threshold", "0.1", "0.5"},
      {"cleanup.threshold", "0.9", "0.125"},
      {"pressure.hysteresis", "0.02", "0.0625"},
      {"cache.global", "500", "9"},
      {"max_pooled_per_bucket", "8", "3"},
      {"segment_size", "auto", "131072"},
      {"aggressive_coalescing", "false", "true"},
  };
  (void)state;
  for (int in_buckets = 0; in_buckets < 2; in_buckets++) {
    const gm_pool_params params = {.struct_size = sizeof params,
                                   .strategy = in_buckets ? GM_STRATEGY_BUCKET : GM_STRATEGY_BEST_FIT,
                                   .no_vmm = true};
    pool_bench bench;
    int told = 0;
    pool_bench_open(&bench, "null", NULL, &params);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
      char text[32], least[32];
      gm_error failure;
      const gm_status serves = gm_pool_get_config(bench.pool, values[i].key, text, sizeof text, &failure);
      assert_int_equal(serves, gm_pool_configure(bench.pool, values[i].key, values[i].set, &failure));
      if (serves) continue; /* both say that the pool has no use for it */
      told++;
      assert_string_equal(text, values[i].at_first);
      check_value(bench.pool, values[i].key, values[i].set);
      pool_bench_ok(gm_pool_configure(bench.pool, values[i].key, text, err));
      check_value(bench.pool, values[i].key, text);
      assert_int_equal(gm_pool_get_config(bench.pool, values[i].key, least, strlen(text), &failure),
                       GM_ERR_INVALID_ARGUMENT);
    }
    assert_int_equal(told, 13);
    pool_bench_close(&bench);
  }
}

static void test_wrong_questions_for_values(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  char text[32];
  pool_bench_open(&bench, "null", NULL, NULL);
  assert_int_equal(gm_pool_get_config(NULL, "cache_size", text, sizeof text, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_get_config(bench.pool, NULL, text, sizeof text, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_get_config(bench.pool, "cache_size", NULL, 0, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_get_config(bench.pool, "cache_sizes", text, sizeof text, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_get_config(bench.pool, "max_pooled_per_bucket", text, sizeof text, &failure),
                   GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_pool_get_config(bench.pool, "warmup", text, sizeof text, &failure), GM_ERR_NOT_SUPPORTED);
  pool_bench_close(&bench);
}

static void test_the_cap_changes(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  const gm_request request = {.bytes = 8 * MIB};
  pool_bench_open(&bench, "null", NULL, NULL);
  pool_bench_ok(gm_pool_configure(bench.pool, "max_pool_bytes", "1M", err));
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_OVER_LIMIT);
  pool_bench_ok(gm_pool_configure(bench.pool, "max_pool_bytes", "0", err));
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* Nobody asks the stream whether it is done, but a coalesce. */
static void test_the_threshold_of_coalescing_changes(void **state) {
  (void)state;
  pool_bench bench;
  gm_stream *stream;
  gm_block block;
  uint64_t joined = 0;
  pool_bench_open(&bench, "null", NULL, NULL);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  const gm_request request = {.bytes = 4096, .stream = stream};
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  assert_int_equal(gm_free(bench.pool, &block, stream), GM_OK);
  pool_bench_ok(gm_pool_configure(bench.pool, "coalescing_threshold", "1", err));
  const uint64_t before = pool_bench_stats(&bench).reclaimable_bytes;
  assert_true(before < pool_bench_stats(&bench).reserved_bytes);
  assert_int_equal(gm_pool_coalesce(bench.pool, false), before); /* never above 1: nothing is joined */
  pool_bench_ok(gm_pool_configure(bench.pool, "coalescing_threshold", "0", err));
  joined = gm_pool_coalesce(bench.pool, false);
  assert_int_equal(joined, pool_bench_stats(&bench).reserved_bytes);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

static void test_the_threshold_of_cleanup_changes(void **state) {
  (void)state;
  pool_bench bench;
  uint64_t bytes = 1;
  const gm_pool_params capped = {.struct_size = sizeof capped, .max_bytes = 64 * MIB};
  pool_bench_open(&bench, "null", NULL, &capped);
  take_and_give(bench.pool, MIB);
  const uint64_t had = pool_bench_stats(&bench).reserved_bytes;
  pool_bench_ok(gm_pool_cleanup(bench.pool, GM_CLEANUP_THRESHOLD_CONFIG, false, &bytes, err));
  assert_int_equal(bytes, 0);
  pool_bench_ok(gm_pool_configure(bench.pool, "cleanup.threshold", "0", err));
  pool_bench_ok(gm_pool_cleanup(bench.pool, GM_CLEANUP_THRESHOLD_CONFIG, false, &bytes, err));
  assert_int_equal(bytes, had);
  pool_bench_close(&bench);
}

/* ---- aggressive coalescing ---- */

/* Does a block that was freed wait, for itself, for a request of its size? To read statistics joins blocks. */
static bool keeps_apart(pool_bench *bench) {
  const uint64_t before = pool_bench_stats(bench).local_cache_hits;
  take_and_give(bench->pool, 4096);
  take_and_give(bench->pool, 4096);
  return pool_bench_stats(bench).local_cache_hits > before;
}

static void aggressive(const pool_bench *bench, bool on) {
  pool_bench_ok(gm_pool_configure(bench->pool, "aggressive_coalescing", on ? "true" : "false", err));
}

/* Freed blocks of the pool join without a call, as long as the mode lasts. */
static void test_aggressive_coalescing_lasts(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", NULL, NULL);
  assert_true(keeps_apart(&bench));
  aggressive(&bench, true);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0); /* nobody uses it: it goes at once */
  for (int round = 0; round < 3; round++) {
    assert_false(keeps_apart(&bench));
    pool_bench_ok(gm_pool_configure(bench.pool, "cache.stream_local", "200", err)); /* the mode is above this bound */
  }
  aggressive(&bench, false);
  assert_true(keeps_apart(&bench));
  pool_bench_close(&bench);
}

static void test_an_aggressive_pool_that_grows_gives_unused_segments_back(void **state) {
  (void)state;
  for (int on = 0; on < 2; on++) {
    pool_bench bench;
    gm_block small, large;
    const gm_request few = {.bytes = 8 * MIB}, many = {.bytes = 256 * MIB};
    const gm_pool_params segments = {.struct_size = sizeof segments, .no_vmm = true};
    pool_bench_open_device(&bench, "null", NULL);
    pool_bench_ok(gm_config_set(bench.ctx, "aggressive_coalescing", on ? "true" : "false", err));
    pool_bench_ok(gm_pool_create(bench.device, &segments, &bench.pool, err));
    assert_true(gm_acquired(gm_alloc(bench.pool, &few, &small)));
    assert_int_equal(gm_free(bench.pool, &small, NULL), GM_OK);
    const uint64_t unused = pool_bench_stats(&bench).reserved_bytes;
    assert_true(unused >= 8 * MIB);
    assert_true(gm_acquired(gm_alloc(bench.pool, &many, &large)));
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 256 * MIB + (on ? 0 : unused));
    assert_int_equal(gm_free(bench.pool, &large, NULL), GM_OK);
    pool_bench_close(&bench);
  }
}

/* The pool keeps the memory that the program asked it to keep. */
static void test_an_aggressive_pool_keeps_what_its_parameters_say(void **state) {
  (void)state;
  const gm_pool_params rows[] = {{.struct_size = sizeof rows[0], .keep_bytes = 1024 * MIB},
                                 {.struct_size = sizeof rows[0], .flags = GM_POOL_NO_TRIM}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    pool_bench bench;
    pool_bench_open(&bench, "null", NULL, &rows[i]);
    take_and_give(bench.pool, 4096);
    const uint64_t reserved = pool_bench_stats(&bench).reserved_bytes;
    aggressive(&bench, true);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, reserved);
    assert_false(keeps_apart(&bench));
    pool_bench_close(&bench);
  }
}

/* The next segment has the new size. */
static void test_the_size_of_segments_changes(void **state) {
  (void)state;
  static const struct {
    const char *size;
    uint64_t taken_mib;
  } rows[] = {{"32M", 32}, {"8M", 8}, {"auto", 2}};
  pool_bench bench;
  const gm_pool_params segments = {.struct_size = sizeof segments, .no_vmm = true};
  pool_bench_open(&bench, "null", NULL, &segments);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    pool_bench_ok(gm_pool_configure(bench.pool, "segment_size", rows[i].size, err));
    take_and_give(bench.pool, 4096);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, rows[i].taken_mib * MIB);
    assert_int_equal(gm_pool_clear(bench.pool), rows[i].taken_mib * MIB);
  }
  pool_bench_close(&bench);
}

/* ---- thresholds of the pressure ---- */

static gm_pressure_level level_of(gm_pool *pool) {
  gm_pressure now = {.struct_size = sizeof now};
  pool_bench_ok(gm_pool_pressure(pool, &now, err));
  return now.level;
}

static void count_level(void *user, const gm_pressure_event *event) { *(gm_pressure_level *)user = event->to; }

/* Two pools, each half used. One of them has thresholds of its own, which its watch knows. */
static void test_a_pool_has_thresholds_of_its_own(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool *other = NULL;
  gm_block blocks[2];
  gm_pressure_watch *watches[2];
  gm_pressure_level heard[2] = {GM_PRESSURE_LOW, GM_PRESSURE_LOW};
  const gm_request half = {.bytes = 32 * MIB};
  const gm_pool_params capped = {.struct_size = sizeof capped, .max_bytes = 64 * MIB};
  pool_bench_open(&bench, "null", NULL, &capped);
  pool_bench_ok(gm_pool_create(bench.device, &capped, &other, err));
  gm_pool *const pools[] = {bench.pool, other};
  for (int i = 0; i < 2; i++) {
    assert_true(gm_acquired(gm_alloc(pools[i], &half, &blocks[i])));
    pool_bench_ok(gm_pressure_watch_pool(pools[i], count_level, &heard[i], &watches[i], err));
    assert_int_equal(level_of(pools[i]), GM_PRESSURE_LOW);
  }
  pool_bench_ok(gm_pool_configure(bench.pool, "pressure.medium", "0.3", err));
  assert_int_equal(level_of(bench.pool), GM_PRESSURE_MEDIUM);
  pool_bench_ok(gm_pool_configure(bench.pool, "pressure.high", "0.4", err));
  pool_bench_ok(gm_pool_configure(bench.pool, "pressure.hysteresis", "0", err));
  assert_int_equal(level_of(bench.pool), GM_PRESSURE_HIGH);
  assert_int_equal(level_of(other), GM_PRESSURE_LOW);
  pool_bench_ok(gm_context_poll(bench.ctx, err));
  assert_int_equal(heard[0], GM_PRESSURE_HIGH);
  assert_int_equal(heard[1], GM_PRESSURE_LOW);
  pool_bench_ok(gm_pool_configure(bench.pool, "pressure.critical", "0.45", err));
  pool_bench_ok(gm_context_poll(bench.ctx, err));
  assert_int_equal(heard[0], GM_PRESSURE_CRITICAL);
  pool_bench_ok(gm_config_set(bench.ctx, "pressure.medium", "0.2", err)); /* the other pool follows its key */
  assert_int_equal(level_of(other), GM_PRESSURE_MEDIUM);
  for (int i = 0; i < 2; i++) {
    pool_bench_ok(gm_pressure_watch_end(watches[i], err));
    assert_int_equal(gm_free(pools[i], &blocks[i], NULL), GM_OK);
  }
  pool_bench_ok(gm_pool_destroy(other, err));
  pool_bench_close(&bench);
}

static void refused(gm_pool *pool, const char *key, const char *value, gm_status expected, const char *words) {
  gm_error err = {.status = GM_OK};
  assert_int_equal(gm_pool_configure(pool, key, value, &err), expected);
  assert_non_null(strstr(err.message, words));
}

static void test_keys_without_effect_are_refused(void **state) {
  (void)state;
  pool_bench bench;
  const gm_pool_params keeps = {.struct_size = sizeof keeps, .keep_bytes = MIB};
  pool_bench_open(&bench, "null", NULL, NULL);
  refused(bench.pool, "cache.global", "1", GM_ERR_NOT_SUPPORTED, "cache.max_bytes");
  refused(bench.pool, "max_pooled_per_bucket", "1", GM_ERR_NOT_SUPPORTED, "best_fit");
  refused(bench.pool, "segment_size", "1M", GM_ERR_NOT_SUPPORTED, "maps pages");
  refused(bench.pool, "zero_segments", "true", GM_ERR_NOT_SUPPORTED, "when it is created");
  refused(bench.pool, "cache_sizes", "1", GM_ERR_INVALID_ARGUMENT, "cache_size");
  refused(bench.pool, "scaling.low", "2", GM_ERR_INVALID_ARGUMENT, "scaling.low");
  refused(bench.pool, "cache_size", "-1", GM_ERR_INVALID_ARGUMENT, "cache_size");
  refused(bench.pool, NULL, "1", GM_ERR_INVALID_ARGUMENT, "NULL");
  refused(bench.pool, "cache_size", NULL, GM_ERR_INVALID_ARGUMENT, "NULL");
  refused(NULL, "cache_size", "1", GM_ERR_INVALID_ARGUMENT, "pool");
  refused(bench.pool, "pressure.medium", "0.9", GM_ERR_INVALID_ARGUMENT, "above `medium`");
  refused(bench.pool, "pressure.hysteresis", "0.7", GM_ERR_INVALID_ARGUMENT, "hysteresis");
  assert_int_equal(level_of(bench.pool), GM_PRESSURE_LOW); /* what was refused has not come to stay */
  pool_bench_close(&bench);
  pool_bench_open(&bench, "null", NULL, &buckets);
  refused(bench.pool, "aggressive_coalescing", "true", GM_ERR_NOT_SUPPORTED, "best_fit");
  refused(bench.pool, "segment_size", "1M", GM_ERR_NOT_SUPPORTED, "best_fit");
  pool_bench_close(&bench);
  pool_bench_open(&bench, "null", NULL, &keeps);
  refused(bench.pool, "cache.max_bytes", "1", GM_ERR_NOT_SUPPORTED, "keep_bytes");
  pool_bench_close(&bench);
}

static int warnings;

static void count_warnings(void *user, int level, const char *text) {
  (void)user;
  if (level == GM_LOG_WARN && strstr(text, "bounds pools of buckets only")) warnings++;
}

static void test_the_configuration_says_that_a_key_has_no_effect(void **state) {
  (void)state;
  gm_context *ctx = NULL;
  const gm_services services = {.log = count_warnings};
  const gm_context_params params = {.struct_size = sizeof params, .services = &services, .ignore_environment = true};
  assert_int_equal(gm_context_create(&params, &ctx, NULL), GM_OK);
  warnings = 0;
  assert_int_equal(gm_config_set(ctx, "cache_size", "1", NULL), GM_OK);
  assert_int_equal(warnings, 0);
  assert_int_equal(gm_config_set(ctx, "cache.global", "1", NULL), GM_OK);
  assert_int_equal(warnings, 1);
  assert_int_equal(gm_config_set(ctx, "allocation_strategy", "bucket", NULL), GM_OK);
  assert_int_equal(gm_config_set(ctx, "max_pooled_per_bucket", "1", NULL), GM_OK);
  assert_int_equal(warnings, 1);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* ---- under traffic ---- */

static atomic_bool traffic_failed;

static void *traffic(void *user) {
  gm_pool *pool = user;
  for (int i = 0; i < ROUNDS; i++) {
    gm_block one, two;
    const gm_request request = {.bytes = 4096u << (i % 6)};
    if (!gm_acquired(gm_alloc(pool, &request, &one))) atomic_store(&traffic_failed, true);
    if (!gm_acquired(gm_alloc(pool, &request, &two))) atomic_store(&traffic_failed, true);
    if (gm_free(pool, &one, NULL) || gm_free(pool, &two, NULL)) atomic_store(&traffic_failed, true);
  }
  return NULL;
}

static void tune(gm_pool *pool, int round) {
  static const struct {
    const char *key, *values[2];
  } keys[] = {{"cache.stream_local", {"0", "100"}},
              {"cache_size", {"1", "1000"}},
              {"cache.max_bytes", {"0", "auto"}},
              {"cache.max_age", {"0", "auto"}},
              {"scaling.low", {"0", "1"}},
              {"scaling.high", {"0", "1"}},
              {"scaling.factor", {"1", "2"}},
              {"max_pool_bytes", {"0", "1G"}},
              {"coalescing_threshold", {"0", "1"}},
              {"cleanup.threshold", {"0", "1"}},
              {"cache.global", {"0", "500"}},
              {"max_pooled_per_bucket", {"0", "8"}},
              {"pressure.medium", {"0.1", "0.6"}},
              {"pressure.high", {"0.7", "0.8"}},
              {"pressure.critical", {"0.9", "1"}},
              {"pressure.hysteresis", {"0", "0.05"}},
              {"aggressive_coalescing", {"true", "false"}},
              {"segment_size", {"8M", "auto"}}};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    const gm_status status = gm_pool_configure(pool, keys[i].key, keys[i].values[round % 2], NULL);
    if (status != GM_OK && status != GM_ERR_NOT_SUPPORTED) atomic_store(&traffic_failed, true);
  }
  gm_pressure now = {.struct_size = sizeof now};
  if (gm_pool_pressure(pool, &now, NULL) == GM_ERR_INVALID_ARGUMENT) atomic_store(&traffic_failed, true);
  (void)gm_pool_coalesce(pool, false);
  (void)gm_pool_cleanup(pool, GM_CLEANUP_THRESHOLD_CONFIG, false, NULL, NULL);
}

static void test_tuning_under_traffic(void **state) {
  (void)state;
  const gm_pool_params segments = {.struct_size = sizeof segments, .no_vmm = true};
  const gm_pool_params *const kinds[] = {NULL, &buckets, &segments};
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
    pool_bench bench;
    pthread_t threads[THREADS];
    atomic_store(&traffic_failed, false);
    pool_bench_open(&bench, "null", NULL, kinds[kind]);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, traffic, bench.pool), 0);
    for (int round = 0; round < 100; round++) tune(bench.pool, round);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(atomic_load(&traffic_failed));
    const gm_stats stats = pool_bench_stats(&bench);
    assert_int_equal(stats.allocs, 2 * THREADS * ROUNDS);
    assert_int_equal(stats.active, 0);
    assert_int_equal(stats.in_use_bytes, 0);
    pool_bench_close(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bounds_of_buckets_change),
      cmocka_unit_test(test_memory_above_a_new_bound_goes_at_once),
      cmocka_unit_test(test_values_are_told),
      cmocka_unit_test(test_wrong_questions_for_values),
      cmocka_unit_test(test_the_cap_changes),
      cmocka_unit_test(test_the_threshold_of_coalescing_changes),
      cmocka_unit_test(test_the_threshold_of_cleanup_changes),
      cmocka_unit_test(test_keys_without_effect_are_refused),
      cmocka_unit_test(test_the_configuration_says_that_a_key_has_no_effect),
      cmocka_unit_test(test_aggressive_coalescing_lasts),
      cmocka_unit_test(test_an_aggressive_pool_that_grows_gives_unused_segments_back),
      cmocka_unit_test(test_an_aggressive_pool_keeps_what_its_parameters_say),
      cmocka_unit_test(test_the_size_of_segments_changes),
      cmocka_unit_test(test_a_pool_has_thresholds_of_its_own),
      cmocka_unit_test(test_tuning_under_traffic),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
