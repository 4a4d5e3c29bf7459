/* Arithmetic that stops at the ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/saturate.h"

static void test_sums_stop_at_the_top(void **state) {
  (void)state;
  assert_true(gm__add_sat(1, 2) == 3);
  assert_true(gm__add_sat(UINT64_MAX, 0) == UINT64_MAX);
  assert_true(gm__add_sat(UINT64_MAX, 1) == UINT64_MAX);
  assert_true(gm__add_sat(UINT64_MAX - 1, 1) == UINT64_MAX);
  assert_true(gm__add_sat(UINT64_C(1) << 63, UINT64_C(1) << 63) == UINT64_MAX);
}

static void test_differences_stop_at_zero(void **state) {
  (void)state;
  assert_true(gm__sub_sat(5, 3) == 2);
  assert_true(gm__sub_sat(3, 5) == 0);
  assert_true(gm__sub_sat(0, UINT64_MAX) == 0);
  assert_true(gm__sub_sat(UINT64_MAX, UINT64_MAX) == 0);
}

static void test_products_stop_at_the_top(void **state) {
  (void)state;
  assert_true(gm__mul_sat(6, 7) == 42);
  assert_true(gm__mul_sat(0, UINT64_MAX) == 0);
  assert_true(gm__mul_sat(UINT64_MAX, 0) == 0);
  assert_true(gm__mul_sat(UINT64_MAX, 1) == UINT64_MAX);
  assert_true(gm__mul_sat(UINT64_C(1) << 32, UINT64_C(1) << 32) == UINT64_MAX);
  assert_true(gm__mul_sat(UINT64_MAX / 3, 3) == UINT64_MAX / 3 * 3);
  assert_true(gm__mul_sat(UINT64_MAX / 3 + 1, 3) == UINT64_MAX);
}

static void test_shares_and_multiples_stop_at_the_top(void **state) {
  (void)state;
  assert_true(gm__scale_sat(1000, 0.5) == 500);
  assert_true(gm__scale_sat(0, 16) == 0 && gm__scale_sat(UINT64_MAX, 0) == 0);
  assert_true(gm__scale_sat(UINT64_MAX, 0.5) == UINT64_C(1) << 63);
  assert_true(gm__scale_sat(UINT64_MAX, 1) == UINT64_MAX);
  assert_true(gm__scale_sat(UINT64_MAX - 1, 1) == UINT64_MAX); /* to the nearest that a double has */
  assert_true(gm__scale_sat(UINT64_C(1) << 60, 16) == UINT64_MAX);
}

static void test_smaller_and_larger(void **state) {
  (void)state;
  assert_true(gm__min(1, UINT64_MAX) == 1 && gm__min(UINT64_MAX, 1) == 1);
  assert_true(gm__max(1, UINT64_MAX) == UINT64_MAX && gm__max(UINT64_MAX, 1) == UINT64_MAX);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sums_stop_at_the_top),     cmocka_unit_test(test_differences_stop_at_zero),
      cmocka_unit_test(test_products_stop_at_the_top), cmocka_unit_test(test_shares_and_multiples_stop_at_the_top),
      cmocka_unit_test(test_smaller_and_larger),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
