/* An engine's queue on Vulkan. One thread holds its lock while another one waits for it inside gm: what the first may
 * call. A lock hook that calls gm itself is played, too. test_pool_locks.c has these cases for every kind of
 * submission. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "gm/pool.h"
#include "support/vulkan_fixture.h"
/* after the fixture */
#include "support/pool_bench.h"
#include "support/vulkan_engine.h"

enum { PATIENCE_S = 20, SMALL = 4096, LARGE = 2 << 20 };

typedef struct queue_test {
  vulkan_fixture fixture;
  vulkan_engine engine;
  counted_services host;
  gm_context *ctx;
  gm_device *device;
  gm_stream *stream;
  gm_pool *pool;
  gm_block kept, of_worker;
  gm_acquire answer;
  void (*call)(struct queue_test *test);
  pthread_mutex_t mutex; /* of what follows */
  pthread_cond_t changed;
  pthread_t worker;
  bool works;                    /* `worker` is set */
  int passes;                    /* of its submissions before one finds the queue locked */
  bool ready, waits, open, done; /* each is set once */
  int by_others;                 /* submissions of other threads meanwhile */
  int collects;                  /* how often the hook may call gm */
} queue_test;

static void raise_flag(queue_test *test, bool *flag) {
  pthread_mutex_lock(&test->mutex);
  *flag = true;
  pthread_cond_broadcast(&test->changed);
  pthread_mutex_unlock(&test->mutex);
}

static bool await_flag(queue_test *test, const bool *flag) {
  struct timespec deadline;
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += PATIENCE_S;
  pthread_mutex_lock(&test->mutex);
  for (int late = 0; !*flag && !late;) late = pthread_cond_timedwait(&test->changed, &test->mutex, &deadline);
  const bool there = *flag;
  pthread_mutex_unlock(&test->mutex);
  return there;
}

/* A collector's destructor does this. */
static void collect(queue_test *test) {
  const gm_request request = {.bytes = LARGE, .stream = test->stream, .flags = GM_INSERT_WAIT};
  gm_block block;
  if (test->kept.bytes) assert_int_equal(gm_free(test->pool, &test->kept, test->stream), GM_OK);
  test->kept.bytes = 0;
  if (gm_alloc(test->pool, &request, &block) <= GM_ACQUIRE_NEEDS_BARRIER) gm_free(test->pool, &block, test->stream);
}

static void queue_lock(void *user) {
  queue_test *test = user;
  if (test->collects > 0) {
    test->collects--;
    collect(test);
  }
  pthread_mutex_lock(&test->mutex);
  if (test->works && !pthread_equal(pthread_self(), test->worker)) {
    test->by_others++;
  } else if (test->works && test->passes-- == 0) {
    test->waits = true;
    pthread_cond_broadcast(&test->changed);
    while (!test->open) pthread_cond_wait(&test->changed, &test->mutex);
  }
  pthread_mutex_unlock(&test->mutex);
}

static void queue_unlock(void *user) { (void)user; }

static void open_gm(queue_test *test, gm_strategy strategy) {
  char libraries[1024] = "";
  const char *path = getenv("GM_VULKAN_LIBRARY");
  if (path) snprintf(libraries, sizeof libraries, "vulkan=%s", path);
  counted_services_init(&test->host);
  const gm_context_params params = {.struct_size = sizeof params,
                                    .services = &test->host.services,
                                    .backends = "vulkan",
                                    .libraries = path ? libraries : NULL,
                                    .ignore_environment = true};
  const gm_pool_params buckets = {.struct_size = sizeof buckets, .strategy = strategy, .no_vmm = true};
  const gm_vulkan_device device = vulkan_engine_native(&test->engine);
  const gm_vulkan_queue queue = {.head = {sizeof queue, GM_API_VULKAN},
                                 .queue = (uintptr_t)test->engine.queue,
                                 .family = test->engine.family,
                                 .may_submit = true,
                                 .lock = queue_lock,
                                 .unlock = queue_unlock,
                                 .user = test};
  pool_bench_ok(gm_context_create(&params, &test->ctx, err));
  pool_bench_ok(gm_device_adopt(test->ctx, &device.head, &test->device, err));
  pool_bench_ok(gm_stream_adopt(test->device, &queue.head, &test->stream, err));
  pool_bench_ok(gm_pool_create(test->device, &buckets, &test->pool, err));
}

static gm_block take(queue_test *test, uint64_t bytes) {
  const gm_request request = {.bytes = bytes, .stream = test->stream};
  gm_block block = {0};
  assert_true(gm_alloc(test->pool, &request, &block) <= GM_ACQUIRE_FRESH);
  return block;
}

static void test_open(queue_test *test, gm_strategy strategy) {
  memset(test, 0, sizeof *test);
  pthread_mutex_init(&test->mutex, NULL);
  pthread_cond_init(&test->changed, NULL);
  vulkan_fixture_init(&test->fixture, "");
  vulkan_engine_open(&test->engine, &test->fixture.host);
  open_gm(test, strategy);
  test->kept = take(test, SMALL);
}

static void test_close(queue_test *test) {
  if (test->kept.bytes) gm_free(test->pool, &test->kept, NULL);
  if (test->of_worker.bytes) gm_free(test->pool, &test->of_worker, NULL);
  pool_bench_ok(gm_stream_close(test->stream, err));
  pool_bench_ok(gm_pool_destroy(test->pool, err));
  pool_bench_ok(gm_device_close(test->device, err));
  pool_bench_ok(gm_context_destroy(test->ctx, err));
  counted_services_check(&test->host);
  vulkan_engine_close(&test->engine);
  vulkan_fixture_close(&test->fixture);
}

