/* Decimal numbers, and sets of small numbers in the kernel's list form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/decimal.h"
#include "core/base/id_set.h"

static void test_a_number_ends_at_the_first_other_character(void **state) {
  (void)state;
  const char *end = NULL;
  uint64_t value = 0;
  assert_true(gm__decimal("0042 kB", &end, &value));
  assert_true(value == 42);
  assert_string_equal(end, " kB");
  assert_true(gm__decimal("18446744073709551615", NULL, &value));
  assert_true(value == UINT64_MAX);
}

static void test_what_is_no_number_leaves_the_outputs(void **state) {
  (void)state;
  static const char *const texts[] = {"",  " 1", "-1", "+1", "x1", "18446744073709551616", "99999999999999999999999999",
                                      "\n"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    const char *end = texts[i];
    uint64_t value = 7;
    assert_false(gm__decimal(texts[i], &end, &value));
    assert_true(value == 7 && end == texts[i]);
  }
}

static void test_a_list_holds_its_ranges(void **state) {
  (void)state;
  gm__id_set set;
  assert_true(gm__id_set_parse(" 0-3,7,64-65\n", &set));
  assert_int_equal(gm__id_set_count(&set, NULL), 7);
  assert_true(gm__id_set_has(&set, 0) && gm__id_set_has(&set, 3) && gm__id_set_has(&set, 64));
  assert_false(gm__id_set_has(&set, 4) || gm__id_set_has(&set, 66) || gm__id_set_has(&set, UINT64_MAX));
  gm__id_set other;
  assert_true(gm__id_set_parse("3-7", &other));
  assert_int_equal(gm__id_set_count(&set, &other), 2);
}

static void test_numbers_beyond_the_set_are_left_out(void **state) {
  (void)state;
  gm__id_set set;
  assert_true(gm__id_set_parse("8191-18446744073709551615", &set));
  assert_int_equal(gm__id_set_count(&set, NULL), 1);
  assert_true(gm__id_set_parse("9000", &set));
  assert_int_equal(gm__id_set_count(&set, NULL), 0);
}

static void test_what_is_no_list_leaves_the_set(void **state) {
  (void)state;
  static const char *const texts[] = {"", "\n", "a", "1,", ",1", "1--2", "3-1", "1-", "1 2", "0-18446744073709551616"};
  gm__id_set set;
  assert_true(gm__id_set_parse("5", &set));
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    assert_false(gm__id_set_parse(texts[i], &set));
    assert_true(gm__id_set_has(&set, 5) && gm__id_set_count(&set, NULL) == 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_number_ends_at_the_first_other_character),
      cmocka_unit_test(test_what_is_no_number_leaves_the_outputs),
      cmocka_unit_test(test_a_list_holds_its_ranges),
      cmocka_unit_test(test_numbers_beyond_the_set_are_left_out),
      cmocka_unit_test(test_what_is_no_list_leaves_the_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
