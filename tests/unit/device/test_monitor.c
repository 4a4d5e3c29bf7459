/* The monitor's thread, and watches among threads. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
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
#define MS (UINT64_C(1000000))

typedef struct heard {
  gm_context *ctx;
  _Atomic int count, level;
  _Atomic bool inside, leave, blocked;
  gm_pressure_watch *watch;
} heard;

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL); }

static void hear(void *user, const gm_pressure_event *event) {
  heard *self = user;
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  atomic_store(&self->blocked, sigismember(&mask, SIGUSR1) == 1 && sigismember(&mask, SIGINT) == 1);
  atomic_store(&self->level, (int)event->to);
  atomic_fetch_add(&self->count, 1);
}

static void open_bench(pool_bench *bench) { pool_bench_open(bench, "null", "null:capacity=100M", NULL); }

static gm_status watch_device(pool_bench *bench, gm_pressure_callback callback, heard *self) {
  self->ctx = bench->ctx;
  return gm_pressure_watch_device(bench->device, callback, self, &self->watch, NULL);
}

static gm_block taken(const pool_bench *bench, uint64_t bytes) {
  const gm_request request = {.bytes = bytes, .flags = GM_DEDICATED};
  gm_block block;
  assert_true(gm_alloc(bench->pool, &request, &block) <= GM_ACQUIRE_FRESH);
  return block;
}

static void give(const pool_bench *bench, const gm_block *block) {
  assert_int_equal(gm_free(bench->pool, block, NULL), GM_OK);
}

static void await_level(heard *self, gm_pressure_level level) {
  while (atomic_load(&self->level) != (int)level) nap();
}

static void test_the_monitor_tells_of_relief(void **state) {
  (void)state;
  pool_bench bench;
  heard self = {.count = 0};
  open_bench(&bench);
  assert_int_equal(watch_device(&bench, hear, &self), GM_OK);
  gm_block block = taken(&bench, 90 * MIB);
  assert_int_equal(atomic_load(&self.count), 1);
  give(&bench, &block);
  pool_bench_ok(gm_monitor_start(bench.ctx, 1, err));
  await_level(&self, GM_PRESSURE_LOW);
  assert_true(atomic_load(&self.blocked));
  pool_bench_ok(gm_monitor_start(bench.ctx, 3600000 * MS, err)); /* a new interval; a thread that waits still stops */
  pool_bench_ok(gm_monitor_stop(bench.ctx, err));
  pool_bench_ok(gm_monitor_stop(bench.ctx, err));
  assert_int_equal(atomic_load(&self.count), 2);
  pool_bench_ok(gm_monitor_start(bench.ctx, 0, err));
  pool_bench_ok(gm_pressure_watch_end(self.watch, err));
  pool_bench_close(&bench); /* which stops the monitor */
}

static void hear_and_stop(void *user, const gm_pressure_event *event) {
  heard *self = user;
  assert_int_equal(gm_monitor_stop(self->ctx, NULL), GM_OK);
  hear(user, event);
}

static void test_a_callback_stops_the_monitor(void **state) {
  (void)state;
  for (int turn = 0; turn < 2; turn++) {
    pool_bench bench;
    heard self = {.count = 0};
    open_bench(&bench);
    gm_block block = taken(&bench, 90 * MIB);
    assert_int_equal(watch_device(&bench, hear_and_stop, &self), GM_OK);
    pool_bench_ok(gm_monitor_start(bench.ctx, MS, err));
    await_level(&self, GM_PRESSURE_HIGH);
    give(&bench, &block);
    if (turn == 0) {
      pool_bench_ok(gm_monitor_start(bench.ctx, MS, err)); /* whether its thread has ended by now or not */
      await_level(&self, GM_PRESSURE_LOW);
    }
    pool_bench_ok(gm_pressure_watch_end(self.watch, err));
    pool_bench_close(&bench);
  }
}

/* ---- ending a watch that another thread runs ---- */

static void hear_until_told(void *user, const gm_pressure_event *event) {
  heard *self = user;
  (void)event;
  atomic_store(&self->inside, true);
  while (!atomic_load(&self->leave)) nap();
  atomic_store(&self->inside, false);
}

static void *let_leave(void *user) {
  heard *self = user;
  for (int i = 0; i < 10; i++) nap();
  atomic_store(&self->leave, true);
  return NULL;
}

static void test_an_end_waits_for_a_running_call(void **state) {
  (void)state;
  pool_bench bench;
  heard self = {.count = 0};
  pthread_t helper;
  open_bench(&bench);
  gm_block block = taken(&bench, 90 * MIB);
  assert_int_equal(watch_device(&bench, hear_until_told, &self), GM_OK);
  pool_bench_ok(gm_monitor_start(bench.ctx, MS, err));
  while (!atomic_load(&self.inside)) nap();
  pool_bench_ok(gm_context_poll(bench.ctx, err)); /* nobody waits for the callback */
  give(&bench, &block);
  block = taken(&bench, 89 * MIB);
  assert_int_equal(pthread_create(&helper, NULL, let_leave, &self), 0);
  pool_bench_ok(gm_pressure_watch_end(self.watch, err));
  assert_false(atomic_load(&self.inside));
  pthread_join(helper, NULL);
  give(&bench, &block);
  pool_bench_close(&bench);
}

