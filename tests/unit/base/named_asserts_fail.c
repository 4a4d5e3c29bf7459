/* Fails on purpose, in four ways: the test unit.named_asserts compares what it prints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gm/pool.h"

static gm_status busy(void) { return GM_ERR_BUSY; }

static void test_a_status(void **state) {
  (void)state;
  assert_int_equal(busy(), GM_OK);
}

static void test_a_wanted_failure(void **state) {
  (void)state;
  assert_int_equal(GM_OK, GM_ERR_DAMAGED);
}

static void test_an_answer(void **state) {
  const gm_acquire answer = GM_ACQUIRE_OK;
  (void)state;
  assert_int_equal(answer, GM_ACQUIRE_FRESH);
}

static void test_a_number(void **state) {
  const uint64_t bytes = 10, expected = 12;
  (void)state;
  assert_int_equal(bytes, expected);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_status), cmocka_unit_test(test_a_wanted_failure),
                                     cmocka_unit_test(test_an_answer), cmocka_unit_test(test_a_number)};
  return cmocka_run_group_tests(tests, NULL, NULL) == 4 ? 0 : 1;
}
