/* Pressure levels: borders, hysteresis, jumps, and thresholds that make no sense. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/algo/classifier.h"

static const gm_pressure_thresholds usual = GM_PRESSURE_THRESHOLDS_DEFAULT;

static void check_level(gm_pressure_level previous, double ratio, gm_pressure_level expected) {
  assert_int_equal(gm__classifier_level(previous, ratio, &usual), expected);
}

static void test_borders_going_up(void **state) {
  (void)state;
  check_level(GM_PRESSURE_LOW, 0.0, GM_PRESSURE_LOW);
  check_level(GM_PRESSURE_LOW, 0.5999, GM_PRESSURE_LOW);
  check_level(GM_PRESSURE_LOW, 0.60, GM_PRESSURE_MEDIUM);
  check_level(GM_PRESSURE_LOW, 0.7999, GM_PRESSURE_MEDIUM);
  check_level(GM_PRESSURE_LOW, 0.80, GM_PRESSURE_HIGH);
  check_level(GM_PRESSURE_LOW, 0.95, GM_PRESSURE_HIGH);
  check_level(GM_PRESSURE_LOW, 0.9501, GM_PRESSURE_CRITICAL);
  check_level(GM_PRESSURE_LOW, 1.0, GM_PRESSURE_CRITICAL);
}

static void test_a_level_is_left_only_below_the_hysteresis(void **state) {
  (void)state;
  check_level(GM_PRESSURE_CRITICAL, 0.94, GM_PRESSURE_CRITICAL);
  check_level(GM_PRESSURE_CRITICAL, 0.931, GM_PRESSURE_CRITICAL);
  check_level(GM_PRESSURE_CRITICAL, 0.929, GM_PRESSURE_HIGH);
  check_level(GM_PRESSURE_HIGH, 0.781, GM_PRESSURE_HIGH);
  check_level(GM_PRESSURE_HIGH, 0.779, GM_PRESSURE_MEDIUM);
  check_level(GM_PRESSURE_MEDIUM, 0.581, GM_PRESSURE_MEDIUM);
  check_level(GM_PRESSURE_MEDIUM, 0.579, GM_PRESSURE_LOW);
}

static void test_falling_far_skips_levels(void **state) {
  (void)state;
  check_level(GM_PRESSURE_CRITICAL, 0.1, GM_PRESSURE_LOW);
  check_level(GM_PRESSURE_CRITICAL, 0.79, GM_PRESSURE_HIGH);
  check_level(GM_PRESSURE_CRITICAL, 0.59, GM_PRESSURE_MEDIUM);
}

/* Sweeping up and down: up follows the plain borders, down lags behind, and a ratio that stands still changes nothing.
 */
static void test_sweeps(void **state) {
  (void)state;
  const gm_pressure_thresholds plain = {0.60, 0.80, 0.95, 0.0};
  gm_pressure_level level = GM_PRESSURE_LOW;
  for (int step = 0; step <= 2200; step++) {
    double ratio = step <= 1100 ? step / 1000.0 : (2200 - step) / 1000.0;
    gm_pressure_level next = gm__classifier_level(level, ratio, &usual);
    gm_pressure_level bare = gm__classifier_level(GM_PRESSURE_LOW, ratio, &plain);
    assert_true(next >= bare);
    assert_true(step <= 1100 ? next >= level && next == bare : next <= level);
    assert_int_equal(gm__classifier_level(next, ratio, &usual), next);
    level = next;
  }
  assert_int_equal(level, GM_PRESSURE_LOW);
}

static void test_strange_ratios(void **state) {
  (void)state;
  check_level(GM_PRESSURE_HIGH, (double)NAN, GM_PRESSURE_HIGH);
  check_level(GM_PRESSURE_LOW, (double)INFINITY, GM_PRESSURE_CRITICAL);
  check_level(GM_PRESSURE_CRITICAL, (double)-INFINITY, GM_PRESSURE_LOW);
  check_level(GM_PRESSURE_CRITICAL, -1.0, GM_PRESSURE_LOW);
  check_level(GM_PRESSURE_LOW, 1e300, GM_PRESSURE_CRITICAL);
}

static void refuse(gm_pressure_thresholds thresholds, const char *member) {
  gm_error err;
  assert_int_equal(gm__classifier_check(&thresholds, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, member));
}

static void test_thresholds_are_checked_by_name(void **state) {
  (void)state;
  const double nan = (double)NAN;
  assert_int_equal(gm__classifier_check(&usual, NULL), GM_OK);
  assert_int_equal(gm__classifier_check(&(gm_pressure_thresholds){0.1, 0.2, 1.0, 0.0}, NULL), GM_OK);
  refuse((gm_pressure_thresholds){0, .8, .9, 0}, "`medium` must");
  refuse((gm_pressure_thresholds){nan, .8, .9, 0}, "`medium` must");
  refuse((gm_pressure_thresholds){.8, .8, .9, 0}, "`high` must");
  refuse((gm_pressure_thresholds){.6, nan, .9, 0}, "`high` must");
  refuse((gm_pressure_thresholds){.6, .8, .7, 0}, "`critical` must");
  refuse((gm_pressure_thresholds){.6, .8, 1.01, 0}, "`critical` must");
  refuse((gm_pressure_thresholds){.6, .8, nan, 0}, "`critical` must");
  refuse((gm_pressure_thresholds){.6, .8, .9, -.01}, "`hysteresis` must");
  refuse((gm_pressure_thresholds){.6, .8, .9, .6}, "`hysteresis` must");
  refuse((gm_pressure_thresholds){.6, .8, .9, nan}, "`hysteresis` must");
}

static void test_names(void **state) {
  (void)state;
  assert_string_equal(gm_pressure_level_name(GM_PRESSURE_LOW), "low");
  assert_string_equal(gm_pressure_level_name(GM_PRESSURE_MEDIUM), "medium");
  assert_string_equal(gm_pressure_level_name(GM_PRESSURE_HIGH), "high");
  assert_string_equal(gm_pressure_level_name(GM_PRESSURE_CRITICAL), "critical");
  assert_string_equal(gm_pressure_level_name(GM_PRESSURE_BORROWED), "borrowed");
  assert_string_equal(gm_pressure_level_name((gm_pressure_level)5), "?");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_borders_going_up),
      cmocka_unit_test(test_a_level_is_left_only_below_the_hysteresis),
      cmocka_unit_test(test_falling_far_skips_levels),
      cmocka_unit_test(test_sweeps),
      cmocka_unit_test(test_strange_ratios),
      cmocka_unit_test(test_thresholds_are_checked_by_name),
      cmocka_unit_test(test_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
