/* Random schedules of transfers, frees and cancels on the link model. No slot of the ring is used before the work on
 * it has ended, and all bytes are right. A test plays some of them; GM_SCHEDULES=1000000 plays so many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "core/staging/staging.h"
#include "gm/transfer.h"
#include "support/adopt_scene.h"
#include "support/cuda_fixture.h"
#include "support/random.h"

enum { SLOT = 4096, SLOTS = 3, STREAMS = 2, LIVE = 4, COPIES = 5, MOST = 3 * SLOT, STEPS = 10 };

static gm_context *ctx;
static gm_device *device;
static gm_pool *pool;
static gm_stream *streams[STREAMS];
static uint64_t dice = 11;
static bool forgets; /* slots go back without their points */

gm_status __real_gm__ring_take_as(gm__ring *ring, gm__ring_user *user, uint64_t timeout_ns, gm__ring_slot **out,
                                  gm_error *err);
gm_status __wrap_gm__ring_take_as(gm__ring *ring, gm__ring_user *user, uint64_t timeout_ns, gm__ring_slot **out,
                                  gm_error *err);
gm_status __wrap_gm__ring_take_as(gm__ring *ring, gm__ring_user *user, uint64_t timeout_ns, gm__ring_slot **out,
                                  gm_error *err) {
  const gm_status status = __real_gm__ring_take_as(ring, user, timeout_ns, out, err);
  char command[96];
  if (status != GM_OK) return status;
  snprintf(command, sizeof command, "use %llu %d write", (unsigned long long)(uintptr_t)(*out)->host, SLOT);
  cuda_say(command); /* the host may write there from now on */
  return status;
}

void __real_gm__ring_give(gm__ring *ring, gm__ring_slot *slot, const gm_point *point);
void __wrap_gm__ring_give(gm__ring *ring, gm__ring_slot *slot, const gm_point *point);
void __wrap_gm__ring_give(gm__ring *ring, gm__ring_slot *slot, const gm_point *point) {
  gm_point copy = point ? *point : (gm_point){0};
  if (forgets) gm_point_release(device, &copy);
  __real_gm__ring_give(ring, slot, forgets ? NULL : point);
}

static uint64_t roll(uint64_t sides) { return test_random(&dice) % sides; }

static void ok(gm_status status, const gm_error *err) {
  if (status) fail_msg("%s: %s", err->op, err->message);
}

/* One transfer: a block for each copy, and the host's bytes, all of one letter. */
typedef struct scene {
  gm_transfer *transfer;
  gm_stream *stream;
  gm_block blocks[COPIES];
  uint64_t bytes[COPIES];
  uint32_t count;
  unsigned char letter;
  bool down;
  unsigned char host[COPIES][MOST];
} scene;

static scene scenes[LIVE];

static void scene_block(scene *s, uint32_t i) {
  gm_error err;
  const gm_request request = {.bytes = MOST, .stream = s->stream, .flags = GM_INSERT_WAIT};
  assert_true(gm_acquired(gm_alloc(pool, &request, &s->blocks[i])));
  if (s->down) ok(gm_block_fill(pool, &s->blocks[i], 0, MOST, &s->letter, 1, s->stream, NULL, &err), &err);
}

static void scene_begin(scene *s) {
  gm_copy copies[COPIES];
  gm_error err;
  s->stream = streams[roll(STREAMS)];
  s->down = roll(2);
  s->letter = (unsigned char)(1 + roll(255));
  s->count = (uint32_t)(1 + roll(COPIES));
  for (uint32_t i = 0; i < s->count; i++) {
    s->bytes[i] = 1 + roll(roll(2) ? 300 : MOST);
    memset(s->host[i], s->down ? 0 : s->letter, MOST);
    scene_block(s, i);
    const gm_end block = {.pool = pool, .block = &s->blocks[i]}, host = {.host = s->host[i]};
    copies[i] = (gm_copy){.struct_size = sizeof copies[i],
                          .to = s->down ? host : block,
                          .from = s->down ? block : host,
                          .bytes = s->bytes[i]};
  }
  const gm_transfer_params params = {.struct_size = sizeof params, .no_wait = roll(2), .stream = s->stream};
  const gm_status status = gm_transfer_start(device, copies, s->count, &params, &s->transfer, &err);
  if (status != GM_ERR_BUSY || !params.no_wait) ok(status, &err);
}

