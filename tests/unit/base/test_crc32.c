/* The checksum of zip files: known values, and pieces. */
#include "core/base/crc32.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_known_values(void **state) {
  (void)state;
  unsigned char all[256];
  for (int i = 0; i < 256; i++) all[i] = (unsigned char)i;
  assert_int_equal(gm__crc32(0, NULL, 0), 0);
  assert_int_equal(gm__crc32(0, "123456789", 9), 0xcbf43926); /* the check value of ISO 3309's catalogue */
  assert_int_equal(gm__crc32(0, all, sizeof all), 0x29058c73);
}

static void test_pieces_are_the_whole(void **state) {
  (void)state;
  static const char text[] = "The quick brown fox jumps over the lazy dog";
  for (size_t at = 0; at <= sizeof text - 1; at++) {
    assert_int_equal(gm__crc32(gm__crc32(0, text, at), text + at, sizeof text - 1 - at), 0x414fa339);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_values),
      cmocka_unit_test(test_pieces_are_the_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
