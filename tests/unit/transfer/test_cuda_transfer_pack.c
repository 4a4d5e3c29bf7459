/* Small copies that go as one, on the simulated CUDA driver: which become one, the bytes, and how many copies the link
 * sees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "core/device/device_alloc.h"
#include "support/link_model.h"
#include "support/random.h"
#include "support/transfer_scene.h"

enum { COPIES = 100, SMALL = 400, FIRST = 3 };

static link_journal journal;
static gm_copy copies[COPIES];

/* Small copies are packed on this device, whatever its speed is. */
static void pack_up_to(uint64_t bytes) {
  gm__ring *ring = NULL;
  gm_error err;
  ok(gm__staging_open(device, &ring, &err), &err);
  gm__staging_set_small(device, bytes);
  gm__staging_close(device);
}

/* The device scatters copies up to that size, whatever its speed is; 0: it never does. */
static void scatter_up_to(uint64_t bytes) {
  gm__ring *ring = NULL;
  gm__ring_info info;
  gm_memory memory = {.handle = 0};
  gm_error err;
  ok(gm__staging_open(device, &ring, &err), &err);
  gm__ring_figures(ring, &info);
  const gm__device_request request = {.bytes = (uint64_t)info.most << 20};
  if (bytes) ok(gm__device_alloc(device, &request, &memory, &err), &err);
  gm__staging_set_beside(device, GM__BESIDE_SCATTER, bytes, &memory);
  gm__staging_close(device);
}

static void take_journal(void) {
  link_journal_copy *copy;
  cuda_entry("simCudaJournal", &copy);
  link_journal_take(&journal, copy);
}

/* Copy i of the host's bytes is at i * SMALL; on the device it is at places[i]. */
static void set_copies(const uint64_t *places, bool way_down) {
  for (uint64_t i = 0; i < COPIES; i++) {
    const gm_end block = {.pool = pool, .block = &there, .offset = places[i]};
    const gm_end host = {.host = way_down ? down : up, .offset = i * SMALL};
    copies[i] = (gm_copy){.struct_size = sizeof copies[i],
                          .to = way_down ? host : block,
                          .from = way_down ? block : host,
                          .bytes = SMALL};
  }
}

/* There and back; each way is so many copies on its link, with every byte once. */
static void check_places(const uint64_t *places, uint64_t expected) {
  memset(down, 0, BYTES);
  cuda_say("set LINK h2d:1000:3,d2h:1000:3,poll:0");
  set_copies(places, false);
  gm_transfer_stats stats = run(copies, COPIES, NULL);
  assert_int_equal(stats.link_copies, expected);
  assert_int_equal(stats.staged_bytes, COPIES * SMALL);
  set_copies(places, true);
  stats = run(copies, COPIES, NULL);
  assert_int_equal(stats.link_copies, expected);
  assert_int_equal(stats.useful_bytes, COPIES * SMALL);
  take_journal();
  assert_int_equal(link_count(&journal, GM__LINK_H2D), expected);
  assert_int_equal(link_count(&journal, GM__LINK_D2H), expected);
  assert_int_equal(link_bytes(&journal, GM__LINK_H2D), COPIES * SMALL);
  assert_int_equal(link_bytes(&journal, GM__LINK_D2H), COPIES * SMALL);
  cuda_say("set LINK off");
  assert_memory_equal(up, down, COPIES * SMALL);
}

static void equal_steps_are_one_copy(void **state) {
  (void)state;
  uint64_t places[COPIES];
  pack_up_to(4096);
  for (uint64_t i = 0; i < COPIES; i++) places[i] = FIRST + i * 512;
  check_places(places, 1);
  for (uint64_t i = 0; i < COPIES; i++) places[i] = FIRST + i * SMALL; /* next to each other */
  check_places(places, 1);
  for (uint64_t i = 0; i < COPIES; i++) places[i] = FIRST + (i * 37 % COPIES) * 777; /* in any order */
  check_places(places, 1);
  for (uint64_t i = 0; i < COPIES; i++) places[i] = FIRST + i * 512 + i / 50 * 12345; /* two runs */
  check_places(places, 2);
  for (uint64_t i = 0; i < COPIES; i++) places[i] = i / 2 * 1234 + i % 2 * SMALL; /* two that meet are one */
  check_places(places, 1);
}

static void steps_that_differ_stay_apart(void **state) {
  (void)state;
  uint64_t places[COPIES], at = 0;
  pack_up_to(4096);
  scatter_up_to(0);
  for (uint64_t i = 0; i < COPIES; i++) places[i] = at += SMALL + 1 + i * i % 7919;
  const gm_transfer_stats stats = (set_copies(places, false), run(copies, COPIES, NULL));
  assert_int_equal(stats.link_copies, COPIES);
  assert_int_equal(stats.staged_bytes, 0); /* they gain nothing in a slot */
  set_copies(places, true);
  memset(down, 0, BYTES);
  run(copies, COPIES, NULL);
  assert_memory_equal(up, down, COPIES * SMALL);
}

