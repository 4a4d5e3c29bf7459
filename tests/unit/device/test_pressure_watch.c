/* Watches of pressure: who is told of which level, when, and what a callback may do. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "gm/pressure.h"
#include "support/fail_each.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1) << 20)

enum { EVENTS = 16, BLOCKS = 64 };

/* The words that a watch heard, in order; `act` does something in the callback. */
typedef struct heard {
  pool_bench *bench;
  gm_pressure_watch *watch, *other;
  void (*act)(struct heard *heard, const gm_pressure_event *event);
  gm_block block;
  int count;
  gm_pressure_event events[EVENTS];
  gm_pressure now[EVENTS];
} heard;

static void hear(void *user, const gm_pressure_event *event) {
  heard *self = user;
  assert_true(self->count < EVENTS);
  assert_int_equal(event->now->level, event->to);
  assert_int_not_equal(event->from, event->to);
  self->events[self->count] = *event;
  self->now[self->count++] = *event->now;
  if (self->act) self->act(self, event);
}

/* Each such block is driver memory of its own. */
static gm_acquire take(const pool_bench *bench, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes, .flags = GM_DEDICATED};
  return gm_alloc(bench->pool, &request, out);
}

static gm_block taken(const pool_bench *bench, uint64_t bytes) {
  gm_block block;
  assert_true(take(bench, bytes, &block) <= GM_ACQUIRE_FRESH);
  return block;
}

static void give(const pool_bench *bench, const gm_block *block) {
  assert_int_equal(gm_free(bench->pool, block, NULL), GM_OK);
}

static void open_bench(pool_bench *bench) { pool_bench_open(bench, "null", "null:capacity=100M", NULL); }

static void watch_device(heard *self, pool_bench *bench) {
  self->bench = bench;
  pool_bench_ok(gm_pressure_watch_device(bench->device, hear, self, &self->watch, err));
}

static void poll_now(const pool_bench *bench) { pool_bench_ok(gm_context_poll(bench->ctx, err)); }

static void end(gm_pressure_watch *watch) { pool_bench_ok(gm_pressure_watch_end(watch, err)); }

static void expect(const heard *self, int at, gm_pressure_level from, gm_pressure_level to) {
  assert_true(at < self->count);
  assert_int_equal(self->events[at].from, from);
  assert_int_equal(self->events[at].to, to);
}

/* ---- who hears what ---- */

static void test_a_program_that_grows_hears_all_levels_before_a_refusal(void **state) {
  (void)state;
  pool_bench bench;
  heard device = {.count = 0}, pool = {.count = 0};
  gm_block blocks[BLOCKS];
  int count = 0;
  open_bench(&bench);
  watch_device(&device, &bench);
  pool_bench_ok(gm_pressure_watch_pool(bench.pool, hear, &pool, &pool.watch, err));
  while (count < BLOCKS && take(&bench, 4 * MIB, &blocks[count]) <= GM_ACQUIRE_FRESH) count++;
  assert_in_range(count, 24, 25);
  const heard *const both[] = {&device, &pool};
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(both[i]->count, 3);
    expect(both[i], 0, GM_PRESSURE_LOW, GM_PRESSURE_MEDIUM);
    expect(both[i], 1, GM_PRESSURE_MEDIUM, GM_PRESSURE_HIGH);
    expect(both[i], 2, GM_PRESSURE_HIGH, GM_PRESSURE_CRITICAL);
    assert_int_equal(both[i]->now[0].total_bytes, 100 * MIB);
    assert_int_equal(both[i]->now[0].used_bytes, 60 * MIB);
  }
  assert_int_equal(device.events[0].scope, GM_PRESSURE_OF_DEVICE);
  assert_int_equal(pool.events[0].scope, GM_PRESSURE_OF_POOL);
  assert_ptr_equal(pool.events[0].watch, pool.watch);
  while (count) give(&bench, &blocks[--count]);
  assert_int_equal(device.count, 3); /* relief waits for a poll */
  poll_now(&bench);
  expect(&device, 3, GM_PRESSURE_CRITICAL, GM_PRESSURE_LOW);
  expect(&pool, 3, GM_PRESSURE_CRITICAL, GM_PRESSURE_LOW);
  poll_now(&bench);
  assert_int_equal(device.count + pool.count, 8);
  end(device.watch);
  end(pool.watch);
  pool_bench_close(&bench);
}

