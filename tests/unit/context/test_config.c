/* Configuration: every key, every source, their order, locks, bad values and unknown keys by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/context/config.h"
#include "core/context/config_keys.h"
#include "support/counted_services.h"

static gm_context *context_new(bool ignore_environment) {
  gm_context_params params = {.struct_size = sizeof params, .ignore_environment = ignore_environment};
  gm_context *ctx = NULL;
  assert_int_equal(gm_context_create(&params, &ctx, NULL), GM_OK);
  return ctx;
}

static void assert_value(gm_context *ctx, const char *key, const char *value, gm_config_source source) {
  char text[256];
  gm_config_source from = GM_CONFIG_DEFAULT;
  assert_int_equal(gm_config_get(ctx, key, text, sizeof text, &from, NULL), GM_OK);
  assert_string_equal(text, value);
  assert_int_equal(from, source);
}

static void write_file(char *path, const char *text) {
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  close(fd);
}

static void test_every_key_is_well_formed(void **state) {
  (void)state;
  gm_context *ctx = context_new(true);
  for (size_t i = 0; gm_config_key_at(i); i++) {
    const gm_config_key *key = gm_config_key_at(i);
    char name[64] = "GM_";
    for (size_t k = 0; key->name[k]; k++) {
      char letter = key->name[k];
      name[3 + k] = (char)(letter == '.' ? '_' : letter >= 'a' && letter <= 'z' ? letter - 32 : letter);
    }
    assert_string_equal(key->environment, name);
    assert_int_equal(gm__config_key_check(key, "", key->fallback, NULL), GM_OK);
    assert_true(strlen(key->meaning) > 10);
    assert_value(ctx, key->name, key->fallback, GM_CONFIG_DEFAULT);
    gm_status status = gm_config_set(ctx, key->name, key->fallback, NULL);
    assert_int_equal(status, key->effective ? GM_OK : GM_ERR_NOT_SUPPORTED);
    for (size_t k = 0; k < i; k++) assert_string_not_equal(key->name, gm_config_key_at(k)->name);
  }
  assert_null(gm_config_key_at(gm__config_key_count()));
  gm_context_destroy(ctx, NULL);
}

static void test_values_are_checked(void **state) {
  (void)state;
  static const char *const bad[][2] = {
      {"memory_fraction", "1.1"},
      {"memory_fraction", "-0.5"},
      {"memory_fraction", "nan"},
      {"memory_fraction", ""},
      {"min_free_bytes", "12Q"},
      {"min_free_bytes", "-1"},
      {"min_free_bytes", "99999999999999999999"},
      {"min_free_bytes", "18446744073709551615"}, /* would be auto */
      {"cpu_fallback", "maybe"},
      {"allocation_strategy", "buck"},
      {"allocation_strategy", ""},
      {"max_pooled_per_bucket", "1048577"},
      {"size_class_bits", "6"},
      {"segment_size", "1K"},
      {"pre_allocate_sizes", "4K,,1M"},
      {"warmup", "4K"},
      {"warmup", "4K:2,1M"},
      {"warmup", "4K:2:3"},
      {"scaling.factor", "0.5"},
      {"pressure.high", "0.8x"},
      {"max_pooled_per_bucket", "auto"},
  };
  static const char *const good[][2] = {
      {"memory_fraction", "0.5"},      {"min_free_bytes", "auto"},          {"min_free_bytes", "1G"},
      {"cpu_fallback", "off"},         {"allocation_strategy", "bucket"},   {"segment_size", "1G"},
      {"pre_allocate_sizes", "4K,1M"}, {"warmup", "4K:50,64K:20"},          {"max_pool_bytes", "18446744073709551615"},
      {"cache.max_bytes", "1G"},       {"gpu.memory.max_fraction", "0.25"}, {"gpu.memory.cache_size", "50"},
      {"gpu.ast.max_cache_size", "0"},
  };
  gm_context *ctx = context_new(true);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    gm_error err = {.status = GM_OK};
    assert_int_equal(gm_config_set(ctx, bad[i][0], bad[i][1], &err), GM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, bad[i][0]));
  }
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    assert_int_equal(gm_config_set(ctx, good[i][0], good[i][1], NULL), GM_OK);
  }
  assert_value(ctx, "memory_fraction", "0.25", GM_CONFIG_CODE); /* by its alias */
  assert_true(gm__config_fraction(ctx, "memory_fraction") == 0.25);
  assert_true(gm__config_u64(ctx, "min_free_bytes") == 1u << 30);
  assert_false(gm__config_bool(ctx, "cpu_fallback"));
  assert_int_equal(gm_config_set(ctx, "min_free_bytes", "auto", NULL), GM_OK);
  assert_true(gm__config_u64(ctx, "min_free_bytes") == UINT64_MAX);
  gm_context_destroy(ctx, NULL);
}

