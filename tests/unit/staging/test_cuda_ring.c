/* A ring of page-locked slots on the simulated CUDA driver and its link model. It shows what is made, when a slot
 * comes back, and what the ring is where the system refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/mapping.h"
#include "core/base/thread.h"
#include "core/device/device.h"
#include "core/device/stream.h"
#include "core/staging/ring.h"
#include "support/adopt_scene.h"
#include "support/cuda_fixture.h"
#include "support/link_model.h"
#include "support/random.h"

enum { SLOT = 65536, STREAMS = 2 };

static gm_context *ctx;
static gm_device *device;
static gm_stream *streams[STREAMS];
static gm_memory target; /* of the device, room for many items */
static gm__ring *ring;
static int slots_left = -1; /* for how many the system gives memory; -1: any number */
static int slots_mapped;    /* for how many it was asked */

void *__real_gm__mapping_new(size_t bytes);
void *__wrap_gm__mapping_new(size_t bytes);
void *__wrap_gm__mapping_new(size_t bytes) {
  const int slots = (int)(bytes / SLOT);
  if (bytes % SLOT == 0) slots_mapped += slots;
  if (bytes % SLOT || slots_left < 0) return __real_gm__mapping_new(bytes);
  if (slots > slots_left) return NULL;
  slots_left -= slots;
  return __real_gm__mapping_new(bytes);
}

static int begin(void **state) {
  (void)state;
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  slots_left = -1;
  slots_mapped = 0;
  ring = NULL;
  return 0;
}

static void open_device(void) {
  gm_error err;
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 64 * SLOT};
  ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  adopt_scene_ok(gm_device_open_index(ctx, "cuda", 0, &device, &err), &err);
  for (int i = 0; i < STREAMS; i++) adopt_scene_ok(gm_stream_create(device, &streams[i], &err), &err);
  assert_int_equal(device->ops->memory_alloc(device->handle, &params, &target, NULL), GM_OK);
}

static void make(uint32_t slots) {
  gm_error err;
  adopt_scene_ok(gm__ring_create(device, slots, SLOT, &ring, &err), &err);
}

static void next_ring(uint32_t slots) {
  gm_error err;
  adopt_scene_ok(gm__ring_destroy(ring, &err), &err);
  make(slots);
}

static int end(void **state) {
  (void)state;
  char left[1024];
  gm_error err;
  adopt_scene_ok(gm__ring_destroy(ring, &err), &err);
  device->ops->memory_free(device->handle, &target, GM_CLOSE_NORMAL, NULL);
  for (int i = 0; i < STREAMS; i++) adopt_scene_ok(gm_stream_close(streams[i], &err), &err);
  adopt_scene_end(ctx, device);
  if (cuda_script("leaks", left, sizeof left)) fail_msg("left at the driver:\n%s", left);
  return 0;
}

static gm__ring_slot *take(void) {
  gm__ring_slot *slot = NULL;
  gm_error err;
  adopt_scene_ok(gm__ring_take(ring, GM__NEVER, &slot, &err), &err);
  return slot;
}

static gm_status take_now(void) {
  gm__ring_slot *slot = NULL;
  const gm_status status = gm__ring_take(ring, 0, &slot, NULL);
  if (slot) gm__ring_give(ring, slot, NULL);
  return status;
}

/* A copy of the slot's bytes to place `at` of the device; the slot goes back with its point. */
static void send(gm__ring_slot *slot, int stream, uint64_t at, uint64_t bytes, bool with_point) {
  gm_point point;
  gm_error err;
  gm_backend_point mark;
  void *lane = streams[stream]->handle;
  assert_int_equal(device->ops->copy_to_device(device->handle, lane, &target, at, slot->host, bytes, &mark, NULL),
                   GM_OK);
  device->ops->point_release(device->handle, &mark, GM_CLOSE_NORMAL);
  adopt_scene_ok(gm_stream_record(streams[stream], &point, &err), &err);
  if (!with_point) gm_point_release(device, &point);
  gm__ring_give(ring, slot, with_point ? &point : NULL);
}

static gm__ring_info figures(void) {
  gm__ring_info info;
  gm__ring_figures(ring, &info);
  return info;
}

