/* A registered backend that comes from a module is isolated as gm's own are. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/discovery/registry.h"
#include "gm/probe.h"
#include "support/lender_backend.h"
#include "support/pool_bench.h"

/* The template, loaded as an engine loads its plug-in. */
static const gm_backend_ops *template_ops(void **library) {
  const gm_backend_ops *(*module)(void) = NULL;
  *library = dlopen(GM_TEST_TEMPLATE, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(*library);
  void *symbol = dlsym(*library, "gm_backend_module");
  assert_non_null(symbol);
  memcpy(&module, &symbol, sizeof module);
  return module();
}

static gm_context *context_of(const char *helper) {
  const gm_context_params params = {
      .struct_size = sizeof params, .probe_helper = helper, .backends = "template,lender"};
  gm_context *ctx = NULL;
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  return ctx;
}

static gm__driver *driver_of(gm_context *ctx, const char *name) {
  gm__registry *registry = NULL;
  pool_bench_ok(gm__registry_get(ctx, &registry, err));
  return gm__registry_find(registry, name);
}

static gm_backend_info discovered(gm_context *ctx, const char *name) {
  gm_backend_info infos[16] = {{.struct_size = sizeof *infos}};
  size_t count = 0;
  pool_bench_ok(gm_discover_backends(ctx, GM_PROBE_ISOLATED, infos, 16, &count, err));
  for (size_t i = 0; i < count && i < 16; i++) {
    if (strcmp(infos[i].name, name) == 0) return infos[i];
  }
  fail_msg("%s is not there", name);
  return infos[0];
}

static void test_a_module_runs_in_the_helper(void **state) {
  (void)state;
  void *library;
  gm_device *device = NULL;
  const gm_backend_ops *ops = template_ops(&library);
  gm_context *ctx = context_of(NULL);
  pool_bench_ok(gm_backend_register(ctx, ops, err));
  const gm_backend_info info = discovered(ctx, "template");
  if (info.status != GM_OK) fail_msg("%s", info.reason.message);
  assert_int_equal(info.device_count, 1);
  assert_null(driver_of(ctx, "template")->handle); /* nothing of it ran here */
  pool_bench_ok(gm_device_open_index(ctx, "template", 0, &device, err));
  assert_non_null(driver_of(ctx, "template")->handle);
  pool_bench_ok(gm_device_close(device, err));
  pool_bench_ok(gm_context_destroy(ctx, err));
  dlclose(library);
}

static void test_a_module_that_kills_the_helper(void **state) {
  (void)state;
  void *library;
  char path[] = "/tmp/gm_module_XXXXXX";
  const gm_backend_ops *ops = template_ops(&library);
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  static const char text[] = "#!/bin/sh\ntest -n \"$4\" && kill -SEGV $$\n";
  assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
  assert_int_equal(fchmod(fd, 0700), 0);
  close(fd);
  gm_context *ctx = context_of(path);
  pool_bench_ok(gm_backend_register(ctx, ops, err));
  const gm_backend_info info = discovered(ctx, "template");
  assert_int_equal(info.status, GM_ERR_UNAVAILABLE);
  assert_non_null(strstr(info.reason.message, "signal 11"));
  pool_bench_ok(gm_context_destroy(ctx, err));
  unlink(path);
  dlclose(library);
}

static void test_a_backend_of_the_program_itself_is_active(void **state) {
  (void)state;
  gm_context *ctx = context_of(NULL);
  const gm_backend_ops ops = lender_ops("lender");
  pool_bench_ok(gm_backend_register(ctx, &ops, err));
  assert_int_equal(discovered(ctx, "lender").status, GM_OK);
  assert_non_null(driver_of(ctx, "lender")->handle);
  pool_bench_ok(gm_context_destroy(ctx, err));
}

static void test_modules_that_are_none(void **state) {
  (void)state;
  gm_error why = {.status = GM_OK};
  static const char *const wrong[] = {"libm.so.6", "/nowhere/at/all.so", "/proc/self/exe"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_int_equal(gm_probe_serve_module(wrong[i], "template", NULL, NULL, STDOUT_FILENO, &why), GM_ERR_UNAVAILABLE);
    assert_non_null(strstr(why.message, wrong[i]));
  }
  FILE *file = tmpfile();
  assert_non_null(file);
  pool_bench_ok(gm_probe_serve_module(GM_TEST_TEMPLATE, "template", NULL, NULL, fileno(file), err));
  assert_int_equal(gm_probe_serve_module(GM_TEST_TEMPLATE, "other", NULL, NULL, fileno(file), NULL), GM_ERR_NOT_FOUND);
  pool_bench_ok(gm_probe_serve_module("", "cpu", NULL, NULL, fileno(file), err));
  fclose(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_module_runs_in_the_helper),
      cmocka_unit_test(test_a_module_that_kills_the_helper),
      cmocka_unit_test(test_a_backend_of_the_program_itself_is_active),
      cmocka_unit_test(test_modules_that_are_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
