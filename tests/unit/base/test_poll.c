/* Looking again and again: how long the pauses are, and when they end. Nobody promises how much they really take. */
#include "core/base/poll.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/base/clock.h"

static void test_pauses_grow_to_a_millisecond(void **state) {
  (void)state;
  static const uint64_t pauses[] = {20000, 40000, 80000, 160000, 320000, 640000, 1000000, 1000000, 1000000};
  gm__poll poll = gm__poll_until(GM__NEVER);
  for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
    assert_int_equal(poll.pause_ns, pauses[i]);
    assert_true(gm__poll_again(&poll));
  }
}

static void test_no_pause_after_the_deadline(void **state) {
  (void)state;
  gm__poll past = gm__poll_until(gm__deadline_after(0)), soon = gm__poll_until(gm__deadline_after(300000));
  assert_false(gm__poll_again(&past));
  while (gm__poll_again(&soon)) assert_false(gm__deadline_left(soon.deadline) > 300000);
  assert_true(gm__deadline_passed(soon.deadline));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pauses_grow_to_a_millisecond),
      cmocka_unit_test(test_no_pause_after_the_deadline),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
