/* The strict JSON reader: what it accepts, what it refuses, and where. */
#include "core/model/json_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A scan over an exact copy: a byte read behind the end is seen by the address sanitizer and by valgrind. */
static gm__json_scan scan_of(const char *text, uint64_t length) {
  char *copy = malloc(length ? length : 1);
  assert_non_null(copy);
  memcpy(copy, text, length);
  gm__json_scan scan;
  gm__json_scan_init(&scan, copy, length);
  return scan;
}

static void check_skip(const char *text, const char *problem, uint64_t at) {
  gm__json_scan scan = scan_of(text, strlen(text));
  gm__json_skip(&scan);
  gm__json_end(&scan);
  if (problem) {
    assert_non_null(scan.problem);
    assert_string_equal(scan.problem, problem);
    assert_int_equal(scan.problem_at, at);
  } else if (scan.problem) {
    fail_msg("%s: %s at %llu", text, scan.problem, (unsigned long long)scan.problem_at);
  }
  free(scan.text);
}

static void test_every_kind_of_value_is_read_over(void **state) {
  (void)state;
  static const char *const good[] = {
      "0",
      "-0",
      "1.5e+10",
      "-3E-2",
      "12345678901234567890123",
      "true",
      "null",
      "false",
      "\"\"",
      "{}",
      " [ 1 , [ ] , { } ] ",
      "{\"a\":{\"b\":[1,\"c\",null]}}",
      "\t\r\n1",
      "\"\\u00e9\\n\\\\\"",
      "\"\xe2\x82\xac\xf0\x9f\x98\x80\"",
  };
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) check_skip(good[i], NULL, 0);
}

static void test_what_is_not_json_is_refused_with_its_place(void **state) {
  (void)state;
  check_skip("", "a value is expected", 0);
  check_skip("NaN", "a value is expected", 0);
  check_skip("Infinity", "a value is expected", 0);
  check_skip("nul", "a value is expected", 0);
  check_skip("'a'", "a value is expected", 0);
  check_skip("01", "a number with a leading zero", 0);
  check_skip("-", "a digit is expected", 1);
  check_skip("1.", "a digit is expected", 2);
  check_skip("1e", "a digit is expected", 2);
  check_skip("1 2", "something follows the closing brace", 2);
  check_skip("[1,]", "a value is expected", 3);
  check_skip("[1 2]", "a comma or closing bracket is expected", 3);
  check_skip("[1", "a comma or closing bracket is expected", 2);
  check_skip("[,1]", "a value is expected", 1);
  check_skip("{\"a\":1,}", "a string is expected", 7);
  check_skip("{\"a\" 1}", "a colon is expected", 5);
  check_skip("{\"a\":1 \"b\":2}", "a comma or closing brace is expected", 7);
  check_skip("{1:2}", "a string is expected", 1);
  check_skip("[1}", "a comma or closing bracket is expected", 2);
  check_skip("{\"a\":1]", "a comma or closing brace is expected", 6);
}

static void test_bad_strings_are_refused_with_their_place(void **state) {
  (void)state;
  check_skip("\"abc", "the text ends inside a string", 4);
  check_skip("\"a\nb\"", "control character in a string", 2);
  check_skip("\"\\x\"", "unknown escape in a string", 2);
  check_skip("\"\\", "unknown escape in a string", 2);
  check_skip("\"\\u12g4\"", "four hexadecimal digits must follow \\u", 5);
  check_skip("\"\\u12", "four hexadecimal digits must follow \\u", 5);
  check_skip("\"\\u0000\"", "a string holds a NUL", 3);
  check_skip("\"\\ud800\"", "half of a surrogate pair", 3);
  check_skip("\"\\ud800\\u0041\"", "half of a surrogate pair", 3);
  check_skip("\"\\udc00\"", "half of a surrogate pair", 3);
  check_skip("\"\x80\"", "invalid UTF-8 in a string", 1);
  check_skip("\"\xc0\x80\"", "invalid UTF-8 in a string", 1);
  check_skip("\"\xe0\x80\x80\"", "invalid UTF-8 in a string", 1);
  check_skip("\"\xed\xa0\x80\"", "invalid UTF-8 in a string", 1);
  check_skip("\"\xf4\x90\x80\x80\"", "invalid UTF-8 in a string", 1);
  check_skip("\"\xff\"", "invalid UTF-8 in a string", 1);
  check_skip("\"a\xe2\x82", "invalid UTF-8 in a string", 2);
}

