/* Futures on the devices that are there, and on the simulated drivers. The first argument names the only backend to
 * try. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "core/base/clock.h"
#include "core/device/device.h"
#include "gm/evictor.h"
#include "gm/pressure.h"
#include "support/great_many.h"
#include "transfer/future_crowd.h"
#include "transfer/future_scene.h"

static const char *only;
static const char *const backends[] = {"cpu", "opencl", "vulkan"};
enum { BACKENDS = sizeof backends / sizeof *backends };

/* ---- served ---- */

static void check_block(const future_scene *s, const gm_block *block) {
  unsigned char sent[64], got[64] = {0};
  for (unsigned i = 0; i < sizeof sent; i++) sent[i] = (unsigned char)(i * 3 + 1);
  world_ok(gm_block_write(s->pool, block, 0, sent, sizeof sent, NULL, NULL, err));
  world_ok(gm_block_read(s->pool, block, 0, got, sizeof got, NULL, NULL, err));
  assert_memory_equal(sent, got, sizeof got);
}

static void serve_on(const char *backend) {
  future_scene s;
  gm_future at_once, later;
  if (!scene_open(&s, backend)) return;
  assert_true(scene_ask(&s, 6 * UNIT, &at_once));
  assert_true(gm_future_done(&at_once));
  assert_true(gm_acquired(at_once.answer));
  check_block(&s, &at_once.block);
  assert_false(scene_ask(&s, 4 * UNIT, &later));
  assert_false(gm_future_done(&later));
  assert_int_equal(gm_future_wait(&later, 0, &s.err), GM_ERR_TIMEOUT);
  scene_give(&s, &at_once.block);
  assert_int_equal(gm_future_wait(&later, UINT64_MAX, NULL), GM_OK);
  check_block(&s, &later.block);
  scene_served(&s, &later);
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(s.pool, &stats);
  assert_int_equal(stats.active, 0);
  assert_int_equal(stats.failures + stats.over_limit, 0); /* nothing was refused */
  scene_finish(&s);
}

static void a_free_serves_at_the_next_look(void **state) {
  (void)state;
  for (size_t i = 0; i < BACKENDS && !only; i++) serve_on(backends[i]);
  if (only) serve_on(only);
}

/* Small ones that came later do not pass a large one. A request without a deadline is in no queue. */
static void the_first_is_served_first(void **state) {
  (void)state;
  future_scene s;
  gm_block blocks[8];
  gm_future large, small[2];
  if (!scene_open(&s, only ? only : "cpu")) return;
  for (int i = 0; i < 8; i++) blocks[i] = scene_take(&s, UNIT);
  assert_false(scene_ask(&s, CAP, &large));
  assert_false(scene_ask(&s, UNIT, &small[0]));
  for (int i = 0; i < 7; i++) {
    scene_give(&s, &blocks[i]);
    assert_false(gm_future_done(&small[0]));
    assert_false(gm_future_done(&large));
  }
  const gm_block at_once = scene_take(&s, UNIT);
  scene_give(&s, &at_once);
  assert_false(scene_ask(&s, UNIT, &small[1])); /* there is memory, and others wait for it */
  scene_give(&s, &blocks[7]);
  assert_false(gm_future_done(&small[1])); /* which serves the large one */
  assert_int_equal(large.state, 1);
  scene_served(&s, &large);
  scene_served(&s, &small[1]);
  scene_served(&s, &small[0]);
  scene_finish(&s);
}

static void other_pools_pass_one_that_waits_at_its_cap(void **state) {
  (void)state;
  future_scene s;
  gm_future stuck, other;
  const gm_request request = {.bytes = UNIT};
  if (only || !scene_open(&s, "cpu")) return;
  const gm_block all = scene_take(&s, CAP);
  assert_false(scene_ask(&s, UNIT, &stuck));
  assert_false(gm_future_done(&stuck)); /* now it is known what it waits for */
  gm_pool *pool = s.w.ends[0].pool;
  assert_false(gm_alloc_async(pool, &request, &other));
  assert_true(gm_future_done(&other));
  assert_int_equal(gm_free(pool, &other.block, NULL), GM_OK);
  assert_false(gm_future_done(&stuck));
  scene_give(&s, &all);
  scene_served(&s, &stuck);
  scene_finish(&s);
}