/* Small blocks of a large segment are not seen one by one. Still no refusal comes as a surprise. */
static void test_a_refusal_is_no_surprise(void **state) {
  (void)state;
  pool_bench bench;
  heard pool = {.count = 0};
  gm_block blocks[BLOCKS];
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 64 * MIB};
  const gm_request request = {.bytes = 4 * MIB};
  int count = 0;
  pool_bench_open_device(&bench, "null", "null:capacity=100M");
  pool_bench_ok(gm_config_set(bench.ctx, "segment_size", "64M", err));
  pool_bench_ok(gm_pool_create(bench.device, &params, &bench.pool, err));
  pool_bench_ok(gm_pressure_watch_pool(bench.pool, hear, &pool, &pool.watch, err));
  while (count < BLOCKS && gm_alloc(bench.pool, &request, &blocks[count]) <= GM_ACQUIRE_FRESH) count++;
  assert_int_equal(count, 16);
  assert_int_equal(pool_bench_stats(&bench).driver_allocs, 1);
  assert_int_equal(pool.count, 1);
  expect(&pool, 0, GM_PRESSURE_LOW, GM_PRESSURE_CRITICAL);
  while (count) give(&bench, &blocks[--count]);
  end(pool.watch);
  pool_bench_close(&bench);
}

/* A level is left late, and each watch has its own hysteresis. */
static void test_hysteresis(void **state) {
  (void)state;
  pool_bench bench;
  heard early = {.count = 0}, late = {.count = 0};
  open_bench(&bench);
  watch_device(&early, &bench);
  gm_block base = taken(&bench, 56 * MIB), four = taken(&bench, 4 * MIB);
  expect(&early, 0, GM_PRESSURE_LOW, GM_PRESSURE_MEDIUM); /* 0.60 */
  give(&bench, &four);
  gm_block three = taken(&bench, 3 * MIB); /* 0.59: within the hysteresis */
  watch_device(&late, &bench);
  poll_now(&bench);
  assert_int_equal(early.count, 1);
  assert_int_equal(late.count, 0); /* it was never medium */
  give(&bench, &three);
  poll_now(&bench);
  expect(&early, 1, GM_PRESSURE_MEDIUM, GM_PRESSURE_LOW);
  assert_int_equal(late.count, 0);
  gm_pressure asked = {.struct_size = sizeof asked};
  pool_bench_ok(gm_device_pressure(bench.device, &asked, err)); /* an asker has no part in it */
  give(&bench, &base);
  end(late.watch);
  end(early.watch);
  pool_bench_close(&bench);
}

