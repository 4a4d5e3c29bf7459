/* Strict values: what is read, and all that is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/text.h"
#include "core/base/text_clean.h"

static void check_u64(const char *text, uint64_t expected) {
  uint64_t value = 1;
  assert_int_equal(gm__text_u64("x", text, &value, NULL), GM_OK);
  assert_true(value == expected);
}

static void refuse_u64(const char *text) {
  uint64_t value = 77;
  gm_error err;
  assert_int_equal(gm__text_u64("GM_KEY", text, &value, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(value, 77);
  assert_int_equal(err.status, GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "GM_KEY"));
}

static void test_numbers(void **state) {
  (void)state;
  check_u64("0", 0);
  check_u64("000017", 17);
  check_u64("18446744073709551615", UINT64_MAX);
  check_u64("4K", 4096);
  check_u64("4k", 4096);
  check_u64("3M", UINT64_C(3) << 20);
  check_u64("8G", UINT64_C(8) << 30);
  check_u64("16777215T", UINT64_C(16777215) << 40);
  check_u64("18014398509481983K", UINT64_C(18014398509481983) << 10);
  check_u64("0T", 0);
}

/* All of them mean the binary unit, as who writes 24GB for a card of 24 GiB does. */
static void test_sizes_as_people_write_them(void **state) {
  (void)state;
  static const char *const same[] = {"24G",  "24g",   "24GB",  "24gb",   "24GiB",
                                     "24Gi", "24gib", "24.0G", "24576M", "24576MiB"};
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) check_u64(same[i], UINT64_C(24) << 30);
  check_u64("2.5G", UINT64_C(5) << 29);
  check_u64("2.5GiB", UINT64_C(5) << 29);
  check_u64("0.5KB", 512);
  check_u64("1.75k", 1792);
  check_u64("24B", 24);
  check_u64("24b", 24);
  check_u64("1.0009765625K", 1024); /* below one byte more: rounded down */
  check_u64("0.99999999999T", (UINT64_C(9999999) << 40) / 10000000);
  check_u64("16777215.5T", (UINT64_C(16777215) << 40) + (UINT64_C(1) << 39));
}

static void test_what_is_no_number(void **state) {
  (void)state;
  static const char *const bad[] = {"",
                                    " ",
                                    " 1",
                                    "1 ",
                                    "+1",
                                    "-1",
                                    "-0",
                                    "1.5",
                                    "1e3",
                                    "0x10",
                                    "K",
                                    "1.5B",
                                    ".5G",
                                    "1.G",
                                    "1..5G",
                                    "1.5.5G",
                                    "1KBi",
                                    "1i",
                                    "1iB",
                                    "1BB",
                                    "1KiBs",
                                    "1KK",
                                    "1P",
                                    "1,2",
                                    "1\n",
                                    "1\t",
                                    "nan",
                                    "\xd9\xa1",
                                    "1\xff",
                                    "18446744073709551616",
                                    "99999999999999999999999999999999",
                                    "16777216T",
                                    "18014398509481984K",
                                    "18446744073709551615K"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refuse_u64(bad[i]);
  refuse_u64(NULL);
}

static void test_every_byte_after_a_digit(void **state) {
  (void)state;
  for (int c = 1; c < 256; c++) {
    char text[3] = {'1', (char)c, '\0'};
    uint64_t value = 0;
    bool ok = gm__text_u64("x", text, &value, NULL) == GM_OK;
    assert_int_equal(ok, (c >= '0' && c <= '9') || strchr("kKmMgGtTbB", c) != NULL);
  }
}

static void check_double(const char *text, double expected) {
  double value = -1;
  assert_int_equal(gm__text_double("x", text, &value, NULL), GM_OK);
  assert_true(value == expected);
}

static void test_fractions_are_the_nearest_double(void **state) {
  (void)state;
  check_double("0", 0.0);
  check_double("0.8", 0.8);
  check_double("0.95", 0.95);
  check_double("0.02", 0.02);
  check_double(".5", 0.5);
  check_double("2.", 2.0);
  check_double("123456.789", 123456.789);
  check_double("9007199254740991", 9007199254740991.0);
  check_double("0.0000000000000000000001", 1e-22);
}

static void test_digits_beyond_a_double_are_dropped(void **state) {
  (void)state;
  double value = 0;
  assert_int_equal(gm__text_double("x", "0.33333333333333333333333333333333333333", &value, NULL), GM_OK);
  assert_true(value > 0.3333333333333330 && value < 0.3333333333333335);
  assert_int_equal(gm__text_double("x", "1.00000000000000000000000000000000000000000001", &value, NULL), GM_OK);
  assert_true(value == 1.0);
  check_double("0.000000000000000000000000000001", 0.0);
  check_double("900719925474099.91", 900719925474099.0);
}

static void test_what_is_no_fraction(void **state) {
  (void)state;
  static const char *const bad[] = {"",
                                    ".",
                                    "..5",
                                    "1..",
                                    "1.2.3",
                                    "-0.5",
                                    "+0.5",
                                    " 0.5",
                                    "0.5 ",
                                    "1e3",
                                    "inf",
                                    "nan",
                                    "0,5",
                                    "1K",
                                    "0x1p3",
                                    "9007199254740992",
                                    "1000000000000000000000000"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    double value = 77;
    gm_error err;
    assert_int_equal(gm__text_double("GM_KEY", bad[i], &value, &err), GM_ERR_INVALID_ARGUMENT);
    assert_true(value == 77);
    assert_non_null(strstr(err.message, "GM_KEY"));
  }
  assert_int_equal(gm__text_double("x", NULL, &(double){0}, NULL), GM_ERR_INVALID_ARGUMENT);
}

static void test_truth(void **state) {
  (void)state;
  static const char *const yes[] = {"true", "TRUE", "Yes", "on", "1"};
  static const char *const no[] = {"false", "False", "NO", "off", "0"};
  for (size_t i = 0; i < 5; i++) {
    bool value = false;
    assert_int_equal(gm__text_bool("x", yes[i], &value, NULL), GM_OK);
    assert_true(value);
    assert_int_equal(gm__text_bool("x", no[i], &value, NULL), GM_OK);
    assert_false(value);
  }
}

static void test_what_is_no_truth(void **state) {
  (void)state;
  static const char *const bad[] = {"", "t", "truee", "tru", "2", "01", " on", "on ", NULL};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    bool value = true;
    assert_int_equal(gm__text_bool("x", bad[i], &value, NULL), GM_ERR_INVALID_ARGUMENT);
    assert_true(value);
  }
}

