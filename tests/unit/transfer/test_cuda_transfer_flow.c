/* Transfers on the simulated CUDA driver: failures, cancels, who waits for whom, engines that record, what ends a
 * device or a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "core/device/device.h"
#include "core/staging/stock.h"
#include "support/transfer_scene.h"

/* --- failures and cancels: the first one wins, and resume moves the rest --- */

static void the_first_failure_is_told_and_the_rest_goes_later(void **state) {
  (void)state;
  const gm_copy copies[] = {copy_up(0, SLOT / 2), copy_up(SLOT / 2, BYTES - SLOT / 2)};
  cuda_say("fail cuMemcpyHtoDAsync:4:1");
  gm_transfer *t = start(copies, 2, NULL);
  cuda_say("fail");
  const gm_transfer_stats stats = wait_for(t, GM_ERR_DRIVER);
  gm_error err;
  assert_int_equal(gm_transfer_poll(t, NULL, NULL, &err), GM_ERR_DRIVER);
  assert_non_null(strstr(err.message, "copy 1, byte"));
  assert_int_equal(stats.failed_copy, 1);
  assert_int_equal(stats.useful_bytes, SLOT / 2 + stats.failed_offset);
  assert_true(stats.failed_offset > 0);
  const gm_transfer_params again = {.struct_size = sizeof again, .resume = t};
  const gm_transfer_stats rest = run(copies, 2, &again);
  assert_int_equal(rest.useful_bytes, BYTES);
  assert_int_equal(rest.link_bytes, BYTES - stats.useful_bytes);
  release(t);
  check_there();
}

