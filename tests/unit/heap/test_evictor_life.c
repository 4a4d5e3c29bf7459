/* Evictors and threads, and how evictors begin and end. */
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

#include "support/evicting_cache.h"
#include "support/fail_each.h"

/* ---- threads ---- */

static struct {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool inside, leave;
} gate = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static atomic_int gate_left;

static void gate_set(bool *what) {
  pthread_mutex_lock(&gate.mutex);
  *what = true;
  pthread_cond_broadcast(&gate.changed);
  pthread_mutex_unlock(&gate.mutex);
}

static void gate_await(const bool *what) {
  pthread_mutex_lock(&gate.mutex);
  while (!*what) pthread_cond_wait(&gate.changed, &gate.mutex);
  pthread_mutex_unlock(&gate.mutex);
}

static void stay_inside(cache *self) {
  (void)self;
  gate_set(&gate.inside);
  gate_await(&gate.leave);
  atomic_store(&gate_left, 1);
}

static void *ask_on_thread(void *pool) {
  gm_block block;
  if (!gm_acquired(ask(pool, 4 * MIB, &block))) return NULL;
  return gm_free(pool, &block, NULL) == GM_OK ? pool : NULL;
}

static void *let_go(void *unused) {
  const struct timespec moment = {.tv_nsec = 20000000};
  (void)unused;
  nanosleep(&moment, NULL);
  gate_set(&gate.leave);
  return NULL;
}

/* Once it returned, no thread is in the evictor's functions. */
static void test_unregister_waits_for_other_threads(void **state) {
  (void)state;
  pool_bench bench;
  pthread_t asks, lets;
  void *served;
  cache own = {.extra = stay_inside};
  pool_bench_open(&bench, "null", "null:capacity=16M", &kinds[2]);
  cache_register(&own, bench.device, 0, 0);
  cache_fill(&own, bench.pool, 14);
  assert_int_equal(pthread_create(&asks, NULL, ask_on_thread, bench.pool), 0);
  gate_await(&gate.inside);
  assert_int_equal(pthread_create(&lets, NULL, let_go, NULL), 0);
  pool_bench_ok(gm_evictor_unregister(own.evictor, err));
  assert_int_equal(atomic_load(&gate_left), 1);
  own.evictor = NULL;
  assert_int_equal(pthread_join(asks, &served), 0);
  assert_int_equal(pthread_join(lets, NULL), 0);
  assert_ptr_equal(served, bench.pool);
  cache_end(&own);
  pool_bench_close(&bench);
}

typedef struct shared_cache {
  pthread_mutex_t mutex;
  cache cache;
} shared_cache;

static uint64_t shared_evict(void *user, uint64_t bytes) {
  shared_cache *shared = user;
  pthread_mutex_lock(&shared->mutex);
  const uint64_t freed = cache_evict(&shared->cache, bytes);
  gm_block *next = &shared->cache.blocks[shared->cache.count];
  if (freed && gm_acquired(ask(shared->cache.pool, MIB, next))) shared->cache.count++;
  pthread_mutex_unlock(&shared->mutex);
  return freed;
}

static void *ask_often(void *pool) {
  for (int i = 0; i < 200; i++) {
    gm_block block;
    if (gm_acquired(ask(pool, 3 * MIB, &block))) assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
  }
  return NULL;
}

static void *register_often(void *device) {
  for (int i = 0; i < 200; i++) {
    uint32_t calls = 0;
    gm_evictor *evictor;
    const gm_evictor_params params = {.struct_size = sizeof params, .priority = -1, .evict = never, .user = &calls};
    assert_int_equal(gm_evictor_register(device, &params, &evictor, NULL), GM_OK);
    assert_int_equal(gm_evictor_unregister(evictor, NULL), GM_OK);
  }
  return NULL;
}

/* Two threads lack memory while a third one registers and unregisters. */
static void test_threads(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    pool_bench bench;
    pthread_t threads[3];
    shared_cache shared = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    pool_bench_open(&bench, "null", "null:capacity=16M", &kinds[i]);
    cache_fill(&shared.cache, bench.pool, 14);
    const gm_evictor_params params = {.struct_size = sizeof params, .evict = shared_evict, .user = &shared};
    pool_bench_ok(gm_evictor_register(bench.device, &params, &shared.cache.evictor, err));
    assert_int_equal(pthread_create(&threads[0], NULL, ask_often, bench.pool), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, ask_often, bench.pool), 0);
    assert_int_equal(pthread_create(&threads[2], NULL, register_often, bench.device), 0);
    for (int t = 0; t < 3; t++) assert_int_equal(pthread_join(threads[t], NULL), 0);
    assert_true(shared.cache.calls > 0);
    cache_end(&shared.cache);
    pool_bench_close(&bench);
  }
}

/* ---- life ---- */

static void test_a_device_with_evictors_does_not_close(void **state) {
  (void)state;
  pool_bench bench;
  gm_error why = {.status = GM_OK};
  cache own = {0};
  pool_bench_open(&bench, "null", NULL, NULL);
  cache_register(&own, bench.device, 0, 0);
  pool_bench_ok(gm_pool_destroy(bench.pool, err));
  bench.pool = NULL;
  assert_int_equal(gm_device_close(bench.device, &why), GM_ERR_BUSY);
  assert_non_null(strstr(why.message, "evictors"));
  cache_end(&own);
  pool_bench_close(&bench);
}

static int end_in_child(pool_bench *bench, gm_evictor *evictor) {
  gm_evictor *more = NULL;
  const gm_evictor_params params = {.struct_size = sizeof params, .evict = never};
  if (gm_evictor_register(bench->device, &params, &more, NULL) != GM_ERR_FORKED || more) return 1;
  if (gm_evictor_unregister(evictor, NULL)) return 2;
  if (gm_pool_destroy(bench->pool, NULL) || gm_device_close(bench->device, NULL)) return 3;
  return gm_context_destroy(bench->ctx, NULL) ? 4 : 0;
}

static void test_a_forked_child_ends_it(void **state) {
  (void)state;
  pool_bench bench;
  cache own = {0};
  int status = 0;
  pool_bench_open(&bench, "null", NULL, NULL);
  cache_register(&own, bench.device, 0, 0);
  const pid_t child = fork();
  if (child == 0) _exit(end_in_child(&bench, own.evictor));
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  cache_end(&own);
  pool_bench_close(&bench);
}

static gm_status register_once(const gm_services *services) {
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_evictor *evictor = NULL;
  const gm_context_params params = {.struct_size = sizeof params, .services = services, .ignore_environment = true};
  const gm_evictor_params none = {.struct_size = sizeof none, .evict = never};
  gm_status status = gm_context_create(&params, &ctx, NULL);
  if (!status) status = gm_device_open_index(ctx, "null", 0, &device, NULL);
  if (!status) status = gm_evictor_register(device, &none, &evictor, NULL);
  assert_int_equal(gm_evictor_unregister(evictor, NULL), GM_OK);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  return status;
}

static void test_no_host_memory(void **state) {
  (void)state;
  fail_each_allocation(register_once, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unregister_waits_for_other_threads),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_a_device_with_evictors_does_not_close),
      cmocka_unit_test(test_a_forked_child_ends_it),
      cmocka_unit_test(test_no_host_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
