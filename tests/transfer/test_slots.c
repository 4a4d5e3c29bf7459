/* Sets of slots on the devices that are there, and on the simulated drivers. The first argument names the only backend
 * to try. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "core/device/stream.h"
#include "support/great_many.h"
#include "support/pool_bench.h"
#include "transfer/slot_crowd.h"

static const char *only;
static const char *const backends[] = {"cpu", "opencl", "vulkan"};

/* --- leases --- */

static void leases_keep_slots_and_places_stay(void **state) {
  (void)state;
  transfer_world w;
  slot_scene s;
  gm_slot got[SLOTS], more;
  if (!scene_open(&w, &s, only ? only : "cpu", GM_SLOTS_LRU)) return;
  for (unsigned i = 0; i < SLOTS; i++) {
    assert_int_equal(scene_get(&s, i, 0, &got[i]), GM_OK);
    assert_int_equal(got[i].offset, got[i].index * (uint64_t)STRIDE);
    assert_int_equal(got[i].block.address, got[0].block.address);
    assert_int_equal(got[i].bytes, BYTES);
  }
  refused(&s, scene_get(&s, 9, 0, &more), GM_ERR_OVER_LIMIT, "4 of 4 slots are leased");
  assert_int_equal(scene_get(&s, 2, 0, &more), GM_OK); /* it is there */
  assert_int_equal(more.index, got[2].index);
  assert_int_equal(scene_stats(&s).leases, 5);
  assert_int_equal(scene_stats(&s).leased, SLOTS);
  refused(&s, gm_slots_destroy(s.slots, &s.err), GM_ERR_BUSY, "5 leases are open");
  assert_int_equal(gm_slots_release(s.slots, got[2].lease, NULL, NULL), GM_OK);
  refused(&s, gm_slots_release(s.slots, got[2].lease, NULL, &s.err), GM_ERR_INVALID_ARGUMENT, "is not open");
  refused(&s, scene_get(&s, 9, 0, &got[2]), GM_ERR_OVER_LIMIT, "4 of 4");
  assert_int_equal(gm_slots_release(s.slots, more.lease, NULL, NULL), GM_OK);
  assert_int_equal(scene_get(&s, 9, 0, &got[2]), GM_OK);
  assert_int_equal(got[2].index, more.index);
  for (unsigned i = 0; i < SLOTS; i++) assert_int_equal(gm_slots_release(s.slots, got[i].lease, NULL, NULL), GM_OK);
  const gm_slots_stats stats = scene_stats(&s);
  assert_int_equal(stats.hits, 1);
  assert_int_equal(stats.loads, 5);
  assert_int_equal(stats.evictions, 1);
  assert_int_equal(stats.refused, 2);
  assert_int_equal(stats.there, SLOTS);
  assert_int_equal(stats.leased, 0);
  assert_int_equal(stats.stride, STRIDE);
  assert_in_range(stats.bytes, SLOTS * STRIDE, UINT64_MAX);
  scene_close(&w, &s);
}

static void the_order_is_that_of_the_policy(void **state) {
  (void)state;
  transfer_world w;
  slot_scene s;
  if (only || !scene_open(&w, &s, "cpu", GM_SLOTS_LRU)) return;
  for (unsigned i = 0; i < SLOTS; i++) scene_use(&s, i);
  scene_use(&s, 0);
  scene_use(&s, 9); /* 1 is the oldest */
  assert_true(scene_has(&s, 0));
  assert_false(scene_has(&s, 1));
  scene_close(&w, &s);
  if (!scene_open(&w, &s, "cpu", 0)) return;
  scene_use(&s, 0);
  scene_use(&s, 0);
  for (unsigned i = 1; i < 60; i++) scene_use(&s, i); /* a scan */
  assert_true(scene_has(&s, 0));
  scene_close(&w, &s);
}

