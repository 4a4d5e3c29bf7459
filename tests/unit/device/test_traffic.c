/* The time in which a device has users of its link: the union of their times, whoever begins and ends first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>

#include "core/device/device.h"

enum { THREADS = 4, ROUNDS = 20000 };

static gm_device *device; /* for its traffic alone */

static int begin(void **state) {
  (void)state;
  device = calloc(1, sizeof *device);
  return !device;
}

static int end(void **state) {
  (void)state;
  free(device);
  return 0;
}

static uint64_t users(void) {
  uint64_t ns;
  return gm__traffic_users(device, 0, &ns);
}

static uint64_t time_at(uint64_t now) {
  uint64_t ns;
  gm__traffic_users(device, now, &ns);
  return ns;
}

static void times_are_joined(void **state) {
  (void)state;
  gm__traffic_begin(device, 1600);
  assert_int_equal(time_at(3200), 1600); /* it is under way */
  gm__traffic_begin(device, 3200);
  gm__traffic_end(device, 4800);
  assert_int_equal(time_at(4800), 3200);
  gm__traffic_end(device, 6400);
  assert_int_equal(time_at(160000), 4800); /* nobody is */
  gm__traffic_begin(device, 160000);
  gm__traffic_end(device, 161600);
  assert_int_equal(time_at(320000), 6400);
  assert_int_equal(users(), 3);
}

/* A transfer that ended long ago is seen late. One that never moved ends when it began. */
static void an_end_before_the_begin_is_no_time(void **state) {
  (void)state;
  gm__traffic_begin(device, 160000);
  gm__traffic_end(device, 1600);
  assert_int_equal(time_at(320000), 0);
  gm__traffic_begin(device, 160000);
  gm__traffic_end(device, 160000);
  assert_int_equal(time_at(320000), 0);
}

/* After years of uptime, and over the end of the bits that are kept. */
static void late_times_are_as_good(void **state) {
  (void)state;
  const uint64_t edge = UINT64_C(1) << 48;
  gm__traffic_begin(device, edge - 16000);
  gm__traffic_end(device, edge + 16000);
  assert_int_equal(time_at(edge + 32000), 32000);
  gm__traffic_begin(device, UINT64_MAX / 2);
  gm__traffic_end(device, UINT64_MAX / 2 + 16000);
  assert_int_equal(time_at(UINT64_MAX / 2 + 32000), 48000);
}

static void *come_and_go(void *user) {
  (void)user;
  for (uint64_t i = 0; i < ROUNDS; i++) {
    gm__traffic_begin(device, 16 * i);
    gm__traffic_count(device, GM__TRAFFIC_UP, 3, 2);
    gm__traffic_end(device, 16 * i);
  }
  return NULL;
}

static void threads_lose_nothing(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_int_equal(users(), THREADS * ROUNDS);
  assert_int_equal(device->traffic.bytes[GM__TRAFFIC_UP], 3 * THREADS * ROUNDS);
  assert_int_equal(device->traffic.useful_bytes, 2 * THREADS * ROUNDS);
  const uint64_t ns = time_at(0);
  assert_int_equal(time_at(1 << 30), ns); /* nobody is under way */
}

int main(void) {
#define TRAFFIC_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TRAFFIC_TEST(times_are_joined),
      TRAFFIC_TEST(an_end_before_the_begin_is_no_time),
      TRAFFIC_TEST(late_times_are_as_good),
      TRAFFIC_TEST(threads_lose_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