/* The queue's work ends when the host says so. */
static void hold_queue(const queue_test *test) {
  const uint64_t value = 1;
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  const VkTimelineSemaphoreSubmitInfo values = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                .waitSemaphoreValueCount = 1,
                                                .pWaitSemaphoreValues = &value};
  const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                             .pNext = &values,
                             .waitSemaphoreCount = 1,
                             .pWaitSemaphores = &test->engine.timeline,
                             .pWaitDstStageMask = &stage};
  assert_int_equal(test->engine.vk.vkQueueSubmit(test->engine.queue, 1, &info, VK_NULL_HANDLE), VK_SUCCESS);
}

static void let_queue_go(const queue_test *test) {
  const VkSemaphoreSignalInfo info = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = test->engine.timeline, .value = 1};
  const PFN_vkSignalSemaphore signal =
      (PFN_vkSignalSemaphore)test->engine.vk.vkGetInstanceProcAddr(test->engine.instance, "vkSignalSemaphore");
  assert_non_null(signal);
  assert_int_equal(signal(test->engine.device, &info), VK_SUCCESS);
}

/* A block of the stream's own, whose work is not done: the request asks the queue how far it is, then submits a
 * barrier. */
static void *work(void *user) {
  queue_test *test = user;
  const gm_request request = {.bytes = LARGE, .stream = test->stream, .flags = GM_INSERT_WAIT};
  test->of_worker = take(test, SMALL);
  gm_block block = take(test, LARGE);
  hold_queue(test);
  gm_free(test->pool, &block, test->stream);
  pthread_mutex_lock(&test->mutex);
  test->worker = pthread_self();
  test->works = true;
  pthread_mutex_unlock(&test->mutex);
  test->answer = gm_alloc(test->pool, &request, &block);
  if (test->answer <= GM_ACQUIRE_NEEDS_BARRIER) gm_free(test->pool, &block, test->stream);
  return NULL;
}

static void *hold(void *user) {
  queue_test *test = user;
  test->call(test);
  raise_flag(test, &test->done);
  return NULL;
}

static void play(gm_strategy strategy, int passes, void (*call)(queue_test *test)) {
  queue_test test;
  pthread_t worker, holder;
  test_open(&test, strategy);
  test.passes = passes;
  test.call = call;
  assert_int_equal(pthread_create(&worker, NULL, work, &test), 0);
  const bool waits = await_flag(&test, &test.waits);
  assert_int_equal(pthread_create(&holder, NULL, hold, &test), 0);
  const bool returned = await_flag(&test, &test.done);
  const int by_others = test.by_others;
  raise_flag(&test, &test.open);
  pthread_join(holder, NULL);
  pthread_join(worker, NULL);
  test.works = false;
  let_queue_go(&test);
  assert_true(waits);
  assert_true(returned);
  assert_int_equal(by_others, 0);
  assert_int_equal(test.answer, GM_ACQUIRE_OK);
  test_close(&test);
}

static void play_all(void (*call)(queue_test *test)) {
  for (int passes = 0; passes < 2; passes++) {
    play(GM_STRATEGY_BUCKET, passes, call);
    play(GM_STRATEGY_BEST_FIT, passes, call);
  }
}

static void free_own(queue_test *test) {
  assert_int_equal(gm_free(test->pool, &test->kept, test->stream), GM_OK);
  test->kept.bytes = 0;
}

static void free_others(queue_test *test) {
  assert_int_equal(gm_free(test->pool, &test->of_worker, test->stream), GM_OK);
  test->of_worker.bytes = 0;
}

static void ask(queue_test *test) {
  gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}};
  gm_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_block_native(test->pool, &test->kept, &native.head, NULL), GM_OK);
  assert_int_equal(gm_block_native(test->pool, &test->of_worker, &native.head, NULL), GM_OK);
  assert_int_equal(gm_use_on(test->pool, &test->of_worker, test->stream), GM_OK);
  gm_pool_stats(test->pool, &stats);
  gm_pool_trim(test->pool, 0);
}

static void test_a_free_under_the_queue_lock_returns(void **state) {
  (void)state;
  play_all(free_own);
  play_all(free_others);
}

static void test_what_asks_under_the_queue_lock_returns(void **state) {
  (void)state;
  play_all(ask);
}

static void *play_collector(void *user) {
  queue_test *test = user;
  const gm_request request = {.bytes = LARGE, .stream = test->stream, .flags = GM_INSERT_WAIT};
  gm_block block = take(test, LARGE);
  hold_queue(test);
  gm_free(test->pool, &block, test->stream);
  test->collects = 2; /* in one hook, and in that of what it calls */
  test->answer = gm_alloc(test->pool, &request, &block);
  gm_free(test->pool, &block, test->stream);
  raise_flag(test, &test->done);
  return NULL;
}

static void test_a_hook_may_call_gm(void **state) {
  (void)state;
  for (int strategy = GM_STRATEGY_BUCKET; strategy <= GM_STRATEGY_BEST_FIT; strategy++) {
    queue_test test;
    pthread_t thread;
    test_open(&test, (gm_strategy)strategy);
    assert_int_equal(pthread_create(&thread, NULL, play_collector, &test), 0);
    assert_true(await_flag(&test, &test.done));
    pthread_join(thread, NULL);
    assert_true(test.answer <= GM_ACQUIRE_FRESH);
    let_queue_go(&test);
    test_close(&test);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_free_under_the_queue_lock_returns),
      cmocka_unit_test(test_what_asks_under_the_queue_lock_returns),
      cmocka_unit_test(test_a_hook_may_call_gm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