/* Holding the driver's streams keeps work from ending. */
static void cancelled_in_the_middle_it_can_be_resumed(void **state) {
  (void)state;
  const gm_transfer_params lazy = {.struct_size = sizeof lazy, .no_wait = true};
  const gm_copy one = copy_up(0, BYTES);
  cuda_say("hold");
  gm_transfer *t = start(&one, 1, &lazy);
  const gm_transfer_params early = {.struct_size = sizeof early, .resume = t};
  gm_transfer *wrong = NULL;
  assert_int_equal(gm_transfer_start(device, &one, 1, &early, &wrong, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_transfer_stats stats = {.struct_size = sizeof stats};
  bool done = true;
  assert_int_equal(gm_transfer_poll(t, &stats, &done, NULL), GM_OK);
  assert_false(done);
  assert_int_equal(stats.link_bytes, SLOTS * SLOT); /* no more than the ring has */
  assert_int_equal(stats.useful_bytes, 0);
  assert_int_equal(gm_transfer_wait(t, 1000, &stats, NULL), GM_ERR_TIMEOUT);
  gm_transfer_cancel(t);
  cuda_say("release");
  stats = wait_for(t, GM_ERR_CANCELLED);
  assert_int_equal(stats.useful_bytes, SLOTS * SLOT);
  assert_int_equal(stats.failed_copy, 0);
  assert_int_equal(stats.failed_offset, SLOTS * SLOT);
  assert_int_equal(run(&one, 1, &early).link_bytes, BYTES - SLOTS * SLOT);
  check_there();
  const gm_copy other = copy_up(0, SLOT);
  assert_int_equal(gm_transfer_start(device, &other, 1, &early, &wrong, NULL), GM_ERR_INVALID_ARGUMENT);
  release(t);
}

static void a_cancel_after_all_was_submitted_changes_nothing(void **state) {
  (void)state;
  const gm_copy one = copy_down(0, SLOT);
  gm_transfer *t = start(&one, 1, NULL);
  gm_transfer_cancel(t);
  assert_int_equal(wait_for(t, GM_OK).useful_bytes, SLOT);
  release(t);
}

static void a_transfer_that_nobody_awaits_is_released(void **state) {
  (void)state;
  const gm_transfer_params lazy = {.struct_size = sizeof lazy, .no_wait = true};
  const gm_copy copies[] = {copy_up(0, BYTES), copy_down(0, BYTES)};
  for (int i = 0; i < 2; i++) release(start(&copies[i], 1, &lazy));
  assert_int_equal(gm_device_close(device, NULL), GM_ERR_BUSY);
}

/* --- the ring is all that holds it back --- */

static void without_a_slot_it_is_busy_or_waits(void **state) {
  (void)state;
  gm_error err;
  gm__ring *ring = NULL;
  gm__ring_slot *slots[SLOTS];
  gm_transfer *t = NULL;
  const gm_transfer_params lazy = {.struct_size = sizeof lazy, .no_wait = true};
  const gm_copy one = copy_up(0, BYTES);
  ok(gm__staging_open(device, &ring, &err), &err);
  for (int i = 0; i < SLOTS; i++) ok(gm__ring_take(ring, 0, &slots[i], &err), &err);
  assert_int_equal(gm_transfer_start(device, &one, 1, &lazy, &t, &err), GM_ERR_BUSY);
  assert_null(t);
  gm__ring_give(ring, slots[0], NULL);
  t = start(&one, 1, &lazy);
  assert_int_equal(wait_for(t, GM_OK).useful_bytes, BYTES); /* one slot is enough */
  release(t);
  for (int i = 1; i < SLOTS; i++) gm__ring_give(ring, slots[i], NULL);
  gm__staging_close(device);
  check_there();
}

/* Two that come down and that nobody asks for hold as many slots as they may. A third one, the other way, still goes,
 * and so does each of the two. */
static void three_users_of_one_ring(void) {
  gm_error err;
  const gm_transfer_params lazy = {.struct_size = sizeof lazy, .no_wait = true};
  const gm_copy copies[] = {copy_down(0, BYTES), copy_up(0, BYTES)};
  ok(gm_block_write(pool, &there, 0, up, BYTES, NULL, NULL, &err), &err);
  gm_transfer *sleeps = start(&copies[0], 1, &lazy);
  assert_int_equal(run(&copies[1], 1, NULL).useful_bytes, BYTES);
  gm_transfer *second = start(&copies[1], 1, &lazy);
  assert_int_equal(wait_for(second, GM_OK).useful_bytes, BYTES);
  release(second);
  wait_for(sleeps, GM_OK);
  release(sleeps);
  assert_memory_equal(up, down, BYTES);
}

static void users_of_one_ring_leave_each_other_a_slot(void **state) {
  (void)state;
  three_users_of_one_ring();
}

/* Another ring has all memory of the device but one slot. */
static void users_of_a_ring_with_one_slot_help_each_other(void **state) {
  (void)state;
  gm_error err;
  gm__ring *ring = NULL, *other = NULL;
  gm__ring_slot *slot = NULL;
  gm__ring_info info;
  ok(gm__staging_open(device, &ring, &err), &err);
  device->stock->most = SLOT;
  ok(gm__ring_create(device, 2, SLOT, &other, &err), &err);
  ok(gm__ring_take(other, 0, &slot, &err), &err);
  three_users_of_one_ring();
  gm__ring_figures(ring, &info);
  assert_int_equal(info.made, 1);
  assert_non_null(strstr(info.why, "staging.max_bytes"));
  gm__ring_give(other, slot, NULL);
  ok(gm__ring_destroy(other, &err), &err);
  gm__staging_close(device);
}

/* --- order --- */

static void a_stream_follows_one_copy_or_all(void **state) {
  (void)state;
  gm_error err;
  gm_stream *other = NULL;
  const gm_transfer_params mine = {.struct_size = sizeof mine, .stream = stream};
  const gm_copy copies[] = {copy_up(0, SLOT), copy_up(SLOT, SLOT)};
  ok(gm_stream_create(device, &other, &err), &err);
  ok(gm_block_fill(pool, &there, 0, BYTES, "", 1, NULL, NULL, &err), &err);
  ok(gm_host_register(device, down, BYTES, &err), &err);
  cuda_say("set LINK h2d:500,d2h:1000,poll:0");
  for (int with = 0; with < 2; with++) {
    gm_point point = {0};
    gm_transfer *t = start(copies, 2, &mine);
    if (with) ok(gm_transfer_before(t, 0, other, &err), &err);
    ok(gm_block_read(pool, &there, 0, down, SLOT, other, &point, &err), &err);
    ok(gm_point_wait(device, &point, UINT64_MAX, &err), &err);
    gm_point_release(device, &point);
    assert_int_equal(memcmp(up, down, SLOT) == 0, with);
    ok(gm_transfer_before(t, GM_TRANSFER_ALL, other, &err), &err);
    ok(gm_block_read(pool, &there, 0, down, 2 * SLOT, other, NULL, &err), &err);
    assert_memory_equal(up, down, 2 * SLOT);
    assert_int_equal(gm_transfer_before(t, 2, other, NULL), GM_ERR_INVALID_ARGUMENT);
    wait_for(t, GM_OK);
    ok(gm_transfer_before(t, 1, other, &err), &err);
    release(t);
    ok(gm_block_fill(pool, &there, 0, BYTES, "", 1, NULL, NULL, &err), &err);
  }
  cuda_say("set LINK off");
  ok(gm_host_unregister(device, down, &err), &err);
  ok(gm_stream_close(other, &err), &err);
}

/* --- an engine that records --- */

enum { PIECES = 64 };
static gm_copy pieces[PIECES];
static uint64_t tickets[PIECES], piece_count, refuse_at;

static bool record(void *user, const gm_copy *piece, uint64_t ticket) {
  assert_ptr_equal(user, &piece_count);
  if (piece_count == refuse_at) return false;
  pieces[piece_count] = *piece;
  tickets[piece_count++] = ticket;
  return true;
}

/* The engine's queue: this copy, and the answer. */
static void play_piece(gm_transfer *t, uint64_t index, bool with_point) {
  const gm_copy *piece = &pieces[index];
  gm_point point = {0};
  gm_error err;
  assert_true(piece->to.block || piece->from.block);
  if (piece->from.host) {
    ok(gm_block_write(piece->to.pool, piece->to.block, piece->to.offset,
                      (unsigned char *)piece->from.host + piece->from.offset, piece->bytes, stream, &point, &err),
       &err);
  } else {
    ok(gm_block_read(piece->from.pool, piece->from.block, piece->from.offset,
                     (unsigned char *)piece->to.host + piece->to.offset, piece->bytes, stream, &point, &err),
       &err);
  }
  if (!with_point) ok(gm_point_wait(device, &point, UINT64_MAX, &err), &err);
  ok(gm_transfer_passed(t, tickets[index], with_point ? &point : NULL, &err), &err);
  gm_point_release(device, &point);
  assert_int_equal(gm_transfer_passed(t, tickets[index], NULL, NULL), GM_ERR_NOT_FOUND);
}

static void an_engine_records_the_copies(void **state) {
  (void)state;
  gm_error err;
  const gm_transfer_params params = {
      .struct_size = sizeof params, .stream = stream, .record = record, .user = &piece_count};
  const gm_copy copies[] = {copy_up(0, BYTES), copy_down(0, BYTES)};
  for (int i = 0; i < 2; i++) {
    uint64_t played = 0;
    bool done = false;
    piece_count = 0;
    refuse_at = PIECES;
    gm_transfer *t = start(&copies[i], 1, &params);
    assert_in_range(piece_count, 1, SLOTS);
    assert_int_equal(gm_transfer_wait(t, 1000, NULL, NULL), GM_ERR_TIMEOUT);
    assert_int_equal(gm_transfer_before(t, 0, stream, NULL), GM_ERR_NOT_SUPPORTED);
    assert_int_equal(gm_transfer_passed(t, 0, NULL, NULL), GM_ERR_NOT_FOUND);
    while (!done) {
      for (; played < piece_count; played++) play_piece(t, played, played % 2);
      ok(gm_transfer_poll(t, NULL, &done, &err), &err);
    }
    assert_int_equal(wait_for(t, GM_OK).useful_bytes, BYTES);
    release(t);
  }
  assert_memory_equal(up, down, BYTES);
}

static void pieces_that_the_engine_keeps_or_refuses(void **state) {
  (void)state;
  gm_error err;
  const gm_transfer_params params = {
      .struct_size = sizeof params, .stream = stream, .record = record, .user = &piece_count};
  const gm_copy one = copy_up(0, BYTES);
  piece_count = 0;
  refuse_at = 1;
  gm_transfer *t = start(&one, 1, &params);
  assert_int_equal(gm_transfer_release(t, &err), GM_ERR_BUSY);
  assert_non_null(strstr(err.message, "1 pieces"));
  play_piece(t, 0, true);
  const gm_transfer_stats stats = wait_for(t, GM_ERR_CANCELLED);
  assert_int_equal(stats.useful_bytes, SLOT);
  assert_int_equal(stats.failed_offset, SLOT);
  release(t);
}

/* --- what ends a device, or a process --- */

static void slots_of_a_lost_device_are_not_waited_for(void **state) {
  (void)state;
  const gm_transfer_params lazy = {.struct_size = sizeof lazy, .no_wait = true};
  const gm_copy copies[] = {copy_up(0, SLOT), copy_down(0, BYTES)};
  gm_transfer *two[2];
  lost = true;
  cuda_say("hold");
  for (int i = 0; i < 2; i++) two[i] = start(&copies[i], 1, &lazy);
  cuda_say("lose 700");
  cuda_say("release");
  for (int i = 0; i < 2; i++) {
    wait_for(two[i], GM_ERR_DEVICE_LOST);
    release(two[i]);
  }
}

static void a_forked_child_gives_its_memory_back(void **state) {
  (void)state;
  const gm_transfer_params lazy = {.struct_size = sizeof lazy, .no_wait = true};
  const gm_copy one = copy_down(0, BYTES);
  int status = 1;
  gm_transfer *t = start(&one, 1, &lazy);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    bool right = gm_transfer_wait(t, 0, NULL, NULL) == GM_ERR_FORKED;
    right = right && gm_transfer_poll(t, NULL, NULL, NULL) == GM_ERR_FORKED;
    right = right && gm_transfer_release(t, NULL) == GM_OK;
    gm_stream_close(stream, NULL);
    gm_pool_destroy(pool, NULL);
    right = right && gm_device_close(device, NULL) == GM_OK;
    _exit(right ? 0 : 9);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  wait_for(t, GM_OK);
  release(t);
}

int main(void) {
#define TRANSFER_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TRANSFER_TEST(the_first_failure_is_told_and_the_rest_goes_later),
      TRANSFER_TEST(cancelled_in_the_middle_it_can_be_resumed),
      TRANSFER_TEST(a_cancel_after_all_was_submitted_changes_nothing),
      TRANSFER_TEST(a_transfer_that_nobody_awaits_is_released),
      TRANSFER_TEST(without_a_slot_it_is_busy_or_waits),
      TRANSFER_TEST(users_of_one_ring_leave_each_other_a_slot),
      TRANSFER_TEST(users_of_a_ring_with_one_slot_help_each_other),
      TRANSFER_TEST(a_stream_follows_one_copy_or_all),
      TRANSFER_TEST(an_engine_records_the_copies),
      TRANSFER_TEST(pieces_that_the_engine_keeps_or_refuses),
      TRANSFER_TEST(a_forked_child_gives_its_memory_back),
      TRANSFER_TEST(slots_of_a_lost_device_are_not_waited_for), /* last: the driver keeps what was in a lost context */
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