static void a_key_that_is_dropped_is_loaded_anew(void **state) {
  (void)state;
  transfer_world w;
  slot_scene s;
  gm_slot old, fresh;
  const unsigned char name = 3;
  if (only || !scene_open(&w, &s, "cpu", 0)) return;
  assert_int_equal(scene_get(&s, name, 0, &old), GM_OK);
  assert_int_equal(gm_slots_drop(s.slots, &name, 1, NULL), GM_OK);
  refused(&s, gm_slots_drop(s.slots, &name, 1, &s.err), GM_ERR_NOT_FOUND, "nothing of that key");
  assert_int_equal(scene_get(&s, name, 0, &fresh), GM_OK);
  assert_int_not_equal(fresh.index, old.index);
  assert_int_equal(scene_stats(&s).loads, 2);
  assert_int_equal(gm_slots_release(s.slots, old.lease, NULL, NULL), GM_OK);
  assert_int_equal(gm_slots_release(s.slots, fresh.lease, NULL, NULL), GM_OK);
  assert_int_equal(gm_slots_drop(s.slots, &name, 1, NULL), GM_OK);
  assert_int_equal(scene_stats(&s).there, 0);
  for (unsigned i = 0; i < SLOTS; i++) scene_use(&s, 10 + i);
  assert_int_equal(scene_stats(&s).evictions, 0); /* all slots were free */
  scene_close(&w, &s);
}

/* --- loaders --- */

static void a_load_that_fails_leaves_the_slot_free(void **state) {
  (void)state;
  transfer_world w;
  slot_scene s;
  gm_slot slot;
  if (only || !scene_open(&w, &s, "cpu", 0)) return;
  s.fail = GM_ERR_IO;
  for (unsigned i = 0; i < 3 * SLOTS; i++) refused(&s, scene_get(&s, i, 0, &slot), GM_ERR_IO, "the file is gone");
  s.fail = GM_ERR_TIMEOUT;
  refused(&s, scene_get(&s, 1, 0, &slot), GM_ERR_TIMEOUT, "the loader answers GM_ERR_TIMEOUT");
  s.fail = GM_OK;
  assert_false(scene_has(&s, 1));
  assert_int_equal(scene_stats(&s).failed, 3 * SLOTS + 1);
  assert_int_equal(scene_stats(&s).leases, 0);
  for (unsigned i = 0; i < SLOTS; i++) scene_use(&s, i);
  assert_int_equal(scene_stats(&s).there, SLOTS);
  scene_close(&w, &s);
}

static void load_again(slot_scene *s) {
  gm_slot slot;
  s->during = NULL;
  refused(s, scene_get(s, 1, 0, &slot), GM_ERR_BUSY, "a loader asks for a key that is being loaded");
  scene_use(s, 2);
  assert_int_equal(scene_stats(s).leased, 1);
}

static void a_loader_may_ask_for_other_keys(void **state) {
  (void)state;
  transfer_world w;
  slot_scene s;
  if (only || !scene_open(&w, &s, "cpu", 0)) return;
  s.during = load_again;
  scene_use(&s, 1);
  assert_true(scene_has(&s, 2));
  assert_int_equal(scene_stats(&s).loads, 2);
  scene_close(&w, &s);
}

enum { WAITERS = 3 };

typedef struct slot_thread {
  gm__thread thread;
  slot_scene *scene;
  gm_status status;
  gm_slot slot;
  gm_error err;
} slot_thread;

/* The others are waiting: none of them is a loader. */
static void load_until_all_wait(slot_scene *s) {
  while (scene_stats(s).waits < WAITERS) continue;
}

static void thread_get(void *arg) {
  slot_thread *t = arg;
  const unsigned char name = 7;
  t->status = gm_slots_get(t->scene->slots, &name, 1, 0, NULL, &t->slot, &t->err);
}

static void one_thread_loads_and_others_wait(void **state) {
  (void)state;
  transfer_world w;
  slot_scene s;
  for (int fails = 0; fails < 2; fails++) {
    slot_thread threads[1 + WAITERS] = {{.status = GM_OK}};
    if (only || !scene_open(&w, &s, "cpu", 0)) return;
    s.during = load_until_all_wait;
    s.fail = fails ? GM_ERR_IO : GM_OK;
    for (int i = 0; i <= WAITERS; i++) {
      threads[i].scene = &s;
      world_ok(gm__thread_create(&threads[i].thread, "slots", thread_get, &threads[i], err));
    }
    for (int i = 0; i <= WAITERS; i++) {
      gm__thread_join(&threads[i].thread);
      assert_int_equal(threads[i].status, s.fail);
      if (fails) assert_non_null(strstr(threads[i].err.message, "the file is gone"));
      if (!fails) assert_int_equal(gm_slots_release(s.slots, threads[i].slot.lease, NULL, NULL), GM_OK);
    }
    assert_int_equal(scene_stats(&s).loads, 1);
    assert_int_equal(scene_stats(&s).hits, fails ? 0 : WAITERS);
    assert_int_equal(scene_stats(&s).leases, 0);
    scene_close(&w, &s);
  }
}