/* There and back, one copy on each link. Between the runs lies what takes them to words of 16 bytes. */
static void check_scattered(const uint64_t *places) {
  memset(down, 0, BYTES);
  cuda_say("set LINK h2d:1000:3,d2h:1000:3,poll:0");
  set_copies(places, false);
  const gm_transfer_stats there_stats = run(copies, COPIES, NULL);
  set_copies(places, true);
  const gm_transfer_stats back_stats = run(copies, COPIES, NULL);
  take_journal();
  assert_int_equal(there_stats.link_copies, 1);
  assert_int_equal(back_stats.link_copies, 1);
  assert_int_equal(link_count(&journal, GM__LINK_H2D), 1);
  assert_int_equal(link_count(&journal, GM__LINK_D2H), 1);
  assert_int_equal(link_bytes(&journal, GM__LINK_H2D), there_stats.link_bytes);
  assert_int_equal(link_bytes(&journal, GM__LINK_D2H), back_stats.link_bytes);
  assert_in_range(there_stats.link_bytes, COPIES * SMALL, COPIES * (SMALL + 31));
  assert_int_equal(back_stats.useful_bytes, COPIES * SMALL);
  cuda_say("set LINK off");
  assert_memory_equal(up, down, COPIES * SMALL);
}

static void steps_that_differ_are_scattered(void **state) {
  (void)state;
  uint64_t places[COPIES], at = 0;
  pack_up_to(4096);
  scatter_up_to(4096);
  for (uint64_t i = 0; i < COPIES; i++) places[i * 37 % COPIES] = at += SMALL + 1 + i * i % 7919;
  check_scattered(places);
  for (uint64_t i = at = 0; i < COPIES; i++)
    places[i] = at += i % 5 == 1 ? SMALL : 2 * SMALL + i * i % 977; /* some meet */
  check_scattered(places);
}

/* A size above the limit goes by copies of its own, with all others of its load. */
static void larger_ones_are_not_scattered(void **state) {
  (void)state;
  uint64_t places[COPIES], at = 0;
  pack_up_to(4096);
  scatter_up_to(SMALL - 1);
  for (uint64_t i = 0; i < COPIES; i++) places[i] = at += SMALL + 1 + i * i % 7919;
  set_copies(places, false);
  assert_in_range(run(copies, COPIES, NULL).link_copies, COPIES / 2, COPIES);
}

/* The device scatters no few copies: those of one size in equal steps are packed, all others are not. */
static void few_copies_are_packed_in_equal_steps(void **state) {
  (void)state;
  enum { FEW = 16 };
  uint64_t places[COPIES];
  pack_up_to(4096);
  scatter_up_to(4096);
  for (uint64_t i = 0; i < COPIES; i++) places[i] = FIRST + (i * 7 % FEW) * 777;
  set_copies(places, false);
  assert_int_equal(run(copies, FEW, NULL).link_copies, 1);
  assert_int_equal(run(copies, FEW - 1, NULL).link_copies, FEW - 1); /* they are too few */
  copies[5].bytes--;
  assert_true(run(copies, FEW, NULL).link_copies > 1);
  places[0] += 1;
  set_copies(places, false);
  assert_true(run(copies, FEW, NULL).link_copies > 1);
  set_copies(places, true);
  memset(down, 0, BYTES);
  run(copies, FEW, NULL);
  assert_memory_equal(up, down, FEW * SMALL);
}

/* Whatever of a scattered load fails, nothing of it counts, and a transfer that goes on moves it all. */
static void a_failed_scatter_is_moved_again(void **state) {
  (void)state;
  static const char *const failures[] = {"fail cuMemcpyHtoDAsync_v2:1:1", "fail cuEventRecord:2:1",
                                         "fail cuLaunchKernel:1:701,cuMemcpyDtoDAsync_v2:1:1",
                                         "fail cuMemcpyDtoDAsync_v2:50:1"}; /* there is no kernel any more */
  uint64_t places[COPIES], at = 0;
  pack_up_to(4096);
  scatter_up_to(4096);
  for (uint64_t i = 0; i < COPIES; i++) places[i] = at += SMALL + 1 + i * i % 7919;
  for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
    set_copies(places, false);
    cuda_say(failures[i]);
    gm_transfer *t = start(copies, COPIES, NULL);
    cuda_say("fail");
    assert_int_equal(wait_for(t, GM_ERR_DRIVER).useful_bytes, 0);
    const gm_transfer_params again = {.struct_size = sizeof again, .resume = t};
    assert_int_equal(run(copies, COPIES, &again).link_copies, 1);
    release(t);
    set_copies(places, true);
    memset(down, 0, BYTES);
    run(copies, COPIES, NULL);
    assert_memory_equal(up, down, COPIES * SMALL);
  }
}

