/* An engine's device without timeline semaphores: gm tells by fences how far a queue is, and uses them again. No queue
 * waits for a fence. That pools then serve other memory is in tests/unit/order/test_no_waits.c. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/vulkan_fixture.h"
/* after the fixture */
#include "gm/copy.h"
#include "support/named_libraries.h"
#include "support/pool_bench.h"
#include "support/vulkan_engine.h"

enum { BYTES = 1 << 20, MANY = 300, THREADS = 4 };

typedef struct fence_test {
  pool_bench bench;
  vulkan_fixture fixture;
  vulkan_engine engine;
  gm_stream *stream;
} fence_test;

static PFN_vkCreateFence real_create;
static PFN_vkResetFences real_reset;
static atomic_int made, reset;

static VKAPI_ATTR VkResult VKAPI_CALL count_create(VkDevice device, const VkFenceCreateInfo *info,
                                                   const VkAllocationCallbacks *callbacks, VkFence *out) {
  atomic_fetch_add(&made, 1);
  return real_create(device, info, callbacks, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL count_reset(VkDevice device, uint32_t count, const VkFence *fences) {
  atomic_fetch_add(&reset, 1);
  return real_reset(device, count, fences);
}

static void *count_fences(void *user, const char *backend, const char *symbol, void *real) {
  void *mine = real;
  (void)user, (void)backend;
  if (!strcmp(symbol, "vkCreateFence")) {
    const PFN_vkCreateFence entry = count_create;
    memcpy(&real_create, &real, sizeof real_create);
    memcpy(&mine, &entry, sizeof mine);
  } else if (!strcmp(symbol, "vkResetFences")) {
    const PFN_vkResetFences entry = count_reset;
    memcpy(&real_reset, &real, sizeof real_reset);
    memcpy(&mine, &entry, sizeof mine);
  }
  return mine;
}

static void fence_open(fence_test *test, gm_strategy strategy) {
  const gm_pool_params pool = {.struct_size = sizeof pool, .strategy = strategy};
  vulkan_fixture_init(&test->fixture, "");
  vulkan_engine_open_exactly(&test->engine, &test->fixture.host, 0);
  const gm_vulkan_device device = vulkan_engine_native(&test->engine);
  const gm_vulkan_queue queue = {.head = {sizeof queue, GM_API_VULKAN},
                                 .queue = (uintptr_t)test->engine.queue,
                                 .family = test->engine.family,
                                 .may_submit = true};
  counted_services_init(&test->bench.host);
  const gm_context_params context = {.struct_size = sizeof context,
                                     .libraries = named_libraries(),
                                     .services = &test->bench.host.services,
                                     .symbol_hook = count_fences,
                                     .ignore_environment = true};
  pool_bench_ok(gm_context_create(&context, &test->bench.ctx, err));
  pool_bench_ok(gm_device_adopt(test->bench.ctx, &device.head, &test->bench.device, err));
  pool_bench_ok(gm_stream_adopt(test->bench.device, &queue.head, &test->stream, err));
  pool_bench_ok(gm_pool_create(test->bench.device, &pool, &test->bench.pool, err));
  atomic_store(&made, 0);
  atomic_store(&reset, 0);
}

static void fence_close(fence_test *test) {
  pool_bench_ok(gm_stream_close(test->stream, err));
  pool_bench_close(&test->bench);
  vulkan_engine_close(&test->engine);
  vulkan_fixture_close(&test->fixture);
}

static void record_and_wait(const fence_test *test) {
  gm_point point = {0};
  bool done = false;
  pool_bench_ok(gm_stream_record(test->stream, &point, err));
  pool_bench_ok(gm_point_wait(test->bench.device, &point, UINT64_MAX, err));
  pool_bench_ok(gm_point_done(test->bench.device, &point, &done, err));
  assert_true(done);
  gm_point_release(test->bench.device, &point);
}

static void test_fences_are_used_again(void **state) {
  (void)state;
  fence_test test = {0};
  fence_open(&test, GM_STRATEGY_BEST_FIT);
  for (int i = 0; i < MANY; i++) record_and_wait(&test);
  assert_true(atomic_load(&made) <= 4);
  assert_true(atomic_load(&reset) >= MANY - 4);
  fence_close(&test);
}

static void *record_often(void *user) {
  for (int i = 0; i < MANY; i++) record_and_wait(user);
  return NULL;
}

/* Threads wait for fences that others would use again. */
static void test_threads_share_the_fences(void **state) {
  (void)state;
  fence_test test = {0};
  pthread_t threads[THREADS];
  fence_open(&test, GM_STRATEGY_BEST_FIT);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, record_often, &test), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_true(atomic_load(&made) <= 16 * THREADS);
  fence_close(&test);
}

/* A point of gm's is nothing of Vulkan's while it has not passed; afterwards it is the passed one. */
static void test_points_have_no_native_object(void **state) {
  (void)state;
  fence_test test = {0};
  gm_point point = {0};
  gm_vulkan_point native = {.head = {sizeof native, GM_API_VULKAN}, .fence = 7, .semaphore = 7};
  fence_open(&test, GM_STRATEGY_BEST_FIT);
  pool_bench_ok(gm_stream_record(test.stream, &point, err));
  pool_bench_ok(gm_point_wait(test.bench.device, &point, UINT64_MAX, err));
  pool_bench_ok(gm_point_native(test.bench.device, &point, &native.head, err));
  assert_true(!native.fence && !native.semaphore && !native.value);
  pool_bench_ok(gm_stream_wait(test.stream, &point, err));
  gm_point_release(test.bench.device, &point);
  fence_close(&test);
}

static void test_wrong_points_are_refused(void **state) {
  (void)state;
  fence_test test = {0};
  gm_point point = {0};
  gm_error why = {0};
  fence_open(&test, GM_STRATEGY_BEST_FIT);
  const gm_vulkan_point none = {.head = {sizeof none, GM_API_VULKAN}};
  const gm_vulkan_point both = {.head = {sizeof both, GM_API_VULKAN}, .semaphore = 1, .value = 1, .fence = 1};
  const gm_vulkan_point semaphore = {.head = {sizeof both, GM_API_VULKAN}, .semaphore = 1, .value = 1};
  assert_int_equal(gm_stream_import_point(test.stream, &none.head, &point, &why), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(why.message, "both 0"));
  assert_int_equal(gm_stream_import_point(test.stream, &both.head, &point, &why), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(why.message, "both set"));
  assert_int_equal(gm_stream_import_point(test.stream, &semaphore.head, &point, &why), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(why.message, "give a fence"));
  fence_close(&test);
}

static gm_acquire take(fence_test *test, uint32_t flags, gm_block *out) {
  const gm_request request = {.bytes = BYTES, .flags = flags, .stream = test->stream};
  return gm_alloc(test->bench.pool, &request, out);
}

/* Freed at the engine's fence. The queue cannot wait for the fence; the host can. Then the block comes back. */
static void test_freed_at_a_fence(void **state) {
  (void)state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};
  for (int i = 0; i < 2; i++) {
    fence_test test = {0};
    gm_block first, again;
    gm_point point = {0};
    gm_error why = {0};
    fence_open(&test, strategies[i]);
    const gm_vulkan_point native = {.head = {sizeof native, GM_API_VULKAN}, .fence = (uint64_t)test.engine.fence};
    const gm_request request = {.bytes = BYTES}, pooled = {.bytes = BYTES, .flags = GM_POOLED_ONLY};
    assert_int_equal(gm_alloc(test.bench.pool, &request, &first), GM_ACQUIRE_FRESH);
    pool_bench_ok(gm_stream_import_point(test.stream, &native.head, &point, err));
    assert_int_equal(gm_stream_wait(test.stream, &point, &why), GM_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(why.message, "gm_point_wait"));
    assert_int_equal(test.engine.vk.vkQueueSubmit(test.engine.queue, 0, NULL, test.engine.fence), VK_SUCCESS);
    pool_bench_ok(gm_free_at(test.bench.pool, &first, &point, err));
    pool_bench_ok(gm_point_wait(test.bench.device, &point, UINT64_MAX, err));
    pool_bench_ok(gm_stream_wait(test.stream, &point, err)); /* it has passed */
    assert_int_equal(gm_alloc(test.bench.pool, &pooled, &again), GM_ACQUIRE_OK);
    assert_int_equal(again.address, first.address);
    assert_int_equal(gm_free(test.bench.pool, &again, NULL), GM_OK);
    gm_point_release(test.bench.device, &point);
    fence_close(&test);
  }
}