/* --- many threads --- */

static void threads_share_a_set(void **state) {
  (void)state;
  transfer_world w;
  crowd c = {.calls = great_many(2000)};
  crowd_hand hands[HANDS];
  if (only || !scene_open(&w, &c.scene, "cpu", 0)) return;
  world_ok(gm_slots_destroy(c.scene.slots, err));
  gm_slots_params params = scene_params(&c.scene, 0);
  params.load = crowd_load;
  params.user = &c;
  world_ok(gm_slots_create(c.scene.pool, &params, &c.scene.slots, err));
  for (int i = 0; i < HANDS; i++) {
    hands[i] = (crowd_hand){.crowd = &c, .random = (uint64_t)i};
    world_ok(gm_stream_create(c.scene.device, &hands[i].stream, err));
    world_ok(gm__thread_create(&hands[i].thread, "slots", crowd_run, &hands[i], err));
  }
  for (int i = 0; i < HANDS; i++) {
    gm__thread_join(&hands[i].thread);
    world_ok(gm_stream_close(hands[i].stream, err));
  }
  const gm_slots_stats stats = scene_stats(&c.scene);
  assert_int_equal(c.wrong, 0);
  assert_int_equal(stats.leases, 0);
  assert_int_equal(stats.leased, 0);
  assert_in_range(stats.there, 0, SLOTS);
  gm_slot slots[SLOTS], none;
  for (unsigned i = 0; i < SLOTS; i++) assert_int_equal(scene_get(&c.scene, 100 + i, 0, &slots[i]), GM_OK);
  assert_int_equal(scene_get(&c.scene, 200, 0, &none), GM_ERR_OVER_LIMIT); /* no slot was lost, and none is double */
  for (unsigned i = 0; i < SLOTS; i++) assert_int_equal(gm_slots_release(c.scene.slots, slots[i].lease, NULL, NULL), 0);
  scene_close(&w, &c.scene);
}

/* --- points --- */

enum { LATE_READERS = 6 };

/* A device whose work ends when a test lets time pass: each slot has the points of those that may read it. */
typedef struct late_scene {
  pool_bench bench;
  slot_scene scene;
  gm_stream *stream;
  gm_point readers[SLOTS][LATE_READERS];
  uint32_t counts[SLOTS];
  uint64_t random, wrong;
} late_scene;

static gm_status late_load(void *user, const void *key, size_t key_bytes, const gm_slot *slot, gm_point *out_ready,
                           gm_error *err) {
  late_scene *l = user;
  (void)key, (void)key_bytes, (void)out_ready, (void)err;
  for (uint32_t i = 0; i < l->counts[slot->index]; i++) {
    bool done = false;
    gm_point *point = &l->readers[slot->index][i];
    assert_int_equal(gm_point_done(l->bench.device, point, &done, NULL), GM_OK);
    l->wrong += !done;
    gm_point_release(l->bench.device, point);
  }
  l->counts[slot->index] = 0;
  return GM_OK;
}

static void late_open(late_scene *l) {
  memset(l, 0, sizeof *l);
  l->random = 1;
  gm_slots_params params = scene_params(&l->scene, 0);
  params.load = late_load;
  params.user = l;
  pool_bench_open(&l->bench, "null", "null:capacity=64M,latency=1000000000", NULL);
  pool_bench_ok(gm_stream_create(l->bench.device, &l->stream, err));
  pool_bench_ok(gm_slots_create(l->bench.pool, &params, &l->scene.slots, err));
}