static void scene_check(scene *s, const gm_transfer_stats *stats) {
  uint64_t left = stats->useful_bytes;
  gm_error err;
  for (uint32_t i = 0; i < s->count && left; i++) {
    const uint64_t bytes = left < s->bytes[i] ? left : s->bytes[i];
    static unsigned char back[MOST];
    const unsigned char *got = s->host[i];
    if (!s->down) {
      ok(gm_block_read(pool, &s->blocks[i], 0, back, bytes, s->stream, NULL, &err), &err);
      got = back;
    }
    for (uint64_t at = 0; at < bytes; at++) {
      if (got[at] != s->letter) fail_msg("byte %d of copy %d is wrong", (int)at, (int)i);
    }
    left -= bytes;
  }
}

static void scene_end(scene *s) {
  gm_transfer_stats stats = {.struct_size = sizeof stats};
  gm_error err;
  const bool waits = s->transfer && roll(4);
  if (waits) {
    const gm_status status = gm_transfer_wait(s->transfer, UINT64_MAX, &stats, &err);
    if (status != GM_ERR_CANCELLED) ok(status, &err);
    if (!forgets) scene_check(s, &stats);
  }
  ok(gm_transfer_release(s->transfer, &err), &err);
  for (uint32_t i = 0; i < s->count; i++) assert_int_equal(gm_free(pool, &s->blocks[i], s->stream), GM_OK);
  s->transfer = NULL;
  s->count = 0;
}

static void step(void) {
  scene *s = &scenes[roll(LIVE)];
  char command[64];
  gm_error err;
  if (!s->count) {
    scene_begin(s);
    return;
  }
  switch (roll(6)) {
    case 0: gm_transfer_cancel(s->transfer); break;
    case 1:
      if (s->transfer) gm_transfer_poll(s->transfer, NULL, NULL, NULL);
      break;
    case 2:
      if (s->transfer && roll(8) == 0) gm_transfer_before(s->transfer, GM_TRANSFER_ALL, streams[roll(STREAMS)], NULL);
      break;
    case 3:
      snprintf(command, sizeof command, "advance %d", (int)roll(6000));
      cuda_say(command);
      break;
    case 4:
      if (s->transfer) gm_transfer_wait(s->transfer, 0, NULL, &err);
      break;
    default: scene_end(s);
  }
}

static void schedule(void) {
  for (uint64_t left = 1 + roll(STEPS); left; left--) step();
  for (int i = 0; i < LIVE; i++) {
    if (scenes[i].count) scene_end(&scenes[i]);
  }
}

static int begin(void **state) {
  (void)state;
  gm_error err;
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  forgets = false;
  ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  ok(gm_device_open_index(ctx, "cuda", 0, &device, &err), &err);
  ok(gm_pool_create(device, NULL, &pool, &err), &err);
  for (int i = 0; i < STREAMS; i++) ok(gm_stream_create(device, &streams[i], &err), &err);
  ok(gm__staging_shape(device, SLOTS, SLOT, &err), &err);
  cuda_say("set LINK h2d:1000:3,d2h:1000,d2d:4000,jitter:90,poll:500");
  return 0;
}

static int end(void **state) {
  (void)state;
  char left[1024];
  gm_error err;
  for (int i = 0; i < STREAMS; i++) ok(gm_stream_close(streams[i], &err), &err);
  ok(gm_pool_destroy(pool, &err), &err);
  adopt_scene_end(ctx, device);
  if (cuda_script("leaks", left, sizeof left)) fail_msg("left at the driver:\n%s", left);
  return 0;
}

static void no_slot_is_used_early(void **state) {
  (void)state;
  const char *many = getenv("GM_SCHEDULES");
  const long count = many ? strtol(many, NULL, 10) : 300;
  for (long i = 0; i < count; i++) schedule();
  assert_int_equal(cuda_count("early"), 0);
  printf("%ld schedules\n", count);
}

static void slots_that_go_back_without_a_point_are_seen(void **state) {
  (void)state;
  forgets = true;
  for (long i = 0; i < 100; i++) schedule();
  assert_true(cuda_count("early") > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(no_slot_is_used_early, begin, end),
      cmocka_unit_test_setup_teardown(slots_that_go_back_without_a_point_are_seen, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