static void it_grows_when_somebody_needs_more(void **state) {
  (void)state;
  open_device();
  make(3);
  assert_int_equal(figures().made, 0);
  gm__ring_slot *first = take();
  assert_true(first->pinned);
  assert_int_equal(first->bytes, SLOT);
  assert_int_equal(cuda_count("registered"), 1);
  gm__ring_give(ring, first, NULL);
  assert_ptr_equal(take(), first); /* at rest: no new one */
  gm__ring_slot *second = take(), *third = take();
  assert_true(second != first && third != first && third != second);
  assert_int_equal(take_now(), GM_ERR_TIMEOUT);
  const gm__ring_info info = figures();
  assert_int_equal(info.most, 3);
  assert_int_equal(info.made, 3);
  assert_int_equal(info.pinned, 3);
  assert_int_equal(info.taken, 3);
  assert_int_equal(info.bytes, 3 * SLOT);
  assert_string_equal(info.why, "");
  gm_error err;
  assert_int_equal(gm__ring_destroy(ring, &err), GM_ERR_BUSY);
  gm__ring_give(ring, second, NULL);
  gm__ring_give(ring, first, NULL);
  gm__ring_give(ring, third, NULL);
  assert_ptr_equal(take(), second); /* who came back first */
  gm__ring_give(ring, second, NULL);
}

static void it_grows_at_once_when_told(void **state) {
  (void)state;
  gm_error err;
  open_device();
  make(10);
  adopt_scene_ok(gm__ring_grow(ring, 7, &err), &err);
  assert_int_equal(figures().pinned, 7);
  adopt_scene_ok(gm__ring_grow(ring, 3, &err), &err);
  assert_int_equal(figures().made, 7);
  adopt_scene_ok(gm__ring_grow(ring, 99, &err), &err);
  assert_int_equal(figures().made, 10);
  assert_int_equal(cuda_count("registered"), 1); /* all slots in one chunk */
}

static void it_stays_smaller_where_the_system_locks_no_more(void **state) {
  (void)state;
  open_device();
  cuda_say("set PINNED 131072");
  make(5);
  gm__ring_slot *first = take(), *second = take();
  assert_int_equal(take_now(), GM_ERR_TIMEOUT);
  const gm__ring_info info = figures();
  assert_int_equal(info.most, 2);
  assert_int_equal(info.pinned, 2);
  assert_int_equal(info.bytes, 2 * SLOT);
  assert_true(info.why[0] != 0);
  gm__ring_give(ring, first, NULL);
  gm__ring_give(ring, second, NULL);
  assert_ptr_equal(take(), first);
  gm__ring_give(ring, first, NULL);
}

static void it_grows_as_far_as_it_goes_when_told(void **state) {
  (void)state;
  gm_error err;
  open_device();
  cuda_say("set PINNED 131072");
  make(5);
  adopt_scene_ok(gm__ring_grow(ring, 5, &err), &err);
  assert_int_equal(figures().most, 2);
  assert_int_equal(figures().pinned, 2);
}

/* From the first slot on, and the system is not asked again. */
static void it_is_pageable_where_none_is_locked(void **state) {
  (void)state;
  open_device();
  cuda_say("set PINNED 1");
  cuda_say("zero");
  make(2);
  gm__ring_slot *first = take(), *second = take();
  assert_false(first->pinned);
  assert_false(second->pinned);
  assert_int_equal(cuda_calls("cuMemHostRegister"), 2); /* for two slots, and for one */
  assert_int_equal(figures().most, 2);
  assert_int_equal(figures().pinned, 0);
  assert_true(figures().why[0] != 0);
  memset(first->host, 5, SLOT);
  send(first, 0, 0, SLOT, true);
  gm__ring_give(ring, second, NULL);
  next_ring(16);
  gm__ring_give(ring, take(), NULL);
  assert_int_equal(cuda_calls("cuMemHostRegister"), 3); /* for one slot, and not for 16 */
  assert_int_equal(figures().pinned, 0);
  cuda_say("set PINNED 0");
  next_ring(16);
  gm__ring_give(ring, take(), NULL);
  assert_int_equal(figures().pinned, 1);
}

