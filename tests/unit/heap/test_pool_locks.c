/* No lock of gm is held where the driver is called for a submission. An engine's hook may wait there, for a lock that
 * another thread holds while it calls gm; and it may call gm itself. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/order_bench.h"
/* after the bench */
#include "gm/cleanup.h"

enum { PATIENCE_S = 20, SMALL = 4096, LARGE = 2 << 20 };

static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

/* ---- the engine's lock: a door that the worker finds shut at one of its submissions ---- */

static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_t worker;
  int passes;            /* submissions of the worker before the door is shut */
  bool waits, open;      /* the worker is at the door; it is open again */
  bool done;             /* the holder has made its call */
  atomic_int by_holders; /* submissions of other threads meanwhile */
} door;

static bool door_await(const bool *condition) {
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += PATIENCE_S;
  int late = 0;
  while (!*condition && !late) late = pthread_cond_timedwait(&door.changed, &door.mutex, &deadline);
  return *condition;
}

static void door_submit(void) {
  pthread_mutex_lock(&door.mutex);
  if (!pthread_equal(pthread_self(), door.worker)) {
    atomic_fetch_add(&door.by_holders, 1);
  } else if (door.passes-- == 0) {
    door.waits = true;
    pthread_cond_broadcast(&door.changed);
    while (!door.open) pthread_cond_wait(&door.changed, &door.mutex);
  }
  pthread_mutex_unlock(&door.mutex);
}

static void door_set(bool *what) {
  pthread_mutex_lock(&door.mutex);
  *what = true;
  pthread_cond_broadcast(&door.changed);
  pthread_mutex_unlock(&door.mutex);
}

static bool door_wait(const bool *what) {
  pthread_mutex_lock(&door.mutex);
  const bool there = door_await(what);
  pthread_mutex_unlock(&door.mutex);
  return there;
}

/* ---- the scene: a pool, and a thread whose request submits twice ---- */

typedef struct scene {
  order_bench bench;
  gm_block kept, of_worker; /* blocks that are out, of this thread and of the worker */
  gm_acquire answer;
  bool own;   /* the worker asks on the stream of the free: a barrier; else a wait for another stream */
  bool ready; /* all is as it should be before the request */
  bool go;
  pthread_t worker, holder;
  void (*call)(struct scene *at);
} scene;

/* The pool's memory is out but for one block, which `a` still works on. */
static void *scene_worker(void *user) {
  scene *at = user;
  gm_pool *pool = at->bench.base.pool;
  gm_stream *stream = at->own ? at->bench.a : at->bench.b;
  const gm_request small = {.bytes = SMALL, .stream = stream}, large = {.bytes = LARGE, .stream = at->bench.a},
                   again = {.bytes = LARGE, .stream = stream, .flags = GM_INSERT_WAIT};
  gm_block block = {0};
  gm_alloc(pool, &small, &at->of_worker);
  gm_alloc(pool, &large, &block);
  work(&at->bench, at->bench.a);
  gm_free(pool, &block, at->bench.a);
  gm_pool_set_max_bytes(pool, pool_bench_stats(&at->bench.base).reserved_bytes, NULL);
  door_set(&at->ready);
  door_wait(&at->go);
  at->answer = gm_alloc(pool, &again, &block);
  if (at->answer <= GM_ACQUIRE_NEEDS_BARRIER) gm_free(pool, &block, stream);
  return NULL;
}

/* The worker's request finds the door shut after `passes` submissions. */
static void scene_open(scene *at, gm_strategy strategy, bool own, int passes) {
  memset(at, 0, sizeof *at);
  memset(&door, 0, sizeof door);
  pthread_mutex_init(&door.mutex, NULL);
  pthread_cond_init(&door.changed, NULL);
  at->own = own;
  order_open_as(&at->bench, GM_STREAM_FIFO_IF_BARRIER, 0, strategy);
  at->kept = take(&at->bench, at->bench.a, 0, GM_ACQUIRE_FRESH);
  assert_int_equal(pthread_create(&at->worker, NULL, scene_worker, at), 0);
  assert_true(door_wait(&at->ready));
  door.worker = at->worker;
  door.passes = passes;
  shape.submit = door_submit;
}

static void scene_close(scene *at) {
  gm_pool *pool = at->bench.base.pool;
  pthread_join(at->worker, NULL);
  assert_int_equal(at->answer, GM_ACQUIRE_OK);
  shape.submit = NULL;
  if (at->kept.bytes) assert_int_equal(gm_free(pool, &at->kept, NULL), GM_OK);
  if (at->of_worker.bytes) assert_int_equal(gm_free(pool, &at->of_worker, NULL), GM_OK);
  order_close(&at->bench);
}