static void test_unknown_keys_are_named_with_the_nearest(void **state) {
  (void)state;
  gm_context *ctx = context_new(true);
  gm_error err = {.status = GM_OK};
  assert_int_equal(gm_config_set(ctx, "memory_fracton", "0.5", &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "memory_fracton"));
  assert_non_null(strstr(err.message, "memory_fraction"));
  char text[4], big[64];
  assert_int_equal(gm_config_get(ctx, "nope", big, sizeof big, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_config_get(ctx, "cpu_fallback", text, sizeof text, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "capacity"));
  assert_int_equal(gm_config_set(ctx, NULL, "1", &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_config_set(ctx, "cpu_fallback", NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_config_get(ctx, NULL, text, 4, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_config_lock(ctx, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_config_lock(ctx, "nope", &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_config_preset(ctx, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_config_load(ctx, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  gm_context_destroy(ctx, NULL);
}

static void test_sources_keep_their_order(void **state) {
  (void)state;
  char path[] = "/tmp/gm-config-XXXXXX";
  write_file(path, "# comment\n\nmemory_fraction = 0.4  # why\nmax_pooled_per_bucket=3\r\n");
  setenv("GM_MEMORY_FRACTION", "0.6", 1);
  gm_context *ctx = context_new(false);
  assert_value(ctx, "memory_fraction", "0.6", GM_CONFIG_ENVIRONMENT);
  assert_int_equal(gm_config_load(ctx, path, NULL), GM_OK);
  assert_value(ctx, "memory_fraction", "0.6", GM_CONFIG_ENVIRONMENT);
  assert_value(ctx, "max_pooled_per_bucket", "3", GM_CONFIG_FILE);
  assert_int_equal(gm_config_set(ctx, "max_pooled_per_bucket", "5", NULL), GM_OK);
  assert_value(ctx, "max_pooled_per_bucket", "3", GM_CONFIG_FILE); /* a file stands above code */
  assert_int_equal(gm_config_preset(ctx, "constrained", NULL), GM_OK);
  assert_value(ctx, "max_pooled_per_bucket", "3", GM_CONFIG_FILE);
  assert_int_equal(gm_config_set(ctx, "memory_fraction", "0.7", NULL), GM_OK);
  assert_int_equal(gm_config_lock(ctx, "memory_fraction", NULL), GM_OK); /* now the program's word holds */
  assert_value(ctx, "memory_fraction", "0.7", GM_CONFIG_CODE);
  assert_int_equal(gm_config_set(ctx, "memory_fraction", "0.8", NULL), GM_ERR_INVALID_ARGUMENT);
  unsetenv("GM_MEMORY_FRACTION");
  gm_context_destroy(ctx, NULL);
  unlink(path);
}

static void test_presets_are_all_or_nothing(void **state) {
  (void)state;
  gm_context *ctx = context_new(true);
  gm_error err = {.status = GM_OK};
  assert_int_equal(gm_config_lock(ctx, "segment_size", NULL), GM_OK); /* not the first one of the preset */
  assert_int_equal(gm_config_preset(ctx, "constrained", &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "segment_size is locked"));
  assert_value(ctx, "memory_fraction", "0.9", GM_CONFIG_DEFAULT);
  assert_int_equal(gm_config_preset(ctx, "inference", NULL), GM_OK); /* which does not speak of it */
  gm_context_destroy(ctx, NULL);
}

static void test_files_are_all_or_nothing(void **state) {
  (void)state;
  static const char *const bad[] = {"memory_fraction = 0.4\nnonsense\n", "memory_fraction = 0.4\nno_such = 1\n",
                                    "memory_fraction = 0.4\nmax_pooled_per_bucket = many\n", "= 3\n"};
  gm_context *ctx = context_new(true);
  gm_error err = {.status = GM_OK};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char path[] = "/tmp/gm-config-XXXXXX";
    write_file(path, bad[i]);
    assert_int_equal(gm_config_load(ctx, path, &err), GM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, i == 3 ? ":1" : ":2"));
    assert_value(ctx, "memory_fraction", "0.9", GM_CONFIG_DEFAULT);
    unlink(path);
  }
  char zero[] = "/tmp/gm-config-XXXXXX";
  write_file(zero, "memory_fraction = 0.4\n");
  FILE *more = fopen(zero, "a");
  assert_non_null(more);
  fwrite("\0no_such = 1\n", 1, 13, more); /* what stands behind a byte 0 is read, too */
  fclose(more);
  assert_int_equal(gm_config_load(ctx, zero, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "byte 22 is 0"));
  assert_value(ctx, "memory_fraction", "0.9", GM_CONFIG_DEFAULT);
  unlink(zero);
  assert_int_equal(gm_config_load(ctx, "/nonexistent/gm.conf", &err), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_config_load(ctx, "/tmp", &err), GM_ERR_IO);
  char fifo[] = "/tmp/gm-fifo-XXXXXX";
  assert_non_null(mkdtemp(fifo));
  char pipe_path[64];
  snprintf(pipe_path, sizeof pipe_path, "%s/pipe", fifo);
  assert_int_equal(mkfifo(pipe_path, 0600), 0);
  assert_int_equal(gm_config_load(ctx, pipe_path, &err), GM_ERR_IO); /* and does not hang */
  unlink(pipe_path);
  rmdir(fifo);
  gm_context_destroy(ctx, NULL);
}

static void test_the_environment_is_the_operators(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm_context_params params = {.struct_size = sizeof params, .services = &host.services};
  gm_context *ctx = NULL;
  gm_error err = {.status = GM_OK};
  setenv("GM_MEMORY_FRACTION", "most", 1);
  assert_int_equal(gm_context_create(&params, &ctx, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "GM_MEMORY_FRACTION"));
  unsetenv("GM_MEMORY_FRACTION");
  setenv("GM_CONFIG", "relative.conf", 1);
  assert_int_equal(gm_context_create(&params, &ctx, &err), GM_ERR_INVALID_ARGUMENT);
  setenv("GM_CONFIG", "/nonexistent/gm.conf", 1);
  assert_int_equal(gm_context_create(&params, &ctx, &err), GM_ERR_NOT_FOUND);
  char path[] = "/tmp/gm-config-XXXXXX";
  write_file(path, "memory_fraction = 0.3\n");
  setenv("GM_CONFIG", path, 1);
  setenv("GM_LIBRARY", "x", 1); /* of no backend */
  assert_int_equal(gm_context_create(&params, &ctx, &err), GM_OK);
  assert_non_null(strstr(host.last_line, "GM_LIBRARY"));
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  unsetenv("GM_LIBRARY");
  setenv("GM_MEMORY_FRACTON", "0.5", 1);
  assert_int_equal(gm_context_create(&params, &ctx, &err), GM_OK);
  assert_value(ctx, "memory_fraction", "0.3", GM_CONFIG_FILE);
  assert_non_null(strstr(host.last_line, "GM_MEMORY_FRACTON")); /* an unknown variable is told, not ignored */
  unsetenv("GM_MEMORY_FRACTON");
  unsetenv("GM_CONFIG");
  unlink(path);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  counted_services_check(&host);
}

static void test_presets(void **state) {
  (void)state;
  static const char *const names[] = {"inference", "training", "constrained"};
  for (size_t i = 0; i < 3; i++) {
    gm_context_params params = {.struct_size = sizeof params, .preset = names[i], .ignore_environment = true};
    gm_context *ctx = NULL;
    assert_int_equal(gm_context_create(&params, &ctx, NULL), GM_OK);
    char text[16];
    gm_config_source source = GM_CONFIG_DEFAULT;
    assert_int_equal(gm_config_get(ctx, "memory_fraction", text, sizeof text, &source, NULL), GM_OK);
    assert_int_equal(source, GM_CONFIG_PRESET);
    assert_int_equal(gm_config_set(ctx, "memory_fraction", "0.5", NULL), GM_OK);
    assert_value(ctx, "memory_fraction", "0.5", GM_CONFIG_CODE);
    gm_context_destroy(ctx, NULL);
  }
}

static void test_host_memory_runs_out_in_a_load(void **state) {
  (void)state;
  char path[] = "/tmp/gm-config-XXXXXX";
  write_file(path, "memory_fraction = 0.3\ncpu_fallback = false\n");
  for (size_t n = 1;; n++) {
    counted_services host;
    counted_services_init(&host);
    gm_context_params params = {.struct_size = sizeof params, .services = &host.services, .ignore_environment = true};
    gm_context *ctx = NULL;
    assert_int_equal(gm_context_create(&params, &ctx, NULL), GM_OK);
    size_t before = atomic_load(&host.calls);
    host.fail_at = before + n;
    gm_status status = gm_config_load(ctx, path, NULL);
    assert_value(ctx, "memory_fraction", status == GM_OK ? "0.3" : "0.9",
                 status == GM_OK ? GM_CONFIG_FILE : GM_CONFIG_DEFAULT);
    gm_context_destroy(ctx, NULL);
    counted_services_check(&host);
    if (status == GM_OK) break;
    assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
  }
  unlink(path);
}

/* A reader's own count begins at 0: it reads the first time, too, where nobody has changed a value. */
static void test_the_first_reader_is_behind(void **state) {
  (void)state;
  gm_context_params params = {.struct_size = sizeof params, .ignore_environment = true};
  gm_context *ctx = NULL;
  assert_int_equal(gm_context_create(&params, &ctx, NULL), GM_OK);
  const uint64_t first = gm__config_changes(ctx);
  assert_true(first > 0);
  assert_int_equal(gm_config_set(ctx, "memory_fraction", "0.5", NULL), GM_OK);
  assert_true(gm__config_changes(ctx) > first);
  gm_context_destroy(ctx, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_key_is_well_formed),
      cmocka_unit_test(test_values_are_checked),
      cmocka_unit_test(test_unknown_keys_are_named_with_the_nearest),
      cmocka_unit_test(test_sources_keep_their_order),
      cmocka_unit_test(test_presets_are_all_or_nothing),
      cmocka_unit_test(test_files_are_all_or_nothing),
      cmocka_unit_test(test_the_environment_is_the_operators),
      cmocka_unit_test(test_presets),
      cmocka_unit_test(test_host_memory_runs_out_in_a_load),
      cmocka_unit_test(test_the_first_reader_is_behind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
