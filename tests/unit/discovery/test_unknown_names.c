/* Names that stand for no backend, in each of the lists that a program or an operator gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gm/device.h"
#include "support/fake_backend.h"

static char lines[2048];

static void take_line(void *user, int level, const char *line) {
  (void)user;
  if (level != GM_LOG_WARN) return;
  snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s\n", line);
}

/* The log while backends are listed twice, a stranger's among them. */
static void list_backends(gm_context_params *params) {
  static const gm_services services = {.log = take_line};
  gm_context *ctx = NULL;
  size_t count = 0;
  params->struct_size = sizeof *params;
  params->services = &services;
  lines[0] = '\0';
  fake_backend_reset();
  assert_int_equal(gm_context_create(params, &ctx, NULL), GM_OK);
  assert_int_equal(gm_backend_register(ctx, &fake_ops, NULL), GM_OK);
  for (int i = 0; i < 2; i++)
    assert_int_equal(gm_discover_backends(ctx, GM_PROBE_PASSIVE, NULL, 0, &count, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_known_names_are_not_spoken_of(void **state) {
  (void)state;
  list_backends(&(gm_context_params){.ignore_environment = true});
  assert_string_equal(lines, "");
  list_backends(&(gm_context_params){.backends = "cpu,rocm,fake",
                                     .libraries = "opencl=/x/libOpenCL.so,vulkan=y",
                                     .backend_options = "null:capacity=8G,devices=2;fake:a:b",
                                     .ignore_environment = true});
  assert_string_equal(lines, "");
}

static void test_unknown_names_of_the_program(void **state) {
  (void)state;
  list_backends(&(gm_context_params){.backends = "cpu,,opnecl",
                                     .libraries = "a-name-longer-than-any=/x,cpu=y,z",
                                     .backend_options = "nul:capacity=8G;fake:x;:y",
                                     .ignore_environment = true});
  assert_string_equal(lines,
                      "gm: `backends` has \"\", which is no backend\n"
                      "gm: `backends` has \"opnecl\", which is no backend\n"
                      "gm: `libraries` has \"a-name-longer-than-any\", which is no backend\n"
                      "gm: `libraries` has \"z\", which is no backend\n"
                      "gm: `backend_options` has \"nul\", which is no backend\n"
                      "gm: `backend_options` has \"\", which is no backend\n");
}

static void test_unknown_names_of_the_operator(void **state) {
  (void)state;
  setenv("GM_BACKENDS", "cpu,no", 1);
  setenv("GM_FAKE_LIBRARY", "/x", 1);
  setenv("GM_FAEK_OPTIONS", "x", 1);
  setenv("GM_ROCTX_LIBRARY", "/x", 1); /* no backend's, but gm reads it */
  setenv("GM_ZSTD_LIBRARY", "/x", 1);
  setenv("GM_ZSTD_OPTIONS", "x", 1);
  setenv("GM_LIBRARY", "x", 1); /* that of none: the configuration speaks of it */
  list_backends(&(gm_context_params){.ignore_environment = true});
  assert_string_equal(lines, "");
  list_backends(&(gm_context_params){0});
  assert_non_null(strstr(lines, "gm: GM_BACKENDS has \"no\", which is no backend\n"));
  assert_non_null(strstr(lines, "gm: GM_FAEK_OPTIONS has \"faek\", which is no backend\n"));
  assert_null(strstr(lines, "GM_FAKE"));
  assert_null(strstr(lines, "GM_ROCTX"));
  assert_null(strstr(lines, "GM_ZSTD_LIBRARY"));
  assert_non_null(strstr(lines, "gm: GM_ZSTD_OPTIONS has \"zstd\", which is no backend\n"));
  unsetenv("GM_BACKENDS");
  unsetenv("GM_FAKE_LIBRARY");
  unsetenv("GM_ROCTX_LIBRARY");
  unsetenv("GM_ZSTD_LIBRARY");
  unsetenv("GM_ZSTD_OPTIONS");
  unsetenv("GM_FAEK_OPTIONS");
  unsetenv("GM_LIBRARY");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_names_are_not_spoken_of),
      cmocka_unit_test(test_unknown_names_of_the_program),
      cmocka_unit_test(test_unknown_names_of_the_operator),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