/* ---- what the holder of the lock may call ---- */

static void give_back(scene *at, gm_block *block, gm_stream *stream) {
  assert_int_equal(gm_free(at->bench.base.pool, block, stream), GM_OK);
  *block = (gm_block){0};
}

static void call_free_own(scene *at) { give_back(at, &at->kept, at->bench.a); }
static void call_free_own_by_host(scene *at) { give_back(at, &at->kept, NULL); }
static void call_free_of_worker(scene *at) { give_back(at, &at->of_worker, at->bench.a); }
static void call_free_of_worker_by_host(scene *at) { give_back(at, &at->of_worker, NULL); }

static void call_block_memory(scene *at) {
  gm_memory memory;
  uint64_t offset;
  assert_int_equal(gm_block_memory(at->bench.base.pool, &at->kept, &memory, &offset), GM_OK);
  assert_int_equal(gm_block_memory(at->bench.base.pool, &at->of_worker, &memory, &offset), GM_OK);
}

static void call_use_on(scene *at) {
  assert_int_equal(gm_use_on(at->bench.base.pool, &at->kept, at->bench.b), GM_OK);
  assert_int_equal(gm_use_on(at->bench.base.pool, &at->of_worker, at->bench.b), GM_OK);
}

static void call_stats(scene *at) {
  gm_stats stats = {.struct_size = sizeof stats};
  assert_true(pool_bench_stats(&at->bench.base).in_use_bytes > 0);
  assert_int_equal(gm_device_stats(at->bench.base.device, &stats, NULL), GM_OK);
}

static void call_block_of(scene *at) {
  gm_block found;
  assert_int_equal(gm_block_of(at->bench.base.pool, (const void *)(uintptr_t)at->of_worker.address, &found), GM_OK);
}

static void call_explain(scene *at) {
  const gm_request request = {.bytes = SMALL, .stream = at->bench.b};
  gm_explanation why = {.struct_size = sizeof why};
  assert_int_equal(gm_explain(at->bench.base.pool, &request, &why, NULL), GM_OK);
}

static void call_trim(scene *at) { gm_pool_trim(at->bench.base.pool, 0); }
static void call_collect(scene *at) { gm_pool_collect(at->bench.base.pool); }

/* Memory that the host freed serves without a word to the driver. */
static void call_alloc_pooled(scene *at) {
  give_back(at, &at->kept, NULL);
  at->kept = take(&at->bench, at->bench.b, 0, GM_ACQUIRE_OK);
}

static void *scene_holder(void *user) {
  scene *at = user;
  at->call(at);
  door_set(&door.done);
  return NULL;
}

/* The call is made by a thread of its own, so that one that never returns is a failure, and no hanging test. How often
 * it submitted. */
static int play(gm_strategy strategy, bool own, int passes, void (*call)(scene *at)) {
  scene at;
  scene_open(&at, strategy, own, passes);
  door_set(&at.go);
  const bool at_door = door_wait(&door.waits);
  at.call = call;
  assert_int_equal(pthread_create(&at.holder, NULL, scene_holder, &at), 0);
  const bool returned = door_wait(&door.done);
  const int submitted = atomic_load(&door.by_holders);
  door_set(&door.open);
  pthread_join(at.holder, NULL);
  assert_true(at_door);
  assert_true(returned);
  scene_close(&at);
  return submitted;
}

static void play_all(void (*call)(scene *at)) {
  for (size_t s = 0; s < sizeof strategies / sizeof strategies[0]; s++) {
    for (int passes = 0; passes < 2; passes++) {
      assert_int_equal(play(strategies[s], true, passes, call), 0);
      assert_int_equal(play(strategies[s], false, passes, call), 0);
    }
  }
}

#define TEST_OF(name)                               \
  static void test_##name##_returns(void **state) { \
    (void)state;                                    \
    play_all(call_##name);                          \
  }

TEST_OF(free_own)
TEST_OF(free_own_by_host)
TEST_OF(free_of_worker)
TEST_OF(free_of_worker_by_host)
TEST_OF(block_memory)
TEST_OF(use_on)
TEST_OF(stats)
TEST_OF(block_of)
TEST_OF(explain)
TEST_OF(trim)
TEST_OF(collect)
TEST_OF(alloc_pooled)

/* ---- a hook that calls gm itself ---- */

static struct {
  order_bench *bench;
  gm_block block;
  int left; /* how often it may */
} collector;

