/* Loading by name and by override, the words when nothing is found, symbol tables, hooks. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/dynlib.h"
#include "core/base/library.h"
#include "support/counted_services.h"
#include "support/temp_folder.h"

static const char *const missing[] = {"libgm-no-such.so.1", "libgm-no-such.so", NULL};
static const char *const present[] = {"libgm-no-such.so.1", "libz.so.1", NULL};

static int clear_override(void **state) {
  (void)state;
  unsetenv("GM_TESTGPU_LIBRARY");
  return 0;
}

static void refuse_open(const gm__dynlib_spec *spec, gm_status status, const char *words) {
  gm__dynlib *lib = NULL;
  gm_error err;
  memset(&err, 0, sizeof err);
  assert_int_equal(gm__dynlib_open(NULL, spec, &lib, &err), status);
  assert_null(lib);
  assert_int_equal(err.status, status);
  if (!strstr(err.message, words)) fail_msg("\"%s\" lacks \"%s\"", err.message, words);
  assert_int_equal(gm__dynlib_open(NULL, spec, &lib, NULL), status);
}

static void test_absence_names_all_that_was_tried(void **state) {
  (void)state;
  gm__dynlib_spec spec = {"testgpu", missing, NULL, NULL};
  const char *reason = "libgm-no-such.so.1 not found (tried libgm-no-such.so.1, libgm-no-such.so)";
  refuse_open(&spec, GM_ERR_UNAVAILABLE, reason);
  spec.advice = "install the driver";
  refuse_open(&spec, GM_ERR_UNAVAILABLE, "libgm-no-such.so); install the driver");
}

static void test_the_first_that_is_there_is_loaded(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm__dynlib_spec spec = {"testgpu", present, NULL, NULL};
  gm__dynlib *lib = NULL;
  assert_int_equal(gm__dynlib_open(&host.services, &spec, &lib, NULL), GM_OK);
  assert_int_equal(gm__dynlib_path(lib)[0], '/');
  assert_non_null(strstr(gm__dynlib_path(lib), "libz.so.1"));
  gm__dynlib_close(lib);
  gm__dynlib_close(NULL);
  counted_services_check(&host);
}

static void test_overrides_must_not_be_relative(void **state) {
  (void)state;
  static const char *const bad[] = {"./libz.so.1", "../libz.so.1", "lib/libz.so.1", ".", ".."};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    gm__dynlib_spec spec = {"testgpu", present, bad[i], NULL};
    refuse_open(&spec, GM_ERR_INVALID_ARGUMENT, "testgpu must be an absolute path or a bare library name");
  }
}

static void test_an_override_that_fails_is_not_replaced(void **state) {
  (void)state;
  gm__dynlib_spec spec = {"testgpu", present, "/nowhere/libz.so.1", NULL};
  refuse_open(&spec, GM_ERR_UNAVAILABLE, "not found (tried /nowhere/libz.so.1 alone, as it was named)");
}

static void test_an_empty_override_is_none(void **state) {
  (void)state;
  gm__dynlib_spec spec = {"testgpu", present, "", NULL};
  gm__dynlib *lib = NULL;
  assert_int_equal(gm__dynlib_open(NULL, &spec, &lib, NULL), GM_OK);
  gm__dynlib_close(lib);
}

static void test_a_file_that_is_no_library_says_why(void **state) {
  (void)state;
  temp_folder root;
  char path[512];
  temp_folder_make(&root);
  temp_folder_write(&root, "libbroken.so",
                    "no library at all, but long enough to be read as one's first bytes.........", 75);
  snprintf(path, sizeof path, "%s/libbroken.so", root.path);
  gm__dynlib_spec spec = {"testgpu", missing, path, NULL};
  refuse_open(&spec, GM_ERR_UNAVAILABLE, "libbroken.so could not be loaded: ");
  char found[512] = "untouched";
  assert_false(gm__dynlib_find(&spec, found, sizeof found));
  temp_folder_remove(&root);
}

static void test_many_long_names_are_cut_not_overrun(void **state) {
  (void)state;
  static char name[3000];
  memset(name, 'n', sizeof name - 1);
  const char *const names[] = {name, name, name, NULL};
  gm__dynlib_spec spec = {"testgpu", names, NULL, "advice"};
  refuse_open(&spec, GM_ERR_UNAVAILABLE, "nnn");
  const char *const none[] = {NULL};
  spec.names = none;
  refuse_open(&spec, GM_ERR_UNAVAILABLE, "testgpu not found (tried )");
}

static void test_find_loads_nothing_and_knows_overrides(void **state) {
  (void)state;
  char found[PATH_MAX] = "untouched";
  gm__dynlib_spec spec = {"testgpu", missing, NULL, NULL};
  assert_false(gm__dynlib_find(&spec, found, sizeof found));
  assert_string_equal(found, "untouched");
  spec.path = "./libz.so.1";
  assert_false(gm__dynlib_find(&spec, found, sizeof found));
  spec.path = NULL;
  spec.names = present;
  assert_true(gm__dynlib_find(&spec, found, sizeof found));
  assert_non_null(strstr(found, "/libz.so.1"));
  spec.path = "libgm-other.so";
  assert_false(gm__dynlib_find(&spec, found, sizeof found));
}

typedef struct table {
  const char *(*version)(void);
  unsigned long (*crc)(unsigned long crc, const unsigned char *bytes, unsigned int count);
  void (*future)(void);
  void *guard;
} table;

static const gm__symbol wanted[] = {
    {"zlibVersion", offsetof(table, version), true},
    {"crc32", offsetof(table, crc), true},
    {"gmNoSuchSymbol", offsetof(table, future), false},
};

static int marker;

static gm__dynlib *open_zlib(void) {
  gm__dynlib_spec spec = {"testgpu", present, NULL, NULL};
  gm__dynlib *lib = NULL;
  assert_int_equal(gm__dynlib_open(NULL, &spec, &lib, NULL), GM_OK);
  return lib;
}

static void test_a_table_is_filled(void **state) {
  (void)state;
  gm__dynlib *lib = open_zlib();
  table entries;
  memset(&entries, 0xa5, sizeof entries);
  entries.guard = &marker;
  assert_int_equal(gm__dynlib_resolve(lib, wanted, 3, &entries, NULL, NULL, NULL), GM_OK);
  assert_int_equal(entries.version()[0], '1');
  assert_int_equal(entries.crc(0, (const unsigned char *)"123456789", 9), 0xcbf43926);
  assert_true(entries.future == NULL);
  assert_ptr_equal(entries.guard, &marker);
  gm__dynlib_close(lib);
}

static void test_a_missing_required_symbol_is_named(void **state) {
  (void)state;
  gm__dynlib *lib = open_zlib();
  static const gm__symbol strict[] = {
      {"zlibVersion", offsetof(table, version), true},
      {"gmNoSuchSymbol", offsetof(table, future), true},
      {"crc32", offsetof(table, crc), true},
  };
  table entries;
  memset(&entries, 0xa5, sizeof entries);
  entries.guard = &marker;
  gm_error err;
  assert_int_equal(gm__dynlib_resolve(lib, strict, 3, &entries, NULL, NULL, &err), GM_ERR_UNAVAILABLE);
  assert_string_equal(err.op, "gmNoSuchSymbol");
  assert_non_null(strstr(err.message, "has no gmNoSuchSymbol"));
  assert_non_null(strstr(err.message, "libz.so.1"));
  assert_true(entries.version == NULL && entries.crc == NULL && entries.future == NULL);
  assert_ptr_equal(entries.guard, &marker);
  gm__dynlib_close(lib);
}

static const char *fake_version(void) { return "fake"; }

static void fake_future(void) { marker++; }

typedef struct hook_log {
  int calls;
  const char *hide;
} hook_log;

static void *hook(void *user, const char *backend, const char *symbol, void *real) {
  hook_log *log = user;
  log->calls++;
  assert_string_equal(backend, "testgpu");
  assert_int_equal(real == NULL, strcmp(symbol, "gmNoSuchSymbol") == 0);
  if (log->hide && strcmp(symbol, log->hide) == 0) return NULL;
  const char *(*version)(void) = fake_version;
  void (*future)(void) = fake_future;
  if (strcmp(symbol, "zlibVersion") == 0) memcpy(&real, &version, sizeof real);
  if (strcmp(symbol, "gmNoSuchSymbol") == 0) memcpy(&real, &future, sizeof real);
  return real;
}

static void test_a_hook_replaces_adds_and_hides(void **state) {
  (void)state;
  gm__dynlib *lib = open_zlib();
  hook_log log = {0};
  table entries = {0};
  assert_int_equal(gm__dynlib_resolve(lib, wanted, 3, &entries, hook, &log, NULL), GM_OK);
  assert_int_equal(log.calls, 3);
  assert_string_equal(entries.version(), "fake");
  assert_true(entries.future == fake_future);
  log.hide = "crc32";
  assert_int_equal(gm__dynlib_resolve(lib, wanted, 3, &entries, hook, &log, NULL), GM_ERR_UNAVAILABLE);
  assert_true(entries.version == NULL);
  gm__dynlib_close(lib);
}

static void *look_up_nothing(void *user, const char *name) {
  (void)name;
  ++*(int *)user;
  return NULL;
}

static void test_another_source_of_symbols(void **state) {
  (void)state;
  int calls = 0;
  gm__symbol_source source = {look_up_nothing, &calls, "testgpu", "the engine's loader"};
  static const gm__symbol optional[] = {{"anything", offsetof(table, future), false}};
  table entries = {0};
  gm_error err;
  assert_int_equal(gm__symbols_resolve(&source, optional, 1, &entries, NULL, NULL, &err), GM_OK);
  assert_int_equal(gm__symbols_resolve(&source, wanted, 3, &entries, NULL, NULL, &err), GM_ERR_UNAVAILABLE);
  assert_non_null(strstr(err.message, "the engine's loader has no zlibVersion"));
  assert_int_equal(calls, 2);
  assert_int_equal(gm__symbols_resolve(&source, NULL, 0, NULL, NULL, NULL, &err), GM_OK);
}

static bool is_mapped(const char *path) {
  char line[PATH_MAX + 128];
  bool found = false;
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps)) found = found || strstr(line, path);
  fclose(maps);
  return found;
}

/* Opens and closes it; is it still mapped then? The versions are of two libraries that this program does not use
 * otherwise. */
