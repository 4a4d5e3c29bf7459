/* The bytes that a read has under way, against played disks and a played clock. A cancel never waits for long, and the
 * disk is never idle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "core/file/read_pace.h"

enum { FLIGHT = 16, MS = 1000000, WARM = 64 };

/* A disk that brings `rate` bytes in a second one after another, and each `latency` after it has them. */
typedef struct disk {
  double rate; /* 0: side by side without a bound */
  uint64_t latency;
} disk;

static struct {
  gm__read_pace pace;
  uint64_t now, free_at;                  /* of the disk */
  uint64_t began[FLIGHT], ends[FLIGHT];   /* 0: no read */
  uint64_t bytes[FLIGHT], brought, count; /* of what has ended */
  uint64_t most, longest;                 /* bytes under way; nanoseconds until all that is under way would end */
} s;

static void begin(const disk *of, uint64_t bytes) {
  int slot = 0;
  while (s.ends[slot]) slot++;
  gm__read_pace_claim(&s.pace, bytes);
  gm__read_pace_begin(&s.pace, s.now);
  const uint64_t starts = s.free_at > s.now ? s.free_at : s.now;
  const uint64_t takes = of->rate > 0 ? (uint64_t)((double)bytes / of->rate * 1e9) : 0;
  if (of->rate > 0) s.free_at = starts + takes;
  s.began[slot] = s.now;
  s.ends[slot] = (of->rate > 0 ? s.free_at : s.now) + of->latency;
  s.bytes[slot] = bytes;
  if (s.pace.under_way > s.most) s.most = s.pace.under_way;
  for (int i = 0; i < FLIGHT; i++)
    if (s.ends[i] && s.ends[i] - s.now > s.longest) s.longest = s.ends[i] - s.now;
}

static uint32_t under_way(void) {
  uint32_t count = 0;
  for (int i = 0; i < FLIGHT; i++) count += s.ends[i] != 0;
  return count;
}

static void end_next(void) {
  int first = -1;
  for (int i = 0; i < FLIGHT; i++)
    if (s.ends[i] && (first < 0 || s.ends[i] < s.ends[first])) first = i;
  s.now = s.ends[first];
  s.ends[first] = 0;
  s.brought += s.bytes[first];
  s.count++;
  gm__read_pace_end(&s.pace, s.bytes[first], s.began[first], s.now);
}

/* `count` more reads of `bytes` bytes, as many at a time as may be. */
static void go(const disk *of, uint64_t bytes, uint64_t count) {
  for (uint64_t begun = 0, ended = 0; ended < count;) {
    if (begun < count && under_way() < FLIGHT && gm__read_pace_allows(&s.pace, bytes)) {
      begin(of, bytes);
      begun++;
    } else {
      end_next();
      ended++;
    }
  }
}

static void start(void) {
  memset(&s, 0, sizeof s);
  s.now = 1;
}

/* Bytes in a second of what comes now. */
static double measured(const disk *of, uint64_t bytes, uint64_t count) {
  const uint64_t began = s.now, before = s.brought;
  s.most = s.longest = 0;
  go(of, bytes, count);
  return (double)(s.brought - before) / (double)(s.now - began) * 1e9;
}

static void test_a_cancel_waits_50_ms_at_most(void **state) {
  static const double rates[] = {30e6, 60e6, 100e6, 160e6, 500e6, 2e9, 7e9};
  static const uint64_t latencies[] = {0, 100000, 2 * MS, 8 * MS};
  static const uint64_t sizes[] = {1 << 20, 512 << 10, 5000};
  (void)state;
  for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
    for (size_t j = 0; j < 12; j++) {
      const disk of = {.rate = rates[i], .latency = latencies[j % 4]};
      const uint64_t bytes = sizes[j / 4];
      start();
      go(&of, bytes, WARM); /* from the first one on */
      if (s.longest > 50 * MS) fail_msg("%d MB/s: %d us", (int)(rates[i] / 1e6), (int)(s.longest / 1000));
      const double got = measured(&of, bytes, 1000);
      assert_true(s.longest <= 50 * MS);
      const double bound = (double)bytes > rates[i] * 0.04 ? (double)bytes : rates[i] * 0.0401;
      assert_true((double)s.most <= bound);
      /* at the disk's rate, or what sixteen at a time bring, or what 40 ms of it leave of a slow disk's time */
      const double alone = (double)bytes / ((double)bytes / rates[i] + (double)of.latency / 1e9);
      const double most = alone * FLIGHT < rates[i] ? alone * FLIGHT : rates[i];
      if (got < most * 0.9 && got < alone * 0.999) fail_msg("%d MB/s: %d", (int)(most / 1e6), (int)(got / 1e6));
      if (bound >= 4.0 * (double)bytes) assert_true(got >= most * 0.9);
    }
  }
}

/* Each read takes 60 ms, whatever else is under way: as from a store far away. */
static void test_reads_that_delay_none_go_side_by_side(void **state) {
  (void)state;
  const disk of = {.latency = 60 * MS};
  start();
  go(&of, 1 << 20, WARM);
  measured(&of, 1 << 20, 200);
  assert_int_equal(s.most, (uint64_t)FLIGHT << 20);
  assert_int_equal(s.longest, 60 * MS);
}

/* A disk that takes 100 ms for a read: a second waits behind the first, so a third does not. */
static void test_a_slow_disk_has_two_at_most(void **state) {
  (void)state;
  const disk of = {.rate = 10e6};
  start();
  go(&of, 1000000, 500);
  assert_true(s.most <= 2000000);
}

/* Bytes of the page cache came quickly, and the rest do not. */
static void test_a_disk_that_becomes_slow(void **state) {
  (void)state;
  const disk fast = {.rate = 4e9}, slow = {.rate = 100e6};
  start();
  go(&fast, 1 << 20, 2000);
  assert_int_equal(s.most, (uint64_t)FLIGHT << 20);
  go(&slow, 1 << 20, 2 * FLIGHT);
  measured(&slow, 1 << 20, 100);
  assert_true(s.longest <= 50 * MS);
  measured(&fast, 1 << 20, 400);
  assert_int_equal(s.most, (uint64_t)FLIGHT << 20);
}

/* The caller holds everything for an hour: no read was slow. */
static void test_time_without_reads_does_not_count(void **state) {
  (void)state;
  const disk of = {.rate = 500e6};
  start();
  go(&of, 1 << 20, 100);
  s.now += UINT64_C(3600000) * MS;
  measured(&of, 1 << 20, 20);
  assert_true(s.most >= UINT64_C(10) << 20);
}

static void test_what_is_dropped_is_not_under_way(void **state) {
  (void)state;
  gm__read_pace pace = {0};
  gm__read_pace_claim(&pace, 1000);
  assert_false(gm__read_pace_allows(&pace, 1));
  gm__read_pace_drop(&pace, 1000);
  assert_true(gm__read_pace_allows(&pace, UINT64_MAX));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_cancel_waits_50_ms_at_most),
      cmocka_unit_test(test_reads_that_delay_none_go_side_by_side),
      cmocka_unit_test(test_a_slow_disk_has_two_at_most),
      cmocka_unit_test(test_a_disk_that_becomes_slow),
      cmocka_unit_test(test_time_without_reads_does_not_count),
      cmocka_unit_test(test_what_is_dropped_is_not_under_way),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
