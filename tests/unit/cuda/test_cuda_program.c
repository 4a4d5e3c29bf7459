/* Small copies and expansion by gm's PTX on the simulated driver, which plays it by the text that it was made of.
 * Without the kernels copies and the host do the same, and the log says so once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "support/cuda_fixture.h"
#include "support/expand_scene.h"
#include "support/program_scene.h"

enum { COUNT = 100 };

static cuda_fixture f;
static gm_services services;
static gm_memory from, to;
static struct {
  int lines;
  char text[512];
} told;

static void tell(void *user, int level, const char *line) {
  (void)user;
  (void)level;
  if (!strstr(line, "not by a kernel")) return;
  told.lines++;
  snprintf(told.text, sizeof told.text, "%s", line);
}

static void *hide(void *user, const char *backend, const char *symbol, void *real) {
  (void)backend;
  return user && strcmp(symbol, user) == 0 ? NULL : real;
}

static void begin_without(const char *symbol) {
  cuda_begin(&f);
  memset(&told, 0, sizeof told);
  services = *gm__default_services();
  services.log = tell;
  f.host.services = &services;
  f.host.symbol_hook = hide;
  f.host.symbol_hook_user = (void *)(uintptr_t)symbol;
  cuda_open(&f);
  from = cuda_memory(&f, 0, PROGRAM_BYTES);
  to = cuda_memory(&f, 0, PROGRAM_BYTES);
  program_scene_set(f.ops, f.device, f.stream, &from, &to);
  cuda_say("zero");
}

static int begin(void **state) {
  (void)state;
  begin_without(NULL);
  return 0;
}

static int end(void **state) {
  (void)state;
  cuda_free(&f, &from);
  cuda_free(&f, &to);
  cuda_end(&f);
  return 0;
}

static void many_copies_are_one_launch(void **state) {
  (void)state;
  program_scene_copy(COUNT);
  assert_int_equal(cuda_calls("cuLaunchKernel"), 1);
  program_scene_copy(16);
  assert_int_equal(cuda_calls("cuLaunchKernel"), 2);
  program_scene_copy(PROGRAM_MOST); /* more than the arguments of two launches hold */
  assert_int_equal(cuda_calls("cuLaunchKernel"), 5);
  assert_int_equal(cuda_calls("cuMemcpyDtoDAsync_v2"), 0);
  assert_int_equal(cuda_calls("cuModuleLoadData"), 1);
  assert_int_equal(cuda_calls("cuMemAlloc_v2"), 0);
  assert_int_equal(told.lines, 0);
}

static void what_does_not_suit_is_copied(void **state) {
  (void)state;
  program_scene_odd();
  assert_int_equal(cuda_calls("cuLaunchKernel"), 0);
}

/* The items go with the launch: the caller's list may change at once. */
static void a_launch_is_work_of_its_stream(void **state) {
  gm_backend_point point = {0};
  bool done = true;
  (void)state;
  program_scene_copy(COUNT);
  program_scene_items(COUNT + 1);
  cuda_say("hold");
  assert_int_equal(program_scene_run(COUNT + 1, &point, NULL), GM_OK);
  memset(program.items, 0, sizeof program.items);
  assert_int_equal(f.ops->point_done(f.device, &point, &done, NULL), GM_OK);
  assert_false(done);
  cuda_say("release");
  program_scene_items(COUNT + 1);
  program_scene_check(COUNT + 1);
  f.ops->point_release(f.device, &point, GM_CLOSE_NORMAL);
}

static void expect_copies(const char *reason) {
  program_scene_copy(COUNT);
  const long loads = cuda_calls("cuModuleLoadData");
  program_scene_copy(COUNT);
  assert_int_equal(told.lines, 1);
  if (!strstr(told.text, reason)) fail_msg("`%s` does not say `%s`", told.text, reason);
  assert_true(cuda_calls("cuMemcpyDtoDAsync_v2") > COUNT);
  assert_int_equal(cuda_calls("cuModuleLoadData"), loads);
}