static bool stays_mapped(const char *name, bool keep) {
  const char *const names[] = {name, NULL};
  gm__dynlib_spec spec = {"testgpu", names, NULL, NULL};
  gm__dynlib *lib = NULL;
  counted_services host;
  counted_services_init(&host);
  assert_int_equal(gm__dynlib_open(&host.services, &spec, &lib, NULL), GM_OK);
  assert_true(is_mapped(name));
  if (keep) gm__dynlib_keep(lib);
  gm__dynlib_close(lib);
  counted_services_check(&host);
  return is_mapped(name);
}

static void test_without_host_memory_nothing_stays_loaded(void **state) {
  (void)state;
  static const char *const names[] = {"libanl.so.1", NULL};
  gm__dynlib_spec spec = {"testgpu", names, NULL, NULL};
  gm__dynlib *lib = NULL;
  gm_error err;
  counted_services host;
  counted_services_init(&host);
  host.fail_at = 1;
  assert_int_equal(gm__dynlib_open(&host.services, &spec, &lib, &err), GM_ERR_OUT_OF_HOST_MEMORY);
  assert_int_equal(err.status, GM_ERR_OUT_OF_HOST_MEMORY);
  assert_null(lib);
  assert_false(is_mapped(names[0]));
}

static void test_a_kept_library_stays_another_goes(void **state) {
  (void)state;
  assert_false(stays_mapped("libanl.so.1", false));
  assert_true(stays_mapped("libBrokenLocale.so.1", true));
}

#define test_clean(test) cmocka_unit_test_setup_teardown(test, clear_override, clear_override)

int main(void) {
  const struct CMUnitTest tests[] = {
      test_clean(test_absence_names_all_that_was_tried),
      test_clean(test_the_first_that_is_there_is_loaded),
      test_clean(test_without_host_memory_nothing_stays_loaded),
      test_clean(test_overrides_must_not_be_relative),
      test_clean(test_an_override_that_fails_is_not_replaced),
      test_clean(test_an_empty_override_is_none),
      test_clean(test_a_file_that_is_no_library_says_why),
      test_clean(test_many_long_names_are_cut_not_overrun),
      test_clean(test_find_loads_nothing_and_knows_overrides),
      test_clean(test_a_table_is_filled),
      test_clean(test_a_missing_required_symbol_is_named),
      test_clean(test_a_hook_replaces_adds_and_hides),
      test_clean(test_another_source_of_symbols),
      test_clean(test_a_kept_library_stays_another_goes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