/* A callback that ends its watch while another thread ends it, too. */
static void hear_and_end(void *user, const gm_pressure_event *event) {
  heard *self = user;
  atomic_store(&self->inside, true);
  while (!atomic_load(&self->leave)) nap();
  assert_int_equal(gm_pressure_watch_end(event->watch, NULL), GM_OK);
}

static void test_two_ends_at_once(void **state) {
  (void)state;
  pool_bench bench;
  heard self = {.count = 0};
  pthread_t helper;
  open_bench(&bench);
  gm_block block = taken(&bench, 90 * MIB);
  assert_int_equal(watch_device(&bench, hear_and_end, &self), GM_OK);
  pool_bench_ok(gm_monitor_start(bench.ctx, MS, err));
  while (!atomic_load(&self.inside)) nap();
  assert_int_equal(pthread_create(&helper, NULL, let_leave, &self), 0);
  pool_bench_ok(gm_pressure_watch_end(self.watch, err));
  pthread_join(helper, NULL);
  give(&bench, &block);
  pool_bench_close(&bench);
}

/* ---- many threads ---- */

enum { THREADS = 4, TURNS = 60 };

static void *work(void *user) {
  pool_bench *bench = user;
  for (int i = 0; i < TURNS; i++) {
    heard self = {.count = 0};
    const gm_request request = {.bytes = (uint64_t)(16 + i % 3) * MIB, .flags = GM_DEDICATED};
    gm_block block;
    if (watch_device(bench, hear, &self)) return NULL;
    if (gm_alloc(bench->pool, &request, &block) <= GM_ACQUIRE_FRESH) gm_free(bench->pool, &block, NULL);
    if (i % 4 == 0) gm_pool_trim(bench->pool, 0);
    if (i % 8 == 0 && gm_context_poll(bench->ctx, NULL)) return NULL;
    if (i % 16 == 0) gm_monitor_start(bench->ctx, MS, NULL); /* BUSY: another thread stops it */
    if (i % 16 == 8 && gm_monitor_stop(bench->ctx, NULL)) return NULL;
    if (gm_pressure_watch_end(self.watch, NULL)) return NULL;
  }
  return bench;
}

static void test_threads_watch_grow_and_end(void **state) {
  (void)state;
  pool_bench bench;
  pthread_t threads[THREADS];
  void *answer;
  open_bench(&bench);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &bench), 0);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], &answer);
    assert_ptr_equal(answer, &bench);
  }
  pool_bench_close(&bench);
}

/* ---- failures ---- */

static gm_status attempt_monitor(const gm_services *services) {
  const gm_context_params params = {.struct_size = sizeof params, .services = services, .ignore_environment = true};
  gm_context *ctx = NULL;
  gm_status status = gm_context_create(&params, &ctx, NULL);
  if (!status) status = gm_monitor_start(ctx, MS, NULL);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  return status;
}

static void test_without_host_memory(void **state) {
  (void)state;
  fail_each_allocation(attempt_monitor, 3);
}

static void test_wrong_use_is_refused(void **state) {
  (void)state;
  pool_bench bench;
  assert_int_equal(gm_monitor_start(NULL, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_monitor_stop(NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  open_bench(&bench);
  assert_int_equal(gm_monitor_stop(bench.ctx, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_a_forked_child_has_no_monitor(void **state) {
  (void)state;
  pool_bench bench;
  heard self = {.count = 0};
  open_bench(&bench);
  assert_int_equal(watch_device(&bench, hear, &self), GM_OK);
  pool_bench_ok(gm_monitor_start(bench.ctx, MS, err));
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    const bool right =
        gm_monitor_start(bench.ctx, MS, NULL) == GM_ERR_FORKED && gm_monitor_stop(bench.ctx, NULL) == GM_OK;
    const bool ended = gm_pressure_watch_end(self.watch, NULL) == GM_OK && gm_pool_destroy(bench.pool, NULL) == GM_OK &&
                       gm_device_close(bench.device, NULL) == GM_OK && gm_context_destroy(bench.ctx, NULL) == GM_OK;
    _exit(right && ended ? 0 : 1);
  }
  int how = 0;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_int_equal(how, 0);
  pool_bench_ok(gm_pressure_watch_end(self.watch, err));
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_monitor_tells_of_relief),
      cmocka_unit_test(test_a_callback_stops_the_monitor),
      cmocka_unit_test(test_an_end_waits_for_a_running_call),
      cmocka_unit_test(test_two_ends_at_once),
      cmocka_unit_test(test_threads_watch_grow_and_end),
      cmocka_unit_test(test_without_host_memory),
      cmocka_unit_test(test_wrong_use_is_refused),
      cmocka_unit_test(test_a_forked_child_has_no_monitor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
