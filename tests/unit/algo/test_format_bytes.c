/* Sizes as text, both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gm/size.h"

static void check_text(uint64_t bytes, const char *expected) {
  char text[16];
  memset(text, 'x', sizeof text);
  assert_int_equal(gm_format_bytes(bytes, text, sizeof text), strlen(expected));
  assert_string_equal(text, expected);
}

static void test_known_sizes(void **state) {
  (void)state;
  check_text(0, "0 B");
  check_text(512, "512 B");
  check_text(1023, "1023 B");
  check_text(1024, "1 KiB");
  check_text(1536, "1.5 KiB");
  check_text(UINT64_C(3) << 29, "1.5 GiB");
  check_text(UINT64_C(8) << 30, "8 GiB");
  check_text(UINT64_C(80) << 30, "80 GiB");
  check_text(UINT64_C(1) << 40, "1 TiB");
  check_text(UINT64_C(1) << 50, "1 PiB");
  check_text(UINT64_C(1) << 60, "1 EiB");
  check_text(UINT64_C(3) << 59, "1.5 EiB");
  check_text(UINT64_MAX, "16 EiB");
}

static void test_rounding_is_to_the_nearest_and_carries(void **state) {
  (void)state;
  check_text(1024 + 51, "1 KiB");
  check_text(1024 + 52, "1.1 KiB");
  check_text(1024 * 1024 - 1, "1 MiB");
  check_text(1024 * 1024 - 51, "1 MiB");
  check_text(1024 * 1024 - 52, "1023.9 KiB");
  check_text((UINT64_C(1) << 60) - 1, "1 EiB");
  check_text((UINT64_C(1) << 63) - 1, "8 EiB");
}

static void test_a_short_buffer_is_not_overrun(void **state) {
  (void)state;
  char text[8] = "zzzzzzz";
  assert_int_equal(gm_format_bytes(1536, text, 4), 7);
  assert_memory_equal(text, "1.5\0zzz", 8);
  assert_int_equal(gm_format_bytes(1536, text, 0), 7);
  assert_memory_equal(text, "1.5\0zzz", 8);
  assert_int_equal(gm_format_bytes(1536, NULL, 0), 7);
  assert_int_equal(gm_format_bytes(1536, text, 1), 7);
  assert_string_equal(text, "");
}

static void test_sixteen_bytes_hold_every_answer(void **state) {
  (void)state;
  for (uint32_t n = 0; n < 64; n++) {
    for (uint64_t d = 0; d < 4; d++) {
      uint64_t power = UINT64_C(1) << n;
      assert_true(gm_format_bytes(power - d, NULL, 0) < 16);
      assert_true(gm_format_bytes(power + power / 2 + d, NULL, 0) < 16);
    }
  }
}

static void test_parse(void **state) {
  (void)state;
  uint64_t bytes = 0;
  assert_int_equal(gm_parse_bytes("8G", &bytes), GM_OK);
  assert_true(bytes == UINT64_C(8) << 30);
  assert_int_equal(gm_parse_bytes("4096", &bytes), GM_OK);
  assert_int_equal(bytes, 4096);
  assert_int_equal(gm_parse_bytes("2.5GiB", &bytes), GM_OK);
  assert_true(bytes == UINT64_C(5) << 29);
}

static void test_parse_refuses(void **state) {
  (void)state;
  static const char *const bad[] = {"", "G", "-1", "8 G", "8 GiB", "1.5", "99999999999999999999", "16777216T", NULL};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    uint64_t bytes = 77;
    assert_int_equal(gm_parse_bytes(bad[i], &bytes), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(bytes, 77);
  }
  assert_int_equal(gm_parse_bytes("1", NULL), GM_ERR_INVALID_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_sizes),
      cmocka_unit_test(test_rounding_is_to_the_nearest_and_carries),
      cmocka_unit_test(test_a_short_buffer_is_not_overrun),
      cmocka_unit_test(test_sixteen_bytes_hold_every_answer),
      cmocka_unit_test(test_parse),
      cmocka_unit_test(test_parse_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