/* A collector's destructor frees what is dead; what it allocates meanwhile comes back at once. */
static void collector_submit(void) {
  const gm_request request = {.bytes = LARGE, .stream = collector.bench->a, .flags = GM_INSERT_WAIT};
  gm_pool *pool = collector.bench->base.pool;
  gm_block block;
  if (collector.left-- <= 0) return;
  if (collector.block.bytes) assert_int_equal(gm_free(pool, &collector.block, collector.bench->a), GM_OK);
  collector.block = (gm_block){0};
  if (gm_alloc(pool, &request, &block) <= GM_ACQUIRE_NEEDS_BARRIER) gm_free(pool, &block, collector.bench->a);
}

static void *play_collector(void *user) {
  order_bench *bench = user;
  gm_pool *pool = bench->base.pool;
  const gm_request request = {.bytes = LARGE, .stream = bench->a, .flags = GM_INSERT_WAIT};
  gm_block block;
  for (int i = 0; i < 4; i++) {
    collector.left = i;
    gm_alloc(pool, &request, &collector.block);
    gm_alloc(pool, &request, &block);
    work(bench, bench->a);
    gm_free(pool, &block, bench->a);
    shape.submit = collector_submit;
    gm_alloc(pool, &request, &block);
    shape.submit = NULL;
    gm_free(pool, &block, bench->a);
    if (collector.block.bytes) gm_free(pool, &collector.block, bench->a);
    collector.block = (gm_block){0};
  }
  door_set(&door.done);
  return NULL;
}

static void test_a_hook_may_free_and_allocate(void **state) {
  (void)state;
  for (size_t s = 0; s < sizeof strategies / sizeof strategies[0]; s++) {
    order_bench bench;
    pthread_t thread;
    memset(&door, 0, sizeof door);
    pthread_mutex_init(&door.mutex, NULL);
    pthread_cond_init(&door.changed, NULL);
    memset(&collector, 0, sizeof collector);
    collector.bench = &bench;
    order_open_as(&bench, GM_STREAM_FIFO_IF_BARRIER, 0, strategies[s]);
    assert_int_equal(pthread_create(&thread, NULL, play_collector, &bench), 0);
    assert_true(door_wait(&door.done));
    pthread_join(thread, NULL);
    order_close(&bench);
  }
}

/* ---- frees, and streams that close ---- */

static void count_submit(void) { atomic_fetch_add(&door.by_holders, 1); }

static void test_a_free_submits_nothing(void **state) {
  (void)state;
  enum { MANY = 100 };
  for (size_t s = 0; s < sizeof strategies / sizeof strategies[0]; s++) {
    order_bench bench;
    gm_block blocks[MANY];
    order_open_as(&bench, GM_STREAM_FIFO_IF_BARRIER, 0, strategies[s]);
    const gm_request request = {.bytes = SMALL, .stream = bench.a};
    for (int i = 0; i < MANY; i++) assert_true(gm_alloc(bench.base.pool, &request, &blocks[i]) <= GM_ACQUIRE_FRESH);
    work(&bench, bench.a);
    atomic_store(&door.by_holders, 0);
    shape.submit = count_submit;
    for (int i = 0; i < MANY; i++) give(&bench, &blocks[i], i % 2 ? bench.a : bench.b); /* more than is kept */
    assert_int_equal(atomic_load(&door.by_holders), 0);
    shape.submit = NULL;
    order_close(&bench);
  }
}

static void call_close(scene *at) {
  gm_error err = {.status = GM_OK};
  assert_int_equal(gm_stream_close(at->bench.a, &err), GM_ERR_BUSY);
}

/* The worker asks `a` how far it is, for a request on `b`. Afterwards `a` closes as ever. */
static void test_a_stream_in_use_for_another_does_not_close(void **state) {
  (void)state;
  play(GM_STRATEGY_BUCKET, false, 0, call_close);
  play(GM_STRATEGY_BEST_FIT, false, 0, call_close);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_free_own_returns),
      cmocka_unit_test(test_free_own_by_host_returns),
      cmocka_unit_test(test_free_of_worker_returns),
      cmocka_unit_test(test_free_of_worker_by_host_returns),
      cmocka_unit_test(test_block_memory_returns),
      cmocka_unit_test(test_use_on_returns),
      cmocka_unit_test(test_stats_returns),
      cmocka_unit_test(test_block_of_returns),
      cmocka_unit_test(test_explain_returns),
      cmocka_unit_test(test_trim_returns),
      cmocka_unit_test(test_collect_returns),
      cmocka_unit_test(test_alloc_pooled_returns),
      cmocka_unit_test(test_a_hook_may_free_and_allocate),
      cmocka_unit_test(test_a_free_submits_nothing),
      cmocka_unit_test(test_a_stream_in_use_for_another_does_not_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