static void late_close(late_scene *l) {
  gm__null_advance(l->bench.device->handle, UINT64_C(2000000000));
  for (uint32_t i = 0; i < SLOTS * LATE_READERS; i++)
    gm_point_release(l->bench.device, &l->readers[i / LATE_READERS][i % LATE_READERS]);
  pool_bench_ok(gm_slots_destroy(l->scene.slots, err));
  pool_bench_ok(gm_stream_close(l->stream, err));
  pool_bench_close(&l->bench);
}

/* Work of a second of the device's time. */
static gm_point late_work(late_scene *l) {
  const gm_memory nowhere = {.handle = 1, .bytes = 64};
  gm_backend_point work;
  gm_point point;
  pool_bench_ok(gm__null_backend.fill(l->bench.device->handle, l->stream->handle, &nowhere, 0, 64, "", 1, &work, err));
  pool_bench_ok(gm_stream_record(l->stream, &point, err));
  return point;
}

static void a_slot_is_reused_after_its_points(void **state) {
  (void)state;
  late_scene l;
  slot_scene *s = &l.scene;
  gm_slot slots[SLOTS], more;
  if (only) return;
  late_open(&l);
  for (unsigned i = 0; i < SLOTS; i++) assert_int_equal(scene_get(s, i, 0, &slots[i]), GM_OK);
  for (unsigned i = 0; i < SLOTS; i++) {
    gm_point point = late_work(&l);
    assert_int_equal(gm_slots_release(s->slots, slots[i].lease, &point, NULL), GM_OK);
    gm_point_release(l.bench.device, &point); /* the set has one of its own */
  }
  refused(s, scene_get(s, 9, GM_SLOTS_NO_WAIT, &more), GM_ERR_OVER_LIMIT,
          "0 of 4 slots are leased, and work may still read the others");
  for (unsigned i = 0; i < SLOTS; i++) assert_true(scene_has(s, i)); /* reading harms nobody */
  gm__null_advance(l.bench.device->handle, UINT64_C(9000000000));
  assert_int_equal(scene_get(s, 9, GM_SLOTS_NO_WAIT, &more), GM_OK);
  const gm_point strange = {.stream = UINT64_MAX, .handle = 1};
  refused(s, gm_slots_release(s->slots, more.lease, &strange, &s->err), GM_ERR_INVALID_ARGUMENT, "another device");
  assert_int_equal(scene_stats(s).late, 0);
  for (int i = 0; i < 3 * GM_SLOT_POINTS_MOST; i++) { /* more points than a slot keeps: the host waits for some */
    gm_slot again;
    gm_point point = late_work(&l);
    assert_int_equal(scene_get(s, 9, 0, &again), GM_OK);
    assert_int_equal(gm_slots_release(s->slots, again.lease, &point, NULL), GM_OK);
    gm_point_release(l.bench.device, &point);
  }
  assert_int_equal(gm_slots_release(s->slots, more.lease, NULL, NULL), GM_OK);
  late_close(&l);
}

/* Returns how many points had not passed when a slot was loaded anew. */
static uint64_t late_run(size_t calls, bool with_points) {
  late_scene *l = calloc(1, sizeof *l);
  assert_non_null(l);
  late_open(l);
  for (size_t i = 0; i < calls; i++) {
    gm_slot slot;
    const unsigned key = (unsigned)(test_random(&l->random) % KEYS);
    const uint32_t flags = test_random(&l->random) % 4 ? GM_SLOTS_NO_WAIT : 0;
    gm__null_advance(l->bench.device->handle, test_random(&l->random) % 400000000);
    if (scene_get(&l->scene, key, flags, &slot)) continue;
    gm_point point = {0, 0, 0};
    if (l->counts[slot.index] < LATE_READERS && test_random(&l->random) % 4) {
      point = late_work(l);
      l->readers[slot.index][l->counts[slot.index]++] = point;
    }
    assert_int_equal(gm_slots_release(l->scene.slots, slot.lease, with_points ? &point : NULL, NULL), GM_OK);
  }
  const uint64_t wrong = l->wrong;
  printf("%llu loads, %llu refused, %llu late, %llu wrong\n", (unsigned long long)scene_stats(&l->scene).loads,
         (unsigned long long)scene_stats(&l->scene).refused, (unsigned long long)scene_stats(&l->scene).late,
         (unsigned long long)wrong);
  assert_in_range(scene_stats(&l->scene).loads, calls / 50, calls);
  late_close(l);
  free(l);
  return wrong;
}

