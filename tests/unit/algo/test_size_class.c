/* Rounding and size classes: at every power of two and its neighbours, for every number of bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/algo/size_class.h"
#include "gm/size.h"

static void test_powers_of_two(void **state) {
  (void)state;
  assert_true(gm_round_up_power_of_2(0) == 0);
  assert_int_equal(gm_size_class(0), 0);
  for (uint32_t n = 0; n < 64; n++) {
    uint64_t power = UINT64_C(1) << n;
    assert_true(gm_round_up_power_of_2(power) == power);
    assert_int_equal(gm_size_class(power), n);
    if (n < 2) continue;
    assert_true(gm_round_up_power_of_2(power - 1) == power);
    assert_int_equal(gm_size_class(power - 1), n);
    assert_true(gm_round_up_power_of_2(power / 2 + 1) == power);
  }
}

static void test_above_the_last_power_nothing_wraps(void **state) {
  (void)state;
  const uint64_t last = UINT64_C(1) << 63;
  assert_true(gm_round_up_power_of_2(last + 1) == UINT64_MAX);
  assert_true(gm_round_up_power_of_2(UINT64_MAX) == UINT64_MAX);
  assert_int_equal(gm_size_class(last + 1), 64);
  assert_int_equal(gm_size_class(UINT64_MAX), 64);
}

/* The size of the class that serves a request of `bytes`. */
static uint64_t class_round(uint64_t bytes, uint32_t bits) {
  return gm__size_class_bytes(gm__size_class_ceil(bytes, bits), bits);
}

static void test_class_sizes_ascend_and_are_their_own_class(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits <= GM__SIZE_CLASS_BITS_MAX; bits++) {
    uint32_t count = gm__size_class_count(bits);
    for (uint32_t i = 0; i < count; i++) {
      uint64_t bytes = gm__size_class_bytes(i, bits);
      if (i) assert_true(bytes > gm__size_class_bytes(i - 1, bits));
      if (i == count - 1) break;
      assert_int_equal(gm__size_class_floor(bytes, bits), i);
      assert_int_equal(gm__size_class_ceil(bytes, bits), i);
      assert_true(class_round(bytes, bits) == bytes);
    }
    assert_true(gm__size_class_bytes(count - 1, bits) == UINT64_MAX);
  }
}

static void check_between_classes(uint64_t bytes, uint32_t bits) {
  uint32_t low = gm__size_class_floor(bytes, bits), high = gm__size_class_ceil(bytes, bits);
  assert_true(high < gm__size_class_count(bits));
  assert_true(high == low || high == low + 1);
  assert_true(gm__size_class_bytes(low, bits) <= bytes);
  assert_true(gm__size_class_bytes(high, bits) >= bytes);
  if (bytes < UINT64_MAX) assert_true(gm__size_class_bytes(low + 1, bits) > bytes);
  /* No more than one step of 2^-bits above, where a step can be represented. */
  uint64_t round = class_round(bytes, bits);
  if (round < UINT64_MAX) assert_true(round - bytes <= bytes >> bits);
}

static void test_every_size_lies_between_its_classes(void **state) {
  (void)state;
  for (uint32_t bits = 0; bits <= GM__SIZE_CLASS_BITS_MAX; bits++) {
    for (uint64_t bytes = 0; bytes < 5000; bytes++) check_between_classes(bytes, bits);
    for (uint32_t n = 12; n < 64; n++) {
      for (uint64_t d = 0; d < 3; d++) {
        check_between_classes((UINT64_C(1) << n) - d, bits);
        check_between_classes((UINT64_C(1) << n) + d, bits);
        check_between_classes((UINT64_C(3) << (n - 1)) + d, bits);
      }
    }
    check_between_classes(UINT64_MAX, bits);
    check_between_classes(UINT64_MAX - 1, bits);
  }
}

static void test_known_classes(void **state) {
  (void)state;
  assert_int_equal(class_round(1000, 0), 1024);
  assert_int_equal(class_round(1025, 0), 2048);
  assert_int_equal(class_round(1025, 1), 1536);
  assert_int_equal(class_round(1025, 2), 1280);
  assert_int_equal(class_round(1025, 3), 1152);
  assert_int_equal(class_round(1025, 5), 1056);
  assert_int_equal(gm__size_class_count(5), 1921);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_powers_of_two),
      cmocka_unit_test(test_above_the_last_power_nothing_wraps),
      cmocka_unit_test(test_class_sizes_ascend_and_are_their_own_class),
      cmocka_unit_test(test_every_size_lies_between_its_classes),
      cmocka_unit_test(test_known_classes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
