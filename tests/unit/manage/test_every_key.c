/* Every key of the configuration has a row. It says what the key changes in the default pool and around it, or what gm
 * says to whoever sets it. A key without a row fails, so a new key needs one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/key_looks.h"

/* ---- the table ---- */

typedef struct row {
  const char *key;
  const char *with;      /* other keys that it takes: "key=value;key=value" */
  const char *one, *two; /* values of the key; NULL: nobody sets it */
  uint64_t (*look)(gm_context *ctx);
  uint64_t if_one, if_two;
} row;

#define A_FOLDER "(a folder of the test)"

static const row rows[] = {
    {"memory_fraction", NULL, NULL, "0.5", look_room, 1, 0},
    {"min_free_bytes", NULL, NULL, "256M", look_room, 1, 0},
    {"cpu_fallback", NULL, NULL, "false", look_fallback, 1, 0},
    {"track_allocations", NULL, "false", "true", look_tracker, 0, 1},
    {"max_pool_bytes", NULL, NULL, "1M", look_room, 1, 0},
    {"allocation_strategy", NULL, NULL, "bucket", look_block_bytes, 524544, 1048576},
    {"pressure.medium", NULL, NULL, "0.3", look_level, GM_PRESSURE_LOW, GM_PRESSURE_MEDIUM},
    {"pressure.high", "pressure.medium=0.3", NULL, "0.4", look_level, GM_PRESSURE_MEDIUM, GM_PRESSURE_HIGH},
    {"pressure.critical", "pressure.medium=0.3;pressure.high=0.4", NULL, "0.45", look_level, GM_PRESSURE_HIGH,
     GM_PRESSURE_CRITICAL},
    {"pressure.hysteresis", NULL, NULL, "0", look_relief, GM_PRESSURE_MEDIUM, GM_PRESSURE_LOW},
    {"gpu.backend.enabled", NULL, NULL, "false", look_best, 1, 0},
    {"gpu.backend.device", NULL, NULL, "cpu", look_best, 1, 0},
    {"pre_allocate", "pre_allocate_sizes=4M", NULL, "true", look_new_pool, 0, 1},
    {"pre_allocate_sizes", "pre_allocate=true", NULL, "4M", look_new_pool, 0, 1},
    {"warmup_enabled", "warmup=4M:2", NULL, "false", look_new_pool, 1, 0},
    {"warmup", NULL, NULL, "4M:2", look_new_pool, 0, 1},
    {"small_block_threshold", NULL, NULL, "8M", look_quick_large, 0, 1},
    {"segment_size", NULL, NULL, "32M", look_segment, 2, 32},
    {"zero_segments", NULL, NULL, "true", look_zeros, 1, 0},
    {"coalescing_threshold", NULL, NULL, "1", look_coalesce, 1, 0},
    {"aggressive_coalescing", NULL, NULL, "true", look_quick_small, 1, 0},
    {"cache.stream_local", NULL, NULL, "0", look_quick_small, 1, 0},
    {"cache_size", NULL, NULL, "0", look_quick_small, 1, 0},
    {"cache.max_bytes", NULL, NULL, "0", look_kept, 8, 0},
    {"cache.max_age", NULL, NULL, "0", look_old, 1, 0},
    {"scaling.low", NULL, NULL, "0", look_bound_idle, 20, 4},
    {"scaling.high", NULL, NULL, "0.4", look_bound_half, 4, 0},
    {"scaling.factor", NULL, NULL, "1", look_bound_idle, 20, 4},
    {"cleanup.threshold", NULL, NULL, "0", look_cleaned, 0, 1},
    {"gpu.memory.cache_size", NULL, NULL, "7", look_cache, 100, 7},
    {"gpu.memory.cache_size", NULL, NULL, "2", look_store, 3, 2},
    {"gpu.memory.keep_in_vram", NULL, NULL, "false", look_store, 3, 1},
    {"gpu.ast.cache_enabled", NULL, NULL, "false", look_sets, 2, 4},
    {"gpu.ast.max_cache_size", NULL, NULL, "1", look_sets, 2, 4},
    {"reserve.share", "reserve.folder=/nowhere", NULL, "require", look_reserve, 1, 0},
    {"reserve.folder", "reserve.share=require", A_FOLDER, "/nowhere", look_reserve, 1, 0},
    {"staging.max_bytes", NULL, NULL, "0", look_staging, 2, 1},
    {"links.folder", NULL, A_FOLDER, "off", look_links, 1, 0},
    {"debug.red_zone_bytes", NULL, NULL, "64", look_red_zones, 0, 1},
    {"debug.poison", NULL, NULL, "true", look_old_bytes, 1, 0},
    {"debug.check_freed", NULL, NULL, "true", look_same_place, 1, 0},
    {"debug.ranges", NULL, NULL, "roctx", look_profiler, 0, 1},
};

