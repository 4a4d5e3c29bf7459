/* Transfers on the simulated CUDA driver: the bytes, through the ring and past it, and copies that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "support/random.h"
#include "support/transfer_scene.h"

static void bytes_go_up_and_down_through_the_ring(void **state) {
  (void)state;
  const gm_copy one = copy_up(0, BYTES), back = copy_down(0, BYTES);
  gm_transfer_stats stats = run(&one, 1, NULL);
  assert_int_equal(stats.useful_bytes, BYTES);
  assert_int_equal(stats.total_bytes, BYTES);
  assert_int_equal(stats.link_bytes, BYTES);
  assert_int_equal(stats.staged_bytes, BYTES);
  assert_int_equal(stats.link_copies, 21);
  assert_int_equal(stats.failed_copy, GM_TRANSFER_ALL);
  assert_true(stats.seconds > 0 && stats.stalled >= 0 && stats.stalled <= stats.seconds);
  assert_string_equal(stats.why, "");
  assert_true(cuda_count("registered") > 0 && cuda_count("registered") <= SLOTS);
  stats = run(&back, 1, &(gm_transfer_params){.struct_size = sizeof(gm_transfer_params), .stream = stream});
  assert_int_equal(stats.staged_bytes, BYTES);
  assert_memory_equal(up, down, BYTES);
}

/* Lengths and places of any kind, of all three ways in one transfer. */
static void many_copies_of_all_sizes(void **state) {
  (void)state;
  enum { MOST = 4096 };
  static gm_copy copies[MOST];
  uint64_t random = 3, count = 0, useful = 0;
  for (uint64_t at = 0; at < BYTES && count < MOST - 1;) {
    uint64_t bytes = test_random(&random) % (test_random(&random) % 20 ? 2000 : 3 * SLOT);
    if (bytes > BYTES - at) bytes = BYTES - at;
    copies[count++] = copy_up(at, bytes);
    at += bytes;
    useful += bytes;
  }
  assert_int_equal(useful, BYTES);
  assert_int_equal(run(copies, count, NULL).useful_bytes, BYTES);
  check_there();
  memset(down, 0, BYTES);
  for (uint64_t i = 0; i < count; i++) copies[i] = copy_down(copies[i].from.offset, copies[i].bytes);
  copies[count] = copy_inside(BYTES);
  const gm_transfer_stats stats = run(copies, count + 1, NULL);
  assert_int_equal(stats.useful_bytes, 2 * BYTES);
  assert_int_equal(stats.link_bytes, BYTES);
  assert_memory_equal(up, down, BYTES);
  gm_error err;
  ok(gm_block_read(pool, &beside, 0, down, BYTES, NULL, NULL, &err), &err);
  assert_memory_equal(up, down, BYTES);
}

static void registered_memory_goes_past_the_ring(void **state) {
  (void)state;
  gm_error err;
  const gm_copy one = copy_up(0, BYTES);
  ok(gm_host_register(device, up, BYTES, &err), &err);
  gm_transfer_stats stats = run(&one, 1, NULL);
  assert_int_equal(stats.staged_bytes, 0);
  assert_int_equal(stats.link_copies, 1);
  assert_int_equal(cuda_count("registered"), 1);
  ok(gm_host_unregister(device, up, &err), &err);
  check_there();
  assert_int_equal(run(&one, 1, NULL).staged_bytes, BYTES); /* a range that only begins in it is not in it */
}

static void without_page_locked_memory_it_says_why(void **state) {
  (void)state;
  const gm_copy one = copy_up(0, BYTES);
  cuda_say("set NO hostreg");
  const gm_transfer_stats stats = run(&one, 1, NULL);
  assert_true(stats.why[0] != 0);
  assert_int_equal(stats.staged_bytes, 0);
  check_there();
}

static void nothing_is_a_transfer_too(void **state) {
  (void)state;
  const gm_copy none = copy_up(BYTES, 0);
  bool done = false;
  gm_transfer *t = start(NULL, 0, NULL);
  assert_int_equal(gm_transfer_poll(t, NULL, &done, NULL), GM_OK);
  assert_true(done);
  release(t);
  assert_int_equal(run(&none, 1, NULL).useful_bytes, 0);
  assert_int_equal(gm_transfer_release(NULL, NULL), GM_OK);
  gm_transfer_cancel(NULL);
}

/* --- wrong copies: nothing moves --- */

static void refuse(gm_copy wrong, const char *word) {
  const gm_copy copies[] = {copy_up(0, SLOT), wrong};
  gm_transfer *t = NULL;
  gm_error err;
  assert_int_equal(gm_transfer_start(device, copies, 2, NULL, &t, &err), GM_ERR_INVALID_ARGUMENT);
  assert_null(t);
  if (!strstr(err.message, "copy 1") || !strstr(err.message, word)) fail_msg("%s", err.message);
  assert_int_equal(cuda_calls("cuMemcpyHtoDAsync") + cuda_calls("cuMemcpyHtoD"), 0);
}

static void wrong_copies_are_refused_before_the_first_moves(void **state) {
  (void)state;
  gm_copy wrong = copy_up(there.bytes, 1);
  refuse(wrong, "reach beyond");
  wrong = copy_up(0, 1);
  wrong.from.host = NULL;
  refuse(wrong, "`from` has none");
  wrong = copy_up(0, 1);
  wrong.to.host = up;
  refuse(wrong, "`to` has both");
  wrong = copy_up(0, 1);
  wrong.to = (gm_end){.host = down};
  refuse(wrong, "no end is a block");
  wrong = copy_up(0, 2);
  wrong.from = (gm_end){.host = up, .offset = UINT64_MAX - (uintptr_t)up - 1};
  refuse(wrong, "last address");
  wrong = copy_inside(100);
  wrong.to = (gm_end){.pool = pool, .block = &there, .offset = 50};
  refuse(wrong, "overlap");
  for (int i = 0; i < 4; i++) {
    wrong = copy_up(0, 1);
    (i < 2 ? &wrong.to : &wrong.from)->reserved[i % 2] = 1;
    refuse(wrong, i < 2 ? "`to.reserved` is not 0" : "`from.reserved` is not 0");
  }
  const gm_block gone = take(64);
  assert_int_equal(gm_free(pool, &gone, NULL), GM_OK);
  wrong = copy_up(0, 1);
  wrong.to.block = &gone;
  refuse(wrong, "no live block");
  gm_transfer *t = NULL;
  wrong = copy_up(0, 1);
  wrong.struct_size = 3;
  assert_int_equal(gm_transfer_start(device, &wrong, 1, NULL, &t, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_transfer_start(NULL, &wrong, 1, NULL, &t, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_transfer_start(device, NULL, 1, NULL, &t, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_transfer_wait(NULL, 0, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_transfer_start(device, NULL, UINT64_MAX / 2, NULL, &t, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_null(t);
}

int main(void) {
#define TRANSFER_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TRANSFER_TEST(bytes_go_up_and_down_through_the_ring),
      TRANSFER_TEST(many_copies_of_all_sizes),
      TRANSFER_TEST(registered_memory_goes_past_the_ring),
      TRANSFER_TEST(without_page_locked_memory_it_says_why),
      TRANSFER_TEST(nothing_is_a_transfer_too),
      TRANSFER_TEST(wrong_copies_are_refused_before_the_first_moves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