static void larger_copies_go_by_themselves(void **state) {
  (void)state;
  uint64_t places[COPIES];
  pack_up_to(SMALL - 1);
  for (uint64_t i = 0; i < COPIES; i++) places[i] = i * 512;
  check_places(places, COPIES);
}

/* Sizes and places at random, both ways, against the plain calls. */
static void random_boxes(void) {
  uint64_t random = 17;
  gm_error err;
  pack_up_to(4096);
  for (int round = 0; round < 30; round++) {
    uint64_t at = 0, host = 0, count = 0;
    const uint64_t step = 1 + test_random(&random) % 600;
    ok(gm_block_fill(pool, &there, 0, BYTES, "", 1, NULL, NULL, &err), &err);
    for (; count < COPIES; count++) {
      const uint64_t bytes = test_random(&random) % 4 ? step : 1 + test_random(&random) % 900;
      at += test_random(&random) % 3 ? step : test_random(&random) % 2000;
      copies[count] = (gm_copy){.struct_size = sizeof copies[count],
                                .to = {.pool = pool, .block = &there, .offset = at},
                                .from = {.host = up, .offset = host},
                                .bytes = bytes};
      at += bytes;
      host += bytes;
    }
    run(copies, count, NULL);
    memset(down, 0, BYTES);
    for (uint64_t i = 0; i < count; i++) {
      const gm_copy *copy = &copies[i];
      ok(gm_block_read(pool, &there, copy->to.offset, down + copy->from.offset, copy->bytes, NULL, NULL, &err), &err);
    }
    assert_memory_equal(up, down, host);
    memset(down, 0, BYTES);
    for (uint64_t i = 0; i < count; i++) {
      const gm_end block = copies[i].to, from = {.host = down, .offset = copies[i].from.offset};
      copies[i].to = from;
      copies[i].from = block;
    }
    run(copies, count, NULL);
    assert_memory_equal(up, down, host);
  }
}

static void random_boxes_keep_their_bytes(void **state) {
  (void)state;
  scatter_up_to(0);
  random_boxes();
}

static void random_boxes_that_are_scattered_keep_their_bytes(void **state) {
  (void)state;
  scatter_up_to(4096);
  random_boxes();
}

/* The copy that failed is told, nothing of its load counts, and resume moves it all. */
static void a_failed_box_is_moved_again(void **state) {
  (void)state;
  uint64_t places[COPIES];
  pack_up_to(4096);
  for (uint64_t i = 0; i < COPIES; i++) places[i] = i * 512;
  set_copies(places, false);
  cuda_say("fail cuMemcpy2DAsync:1:1,cuMemcpy3DAsync:1:1");
  gm_transfer *t = start(copies, COPIES, NULL);
  cuda_say("fail");
  const gm_transfer_stats stats = wait_for(t, GM_ERR_DRIVER);
  assert_int_equal(stats.useful_bytes, 0);
  assert_int_equal(stats.failed_copy, 0);
  const gm_transfer_params again = {.struct_size = sizeof again, .resume = t};
  assert_int_equal(run(copies, COPIES, &again).link_copies, 1);
  release(t);
  set_copies(places, true);
  run(copies, COPIES, NULL);
  assert_memory_equal(up, down, COPIES * SMALL);
}

static void a_device_is_measured_once(void **state) {
  (void)state;
  uint64_t places[COPIES], small = 1;
  gm__ring *ring = NULL;
  gm_error err;
  for (uint64_t i = 0; i < COPIES; i++) places[i] = i * 512;
  set_copies(places, false);
  ok(gm__staging_open(device, &ring, &err), &err);
  assert_false(gm__staging_small(device, &small));
  run(copies, COPIES, NULL);
  assert_true(gm__staging_small(device, &small));
  const long calls = cuda_calls("cuStreamCreate");
  assert_true(calls > 0);
  run(copies, COPIES, NULL);
  assert_int_equal(cuda_calls("cuStreamCreate"), calls);
  gm__staging_close(device);
}

int main(void) {
#define TRANSFER_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TRANSFER_TEST(equal_steps_are_one_copy),
      TRANSFER_TEST(steps_that_differ_stay_apart),
      TRANSFER_TEST(steps_that_differ_are_scattered),
      TRANSFER_TEST(larger_ones_are_not_scattered),
      TRANSFER_TEST(a_failed_scatter_is_moved_again),
      TRANSFER_TEST(larger_copies_go_by_themselves),
      TRANSFER_TEST(few_copies_are_packed_in_equal_steps),
      TRANSFER_TEST(random_boxes_keep_their_bytes),
      TRANSFER_TEST(random_boxes_that_are_scattered_keep_their_bytes),
      TRANSFER_TEST(a_failed_box_is_moved_again),
      TRANSFER_TEST(a_device_is_measured_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
