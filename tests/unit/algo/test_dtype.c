/* Element types: names, exact bytes, refusals. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gm/dtype.h"

static const gm_dtype all[] = {
#define X(name, value, text, elements, bytes) name,
    GM_DTYPE_MAP(X)
#undef X
};

enum { COUNT = sizeof all / sizeof *all };

static void test_numbers_have_no_gaps(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT; i++) assert_int_equal(all[i], i);
}

static void test_names_go_both_ways_in_either_case(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT; i++) {
    char upper[16] = "";
    const char *name = gm_dtype_name(all[i]);
    for (size_t c = 0; name[c]; c++) upper[c] = (char)toupper((unsigned char)name[c]);
    gm_dtype found = (gm_dtype)-1;
    assert_int_equal(gm_dtype_from_name(name, &found), GM_OK);
    assert_int_equal(found, all[i]);
    found = (gm_dtype)-1;
    assert_int_equal(gm_dtype_from_name(upper, &found), GM_OK);
    assert_int_equal(found, all[i]);
  }
}

static void test_unknown_names(void **state) {
  (void)state;
  static const char *const bad[] = {"", "?", "f", "f320", " f32", "q4", "q4_k_m", "float32"};
  gm_dtype found = GM_DTYPE_I8;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(gm_dtype_from_name(bad[i], &found), GM_ERR_NOT_FOUND);
  }
  assert_int_equal(gm_dtype_from_name(NULL, &found), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_dtype_from_name("f32", NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(found, GM_DTYPE_I8);
}

static void check_bytes(gm_dtype dtype, uint64_t elements, uint64_t expected) {
  uint64_t bytes = 1;
  assert_int_equal(gm_dtype_bytes(dtype, elements, &bytes), GM_OK);
  assert_true(bytes == expected);
}

/* Figures of a Llama-like 4096 x 4096 matrix, worked out by hand from ggml's block layouts. */
static void test_known_bytes(void **state) {
  (void)state;
  const uint64_t n = 4096 * 4096;
  check_bytes(GM_DTYPE_F32, n, 67108864);
  check_bytes(GM_DTYPE_BF16, n, 33554432);
  check_bytes(GM_DTYPE_F8_E4M3, n, n);
  check_bytes(GM_DTYPE_BOOL, 3, 3);
  check_bytes(GM_DTYPE_C64, 3, 24);
  check_bytes(GM_DTYPE_Q4_0, n, 9437184);
  check_bytes(GM_DTYPE_Q8_0, n, 17825792);
  check_bytes(GM_DTYPE_Q4_K, n, 9437184);
  check_bytes(GM_DTYPE_Q6_K, n, 13762560);
  check_bytes(GM_DTYPE_Q3_K, 256, 110);
  check_bytes(GM_DTYPE_MXFP4, 32, 17);
  check_bytes(GM_DTYPE_IQ4_XS, 512, 272);
}

static void test_no_elements_are_no_bytes(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT; i++) check_bytes(all[i], 0, 0);
}

static void refuse_bytes(gm_dtype dtype, uint64_t elements) {
  uint64_t bytes = 77;
  assert_int_equal(gm_dtype_bytes(dtype, elements, &bytes), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(bytes, 77);
}

static void test_part_of_a_block_is_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT; i++) {
    uint32_t elements = 0, bytes = 0;
    assert_int_equal(gm_dtype_block(all[i], &elements, &bytes), GM_OK);
    assert_true(elements > 0 && bytes > 0);
    check_bytes(all[i], elements, bytes);
    for (uint32_t part = 1; part < elements; part++) refuse_bytes(all[i], part);
    if (elements > 1) refuse_bytes(all[i], elements + 1);
  }
}

static void test_overflow_is_refused(void **state) {
  (void)state;
  check_bytes(GM_DTYPE_U8, UINT64_MAX, UINT64_MAX);
  check_bytes(GM_DTYPE_F64, UINT64_MAX / 8, UINT64_MAX - 7);
  refuse_bytes(GM_DTYPE_F64, UINT64_MAX / 8 + 1);
  refuse_bytes(GM_DTYPE_F16, UINT64_MAX);
  refuse_bytes(GM_DTYPE_Q8_0, UINT64_MAX - 31);
}

static void test_what_is_no_type(void **state) {
  (void)state;
  static const int bad[] = {COUNT, -1, 1000000};
  for (size_t i = 0; i < 3; i++) {
    gm_dtype dtype = (gm_dtype)bad[i];
    uint32_t elements = 77;
    assert_string_equal(gm_dtype_name(dtype), "?");
    assert_int_equal(gm_dtype_block(dtype, &elements, NULL), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(elements, 77);
    refuse_bytes(dtype, 32);
  }
  assert_int_equal(gm_dtype_bytes(GM_DTYPE_F32, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_dtype_block(GM_DTYPE_F32, NULL, NULL), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers_have_no_gaps),
      cmocka_unit_test(test_names_go_both_ways_in_either_case),
      cmocka_unit_test(test_unknown_names),
      cmocka_unit_test(test_known_bytes),
      cmocka_unit_test(test_no_elements_are_no_bytes),
      cmocka_unit_test(test_part_of_a_block_is_refused),
      cmocka_unit_test(test_overflow_is_refused),
      cmocka_unit_test(test_what_is_no_type),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