static void it_is_pageable_where_the_device_cannot(void **state) {
  (void)state;
  cuda_say("set NO hostreg");
  open_device();
  make(2);
  gm__ring_slot *slot = take();
  assert_false(slot->pinned);
  assert_true(figures().why[0] != 0);
  gm__ring_give(ring, slot, NULL);
  assert_int_equal(slots_mapped, 3); /* two that the device cannot use, and one */
  next_ring(16);
  gm__ring_give(ring, take(), NULL);
  assert_true(figures().why[0] != 0);
  assert_int_equal(slots_mapped, 3);
  gm__ring_slot *both[] = {take(), take()};
  assert_int_equal(slots_mapped, 18); /* it may have so many more */
  for (int i = 0; i < 2; i++) gm__ring_give(ring, both[i], NULL);
}

static void without_host_memory_it_is_smaller_or_says_so(void **state) {
  (void)state;
  gm_error err;
  gm__ring_slot *slot = NULL;
  open_device();
  make(3);
  slots_left = 0;
  assert_int_equal(gm__ring_take(ring, GM__NEVER, &slot, &err), GM_ERR_OUT_OF_HOST_MEMORY);
  assert_non_null(strstr(err.message, "65536"));
  slots_left = 1;
  slot = take(); /* the system has some again */
  assert_int_equal(take_now(), GM_ERR_TIMEOUT);
  assert_int_equal(figures().most, 1);
  assert_non_null(strstr(figures().why, "65536"));
  gm__ring_give(ring, slot, NULL);
}

static void a_lost_device_makes_no_slot(void **state) {
  (void)state;
  gm__ring_slot *slot = NULL;
  open_device();
  make(2);
  cuda_say("fail cuMemHostRegister:1:700");
  assert_int_equal(gm__ring_take(ring, GM__NEVER, &slot, NULL), GM_ERR_DEVICE_LOST);
  assert_null(slot);
  assert_int_equal(figures().made, 0);
}

static void a_slot_comes_back_when_its_copy_has_ended(void **state) {
  (void)state;
  open_device();
  make(2);
  gm__ring_slot *first = take(), *second = take();
  cuda_say("set LINK h2d:1000,poll:0");
  send(second, 1, SLOT, SLOT, true);
  send(first, 0, 0, SLOT, true);
  assert_int_equal(take_now(), GM_ERR_TIMEOUT);
  assert_ptr_equal(take(), second);
  assert_int_equal(cuda_count("now"), SLOT); /* one copy of 65536 bytes at 1 byte a nanosecond */
  assert_int_equal(take_now(), GM_ERR_TIMEOUT);
  assert_ptr_equal(take(), first);
  assert_int_equal(cuda_count("now"), 2 * SLOT);
  gm__ring_give(ring, first, NULL);
  gm__ring_give(ring, second, NULL);
}

/* Neither a new slot nor one without a point waits behind a copy. */
static void idle_slots_go_before_busy_ones(void **state) {
  (void)state;
  open_device();
  make(3);
  cuda_say("set LINK h2d:1000,poll:0");
  gm__ring_slot *busy = take();
  send(busy, 0, 0, SLOT, true);
  gm__ring_slot *fresh = NULL, *other = NULL;
  assert_int_equal(gm__ring_take(ring, 0, &fresh, NULL), GM_OK);
  assert_ptr_not_equal(fresh, busy);
  assert_int_equal(gm__ring_take(ring, 0, &other, NULL), GM_OK);
  gm__ring_give(ring, fresh, NULL);
  assert_ptr_equal(take(), fresh);
  gm__ring_give(ring, fresh, NULL);
  gm__ring_give(ring, other, NULL);
}

static void it_waits_for_copies_before_it_goes(void **state) {
  (void)state;
  gm_error err;
  open_device();
  make(2);
  gm__ring_slot *slot = take();
  cuda_say("set LINK h2d:1000");
  send(slot, 0, 0, SLOT, true);
  adopt_scene_ok(gm__ring_destroy(ring, &err), &err);
  ring = NULL;
  assert_int_equal(cuda_count("now"), SLOT);
  assert_int_equal(cuda_count("registered"), 1); /* the device keeps the memory for the next ring */
}

/* Items of random sizes on two streams through three slots, each with bytes of its own. The host fills a slot as soon
 * as it has it. How many uses came too early. */