static void test_strings_are_unescaped_in_place(void **state) {
  (void)state;
  const char *text = " \"a\\\"\\/\\b\\f\\n\\r\\t\\u0041\\u00E9\\u20ac\\uD83D\\uDE00z\"";
  gm__json_scan scan = scan_of(text, strlen(text));
  gm__json_text string;
  assert_true(gm__json_string(&scan, &string));
  assert_string_equal(string.text, "a\"/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z");
  assert_int_equal(string.length, strlen(string.text));
  assert_int_equal(string.at, 1);
  assert_true(gm__json_end(&scan));
  free(scan.text);
}

static void check_integer(const char *text, uint64_t value, const char *problem) {
  gm__json_scan scan = scan_of(text, strlen(text));
  uint64_t out = 77;
  bool got = gm__json_integer(&scan, &out);
  assert_int_equal(got, !problem);
  assert_int_equal(out, problem ? 77 : value);
  if (problem) assert_string_equal(scan.problem, problem);
  free(scan.text);
}

static void test_integers_are_exact_to_64_bits(void **state) {
  (void)state;
  check_integer("0", 0, NULL);
  check_integer(" 18446744073709551615", UINT64_MAX, NULL);
  check_integer("18446744073709551616", 0, "the number does not fit 64 bits");
  check_integer("99999999999999999999999", 0, "the number does not fit 64 bits");
  check_integer("-1", 0, "a number that is not negative is expected");
  check_integer("1.0", 0, "an integer is expected");
  check_integer("1e3", 0, "an integer is expected");
  check_integer("007", 0, "a number with a leading zero");
  check_integer("\"7\"", 0, "an integer is expected");
  check_integer("", 0, "an integer is expected");
}

static void check_depth(uint32_t depth, bool fits) {
  char text[2 * GM__JSON_MAX_DEPTH + 3];
  memset(text, '[', depth);
  memset(text + depth, ']', depth);
  text[2 * depth] = 0;
  check_skip(text, fits ? NULL : "nested too deep", GM__JSON_MAX_DEPTH);
}

static void test_nesting_is_bounded(void **state) {
  (void)state;
  check_depth(GM__JSON_MAX_DEPTH, true);
  check_depth(GM__JSON_MAX_DEPTH + 1, false);
}

static void test_the_first_problem_stays_and_ends_the_scan(void **state) {
  (void)state;
  gm__json_scan scan = scan_of("{\"a\":1}", 7);
  gm__json_text text;
  uint64_t number = 0;
  assert_true(gm__json_object_begin(&scan));
  assert_true(gm__json_object_next(&scan, &text));
  assert_false(gm__json_string(&scan, &text));
  assert_false(gm__json_integer(&scan, &number));
  assert_false(gm__json_object_begin(&scan));
  assert_false(gm__json_array_begin(&scan));
  assert_false(gm__json_object_next(&scan, &text));
  assert_false(gm__json_array_next(&scan));
  assert_false(gm__json_skip(&scan));
  assert_false(gm__json_end(&scan));
  assert_string_equal(scan.problem, "a string is expected");
  assert_int_equal(scan.problem_at, 5);
  free(scan.text);
}

static void test_text_cut_at_every_byte_is_refused(void **state) {
  (void)state;
  const char *text = "{\"k\\u00e9y\":[1.5e3,{\"x\":null,\"y\":\"\xe2\x82\xac\"},true,false,-7]}";
  for (uint64_t length = 0; length < strlen(text); length++) {
    gm__json_scan scan = scan_of(text, length);
    gm__json_skip(&scan);
    assert_false(gm__json_end(&scan));
    assert_true(scan.problem_at <= length);
    free(scan.text);
  }
  check_skip(text, NULL, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_kind_of_value_is_read_over),
      cmocka_unit_test(test_what_is_not_json_is_refused_with_its_place),
      cmocka_unit_test(test_bad_strings_are_refused_with_their_place),
      cmocka_unit_test(test_strings_are_unescaped_in_place),
      cmocka_unit_test(test_integers_are_exact_to_64_bits),
      cmocka_unit_test(test_nesting_is_bounded),
      cmocka_unit_test(test_the_first_problem_stays_and_ends_the_scan),
      cmocka_unit_test(test_text_cut_at_every_byte_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