/* Nobody asks for the future but a thread whose own request is behind it. */
static void a_thread_that_waits_behind_a_future_serves_it(void **state) {
  (void)state;
  future_scene s;
  gm_future first;
  gm_block block;
  const gm_request request = {.bytes = UNIT, .deadline_ns = UINT64_MAX};
  if (!scene_open(&s, only ? only : "cpu")) return;
  const gm_block all = scene_take(&s, CAP);
  assert_false(scene_ask(&s, CAP - UNIT, &first));
  scene_give(&s, &all);
  assert_true(gm_acquired(gm_alloc(s.pool, &request, &block)));
  assert_int_equal(first.state, 1);
  scene_give(&s, &block);
  scene_served(&s, &first);
  scene_finish(&s);
}

/* ---- ended without a block ---- */

static void deadlines_pass(void **state) {
  (void)state;
  future_scene s;
  gm_future first, behind;
  const gm_request most = {.bytes = 4 * UNIT, .deadline_ns = 1}, little = {.bytes = UNIT, .deadline_ns = 1};
  gm_explanation why = {.struct_size = sizeof why};
  if (only || !scene_open(&s, "cpu")) return;
  const gm_block all = scene_take(&s, 6 * UNIT);
  assert_false(gm_alloc_async(s.pool, &most, &first));
  scene_ended(&first, GM_ACQUIRE_EXHAUSTED, GM_ERR_TIMEOUT);
  world_ok(gm_explain(s.pool, &most, &why, err));
  assert_int_equal(why.cause, GM_CAUSE_DEADLINE);
  assert_int_equal(why.waited_for, GM_CAUSE_POOL_CAP);
  assert_false(scene_ask(&s, 4 * UNIT, &first));
  assert_false(gm_alloc_async(s.pool, &little, &behind)); /* its turn never comes */
  scene_ended(&behind, GM_ACQUIRE_EXHAUSTED, GM_ERR_TIMEOUT);
  scene_give(&s, &all);
  scene_served(&s, &first);
  assert_true(gm_alloc_async(s.pool, &little, &first)); /* there is memory: a deadline matters no more */
  scene_served(&s, &first);
  scene_finish(&s);
}

static void requests_that_waiting_does_not_help(void **state) {
  (void)state;
  future_scene s;
  gm_future future;
  const gm_request bad = {.bytes = UNIT, .flags = UINT32_MAX};
  if (only || !scene_open(&s, "cpu")) return;
  assert_true(scene_ask(&s, CAP + UNIT, &future));
  scene_ended(&future, GM_ACQUIRE_OVER_LIMIT, GM_ERR_OVER_LIMIT);
  for (int waits = 0; waits < 2; waits++) {
    gm_future other;
    gm_block all = {0};
    if (waits) all = scene_take(&s, CAP);
    if (waits) assert_false(scene_ask(&s, UNIT, &other));
    assert_true(scene_ask(&s, 0, &future));
    scene_ended(&future, GM_ACQUIRE_INVALID, GM_ERR_INVALID_ARGUMENT);
    assert_true(gm_alloc_async(s.pool, &bad, &future));
    scene_ended(&future, GM_ACQUIRE_INVALID, GM_ERR_INVALID_ARGUMENT);
    assert_true(gm_alloc_async(s.pool, NULL, &future));
    assert_true(gm_alloc_async(NULL, &bad, &future));
    scene_ended(&future, GM_ACQUIRE_INVALID, GM_ERR_INVALID_ARGUMENT);
    if (waits) assert_int_equal(gm_future_cancel(&other, NULL), GM_OK);
    if (waits) scene_give(&s, &all);
  }
  assert_true(scene_ask(&s, UNIT, NULL));
  scene_finish(&s);
}

