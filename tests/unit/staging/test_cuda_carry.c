/* Copies of gm's own pageable memory go through page-locked slots: what buffers and pools that sleep keep on the host.
 * The card is a simulated CUDA card, and the journal of its link model tells how fast they go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "core/staging/staging.h"
#include "gm/buffer.h"
#include "gm/copy.h"
#include "gm/pool.h"
#include "gm/relocation.h"
#include "gm/transfer.h"
#include "support/adopt_scene.h"
#include "support/cuda_fixture.h"
#include "support/link_model.h"

enum { BYTES = (4 << 20) + 12345, SLOTS = 16, PIECES = 17 };

static const double pageable = 6e9, pinned = 24e9; /* bytes per second */

static gm_context *ctx;
static gm_device *device;
static gm_pool *pool;
static gm_buffer *buffer;
static bool lost; /* what the pool had stays at the driver */
static unsigned char *want, *got;
static link_journal journal;
static link_journal_copy *journal_copy;

static int begin(void **state) {
  gm_error err;
  const gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = BYTES}};
  (void)state;
  lost = false;
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  adopt_scene_ok(gm_device_open_index(ctx, "cuda", 0, &device, &err), &err);
  adopt_scene_ok(gm_pool_create(device, NULL, &pool, &err), &err);
  adopt_scene_ok(gm_buffer_create(pool, &params, &buffer, &err), &err);
  want = malloc(BYTES);
  got = calloc(1, BYTES);
  assert_true(want && got);
  for (uint32_t i = 0; i < BYTES; i++) want[i] = (unsigned char)(i * 7 + i / 251);
  adopt_scene_ok(gm_buffer_write(buffer, 0, want, BYTES, NULL, &err), &err);
  cuda_entry("simCudaJournal", &journal_copy);
  return 0;
}

static int end(void **state) {
  char left[1024];
  gm_error err;
  (void)state;
  cuda_say("fail");
  cuda_say("set LINK off");
  gm_buffer_release(buffer, NULL);
  adopt_scene_ok(gm_pool_destroy(pool, &err), &err);
  adopt_scene_end(ctx, device); /* all slots are back */
  if (!lost && cuda_script("leaks", left, sizeof left)) fail_msg("left at the driver:\n%s", left);
  free(want);
  free(got);
  return 0;
}

static void check(void) {
  gm_error err;
  memset(got, 0, BYTES);
  adopt_scene_ok(gm_buffer_read(buffer, 0, got, BYTES, NULL, &err), &err);
  assert_memory_equal(want, got, BYTES);
}

static void move(gm_location where) {
  gm_error err;
  adopt_scene_ok(gm_buffer_move(buffer, where, NULL, &err), &err);
  assert_int_equal(gm_buffer_location(buffer), where);
}

/* Bytes per second of a move, on the model's clock. */
static double rate_of_a_move(gm_location where) {
  cuda_say("set LINK h2d:24000,d2h:24000,pageable:6000");
  move(where);
  link_journal_take(&journal, journal_copy);
  cuda_say("set LINK off");
  assert_int_equal(link_bytes(&journal, where == GM_LOCATION_HOST ? GM__LINK_D2H : GM__LINK_H2D), BYTES);
  return BYTES / ((double)link_makespan(&journal) * 1e-9);
}

static void a_buffer_moves_at_the_rate_of_page_locked_memory(void **state) {
  gm_error err;
  gm_transfer_totals totals = {.struct_size = sizeof totals};
  (void)state;
  const double down = rate_of_a_move(GM_LOCATION_HOST);
  check();
  const double up = rate_of_a_move(GM_LOCATION_DEVICE);
  check();
  adopt_scene_ok(gm_device_transfer_totals(device, &totals, &err), &err);
  assert_true(totals.users == 2 && totals.down_bytes == BYTES && totals.up_bytes == BYTES);
  if (down < 0.95 * pinned || up < 0.95 * pinned) fail_msg("down %g, up %g bytes per second", down, up);
}

/* The control: with all slots in other hands the rate is that of pageable memory. Nobody is waited for. */
static void without_a_slot_it_moves_all_the_same(void **state) {
  gm_error err;
  gm__ring *ring;
  gm__ring_slot *slots[SLOTS];
  (void)state;
  adopt_scene_ok(gm__staging_open(device, &ring, &err), &err);
  for (int i = 0; i < SLOTS; i++) adopt_scene_ok(gm__ring_take(ring, 0, &slots[i], &err), &err);
  const double down = rate_of_a_move(GM_LOCATION_HOST);
  check();
  const double up = rate_of_a_move(GM_LOCATION_DEVICE);
  check();
  if (down > 1.01 * pageable || up > 1.01 * pageable) fail_msg("down %g, up %g bytes per second", down, up);
  for (int i = 0; i < SLOTS; i++) gm__ring_give(ring, slots[i], NULL);
  gm__staging_close(device);
}