static void a_driver_that_fails_is_told_once(void **state) {
  static const char *const cases[][2] = {
      {"fail cuModuleLoadData:1:218", "cuModuleLoadData: CUDA_ERROR_INVALID_PTX (218)"},
      {"fail cuModuleLoadData:1:222", "small copies go one by one, not by a kernel: cuModuleLoadData"},
      {"fail cuModuleGetFunction:1:500", "cuModuleGetFunction: CUDA_ERROR_NOT_FOUND (500)"},
      {"fail cuLaunchKernel:1:701", "cuLaunchKernel: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701)"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    begin(NULL);
    cuda_say(cases[i][0]);
    expect_copies(cases[i][1]);
    end(NULL);
  }
}

static void without_an_entry_copies_do_it(void **state) {
  static const char *const names[] = {"cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction", "cuLaunchKernel"};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    begin_without(names[i]);
    expect_copies("the driver has no modules");
    end(NULL);
  }
}

/* The second of three launches fails: copies do the rest. */
static void a_later_launch_that_fails_is_copied(void **state) {
  (void)state;
  cuda_say("fail cuLaunchKernel:2:701");
  program_scene_copy(PROGRAM_MOST);
  assert_int_equal(cuda_calls("cuLaunchKernel"), 2);
  assert_in_range(cuda_calls("cuMemcpyDtoDAsync_v2"), 300, PROGRAM_MOST - 300);
  assert_int_equal(told.lines, 1);
}

static void a_lost_device_is_told(void **state) {
  gm_error err = {0};
  (void)state;
  begin(NULL);
  program_scene_items(COUNT);
  cuda_say("fail cuLaunchKernel:1:719:sticky");
  assert_int_equal(program_scene_run(COUNT, NULL, &err), GM_ERR_DEVICE_LOST);
  assert_non_null(strstr(err.message, "cuLaunchKernel"));
  assert_int_equal(f.ops->expand(f.device, f.stream, &to, 0, &from, 0, 64, GM_DTYPE_F16, NULL, &err),
                   GM_ERR_DEVICE_LOST);
  f.ops->stream_close(f.device, f.stream, GM_CLOSE_NORMAL);
  f.ops->device_close(f.device, GM_CLOSE_NORMAL);
  f.ops->fini(f.driver, GM_CLOSE_NORMAL);
}

/* Another place of the same memory, and places that are no whole numbers. */
static void expansion_needs_whole_places(void **state) {
  gm_backend_point point = {.handle = 7};
  (void)state;
  const gm_memory odd = {.address = from.address + 1, .bytes = 64};
  assert_int_equal(f.ops->expand(f.device, f.stream, &to, 0, &odd, 0, 8, GM_DTYPE_BF16, &point, NULL),
                   GM_ERR_NOT_SUPPORTED);
  assert_int_equal(point.handle, 7);
  assert_int_equal(f.ops->expand(f.device, f.stream, &to, 2, &from, 0, 8, GM_DTYPE_BF16, NULL, NULL),
                   GM_ERR_NOT_SUPPORTED);
  assert_int_equal(cuda_calls("cuLaunchKernel"), 0);
}

static void every_number_is_expanded(void **state) {
  pool_bench bench;
  (void)state;
  cuda_say("reload");
  pool_bench_open(&bench, "cuda", NULL, NULL);
  expand_check(&bench, false);
  pool_bench_close(&bench);
  cuda_say("reload");
  pool_bench_open(&bench, "cuda", NULL, NULL);
  cuda_say("fail cuModuleLoadData:1:218");
  expand_check(&bench, true);
  pool_bench_close(&bench);
}

#define PROGRAM_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {
      PROGRAM_TEST(many_copies_are_one_launch),        PROGRAM_TEST(what_does_not_suit_is_copied),
      PROGRAM_TEST(a_launch_is_work_of_its_stream),    PROGRAM_TEST(a_later_launch_that_fails_is_copied),
      PROGRAM_TEST(expansion_needs_whole_places),      cmocka_unit_test(a_driver_that_fails_is_told_once),
      cmocka_unit_test(without_an_entry_copies_do_it), cmocka_unit_test(every_number_is_expanded),
      cmocka_unit_test(a_lost_device_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
