/* Statuses and the filling of a caller's gm_error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/error.h"
#include "gm/version.h"

static void test_every_status_has_a_name_and_a_text(void **state) {
  (void)state;
#define X(name, value, text)                                    \
  assert_int_equal(name, value);                                \
  assert_string_equal(gm_status_name((gm_status)value), #name); \
  assert_string_equal(gm_status_text((gm_status)value), text);
  GM_STATUS_MAP(X)
#undef X
}

static void test_a_number_that_is_no_status_is_said_to_be_none(void **state) {
  (void)state;
  assert_string_equal(gm_status_name((gm_status)4096), "GM_ERR_?");
  assert_string_equal(gm_status_text((gm_status)4096), "not a gm_status");
}

static void test_fail_fills_every_field(void **state) {
  (void)state;
  gm_error err;
  memset(&err, 0xa5, sizeof err);
  assert_int_equal(gm__fail_native(&err, GM_ERR_IO, 5, "open", "%s: %d", "weights", 7), GM_ERR_IO);
  assert_int_equal(err.status, GM_ERR_IO);
  assert_int_equal(err.native_code, 5);
  assert_string_equal(err.op, "open");
  assert_string_equal(err.message, "weights: 7");
}

static void test_fail_without_an_error_still_returns_the_status(void **state) {
  (void)state;
  assert_int_equal(gm__fail(NULL, GM_ERR_BUSY, "close", "ignored"), GM_ERR_BUSY);
}

static void test_long_text_is_cut_and_terminated(void **state) {
  (void)state;
  char text[2000];
  memset(text, 'x', sizeof text);
  text[sizeof text - 1] = 0;
  gm_error err;
  gm__fail(&err, GM_ERR_FORMAT, text, "%s", text);
  assert_int_equal(strlen(err.op), sizeof err.op - 1);
  assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

static void test_control_characters_become_question_marks(void **state) {
  (void)state;
  gm_error err;
  gm__fail(&err, GM_ERR_FORMAT, "read", "key \"%s\"", "a\nb\033[2J\177");
  assert_string_equal(err.message, "key \"a?b?[2J?\"");
}

static void test_the_library_and_its_headers_have_one_version(void **state) {
  (void)state;
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", GM_VERSION_MAJOR, GM_VERSION_MINOR, GM_VERSION_PATCH);
  assert_string_equal(gm_version_string(), text);
  assert_int_equal(gm_version(), GM_VERSION_NUMBER);
  assert_int_equal(GM_VERSION_NUMBER / 1000000, GM_VERSION_MAJOR);
  assert_int_equal(GM_VERSION_NUMBER / 1000 % 1000, GM_VERSION_MINOR);
  assert_int_equal(GM_VERSION_NUMBER % 1000, GM_VERSION_PATCH);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_status_has_a_name_and_a_text),
      cmocka_unit_test(test_a_number_that_is_no_status_is_said_to_be_none),
      cmocka_unit_test(test_fail_fills_every_field),
      cmocka_unit_test(test_fail_without_an_error_still_returns_the_status),
      cmocka_unit_test(test_long_text_is_cut_and_terminated),
      cmocka_unit_test(test_control_characters_become_question_marks),
      cmocka_unit_test(test_the_library_and_its_headers_have_one_version),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