static void with_one_slot_it_moves_all_the_same(void **state) {
  gm_error err;
  (void)state;
  adopt_scene_ok(gm__staging_shape(device, 1, 1 << 20, &err), &err);
  move(GM_LOCATION_HOST);
  check();
  move(GM_LOCATION_DEVICE);
  check();
}

static void memory_that_cannot_be_locked_changes_nothing(void **state) {
  gm_error err;
  gm_transfer_totals totals = {.struct_size = sizeof totals};
  (void)state;
  cuda_say("fail cuMemHostRegister:*:2");
  assert_true(rate_of_a_move(GM_LOCATION_HOST) < 1.01 * pageable);
  check();
  assert_true(rate_of_a_move(GM_LOCATION_DEVICE) < 1.01 * pageable);
  check();
  adopt_scene_ok(gm_device_transfer_totals(device, &totals, &err), &err);
  assert_true(!totals.users && !totals.down_bytes && !totals.up_bytes); /* what takes no slot is not counted */
}

/* Whichever copy or wait fails, the call says so, the buffer keeps its bytes, and no slot stays away. */
static void each_step_may_fail(void **state) {
  static const char *const up[] = {"cuMemcpyHtoDAsync", "cuEventRecord", "cuEventSynchronize"};
  static const char *const down[] = {"cuMemcpyDtoHAsync", "cuEventRecord", "cuEventSynchronize"};
  char command[96];
  (void)state;
  for (int way = 0; way < 2; way++) {
    const gm_location from = way ? GM_LOCATION_HOST : GM_LOCATION_DEVICE;
    const gm_location to = way ? GM_LOCATION_DEVICE : GM_LOCATION_HOST;
    for (int i = 0; i < 3; i++) {
      for (int nth = 1; nth <= PIECES + 2; nth++) {
        move(from);
        snprintf(command, sizeof command, "fail %s:%d:1", way ? up[i] : down[i], nth);
        cuda_say(command);
        const gm_status status = gm_buffer_move(buffer, to, NULL, NULL);
        cuda_say("fail");
        assert_int_equal(gm_buffer_location(buffer), status ? from : to);
        if (nth == 1 && i == 0) assert_int_not_equal(status, GM_OK);
        check();
      }
    }
  }
}

static void a_lost_card_ends_a_move(void **state) {
  gm_error err;
  (void)state;
  cuda_say("fail cuMemcpyDtoHAsync:3:700");
  assert_int_equal(gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, &err), GM_ERR_DEVICE_LOST);
  lost = true;
}

static void a_small_copy_is_one_call(void **state) {
  gm_error err;
  gm_buffer *small;
  const gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = 65536}};
  (void)state;
  adopt_scene_ok(gm_buffer_create(pool, &params, &small, &err), &err);
  cuda_say("zero");
  adopt_scene_ok(gm_buffer_move(small, GM_LOCATION_HOST, NULL, &err), &err);
  assert_int_equal(cuda_calls("cuMemHostRegister"), 0);
  assert_int_equal(cuda_calls("cuMemcpyDtoHAsync"), 1);
  gm_buffer_release(small, NULL);
}

/* Memory of the caller may be page-locked by the driver, and gm does not know: it goes as it is. */
static void memory_of_the_caller_takes_no_slot(void **state) {
  (void)state;
  cuda_say("zero");
  check();
  assert_int_equal(cuda_calls("cuMemHostRegister"), 0);
  assert_int_equal(cuda_calls("cuMemcpyDtoHAsync"), 1);
}

static void a_pool_that_sleeps_saves_its_pages_so(void **state) {
  gm_error err;
  uint64_t bytes = 0;
  (void)state;
  cuda_say("set LINK h2d:24000,d2h:24000,pageable:6000");
  adopt_scene_ok(gm_pool_sleep_whole(pool, true, NULL, &bytes, &err), &err);
  assert_true(bytes >= BYTES);
  link_journal_take(&journal, journal_copy);
  const double rate = (double)link_bytes(&journal, GM__LINK_D2H) / ((double)link_makespan(&journal) * 1e-9);
  adopt_scene_ok(gm_pool_wake(pool, NULL, &err), &err);
  cuda_say("set LINK off");
  check();
  if (rate < 0.9 * pinned) fail_msg("%g bytes per second", rate);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_buffer_moves_at_the_rate_of_page_locked_memory, begin, end),
      cmocka_unit_test_setup_teardown(without_a_slot_it_moves_all_the_same, begin, end),
      cmocka_unit_test_setup_teardown(with_one_slot_it_moves_all_the_same, begin, end),
      cmocka_unit_test_setup_teardown(memory_that_cannot_be_locked_changes_nothing, begin, end),
      cmocka_unit_test_setup_teardown(each_step_may_fail, begin, end),
      cmocka_unit_test_setup_teardown(a_small_copy_is_one_call, begin, end),
      cmocka_unit_test_setup_teardown(memory_of_the_caller_takes_no_slot, begin, end),
      cmocka_unit_test_setup_teardown(a_pool_that_sleeps_saves_its_pages_so, begin, end),
      cmocka_unit_test_setup_teardown(a_lost_card_ends_a_move, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
