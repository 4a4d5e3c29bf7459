/* Predictions beside measurements: each part, what is in none, and the margin. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "gm/fit_check.h"

static const gm_fit_part predicted = {
    .layer_count = 3, .weight_bytes = 1000, .kv_bytes = 200, .compute_bytes = 50, .bytes = 1350};

static gm_fit_check_result check(gm_fit_taken taken, uint64_t margin) {
  gm_fit_check_result result = {.struct_size = sizeof result};
  taken.struct_size = sizeof taken;
  assert_int_equal(gm_fit_check(&predicted, margin, &taken, &result, NULL), GM_OK);
  return result;
}

static void check_row(const gm_fit_check_row *row, const char *name, uint64_t foretold, uint64_t actual,
                      gm_fit_outcome outcome) {
  assert_string_equal(row->name, name);
  assert_int_equal(row->predicted_bytes, foretold);
  assert_true(row->actual_bytes == actual);
  assert_int_equal(row->outcome, outcome);
}

static void test_each_part_has_a_row(void **state) {
  (void)state;
  const gm_fit_check_result r =
      check((gm_fit_taken){.weight_bytes = 1000, .kv_bytes = 201, .compute_bytes = 49, .total_bytes = 1300}, 0);
  check_row(&r.rows[0], "weights", 1000, 1000, GM_FIT_OUTCOME_EQUAL);
  check_row(&r.rows[1], "cache", 200, 201, GM_FIT_OUTCOME_MORE);
  check_row(&r.rows[2], "compute", 50, 49, GM_FIT_OUTCOME_LESS);
  check_row(&r.rows[3], "overhead", 100, 50, GM_FIT_OUTCOME_LESS);
  check_row(&r.rows[4], "total", 1350, 1300, GM_FIT_OUTCOME_LESS);
  assert_int_equal(r.unaccounted_bytes, 50);
  assert_true(r.within && r.over_bytes == 0);
  assert_non_null(strstr(r.text, "within the margin: it took 1.3 KiB; 1.3 KiB were"));
}

/* Up to the margin it is as predicted, and a byte more is not. */
static void test_the_margin_is_the_border(void **state) {
  (void)state;
  gm_fit_taken taken = {.weight_bytes = 1000, .kv_bytes = 200, .compute_bytes = 50, .total_bytes = 1360};
  gm_fit_check_result r = check(taken, 10);
  assert_true(r.within && r.over_bytes == 0 && r.unaccounted_bytes == 110);
  taken.total_bytes++;
  r = check(taken, 10);
  assert_true(!r.within && r.over_bytes == 1);
  assert_non_null(strstr(r.text, "1 B above the 1.3 KiB predicted"));
  r = check(taken, UINT64_MAX);
  assert_true(r.within && r.over_bytes == 0);
}

/* A part that was not measured is unknown: it is neither equal nor within. */
static void test_what_was_not_measured_is_unknown(void **state) {
  (void)state;
  gm_fit_taken taken = {.weight_bytes = 1000, .kv_bytes = GM_UNKNOWN_BYTES, .compute_bytes = 50, .total_bytes = 1300};
  gm_fit_check_result r = check(taken, 0);
  check_row(&r.rows[1], "cache", 200, GM_UNKNOWN_BYTES, GM_FIT_OUTCOME_UNKNOWN);
  check_row(&r.rows[3], "overhead", 100, GM_UNKNOWN_BYTES, GM_FIT_OUTCOME_UNKNOWN);
  assert_true(r.unaccounted_bytes == GM_UNKNOWN_BYTES && r.within);
  taken.total_bytes = GM_UNKNOWN_BYTES;
  r = check(taken, 0);
  assert_true(!r.within && r.over_bytes == 0);
  assert_non_null(strstr(r.text, "was not measured"));
}

/* Something else was given back meanwhile. */
static void test_less_than_its_parts(void **state) {
  (void)state;
  const gm_fit_check_result r =
      check((gm_fit_taken){.weight_bytes = 1000, .kv_bytes = 200, .compute_bytes = 50, .total_bytes = 900}, 0);
  assert_true(r.within && r.unaccounted_bytes == 0);
}

static void test_huge_figures(void **state) {
  (void)state;
  const uint64_t most = GM_UNKNOWN_BYTES - 1;
  const gm_fit_check_result r =
      check((gm_fit_taken){.weight_bytes = most, .kv_bytes = most, .compute_bytes = most, .total_bytes = most}, most);
  assert_int_equal(r.unaccounted_bytes, 0);
  assert_true(r.within);
}

static void test_bad_arguments(void **state) {
  (void)state;
  gm_fit_taken taken = {.struct_size = sizeof taken};
  gm_fit_check_result result = {.struct_size = sizeof result}, old = {.struct_size = 8};
  gm_fit_part wrong = predicted;
  assert_int_equal(gm_fit_check(NULL, 0, &taken, &result, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_fit_check(&predicted, 0, NULL, &result, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_fit_check(&predicted, 0, &taken, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_fit_check(&predicted, 0, &taken, &old, NULL), GM_ERR_INVALID_ARGUMENT);
  wrong.bytes = 1249; /* a byte less than its parts */
  assert_int_equal(gm_fit_check(&wrong, 0, &taken, &result, NULL), GM_ERR_INVALID_ARGUMENT);
  wrong.bytes = 1250;
  assert_int_equal(gm_fit_check(&wrong, 0, &taken, &result, NULL), GM_OK);
  taken.struct_size = 0;
  assert_int_equal(gm_fit_check(&predicted, 0, &taken, &result, NULL), GM_ERR_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_part_has_a_row),
      cmocka_unit_test(test_the_margin_is_the_border),
      cmocka_unit_test(test_what_was_not_measured_is_unknown),
      cmocka_unit_test(test_less_than_its_parts),
      cmocka_unit_test(test_huge_figures),
      cmocka_unit_test(test_bad_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