static void no_slot_is_overwritten_while_work_reads_it(void **state) {
  (void)state;
  if (!only) assert_int_equal(late_run(great_many(10000), true), 0);
  if (!only) assert_int_not_equal(late_run(1000, false), 0); /* the control */
}

/* --- contents --- */

enum { HELD = 3 };

typedef struct held_slot {
  gm_slot slot; /* lease 0: none */
  unsigned char byte;
} held_slot;

static unsigned contents_wrong(slot_scene *s, const held_slot *held) {
  unsigned char bytes[BYTES];
  world_ok(gm_block_read(s->pool, &held->slot.block, held->slot.offset, bytes, BYTES, s->stream, NULL, err));
  for (unsigned i = 0; i < BYTES; i++) {
    if (bytes[i] != held->byte) return 1;
  }
  return 0;
}

static void contents_release(slot_scene *s, held_slot *held, bool point) {
  gm_point passed = {0, 0, 0};
  if (point) world_ok(gm_stream_record(s->stream, &passed, err));
  world_ok(gm_slots_release(s->slots, held->slot.lease, &passed, err));
  gm_point_release(s->device, &passed);
  held->slot.lease = 0;
}

static void contents_run(const char *backend, size_t calls) {
  transfer_world w;
  slot_scene s;
  held_slot held[HELD] = {{.byte = 0}};
  uint64_t random = 5;
  unsigned wrong = 0;
  if (!scene_open(&w, &s, backend, 0)) return;
  for (size_t i = 0; i < calls; i++) {
    held_slot *one = &held[test_random(&random) % HELD];
    const unsigned char key = (unsigned char)(test_random(&random) % KEYS);
    s.late = test_random(&random) % 2;
    s.fail = test_random(&random) % 8 ? GM_OK : GM_ERR_IO;
    if (one->slot.lease) wrong += contents_wrong(&s, one);
    if (one->slot.lease) {
      contents_release(&s, one, test_random(&random) % 2);
    } else if (test_random(&random) % 16 == 0) {
      (void)gm_slots_drop(s.slots, &key, 1, NULL);
    } else if (gm_slots_get(s.slots, &key, 1, 0, test_random(&random) % 2 ? s.stream : NULL, &one->slot, NULL)) {
      one->slot.lease = 0;
    } else {
      one->byte = slot_byte(key, s.versions[key]);
      wrong += contents_wrong(&s, one);
    }
  }
  for (unsigned i = 0; i < HELD; i++) {
    if (held[i].slot.lease) contents_release(&s, &held[i], true);
  }
  assert_int_equal(wrong, 0);
  assert_in_range(scene_stats(&s).evictions, calls / 20, calls);
  scene_close(&w, &s);
}

static void random_calls_leave_the_right_contents(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
    if (!only) contents_run(backends[i], strcmp(backends[i], "cpu") == 0 ? great_many(20000) : 400);
  }
  if (only) contents_run(only, 400);
}

/* --- misuse --- */