static long random_schedule(uint64_t *random, bool with_points) {
  enum { ITEMS = 24, PLACE = 2 * SLOT };
  static unsigned char back[SLOT];
  uint64_t sizes[ITEMS];
  char command[96];
  cuda_say("set LINK h2d:1000:3,d2h:1000,jitter:90,poll:500");
  for (int i = 0; i < ITEMS; i++) {
    gm__ring_slot *slot = take();
    snprintf(command, sizeof command, "use %llu %d write", (unsigned long long)(uintptr_t)slot->host, SLOT);
    cuda_say(command);
    memset(slot->host, i + 1, SLOT);
    sizes[i] = 1 + test_random(random) % SLOT;
    send(slot, (int)(test_random(random) % STREAMS), (uint64_t)i * PLACE, sizes[i], with_points);
    snprintf(command, sizeof command, "advance %d", (int)(test_random(random) % 20000));
    if (test_random(random) % 3 == 0) cuda_say(command);
  }
  for (int i = 0; i < STREAMS; i++) assert_int_equal(gm_stream_sync(streams[i], NULL), GM_OK);
  const long early = cuda_count("early");
  for (int i = 0; i < ITEMS && with_points; i++) {
    assert_int_equal(device->ops->copy_to_host(device->handle, streams[0]->handle, &target, (uint64_t)i * PLACE, back,
                                               sizes[i], NULL, NULL),
                     GM_OK);
    assert_int_equal(back[0], i + 1);
    assert_int_equal(back[sizes[i] - 1], i + 1);
  }
  return early;
}

static void random_schedules_use_no_slot_early(void **state) {
  (void)state;
  uint64_t random = 5;
  gm_error err;
  open_device();
  make(3);
  adopt_scene_ok(gm__ring_grow(ring, 3, &err), &err);
  for (int i = 0; i < 40; i++) assert_int_equal(random_schedule(&random, true), 0);
  long early = 0; /* slots that are given back without their point */
  for (int i = 0; i < 10; i++) early += random_schedule(&random, false);
  assert_true(early > 10);
}

/* --- threads --- */

static atomic_int owners[4]; /* of each slot */
static gm__ring_slot *first_slot;
static atomic_int clashes;

static void use_slots(void *arg) {
  (void)arg;
  for (int i = 0; i < 500; i++) {
    gm__ring_slot *slot = NULL;
    if (gm__ring_take(ring, GM__NEVER, &slot, NULL) != GM_OK) {
      atomic_fetch_add(&clashes, 1000);
      return;
    }
    const size_t index = (size_t)(slot - first_slot);
    if (atomic_fetch_add(&owners[index], 1)) atomic_fetch_add(&clashes, 1);
    slot->host[0] = (unsigned char)i;
    atomic_fetch_sub(&owners[index], 1);
    gm__ring_give(ring, slot, NULL);
  }
}

static void no_two_threads_have_one_slot(void **state) {
  (void)state;
  enum { THREADS = 4 };
  gm__thread threads[THREADS];
  open_device();
  make(2);
  first_slot = take(); /* the first of the table */
  gm__ring_give(ring, first_slot, NULL);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(gm__thread_create(&threads[i], "test-ring", use_slots, NULL, NULL), GM_OK);
  }
  for (int i = 0; i < THREADS; i++) gm__thread_join(&threads[i]);
  assert_int_equal(clashes, 0);
  assert_int_equal(figures().taken, 0);
}

static void numbers_that_are_no_ring(void **state) {
  (void)state;
  gm__ring *none = NULL;
  open_device();
  assert_int_equal(gm__ring_create(device, 0, SLOT, &none, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm__ring_create(device, 2, 0, &none, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_null(none);
  assert_int_equal(gm__ring_destroy(NULL, NULL), GM_OK);
}

int main(void) {
#define RING_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      RING_TEST(it_grows_when_somebody_needs_more),
      RING_TEST(it_grows_at_once_when_told),
      RING_TEST(it_stays_smaller_where_the_system_locks_no_more),
      RING_TEST(it_grows_as_far_as_it_goes_when_told),
      RING_TEST(it_is_pageable_where_none_is_locked),
      RING_TEST(it_is_pageable_where_the_device_cannot),
      RING_TEST(without_host_memory_it_is_smaller_or_says_so),
      RING_TEST(a_lost_device_makes_no_slot),
      RING_TEST(a_slot_comes_back_when_its_copy_has_ended),
      RING_TEST(idle_slots_go_before_busy_ones),
      RING_TEST(it_waits_for_copies_before_it_goes),
      RING_TEST(random_schedules_use_no_slot_early),
      RING_TEST(no_two_threads_have_one_slot),
      RING_TEST(numbers_that_are_no_ring),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
