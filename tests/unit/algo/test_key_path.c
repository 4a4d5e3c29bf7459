/* Keys as paths: the normal form beside a plain model, and what is no key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/algo/key_path.h"
#include "support/random.h"

static void expect(const char *key, const char *normal) {
  char out[64];
  size_t length = SIZE_MAX;
  assert_int_equal(gm__key_path_normalise(key, strlen(key), out, &length), GM__KEY_PATH_FINE);
  assert_int_equal(length, strlen(normal));
  assert_memory_equal(out, normal, length);
}

static void refuse(const char *key, size_t bytes, gm__key_path_fault fault) {
  static char out[GM__KEY_PATH_MOST];
  size_t length;
  assert_int_equal(gm__key_path_normalise(key, bytes, out, &length), fault);
  assert_true(strlen(gm__key_path_fault_text(fault)) > 5);
}

static void test_keys_have_one_form(void **state) {
  (void)state;
  expect("a", "a");
  expect("/a", "a");
  expect("a//b/./c", "a/b/c");
  expect("a/b/", "a/b");
  expect("a/b///", "a/b");
  expect("a/b/../c", "a/c");
  expect("a/../b", "b");
  expect("./a", "a");
  expect("a/.../b", "a/.../b");
  expect("a/..b/.c", "a/..b/.c");
  expect("/", "");
  expect("////", "");
  expect(".", "");
  expect("a/b/../..", "");
  expect(" a\n", " a\n");
  expect("\xff\x01", "\xff\x01");
}

static void test_what_is_no_key(void **state) {
  (void)state;
  char *longest = malloc(1 << 20);
  assert_non_null(longest);
  memset(longest, 'x', 1 << 20);
  refuse("", 0, GM__KEY_PATH_EMPTY);
  refuse("a\0b", 3, GM__KEY_PATH_NUL);
  refuse("a", 2, GM__KEY_PATH_NUL);
  refuse("..", 2, GM__KEY_PATH_ESCAPES);
  refuse("/../a", 5, GM__KEY_PATH_ESCAPES);
  refuse("a/../../b", 9, GM__KEY_PATH_ESCAPES);
  refuse("a/b/../../../a/b", 16, GM__KEY_PATH_ESCAPES);
  refuse(longest, GM__KEY_PATH_MOST, GM__KEY_PATH_FINE);
  refuse(longest, GM__KEY_PATH_MOST + 1, GM__KEY_PATH_LONG);
  refuse(longest, 1 << 20, GM__KEY_PATH_LONG);
  free(longest);
}

static void test_what_is_below_a_prefix(void **state) {
  (void)state;
  assert_true(gm__key_path_is_below("a/b", 3, "", 0));
  assert_true(gm__key_path_is_below("a/b", 3, "a", 1));
  assert_true(gm__key_path_is_below("a/b", 3, "a/b", 3));
  assert_false(gm__key_path_is_below("ab", 2, "a", 1));
  assert_false(gm__key_path_is_below("a", 1, "a/b", 3));
  assert_false(gm__key_path_is_below("b/a", 3, "a", 1));
}

/* The model keeps a stack of parts. */
static bool model(const char *key, char *out) {
  const char *parts[64];
  size_t lengths[64], count = 0;
  for (const char *at = key; *at;) {
    const size_t part = strcspn(at, "/");
    if (part == 2 && strncmp(at, "..", 2) == 0) {
      if (!count--) return false;
    } else if (part && !(part == 1 && *at == '.')) {
      parts[count] = at;
      lengths[count++] = part;
    }
    at += part + (at[part] == '/');
  }
  for (size_t i = 0; i < count; i++) {
    if (i) *out++ = '/';
    memcpy(out, parts[i], lengths[i]);
    out += lengths[i];
  }
  *out = '\0';
  return true;
}

static void test_random_keys_beside_a_model(void **state) {
  (void)state;
  static const char letters[] = "//..ab";
  uint64_t seed = 7;
  for (int i = 0; i < 200000; i++) {
    char key[33], wanted[64];
    size_t bytes = 1 + test_random(&seed) % 32, length = 0;
    for (size_t at = 0; at < bytes; at++) key[at] = letters[test_random(&seed) % 6];
    key[bytes] = '\0';
    const bool fine = model(key, wanted);
    const gm__key_path_fault fault = gm__key_path_normalise(key, bytes, key, &length); /* in place */
    assert_int_equal(fault, fine ? GM__KEY_PATH_FINE : GM__KEY_PATH_ESCAPES);
    if (!fine) continue;
    assert_int_equal(length, strlen(wanted));
    assert_memory_equal(key, wanted, length);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_keys_have_one_form),
      cmocka_unit_test(test_what_is_no_key),
      cmocka_unit_test(test_what_is_below_a_prefix),
      cmocka_unit_test(test_random_keys_beside_a_model),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
