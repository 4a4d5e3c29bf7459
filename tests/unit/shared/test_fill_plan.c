/* Fills cut into calls of bytes, words and copies: every pattern, offset and length gives the same bytes as a loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/shared/fill_plan.h"

enum { ROOM = 128, FIRST = 16 };

typedef struct device {
  uint8_t memory[ROOM];
  unsigned calls, fail_at; /* 0: none fails */
} device;

static int device_call(device *d) { return ++d->calls == d->fail_at ? 7 : 0; }

static int set_bytes(void *user, uint64_t at, uint8_t value, uint64_t count) {
  device *d = user;
  const int code = device_call(d);
  if (code == 0) memset(d->memory + at, value, count);
  return code;
}

static int set_words(void *user, uint64_t at, uint32_t word, uint64_t count) {
  device *d = user;
  const int code = device_call(d);
  assert_int_equal(at % 4, 0);
  for (uint64_t i = 0; i < count && code == 0; i++) memcpy(d->memory + at + 4 * i, &word, sizeof word);
  return code;
}

static int copy(void *user, uint64_t to, uint64_t from, uint64_t bytes) {
  device *d = user;
  const int code = device_call(d);
  assert_true(from + bytes <= to || to + bytes <= from);
  if (code == 0) memcpy(d->memory + to, d->memory + from, bytes);
  return code;
}

static int fill(device *d, uint64_t at, uint64_t bytes, const uint8_t *pattern, uint32_t pattern_bytes) {
  const gm__fill_target target = {.user = d, .set_bytes = set_bytes, .set_words = set_words, .copy = copy};
  return gm__fill_run(&target, at, bytes, pattern, pattern_bytes);
}

static void check_fill(uint64_t offset, uint64_t bytes, const uint8_t *pattern, uint32_t pattern_bytes) {
  device d = {.calls = 0};
  uint8_t want[ROOM] = {0};
  for (uint64_t i = 0; i < bytes; i++) want[FIRST + offset + i] = pattern[i % pattern_bytes];
  assert_int_equal(fill(&d, FIRST + offset, bytes, pattern, pattern_bytes), 0);
  assert_memory_equal(d.memory, want, sizeof want);
}

static void test_every_offset_and_length(void **state) {
  static const uint8_t different[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  static const uint8_t alike[16] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
  (void)state;
  for (uint32_t pattern = 1; pattern <= 16; pattern *= 2) {
    for (uint64_t offset = 0; offset < 8; offset++) {
      for (uint64_t bytes = 0; bytes < 70; bytes++) {
        check_fill(offset, bytes, different, pattern);
        check_fill(offset, bytes, alike, pattern);
      }
    }
  }
}

static void test_few_calls(void **state) {
  static const uint8_t pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  device d = {.calls = 0};
  (void)state;
  assert_int_equal(fill(&d, FIRST, 64, pattern, 4), 0);
  assert_int_equal(d.calls, 1);
  d.calls = 0;
  assert_int_equal(fill(&d, FIRST, 64, pattern, 16), 0);
  assert_int_equal(d.calls, 4 + 2); /* four words, then twice as much twice */
}

static void test_failure_ends_it(void **state) {
  static const uint8_t pattern[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  device d = {.calls = 0};
  (void)state;
  assert_int_equal(fill(&d, FIRST + 1, 50, pattern, 8), 0);
  const unsigned all = d.calls;
  for (unsigned n = 1; n <= all; n++) {
    d = (device){.fail_at = n};
    assert_int_equal(fill(&d, FIRST + 1, 50, pattern, 8), 7);
    assert_int_equal(d.calls, n);
  }
}

typedef struct ring_device {
  device plain; /* first: the calls of the target are given this */
  bool able;
  unsigned asked;
} ring_device;

static int set_ring(void *user, uint64_t at, const uint8_t *ring, uint64_t bytes, bool *out_done) {
  ring_device *d = user;
  d->asked++;
  *out_done = false;
  const int code = d->able ? device_call(&d->plain) : 0;
  if (!d->able || code != 0) return code;
  for (uint64_t i = 0; i < bytes; i++) d->plain.memory[at + i] = ring[i % GM__FILL_PATTERN_MAX];
  *out_done = true;
  return 0;
}

static int fill_ring(ring_device *d, const uint8_t *pattern, uint32_t pattern_bytes) {
  const gm__fill_target target = {
      .user = d, .set_bytes = set_bytes, .set_words = set_words, .copy = copy, .set_ring = set_ring};
  return gm__fill_run(&target, FIRST + 3, 50, pattern, pattern_bytes);
}

/* An API that has wide fills is asked for those alone; what it cannot do now is copied. */
static void test_wide_fills_of_the_api(void **state) {
  static const uint8_t pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  (void)state;
  for (uint32_t bytes = 1; bytes <= 16; bytes *= 2) {
    ring_device able = {.able = true}, unable = {.able = false};
    assert_int_equal(fill_ring(&able, pattern, bytes), 0);
    assert_int_equal(fill_ring(&unable, pattern, bytes), 0);
    assert_int_equal(able.asked, bytes >= 8);
    assert_int_equal(unable.asked, bytes >= 8);
    if (bytes >= 8) assert_int_equal(able.plain.calls, 1);
    assert_memory_equal(able.plain.memory, unable.plain.memory, ROOM);
  }
  ring_device failing = {.able = true, .plain = {.fail_at = 1}};
  assert_int_equal(fill_ring(&failing, pattern, 16), 7);
  assert_int_equal(failing.plain.calls, 1);
}

static void test_patterns(void **state) {
  (void)state;
  for (uint32_t bytes = 0; bytes < 40; bytes++) {
    const bool good = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
    assert_int_equal(gm__fill_pattern_ok(bytes), good);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_offset_and_length),
      cmocka_unit_test(test_few_calls),
      cmocka_unit_test(test_failure_ends_it),
      cmocka_unit_test(test_wide_fills_of_the_api),
      cmocka_unit_test(test_patterns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