static void test_the_host_is_heard_of_by_polls(void **state) {
  (void)state;
  pool_bench bench;
  heard host = {.count = 0};
  gm_error failure;
  open_bench(&bench);
  pool_bench_ok(gm_config_set(bench.ctx, "pressure.hysteresis", "0", err));
  pool_bench_ok(gm_config_set(bench.ctx, "pressure.medium", "0.000000001", err)); /* every machine has that */
  pool_bench_ok(gm_config_set(bench.ctx, "pressure.high", "0.999998", err));
  pool_bench_ok(gm_config_set(bench.ctx, "pressure.critical", "0.999999", err));
  pool_bench_ok(gm_pressure_watch_host(bench.ctx, hear, &host, &host.watch, err));
  poll_now(&bench);
  expect(&host, 0, GM_PRESSURE_LOW, GM_PRESSURE_MEDIUM);
  assert_int_equal(host.events[0].scope, GM_PRESSURE_OF_HOST);
  pool_bench_ok(gm_config_set(bench.ctx, "pressure.high", "0.0000000001", err)); /* out of order */
  assert_int_equal(gm_context_poll(bench.ctx, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(failure.message, "`high`"));
  assert_int_equal(host.count, 1);
  end(host.watch);
  pool_bench_close(&bench);
}

/* ---- what a callback may do ---- */

static void act_end_own(heard *self, const gm_pressure_event *event) {
  end(event->watch);
  assert_int_equal(gm_pressure_watch_end(event->watch, NULL), GM_ERR_INVALID_ARGUMENT);
  self->watch = NULL;
}

static void test_a_callback_ends_its_own_watch(void **state) {
  (void)state;
  pool_bench bench;
  heard one = {.act = act_end_own}, two = {.act = act_end_own};
  open_bench(&bench);
  watch_device(&one, &bench);
  watch_device(&two, &bench);
  gm_block block = taken(&bench, 90 * MIB);
  assert_int_equal(one.count + two.count, 2);
  give(&bench, &block);
  poll_now(&bench);
  assert_int_equal(one.count + two.count, 2);
  pool_bench_close(&bench);
}

static void act_end_other(heard *self, const gm_pressure_event *event) {
  (void)event;
  end(self->other);
}

/* Whichever of the two is called first ends the other one, which is never called. */
static void test_a_callback_ends_another_watch(void **state) {
  (void)state;
  pool_bench bench;
  heard one = {.act = act_end_other}, two = {.act = act_end_other};
  open_bench(&bench);
  watch_device(&one, &bench);
  watch_device(&two, &bench);
  one.other = two.watch;
  two.other = one.watch;
  gm_block block = taken(&bench, 90 * MIB);
  assert_int_equal(one.count + two.count, 1);
  give(&bench, &block);
  end(one.count ? one.watch : two.watch);
  pool_bench_close(&bench);
}

/* Begins a watch and takes memory at the first level, and gives it back at the second one. */
static void act_grow(heard *self, const gm_pressure_event *event) {
  if (event->from == GM_PRESSURE_LOW) self->block = taken(self->bench, 30 * MIB);
  if (event->from == GM_PRESSURE_LOW) watch_device(self + 1, self->bench);
  if (event->to == GM_PRESSURE_HIGH) give(self->bench, &self->block);
  if (event->to == GM_PRESSURE_HIGH) gm_pool_trim(self->bench->pool, 0);
}

/* Events in a callback are heard after it, not within it. */
static void test_a_callback_allocates_frees_and_begins_watches(void **state) {
  (void)state;
  pool_bench bench;
  heard pair[2] = {{.act = act_grow}, {.count = 0}};
  open_bench(&bench);
  watch_device(&pair[0], &bench);
  gm_block block = taken(&bench, 60 * MIB);
  assert_int_equal(pair[0].count, 2);
  expect(&pair[0], 0, GM_PRESSURE_LOW, GM_PRESSURE_MEDIUM);
  expect(&pair[0], 1, GM_PRESSURE_MEDIUM, GM_PRESSURE_HIGH);
  poll_now(&bench);
  expect(&pair[0], 2, GM_PRESSURE_HIGH, GM_PRESSURE_MEDIUM);
  give(&bench, &block);
  end(pair[0].watch);
  end(pair[1].watch);
  pool_bench_close(&bench);
}

/* ---- ends ---- */

static void test_what_is_watched_stays(void **state) {
  (void)state;
  pool_bench bench;
  heard device = {.count = 0}, pool = {.count = 0}, host = {.count = 0};
  gm_error failure;
  open_bench(&bench);
  pool_bench_ok(gm_pressure_watch_pool(bench.pool, hear, &pool, &pool.watch, err));
  assert_int_equal(gm_pool_destroy(bench.pool, &failure), GM_ERR_BUSY);
  assert_non_null(strstr(failure.message, "watches"));
  end(pool.watch);
  pool_bench_ok(gm_pool_destroy(bench.pool, err));
  watch_device(&device, &bench);
  assert_int_equal(gm_device_close(bench.device, &failure), GM_ERR_BUSY);
  end(device.watch);
  pool_bench_ok(gm_device_close(bench.device, err));
  pool_bench_ok(gm_pressure_watch_host(bench.ctx, hear, &host, &host.watch, err));
  assert_int_equal(gm_context_destroy(bench.ctx, &failure), GM_ERR_BUSY);
  end(host.watch);
  pool_bench_ok(gm_context_destroy(bench.ctx, err));
  counted_services_check(&bench.host);
}

typedef struct slow_ear {
  gm_context *ctx;
  _Atomic bool begun, done;
} slow_ear;

static void hear_slowly(void *user, const gm_pressure_event *event) {
  slow_ear *self = user;
  (void)event;
  atomic_store(&self->begun, true);
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  atomic_store(&self->done, true);
}

static void *poll_beside(void *user) {
  gm_context_poll(((slow_ear *)user)->ctx, NULL);
  return NULL;
}

/* A forced end of the pool waits for a look at it, and its watch hears nothing after that. */
static void test_a_forced_end_waits_for_a_look(void **state) {
  (void)state;
  pool_bench bench;
  pthread_t thread;
  gm_pressure_watch *watch = NULL;
  slow_ear ear = {.begun = false};
  open_bench(&bench);
  ear.ctx = bench.ctx;
  taken(&bench, 90 * MIB);
  pool_bench_ok(gm_pressure_watch_pool(bench.pool, hear_slowly, &ear, &watch, err));
  assert_int_equal(pthread_create(&thread, NULL, poll_beside, &ear), 0);
  while (!atomic_load(&ear.begun)) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  pool_bench_ok(gm_pool_destroy_force(bench.pool, err));
  assert_true(atomic_exchange(&ear.done, false));
  assert_int_equal(pthread_join(thread, NULL), 0);
  poll_now(&bench);
  assert_false(atomic_load(&ear.done));
  end(watch);
  pool_bench_ok(gm_device_close(bench.device, err));
  pool_bench_ok(gm_context_destroy(bench.ctx, err));
  counted_services_check(&bench.host);
}

static void test_wrong_use_is_refused(void **state) {
  (void)state;
  pool_bench bench;
  gm_pressure_watch *watch;
  open_bench(&bench);
  assert_int_equal(gm_pressure_watch_device(NULL, hear, NULL, &watch, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pressure_watch_device(bench.device, NULL, NULL, &watch, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pressure_watch_device(bench.device, hear, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pressure_watch_pool(NULL, hear, NULL, &watch, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pressure_watch_host(NULL, hear, NULL, &watch, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_context_poll(NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pressure_watch_end(NULL, NULL), GM_OK);
  poll_now(&bench); /* nobody watches */
  pool_bench_close(&bench);
}

static gm_status attempt_watches(const gm_services *services) {
  const gm_context_params params = {
      .struct_size = sizeof params, .services = services, .backends = "null", .ignore_environment = true};
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pressure_watch *watch = NULL;
  gm_error failure = {.status = GM_OK};
  heard self = {.count = 0};
  gm_status status = gm_context_create(&params, &ctx, &failure);
  if (!status) status = gm_device_open_index(ctx, "null", 0, &device, &failure);
  if (!status) status = gm_pressure_watch_device(device, hear, &self, &watch, &failure);
  if (!status) status = gm_context_poll(ctx, &failure);
  assert_int_equal(gm_pressure_watch_end(watch, NULL), GM_OK);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  return status;
}

static void test_without_host_memory(void **state) {
  (void)state;
  fail_each_allocation(attempt_watches, 3);
}

static void test_a_forked_child_can_only_end(void **state) {
  (void)state;
  pool_bench bench;
  heard device = {.count = 0}, other = {.count = 0};
  open_bench(&bench);
  watch_device(&device, &bench);
  watch_device(&other, &bench);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    gm_error failure;
    const bool refused =
        gm_context_poll(bench.ctx, &failure) == GM_ERR_FORKED &&
        gm_pressure_watch_device(bench.device, hear, &device, &device.watch, &failure) == GM_ERR_FORKED;
    const bool ended = gm_pressure_watch_end(device.watch, NULL) == GM_OK &&
                       gm_pressure_watch_end(other.watch, NULL) == GM_OK &&
                       gm_pool_destroy(bench.pool, NULL) == GM_OK && gm_device_close(bench.device, NULL) == GM_OK &&
                       gm_context_destroy(bench.ctx, NULL) == GM_OK;
    counted_services_check(&bench.host);
    _exit(refused && ended ? 0 : 1);
  }
  int how = 0;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_int_equal(how, 0);
  end(device.watch);
  end(other.watch);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_program_that_grows_hears_all_levels_before_a_refusal),
      cmocka_unit_test(test_a_refusal_is_no_surprise),
      cmocka_unit_test(test_hysteresis),
      cmocka_unit_test(test_the_host_is_heard_of_by_polls),
      cmocka_unit_test(test_a_callback_ends_its_own_watch),
      cmocka_unit_test(test_a_callback_ends_another_watch),
      cmocka_unit_test(test_a_callback_allocates_frees_and_begins_watches),
      cmocka_unit_test(test_what_is_watched_stays),
      cmocka_unit_test(test_a_forced_end_waits_for_a_look),
      cmocka_unit_test(test_wrong_use_is_refused),
      cmocka_unit_test(test_without_host_memory),
      cmocka_unit_test(test_a_forked_child_can_only_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