static void cancel_says_yours_or_not_yours(void **state) {
  (void)state;
  future_scene s;
  gm_future future, behind, zero = {0};
  if (!scene_open(&s, only ? only : "cpu")) return;
  const gm_block all = scene_take(&s, CAP);
  assert_false(scene_ask(&s, UNIT, &future));
  assert_false(scene_ask(&s, UNIT, &behind));
  assert_int_equal(gm_future_cancel(&future, NULL), GM_OK);
  scene_ended(&future, GM_ACQUIRE_EXHAUSTED, GM_ERR_CANCELLED);
  scene_give(&s, &all);
  assert_true(gm_future_done(&behind));
  assert_int_equal(gm_future_cancel(&behind, NULL), GM_OK); /* too late: it is yours */
  scene_served(&s, &behind);
  assert_int_equal(gm_future_cancel(&zero, &s.err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(s.err.message, "not started"));
  assert_int_equal(gm_future_wait(&zero, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_future_wait(NULL, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_false(gm_future_done(&zero));
  assert_false(gm_future_done(NULL));
  scene_finish(&s);
}

/* The owner starts it again: the first request stands. */
static void a_future_that_waits_is_not_started_anew(void **state) {
  (void)state;
  future_scene s;
  gm_future future;
  if (only || !scene_open(&s, "cpu")) return;
  const gm_block all = scene_take(&s, CAP);
  assert_false(scene_ask(&s, 2 * UNIT, &future));
  assert_false(scene_ask(&s, UNIT, &future));
  assert_non_null(strstr(s.w.host.last_line, "waits already"));
  assert_false(gm_alloc_async(s.pool, NULL, &future));
  assert_false(scene_ask(&s, 0, &future));
  scene_give(&s, &all);
  assert_true(gm_future_done(&future));
  assert_int_equal(future.block.bytes, 2 * UNIT);
  scene_served(&s, &future);
  scene_finish(&s);
}

static void a_lost_device_ends_the_wait(void **state) {
  (void)state;
  future_scene s;
  gm_future future;
  if (only || !scene_open(&s, "cpu")) return;
  const gm_block all = scene_take(&s, CAP);
  assert_false(scene_ask(&s, UNIT, &future));
  atomic_store(&s.device->lost, true);
  scene_ended(&future, GM_ACQUIRE_FAILED, GM_ERR_DEVICE_LOST);
  atomic_store(&s.device->lost, false);
  scene_give(&s, &all);
  scene_finish(&s);
}

/* ---- callbacks ---- */

typedef struct told {
  future_scene *s;
  gm_future *other;
  gm_acquire answer;
  unsigned calls;
} told;

/* Gives the block back, and asks once more. */
static void tell(void *user, gm_future *future) {
  told *self = user;
  self->calls++;
  self->answer = future->answer;
  assert_true(gm_future_done(future));
  assert_int_equal(gm_future_wait(future, 0, NULL), GM_OK);
  assert_int_equal(gm_future_cancel(future, NULL), GM_OK);
  if (!gm_acquired(future->answer)) return;
  scene_give(self->s, &future->block);
  if (self->other) assert_true(scene_ask(self->s, UNIT, self->other));
}

static void callbacks_run_once_and_may_call_gm(void **state) {
  (void)state;
  future_scene s;
  gm_future future, other = {0};
  told self = {.s = &s, .other = &other};
  if (!scene_open(&s, only ? only : "cpu")) return;
  const gm_block all = scene_take(&s, CAP);
  assert_false(scene_ask(&s, UNIT, &future));
  world_ok(gm_future_on_done(&future, tell, &self, err));
  assert_int_equal(gm_future_on_done(&future, tell, &self, &s.err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_future_on_done(&future, NULL, NULL, &s.err), GM_ERR_INVALID_ARGUMENT);
  world_ok(gm_context_poll(s.w.ctx, err));
  assert_int_equal(self.calls, 0);
  scene_give(&s, &all);
  world_ok(gm_context_poll(s.w.ctx, err));
  assert_int_equal(self.calls, 1);
  scene_served(&s, &other);
  self.other = NULL;
  assert_true(scene_ask(&s, UNIT, &future));
  world_ok(gm_future_on_done(&future, tell, &self, err)); /* at once */
  assert_int_equal(self.calls, 2);
  scene_finish(&s);
}

/* An evictor is asked for a future, and asks to cancel it. */
typedef struct meddler {
  gm_future future;
  gm_status cancelled, on_done;
  bool done;
} meddler;

static uint64_t meddle(void *user, uint64_t bytes) {
  meddler *self = user;
  (void)bytes;
  self->cancelled = gm_future_cancel(&self->future, NULL);
  self->on_done = gm_future_on_done(&self->future, tell, NULL, NULL);
  self->done = gm_future_done(&self->future);
  return 0;
}

static void an_evictor_cannot_cancel_what_it_is_asked_for(void **state) {
  (void)state;
  future_scene s;
  meddler self = {.cancelled = GM_OK};
  gm_future before;
  gm_evictor *evictor;
  const gm_evictor_params params = {.struct_size = sizeof params, .evict = meddle, .user = &self};
  if (only || !scene_open(&s, "null")) return;
  gm_pool *pool = s.w.ends[0].pool;
  const gm_request most = {.bytes = 200 * UNIT};
  gm_block all;
  assert_true(gm_acquired(gm_alloc(pool, &most, &all)));
  assert_false(gm_alloc_async(pool, &most, &before)); /* those behind it are not tried when they come */
  assert_false(gm_alloc_async(pool, &most, &self.future));
  world_ok(gm_evictor_register(s.device, &params, &evictor, err));
  assert_int_equal(gm_future_cancel(&before, NULL), GM_OK);
  assert_false(gm_future_done(&self.future));
  assert_int_equal(self.cancelled, GM_ERR_BUSY);
  assert_int_equal(self.on_done, GM_ERR_BUSY);
  assert_false(self.done);
  world_ok(gm_evictor_unregister(evictor, err));
  assert_int_equal(gm_future_cancel(&self.future, NULL), GM_OK);
  assert_int_equal(gm_free(pool, &all, NULL), GM_OK);
  scene_finish(&s);
}

/* ---- the pool, the process ---- */

static void ask_again(void *user, gm_future *future) {
  told *self = user;
  self->calls++;
  self->answer = future->answer;
  assert_false(scene_ask(self->s, UNIT, self->other));
  assert_int_equal(gm_future_on_done(self->other, tell, self, NULL), GM_OK);
}

static void a_pool_that_is_waited_at_stays_but_by_force(void **state) {
  (void)state;
  future_scene s;
  gm_future futures[2], other;
  told self = {.s = &s, .other = &other};
  if (!scene_open(&s, only ? only : "cpu")) return;
  (void)scene_take(&s, CAP);
  for (int i = 0; i < 2; i++) assert_false(scene_ask(&s, UNIT, &futures[i]));
  world_ok(gm_future_on_done(&futures[1], ask_again, &self, err));
  assert_int_equal(gm_pool_destroy(s.pool, NULL), GM_ERR_BUSY);
  world_ok(gm_pool_destroy_force(s.pool, err));
  for (int i = 0; i < 2; i++) scene_ended(&futures[i], GM_ACQUIRE_INVALID, GM_ERR_CANCELLED);
  scene_ended(&other, GM_ACQUIRE_INVALID, GM_ERR_CANCELLED);
  assert_int_equal(self.calls, 1);
  assert_int_equal(self.answer, GM_ACQUIRE_INVALID);
  assert_true(scene_ask(&s, UNIT, &other));
  scene_ended(&other, GM_ACQUIRE_INVALID, GM_ERR_INVALID_ARGUMENT);
  world_ok(gm_context_poll(s.w.ctx, err));
  s.pool = NULL;
  scene_finish(&s);
}

/* No block is out, and the pool is in use all the same. */
static void a_forgotten_future_keeps_its_pool(void **state) {
  (void)state;
  future_scene s;
  gm_future future;
  gm_pool *pool;
  const gm_request request = {.bytes = 200 * UNIT};
  gm_block all;
  if (only || !scene_open(&s, "null")) return;
  world_ok(gm_pool_create(s.device, NULL, &pool, err));
  assert_true(gm_acquired(gm_alloc(pool, &request, &all)));
  assert_false(gm_alloc_async(s.w.ends[0].pool, &request, &future));
  assert_int_equal(gm_free(pool, &all, NULL), GM_OK);
  world_ok(gm_pool_destroy(pool, err));
  assert_int_equal(gm_free(s.w.ends[0].pool, &s.w.ends[0].block, NULL), GM_OK);
  assert_int_equal(gm_pool_destroy(s.w.ends[0].pool, &s.err), GM_ERR_BUSY);
  assert_non_null(strstr(s.err.message, "a future"));
  world_ok(gm_context_poll(s.w.ctx, err)); /* somebody looks */
  assert_int_equal(gm_pool_destroy(s.w.ends[0].pool, &s.err), GM_ERR_BUSY);
  assert_non_null(strstr(s.err.message, "1 blocks"));
  s.w.ends[0].block = future.block;
  scene_finish(&s);
}

static int forked_child(future_scene *s, gm_future *waits, gm_future *cancelled) {
  gm_future fresh;
  if (gm_future_cancel(cancelled, NULL) || cancelled->status != GM_ERR_FORKED) return 1;
  if (gm_future_wait(waits, UINT64_MAX, NULL)) return 2;
  if (waits->answer != GM_ACQUIRE_FAILED || waits->status != GM_ERR_FORKED) return 3;
  if (!scene_ask(s, UNIT, &fresh) || fresh.answer != GM_ACQUIRE_FAILED) return 4;
  return fresh.status == GM_ERR_FORKED ? 0 : 5;
}

static void futures_end_in_a_forked_child(void **state) {
  (void)state;
  future_scene s;
  gm_future futures[2];
  int answer = -1;
  if (only || !scene_open(&s, "cpu")) return;
  const gm_block all = scene_take(&s, CAP);
  for (int i = 0; i < 2; i++) assert_false(scene_ask(&s, UNIT, &futures[i]));
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) _exit(forked_child(&s, &futures[0], &futures[1]));
  assert_int_equal(waitpid(child, &answer, 0), child);
  assert_int_equal(answer, 0);
  scene_give(&s, &all);
  for (int i = 0; i < 2; i++) assert_true(gm_future_done(&futures[i]));
  for (int i = 0; i < 2; i++) scene_served(&s, &futures[i]);
  scene_finish(&s);
}

/* ---- threads ---- */

static void the_monitor_serves(void **state) {
  (void)state;
  future_scene s;
  gm_future future;
  _Atomic unsigned calls = 0;
  if (!scene_open(&s, only ? only : "cpu")) return;
  const gm_block all = scene_take(&s, CAP);
  assert_false(scene_ask(&s, UNIT, &future));
  world_ok(gm_future_on_done(&future, crowd_count, &calls, err));
  world_ok(gm_monitor_start(s.w.ctx, 1, err));
  scene_give(&s, &all);
  while (!atomic_load(&calls)) gm__sleep_ns(100000);
  world_ok(gm_monitor_stop(s.w.ctx, err));
  scene_served(&s, &future);
  scene_finish(&s);
}

/* Each future is served or cancelled, never both. Each block goes back once, and none is left. */
static void threads_ask_look_and_cancel(void **state) {
  (void)state;
  crowd c = {.turns = great_many(only ? 1000 : 2000)};
  if (!scene_open(&c.s, only ? only : "cpu")) return;
  crowd_hand hands[HANDS];
  for (unsigned i = 0; i < HANDS; i++) {
    hands[i] = (crowd_hand){.crowd = &c, .random = i + 1};
    world_ok(gm__thread_create(&hands[i].thread, "hand", crowd_run, &hands[i], err));
  }
  for (unsigned i = 0; i < HANDS; i++) gm__thread_join(&hands[i].thread);
  assert_int_equal(c.wrong, 0);
  assert_int_equal(atomic_load(&c.yours) + atomic_load(&c.not_yours), HANDS * c.turns);
  assert_int_equal(atomic_load(&c.called), atomic_load(&c.with_callback));
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(c.s.pool, &stats);
  assert_int_equal(stats.active, 0);
  assert_int_equal(atomic_load(&c.s.device->turn_count), 0);
  scene_finish(&c.s);
}

int main(int argc, char **argv) {
  only = argc > 1 ? argv[1] : NULL;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_free_serves_at_the_next_look),
      cmocka_unit_test(the_first_is_served_first),
      cmocka_unit_test(other_pools_pass_one_that_waits_at_its_cap),
      cmocka_unit_test(a_thread_that_waits_behind_a_future_serves_it),
      cmocka_unit_test(deadlines_pass),
      cmocka_unit_test(requests_that_waiting_does_not_help),
      cmocka_unit_test(cancel_says_yours_or_not_yours),
      cmocka_unit_test(a_future_that_waits_is_not_started_anew),
      cmocka_unit_test(a_lost_device_ends_the_wait),
      cmocka_unit_test(callbacks_run_once_and_may_call_gm),
      cmocka_unit_test(an_evictor_cannot_cancel_what_it_is_asked_for),
      cmocka_unit_test(a_pool_that_is_waited_at_stays_but_by_force),
      cmocka_unit_test(a_forgotten_future_keeps_its_pool),
      cmocka_unit_test(futures_end_in_a_forked_child),
      cmocka_unit_test(the_monitor_serves),
      cmocka_unit_test(threads_ask_look_and_cancel),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