/* Keys that change nothing in the default pool: gm says so. */
static const struct {
  const char *key, *value, *words;
} says[] = {
    {"max_pooled_per_bucket", "2", "bounds pools of buckets only"},
    {"cache.global", "2", "bounds pools of buckets only"},
    {"size_class_bits", "2", "sets the sizes of buckets"},
    {"stats_enabled", "off", "statistics are always on"},
};

static temp_folder folder;

static void set(gm_context *ctx, const char *key, const char *value) {
  if (value && strcmp(value, A_FOLDER) == 0) value = folder.path;
  if (value) pool_bench_ok(gm_config_set(ctx, key, value, err));
}

static void set_others(gm_context *ctx, const char *with) {
  char text[128], *rest = NULL;
  snprintf(text, sizeof text, "%s", with ? with : "");
  for (char *each = strtok_r(text, ";", &rest); each; each = strtok_r(NULL, ";", &rest)) {
    char *equals = strchr(each, '=');
    *equals = '\0';
    set(ctx, each, equals + 1);
  }
}

static uint64_t look(const row *r, const char *value) {
  gm_context *ctx = open_context(NULL, true);
  set_others(ctx, r->with);
  set(ctx, r->key, value);
  const uint64_t answer = r->look(ctx);
  assert_int_equal(times_said("(set by "), 0); /* a key with an effect */
  pool_bench_ok(gm_context_destroy(ctx, err));
  return answer;
}

static uint64_t look_in_child(const row *r, const char *value) {
  int status = 0;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) _exit((int)look(r, value));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return (uint64_t)WEXITSTATUS(status);
}

static void expect(const row *r, const char *value, uint64_t wanted) {
  const uint64_t answer = r->look == look_reserve ? look_in_child(r, value) : look(r, value);
  if (answer != wanted) fail_msg("%s = %s: %d, not %d", r->key, value ? value : "(not set)", (int)answer, (int)wanted);
}

static void test_every_key_changes_something(void **state) {
  (void)state;
  temp_folder_make(&folder);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    expect(&rows[i], rows[i].one, rows[i].if_one);
    expect(&rows[i], rows[i].two, rows[i].if_two);
  }
  temp_folder_remove(&folder);
}

static void test_every_key_has_a_row(void **state) {
  (void)state;
  const gm_config_key *key;
  for (size_t k = 0; (key = gm_config_key_at(k)); k++) {
    int count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) count += strcmp(rows[i].key, key->name) == 0;
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) count += strcmp(says[i].key, key->name) == 0;
    if (!count) fail_msg("the key %s has no row", key->name);
  }
}

/* ---- who sets a key without effect hears so, once ---- */

static void expect_said(gm_context *ctx, size_t i, const char *who) {
  char begin[128];
  snprintf(begin, sizeof begin, "gm: %s (set by %s) ", says[i].key, who);
  assert_int_equal(times_said(begin), 1);
  assert_int_equal(times_said(says[i].words), 1);
  set(ctx, says[i].key, says[i].value); /* it was said */
  assert_int_equal(times_said(says[i].words), 1);
  pool_bench_ok(gm_context_destroy(ctx, err));
}

