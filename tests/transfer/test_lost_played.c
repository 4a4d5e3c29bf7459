/* One of two devices of one driver is lost, on the simulated CUDA and HIP: the other one keeps working. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "gm/peer.h"
#include "transfer/played_driver.h"
#include "transfer/slot_scene.h"

static void check_works(const world_end *end) {
  const gm_request request = {.bytes = 3 << 20, .stream = end->stream};
  gm_block more;
  gm_point point = {0, 0, 0};
  world_ok(gm_device_state(end->device, err));
  world_write(end, world_sent);
  world_read(end);
  assert_memory_equal(world_got, world_sent, WORLD_BYTES);
  assert_in_range(gm_alloc(end->pool, &request, &more), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  world_ok(gm_block_fill(end->pool, &more, 0, more.bytes, "w", 1, end->stream, &point, err));
  world_ok(gm_point_wait(end->device, &point, UINT64_MAX, err));
  gm_point_release(end->device, &point);
  assert_int_equal(gm_free(end->pool, &more, end->stream), GM_OK);
  world_ok(gm_stream_sync(end->stream, err));
}

static gm_status copy_between(const world_end *to, const world_end *from) {
  gm_error why;
  return gm_block_copy_peer(to->pool, &to->block, 0, from->pool, &from->block, 0, WORLD_BYTES, NULL, NULL, NULL, &why);
}

static void lose_one(unsigned lost) {
  transfer_world w;
  char command[32];
  gm_error why;
  played_begin(&w, 3);
  const world_end *gone = &w.ends[lost], *here = &w.ends[!lost], *third = &w.ends[2];
  world_fill_sent(lost);
  world_ok(gm_peer_enable(here->device, gone->device, err));
  assert_int_equal(copy_between(here, gone), GM_OK);
  snprintf(command, sizeof command, "lose 700 %u", lost);
  played_say(command);
  assert_int_equal(gm_stream_sync(gone->stream, &why), GM_ERR_DEVICE_LOST);
  assert_int_equal(gm_device_state(gone->device, &why), GM_ERR_DEVICE_LOST);
  check_works(here);
  assert_int_equal(copy_between(gone, here), GM_ERR_DEVICE_LOST);
  assert_int_equal(copy_between(third, here), GM_OK);
  check_works(here); /* a copy from a neighbour that is gone is no loss of one's own */
  world_remove(&w, lost);
  check_works(here);
  world_finish(&w);
  played_say("reload");
}

static void test_the_others_keep_working(void **state) {
  (void)state;
  lose_one(0);
  lose_one(1);
}

/* Which of the two a driver's error is of, it does not say: the answer is an error, whichever. */
static void test_a_copy_from_a_lost_device(void **state) {
  (void)state;
  transfer_world w;
  played_begin(&w, 2);
  played_say("lose 700 1");
  copy_between(&w.ends[0], &w.ends[1]);
  world_fill_sent(3);
  check_works(&w.ends[0]);
  world_finish(&w);
  played_say("reload");
}

/* Its work reads nothing any more: leases are given back, and the set ends. */
static void test_slots_of_a_lost_device(void **state) {
  (void)state;
  transfer_world w;
  slot_scene s = {.fail = GM_OK};
  gm_slot slots[SLOTS], more;
  gm_point point;
  played_begin(&w, 1);
  s.pool = w.ends[0].pool;
  const gm_slots_params params = scene_params(&s, 0);
  world_ok(gm_slots_create(s.pool, &params, &s.slots, err));
  for (unsigned i = 0; i < SLOTS; i++) assert_int_equal(scene_get(&s, i, 0, &slots[i]), GM_OK);
  world_ok(gm_stream_record(w.ends[0].stream, &point, err));
  assert_int_equal(gm_slots_release(s.slots, slots[0].lease, &point, NULL), GM_OK);
  played_say("lose 700 0");
  for (unsigned i = 1; i < SLOTS; i++) assert_int_equal(gm_slots_release(s.slots, slots[i].lease, &point, NULL), GM_OK);
  gm_point_release(w.ends[0].device, &point);
  assert_int_equal(scene_get(&s, 9, 0, &more), GM_ERR_DEVICE_LOST);
  assert_int_equal(scene_stats(&s).leases, 0);
  world_ok(gm_slots_destroy(s.slots, err));
  world_finish(&w);
  played_say("reload");
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_others_keep_working),
      cmocka_unit_test(test_a_copy_from_a_lost_device),
      cmocka_unit_test(test_slots_of_a_lost_device),
  };
  const int skipped = played_load(argc, argv);
  return skipped ? skipped : cmocka_run_group_tests(tests, NULL, NULL);
}
