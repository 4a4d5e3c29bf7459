/* The checksum: it sees every changed bit and every changed length, wherever the bytes lie. */
#include "core/base/checksum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#ifdef GM_HAVE_XXHASH
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

enum { LENGTH = 300 };

static void fill(unsigned char *bytes) {
  for (unsigned i = 0; i < LENGTH; i++) bytes[i] = (unsigned char)(i * 7 + i / 3);
}

static void test_every_changed_bit_shows(void **state) {
  (void)state;
  unsigned char bytes[LENGTH];
  fill(bytes);
  uint64_t before = gm__checksum(bytes, LENGTH, 0);
  for (unsigned bit = 0; bit < LENGTH * 8; bit++) {
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    assert_true(gm__checksum(bytes, LENGTH, 0) != before);
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
  }
  assert_true(gm__checksum(bytes, LENGTH, 0) == before);
}

static void test_every_length_of_zeros_differs(void **state) {
  (void)state;
  static const unsigned char zeros[LENGTH];
  uint64_t seen[LENGTH];
  for (unsigned i = 0; i < LENGTH; i++) {
    seen[i] = gm__checksum(zeros, i, 0);
    for (unsigned j = 0; j < i; j++) assert_true(seen[i] != seen[j]);
  }
}

static void test_the_place_in_memory_does_not_matter(void **state) {
  (void)state;
  unsigned char bytes[LENGTH], moved[LENGTH + 16];
  fill(bytes);
  uint64_t expected = gm__checksum(bytes, LENGTH, 5);
  for (unsigned shift = 0; shift < 16; shift++) {
    memcpy(moved + shift, bytes, LENGTH);
    assert_true(gm__checksum(moved + shift, LENGTH, 5) == expected);
  }
}

static void test_the_seed_chains(void **state) {
  (void)state;
  uint64_t ab = gm__checksum("b", 1, gm__checksum("a", 1, 0)), ba = gm__checksum("a", 1, gm__checksum("b", 1, 0));
  assert_true(ab != ba);
  assert_true(gm__checksum("a", 1, 1) != gm__checksum("a", 1, 2));
  assert_true(gm__checksum(NULL, 0, 0) == gm__checksum("x", 0, 0));
}

/* Files hold these values: they are XXH3's, whichever vectors the processor has. */
static void test_the_values_are_those_of_xxh3(void **state) {
  (void)state;
#ifdef GM_HAVE_XXHASH
  static unsigned char bytes[9000];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7 + i / 255);
  for (size_t length = 0; length < sizeof bytes - 3; length += length < 300 ? 1 : 61) {
    for (uint64_t seed = 0; seed < 3; seed++) {
      assert_true(gm__checksum(bytes + 3, length, seed << 40) == XXH3_64bits_withSeed(bytes + 3, length, seed << 40));
    }
  }
  assert_int_equal(gm__checksum_kind_here(), GM__CHECKSUM_XXH3);
#else
  assert_int_equal(gm__checksum_kind_here(), GM__CHECKSUM_MIX);
#endif
}

/* gm's own checksum stands in where the library is not. Files hold these values, too. The first of all cases, since a
 * process looks for the library once. */
static void test_the_values_without_xxhash(void **state) {
  (void)state;
  static const struct {
    unsigned length;
    uint64_t value;
  } known[] = {{0, UINT64_C(0xdd9be928b5b46a20)},  {1, UINT64_C(0x0d04f2ca8fd54acf)},
               {7, UINT64_C(0xc1a79a53c1410d96)},  {8, UINT64_C(0xbdf2b122400353cc)},
               {9, UINT64_C(0x9b0986f07b9784f1)},  {16, UINT64_C(0x3a6f2c3070379655)},
               {300, UINT64_C(0x4ab8679b500baf3c)}};
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    unsigned char bytes[LENGTH];
    fill(bytes);
    setenv("GM_XXHASH_LIBRARY", "/nonexistent/libxxhash.so.0", 1);
    int wrong = gm__checksum_kind_here() != GM__CHECKSUM_MIX;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
      wrong += gm__checksum(bytes, known[i].length, 5) != known[i].value;
    }
    _exit(wrong);
  }
  int status = 0;
  assert_true(waitpid(child, &status, 0) == child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_values_without_xxhash),
      cmocka_unit_test(test_every_changed_bit_shows),
      cmocka_unit_test(test_every_length_of_zeros_differs),
      cmocka_unit_test(test_the_place_in_memory_does_not_matter),
      cmocka_unit_test(test_the_seed_chains),
      cmocka_unit_test(test_the_values_are_those_of_xxh3),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