static const char *environment_of(const char *name) {
  size_t k = 0;
  while (strcmp(gm_config_key_at(k)->name, name) != 0) k++;
  return gm_config_key_at(k)->environment;
}

static void write_line(const char *key, const char *value) {
  char line[128];
  snprintf(line, sizeof line, "%s = %s\n", key, value);
  temp_folder_write(&folder, "gm.conf", line, strlen(line));
}

static void test_keys_without_effect_are_told_to_each_source(void **state) {
  (void)state;
  temp_folder_make(&folder);
  for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
    gm_context *ctx = open_context(NULL, true);
    set(ctx, says[i].key, says[i].value);
    expect_said(ctx, i, "the program");
    write_line(says[i].key, says[i].value);
    ctx = open_context(NULL, true);
    pool_bench_ok(gm_config_load(ctx, temp_folder_join(&folder, "gm.conf"), err));
    expect_said(ctx, i, "a file");
    assert_int_equal(setenv("GM_CONFIG", temp_folder_join(&folder, "gm.conf"), 1), 0);
    ctx = open_context(NULL, false);
    expect_said(ctx, i, "a file");
    assert_int_equal(unsetenv("GM_CONFIG"), 0);
    assert_int_equal(setenv(environment_of(says[i].key), says[i].value, 1), 0);
    ctx = open_context(NULL, false);
    expect_said(ctx, i, "the environment");
    assert_int_equal(unsetenv(environment_of(says[i].key)), 0);
  }
  temp_folder_remove(&folder);
}

static void test_a_preset_says_it_too(void **state) {
  (void)state;
  gm_context *ctx = open_context("constrained", true);
  assert_int_equal(times_said("(set by a preset) bounds pools of buckets only"), 2);
  pool_bench_ok(gm_config_preset(ctx, "constrained", err));
  assert_int_equal(times_said("(set by "), 2);
  pool_bench_ok(gm_context_destroy(ctx, err));
}

/* A key that has an effect after all is not told: buckets are there, the value is the default, the other key comes
 * next. */
static void test_nothing_is_said_in_vain(void **state) {
  (void)state;
  gm_context *ctx = open_context(NULL, true);
  static const char file[] = "cache.global = 7\nallocation_strategy = bucket\nmax_pooled_per_bucket = 3\n";
  temp_folder_make(&folder);
  pool_bench_ok(gm_config_load(ctx, temp_folder_write(&folder, "gm.conf", file, sizeof file - 1), err));
  pool_bench_ok(gm_context_destroy(ctx, err));
  assert_int_equal(times_said("(set by "), 0);
  ctx = open_context(NULL, true);
  set(ctx, "cache.global", "500");
  set(ctx, "stats_enabled", "yes");
  set(ctx, "pre_allocate_sizes", "1M");
  set(ctx, "pre_allocate", "true");
  pool_bench_ok(gm_config_load(ctx, temp_folder_write(&folder, "gm.conf", "cache_size = 7\n", 15), err));
  assert_int_equal(times_said("(set by "), 0);
  pool_bench_ok(gm_context_destroy(ctx, err));
  write_line("pre_allocate_sizes", "1M");
  ctx = open_context(NULL, true);
  pool_bench_ok(gm_config_load(ctx, temp_folder_join(&folder, "gm.conf"), err));
  assert_int_equal(times_said("pre_allocate_sizes (set by a file) has an effect only while pre_allocate is true"), 1);
  pool_bench_ok(gm_context_destroy(ctx, err));
  temp_folder_remove(&folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_key_has_a_row),
      cmocka_unit_test(test_every_key_changes_something),
      cmocka_unit_test(test_keys_without_effect_are_told_to_each_source),
      cmocka_unit_test(test_a_preset_says_it_too),
      cmocka_unit_test(test_nothing_is_said_in_vain),
  };
  if (setenv("GM_ROCTX_LIBRARY", "/nowhere/libroctx64.so", 1)) return 1; /* as on a machine without the tool */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
