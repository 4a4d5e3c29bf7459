/* Every answer of gm_alloc has its pinned number and its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gm/pool.h"

static void test_every_answer_has_a_number_and_a_name(void **state) {
  (void)state;
  static const char *const names[] = {
      "GM_ACQUIRE_OK",        "GM_ACQUIRE_FRESH",      "GM_ACQUIRE_NEEDS_WAIT", "GM_ACQUIRE_NEEDS_BARRIER",
      "GM_ACQUIRE_EXHAUSTED", "GM_ACQUIRE_OVER_LIMIT", "GM_ACQUIRE_INVALID",    "GM_ACQUIRE_FAILED"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
    assert_string_equal(gm_acquire_name((gm_acquire)i), names[i]);
  }
  assert_int_equal(GM_ACQUIRE_NEEDS_BARRIER, 3);
  assert_int_equal(GM_ACQUIRE_FAILED, 7);
}

static void test_a_number_that_is_no_answer_is_said_to_be_none(void **state) {
  (void)state;
  assert_string_equal(gm_acquire_name((gm_acquire)8), "GM_ACQUIRE_?");
  assert_string_equal(gm_acquire_name((gm_acquire)4096), "GM_ACQUIRE_?");
}

static void test_who_has_a_block(void **state) {
  (void)state;
  for (int i = GM_ACQUIRE_OK; i <= GM_ACQUIRE_NEEDS_BARRIER; i++) assert_true(gm_acquired((gm_acquire)i));
  for (int i = GM_ACQUIRE_EXHAUSTED; i <= GM_ACQUIRE_FAILED + 1; i++) assert_false(gm_acquired((gm_acquire)i));
  assert_false(gm_acquired((gm_acquire)4096));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_answer_has_a_number_and_a_name),
      cmocka_unit_test(test_a_number_that_is_no_answer_is_said_to_be_none),
      cmocka_unit_test(test_who_has_a_block),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
