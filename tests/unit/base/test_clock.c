/* Monotonic time and deadlines at their edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/clock.h"

static void test_time_does_not_go_back(void **state) {
  (void)state;
  uint64_t last = gm__now_ns();
  assert_true(last > 0);
  for (int i = 0; i < 1000; i++) {
    uint64_t now = gm__now_ns();
    assert_true(now >= last);
    last = now;
  }
}

static void test_never_stays_never(void **state) {
  (void)state;
  assert_true(gm__deadline_after(GM__NEVER) == GM__NEVER);
  assert_true(gm__deadline_after(GM__NEVER - 1) == GM__NEVER);
  assert_true(gm__deadline_left(GM__NEVER) == GM__NEVER);
  assert_false(gm__deadline_passed(GM__NEVER));
}

static void test_a_deadline_now_has_passed(void **state) {
  (void)state;
  assert_true(gm__deadline_passed(0));
  assert_true(gm__deadline_passed(gm__deadline_after(0)));
  assert_true(gm__deadline_left(gm__now_ns()) == 0);
}

static void test_a_far_deadline_has_not(void **state) {
  (void)state;
  const uint64_t hour = UINT64_C(3600) * 1000000000u;
  uint64_t deadline = gm__deadline_after(hour);
  assert_false(gm__deadline_passed(deadline));
  uint64_t left = gm__deadline_left(deadline);
  assert_true(left > 0 && left <= hour);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_time_does_not_go_back),
      cmocka_unit_test(test_never_stays_never),
      cmocka_unit_test(test_a_deadline_now_has_passed),
      cmocka_unit_test(test_a_far_deadline_has_not),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