static void wrong_arguments_are_refused(void **state) {
  (void)state;
  transfer_world w;
  slot_scene s;
  gm_slots *none = NULL;
  gm_slot slot;
  const char key[] = "k";
  if (only || !scene_open(&w, &s, "cpu", 0)) return;
  gm_slots_params params = scene_params(&s, 2);
  refused(&s, gm_slots_create(s.pool, &params, &none, &s.err), GM_ERR_INVALID_ARGUMENT, "`params->flags` is 0x2");
  params = scene_params(&s, 0);
  params.slots = 0;
  refused(&s, gm_slots_create(s.pool, &params, &none, &s.err), GM_ERR_INVALID_ARGUMENT, "`params->slots` is 0");
  params = scene_params(&s, 0);
  params.slot_bytes = UINT64_MAX / SLOTS;
  refused(&s, gm_slots_create(s.pool, &params, &none, &s.err), GM_ERR_INVALID_ARGUMENT, "`params->slot_bytes`");
  params.slot_bytes = UINT64_C(1) << 55;
  refused(&s, gm_slots_create(s.pool, &params, &none, &s.err), GM_ERR_OVER_LIMIT, "the pool answers");
  params = scene_params(&s, 0);
  params.request = &(gm_request){.flags = GM_ALLOW_SPANS};
  refused(&s, gm_slots_create(s.pool, &params, &none, &s.err), GM_ERR_INVALID_ARGUMENT, "GM_ALLOW_SPANS");
  refused(&s, gm_slots_create(NULL, &params, &none, &s.err), GM_ERR_INVALID_ARGUMENT, "`pool` is NULL");
  params = scene_params(&s, 0);
  world_ok(gm_slots_create(s.pool, &params, &none, err));
  assert_int_equal(scene_get(&s, 1, 0, &slot), GM_OK);
  refused(&s, gm_slots_release(none, slot.lease, NULL, &s.err), GM_ERR_INVALID_ARGUMENT, "is not open");
  refused(&s, gm_slots_release(s.slots, 0, NULL, &s.err), GM_ERR_INVALID_ARGUMENT, "lease 0 is not open");
  assert_int_equal(gm_slots_release(s.slots, slot.lease, NULL, NULL), GM_OK);
  world_ok(gm_slots_destroy(none, err));
  refused(&s, gm_slots_get(s.slots, key, 0, 0, NULL, &slot, &s.err), GM_ERR_INVALID_ARGUMENT, "`key_bytes` is 0");
  refused(&s, gm_slots_get(s.slots, NULL, 1, 0, NULL, &slot, &s.err), GM_ERR_INVALID_ARGUMENT, "`key` is NULL");
  refused(&s, gm_slots_get(s.slots, key, 1, 4, NULL, &slot, &s.err), GM_ERR_INVALID_ARGUMENT, "`flags` is 0x4");
  refused(&s, gm_slots_get(NULL, key, 1, 0, NULL, &slot, &s.err), GM_ERR_INVALID_ARGUMENT, "`slots` is NULL");
  assert_int_equal(gm_slots_destroy(NULL, NULL), GM_OK);
  scene_close(&w, &s);
}

static int forked_child(slot_scene *s, uint64_t lease) {
  gm_slot slot;
  if (scene_get(s, 1, 0, &slot) != GM_ERR_FORKED) return 1;
  if (gm_slots_release(s->slots, lease, NULL, NULL) != GM_ERR_FORKED) return 2;
  return gm_slots_destroy(s->slots, NULL) == GM_OK ? 0 : 3;
}

static void a_forked_child_only_gives_memory_back(void **state) {
  (void)state;
  transfer_world w;
  slot_scene s;
  gm_slot slot;
  int answer = -1;
  if (only || !scene_open(&w, &s, "cpu", 0)) return;
  assert_int_equal(scene_get(&s, 1, 0, &slot), GM_OK);
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) _exit(forked_child(&s, slot.lease));
  assert_int_equal(waitpid(child, &answer, 0), child);
  assert_int_equal(answer, 0);
  assert_int_equal(gm_slots_release(s.slots, slot.lease, NULL, NULL), GM_OK);
  scene_close(&w, &s);
}

int main(int argc, char **argv) {
  only = argc > 1 ? argv[1] : NULL;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(leases_keep_slots_and_places_stay),
      cmocka_unit_test(the_order_is_that_of_the_policy),
      cmocka_unit_test(a_key_that_is_dropped_is_loaded_anew),
      cmocka_unit_test(a_load_that_fails_leaves_the_slot_free),
      cmocka_unit_test(a_loader_may_ask_for_other_keys),
      cmocka_unit_test(one_thread_loads_and_others_wait),
      cmocka_unit_test(threads_share_a_set),
      cmocka_unit_test(a_slot_is_reused_after_its_points),
      cmocka_unit_test(no_slot_is_overwritten_while_work_reads_it),
      cmocka_unit_test(random_calls_leave_the_right_contents),
      cmocka_unit_test(wrong_arguments_are_refused),
      cmocka_unit_test(a_forked_child_only_gives_memory_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