/* Frees and requests in the queue's order, as with timelines: a barrier suffices, and a trim gives all back. */
static void test_memory_goes_round(void **state) {
  (void)state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};
  for (int i = 0; i < 2; i++) {
    fence_test test = {0};
    gm_block first, again, host;
    fence_open(&test, strategies[i]);
    assert_int_equal(take(&test, 0, &first), GM_ACQUIRE_FRESH);
    pool_bench_ok(gm_block_fill(test.bench.pool, &first, 0, BYTES, "x", 1, test.stream, NULL, err));
    assert_int_equal(gm_free(test.bench.pool, &first, test.stream), GM_OK);
    assert_true(gm_acquired(take(&test, GM_INSERT_WAIT, &again)));
    assert_int_equal(again.address, first.address);
    assert_int_equal(gm_free(test.bench.pool, &again, test.stream), GM_OK);
    pool_bench_ok(gm_stream_sync(test.stream, err));
    const gm_request request = {.bytes = BYTES};
    assert_int_equal(gm_alloc(test.bench.pool, &request, &host), GM_ACQUIRE_OK);
    assert_int_equal(gm_free(test.bench.pool, &host, NULL), GM_OK);
    gm_pool_trim(test.bench.pool, 0);
    assert_int_equal(pool_bench_stats(&test.bench).reserved_bytes, 0);
    fence_close(&test);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fences_are_used_again),
      cmocka_unit_test(test_threads_share_the_fences),
      cmocka_unit_test(test_points_have_no_native_object),
      cmocka_unit_test(test_wrong_points_are_refused),
      cmocka_unit_test(test_freed_at_a_fence),
      cmocka_unit_test(test_memory_goes_round),
  };
  return cmocka_run_group_tests_name("vulkan_fences", tests, NULL, NULL);
}
