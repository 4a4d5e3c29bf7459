/* The environment as the process sees it. (That it is closed to setuid programs is secure_getenv's promise.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/env.h"

static void test_set_empty_and_unset_differ(void **state) {
  (void)state;
  setenv("GM_TEST_ENV", "value", 1);
  assert_string_equal(gm__env("GM_TEST_ENV"), "value");
  setenv("GM_TEST_ENV", "", 1);
  assert_string_equal(gm__env("GM_TEST_ENV"), "");
  unsetenv("GM_TEST_ENV");
  assert_null(gm__env("GM_TEST_ENV"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_set_empty_and_unset_differ)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