static void test_lists(void **state) {
  (void)state;
  uint64_t values[4] = {0};
  size_t count = 99;
  assert_int_equal(gm__text_u64_list("x", "1,2K,3", values, 4, &count, NULL), GM_OK);
  assert_int_equal(count, 3);
  assert_int_equal(values[1], 2048);
  assert_int_equal(values[2], 3);
  assert_int_equal(gm__text_u64_list("x", "", values, 4, &count, NULL), GM_OK);
  assert_int_equal(count, 0);
  assert_int_equal(gm__text_u64_list("x", NULL, values, 0, &count, NULL), GM_OK);
  assert_int_equal(gm__text_u64_list("x", "4,3,2,1", values, 4, &count, NULL), GM_OK);
  assert_int_equal(count, 4);
}

static void test_bad_lists_say_which_item(void **state) {
  (void)state;
  static const char *const bad[] = {",", "1,", ",1", "1,,2", "1, 2", "1;2", "1,2,3,4,5", "1,x", "1,-2"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    uint64_t values[4];
    size_t count = 77;
    assert_int_equal(gm__text_u64_list("x", bad[i], values, 4, &count, NULL), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(count, 77);
  }
  gm_error err;
  size_t count;
  uint64_t values[4];
  assert_int_equal(gm__text_u64_list("GM_SIZES", "1,2,3Q", values, 4, &count, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "GM_SIZES: item 3, `3Q`"));
}

static void test_huge_text_in_an_error_is_cut(void **state) {
  (void)state;
  static char text[100000];
  memset(text, 'z', sizeof text - 1);
  gm_error err;
  uint64_t values[1];
  size_t count;
  assert_int_equal(gm__text_u64("x", text, values, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "does not begin with a digit"));
  assert_int_equal(gm__text_u64_list("x", text, values, 1, &count, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "does not begin with a digit"));
}

static void test_clean_and_same(void **state) {
  (void)state;
  char text[] = "a\r\nb\x01\x7f\xc3\xa9";
  gm__text_clean(text);
  assert_string_equal(text, "a??b??\xc3\xa9");
  assert_true(gm__text_same("Q4_K", "q4_k"));
  assert_true(gm__text_same("", ""));
  assert_false(gm__text_same("q4", "q4_k"));
  assert_false(gm__text_same("q4_k", "q4"));
  assert_false(gm__text_same("@", "`"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_sizes_as_people_write_them),
      cmocka_unit_test(test_what_is_no_number),
      cmocka_unit_test(test_every_byte_after_a_digit),
      cmocka_unit_test(test_fractions_are_the_nearest_double),
      cmocka_unit_test(test_digits_beyond_a_double_are_dropped),
      cmocka_unit_test(test_what_is_no_fraction),
      cmocka_unit_test(test_truth),
      cmocka_unit_test(test_what_is_no_truth),
      cmocka_unit_test(test_lists),
      cmocka_unit_test(test_bad_lists_say_which_item),
      cmocka_unit_test(test_huge_text_in_an_error_is_cut),
      cmocka_unit_test(test_clean_and_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
