/* Pools beside a queue that gm may not submit to, on an engine's own VkDevice. The engine submits its work itself. By a
 * value of its timeline semaphore, or in words, it says when that is done. Nothing is given up before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/vulkan_fixture.h"
/* after the fixture */
#include "gm/cleanup.h"
#include "support/named_libraries.h"
#include "support/pool_bench.h"
#include "support/vulkan_engine.h"

enum { BYTES = 1 << 20, BEGIN = 1, DONE = 2 }; /* the last two: values of the engine's timeline */

typedef struct silent_test {
  pool_bench bench;
  vulkan_fixture fixture;
  vulkan_engine engine;
  gm_stream *stream;
} silent_test;

static const gm_strategy silent_strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

static void silent_open(silent_test *test, gm_strategy strategy) {
  gm_context_params context = {.struct_size = sizeof context, .libraries = named_libraries()};
  const gm_pool_params pool = {.struct_size = sizeof pool, .strategy = strategy};
  vulkan_fixture_init(&test->fixture, "");
  vulkan_engine_open(&test->engine, &test->fixture.host);
  const gm_vulkan_device device = vulkan_engine_native(&test->engine);
  const gm_vulkan_queue queue = {
      .head = {sizeof queue, GM_API_VULKAN}, .queue = (uintptr_t)test->engine.queue, .family = test->engine.family};
  counted_services_init(&test->bench.host);
  context.services = &test->bench.host.services;
  context.ignore_environment = true;
  pool_bench_ok(gm_context_create(&context, &test->bench.ctx, err));
  pool_bench_ok(gm_device_adopt(test->bench.ctx, &device.head, &test->bench.device, err));
  pool_bench_ok(gm_stream_adopt(test->bench.device, &queue.head, &test->stream, err));
  pool_bench_ok(gm_pool_create(test->bench.device, &pool, &test->bench.pool, err));
}

static void silent_close(silent_test *test) {
  pool_bench_ok(gm_stream_close(test->stream, err));
  pool_bench_close(&test->bench);
  vulkan_engine_close(&test->engine);
  vulkan_fixture_close(&test->fixture);
}

static gm_acquire take(silent_test *test, gm_stream *stream, uint32_t flags, gm_block *out) {
  const gm_request request = {.bytes = BYTES, .flags = flags, .stream = stream};
  return gm_alloc(test->bench.pool, &request, out);
}

/* The engine's own work on the block: it begins when the timeline is at BEGIN, and sets it to DONE. */
static void submit_work(silent_test *test, const gm_block *block) {
  const gm__vulkan_syms *vk = &test->engine.vk;
  const uint64_t begin = BEGIN, done = DONE;
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  const VkTimelineSemaphoreSubmitInfo values = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                .waitSemaphoreValueCount = 1,
                                                .pWaitSemaphoreValues = &begin,
                                                .signalSemaphoreValueCount = 1,
                                                .pSignalSemaphoreValues = &done};
  const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &values,
                               .waitSemaphoreCount = 1,
                               .pWaitSemaphores = &test->engine.timeline,
                               .pWaitDstStageMask = &stage,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &test->engine.commands,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &test->engine.timeline};
  gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}};
  pool_bench_ok(gm_block_native(test->bench.pool, block, &native.head, err));
  assert_int_equal(vk->vkBeginCommandBuffer(test->engine.commands, &info), VK_SUCCESS);
  vk->vkCmdFillBuffer(test->engine.commands, (VkBuffer)native.buffer, native.buffer_offset, native.bytes, 7);
  assert_int_equal(vk->vkEndCommandBuffer(test->engine.commands), VK_SUCCESS);
  assert_int_equal(vk->vkQueueSubmit(test->engine.queue, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
}

static gm_point work_is_done(const silent_test *test) {
  const gm_vulkan_point native = {
      .head = {sizeof native, GM_API_VULKAN}, .semaphore = (uint64_t)test->engine.timeline, .value = DONE};
  gm_point point = {0};
  pool_bench_ok(gm_stream_import_point(test->stream, &native.head, &point, err));
  return point;
}

static void let_work_begin(const silent_test *test) {
  const VkSemaphoreSignalInfo info = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = test->engine.timeline, .value = BEGIN};
  const PFN_vkSignalSemaphore signal =
      (PFN_vkSignalSemaphore)test->engine.vk.vkGetInstanceProcAddr(test->engine.instance, "vkSignalSemaphore");
  assert_non_null(signal);
  assert_int_equal(signal(test->engine.device, &info), VK_SUCCESS);
}

static void let_work_end(const silent_test *test) {
  gm_point point = work_is_done(test);
  let_work_begin(test);
  pool_bench_ok(gm_point_wait(test->bench.device, &point, UINT64_MAX, err));
  gm_point_release(test->bench.device, &point);
}

static void assert_busy(const silent_test *test, gm_status status, const gm_error *err) {
  char name[64];
  snprintf(name, sizeof name, "stream %llu", (unsigned long long)gm_stream_id(test->stream));
  assert_int_equal(status, GM_ERR_BUSY);
  if (!strstr(err->message, name)) fail_msg("%s: not named in: %s", name, err->message);
}

/* The block is free, and the engine's work on it runs. */
static void assert_kept(silent_test *test) {
  gm_error err = {.status = GM_OK};
  gm_block block;
  assert_busy(test, gm_stream_close(test->stream, &err), &err);
  assert_busy(test, gm_pool_destroy(test->bench.pool, &err), &err);
  assert_int_equal(gm_pool_trim(test->bench.pool, 0), 0);
  assert_int_equal(take(test, NULL, GM_POOLED_ONLY, &block), GM_ACQUIRE_EXHAUSTED);
}

static void assert_back(silent_test *test, const gm_block *was) {
  gm_block block;
  assert_int_equal(take(test, NULL, GM_POOLED_ONLY, &block), GM_ACQUIRE_OK);
  assert_int_equal(block.address, was->address);
  assert_int_equal(gm_free(test->bench.pool, &block, NULL), GM_OK);
  gm_pool_trim(test->bench.pool, 0);
  assert_int_equal(pool_bench_stats(&test->bench).reserved_bytes, 0);
}

static void test_told_by_a_point(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    silent_test test = {0};
    silent_open(&test, silent_strategies[i]);
    gm_block block;
    assert_int_equal(take(&test, test.stream, 0, &block), GM_ACQUIRE_FRESH);
    submit_work(&test, &block);
    assert_int_equal(gm_free(test.bench.pool, &block, test.stream), GM_OK);
    assert_kept(&test);
    gm_point point = work_is_done(&test);
    pool_bench_ok(gm_stream_passed(test.stream, &point, err));
    gm_point_release(test.bench.device, &point);
    assert_kept(&test);
    let_work_end(&test);
    assert_back(&test, &block);
    silent_close(&test);
  }
}

static void test_told_in_words(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    silent_test test = {0};
    silent_open(&test, silent_strategies[i]);
    gm_block block;
    assert_int_equal(take(&test, NULL, 0, &block), GM_ACQUIRE_FRESH);
    submit_work(&test, &block);
    assert_int_equal(gm_use_on(test.bench.pool, &block, test.stream), GM_OK);
    assert_int_equal(gm_free(test.bench.pool, &block, NULL), GM_OK);
    assert_kept(&test);
    let_work_end(&test);
    assert_kept(&test); /* gm knows nothing of it */
    pool_bench_ok(gm_stream_passed(test.stream, NULL, err));
    assert_back(&test, &block);
    silent_close(&test);
  }
}

static void test_freed_at_a_point(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    silent_test test = {0};
    silent_open(&test, silent_strategies[i]);
    gm_block block;
    assert_int_equal(take(&test, NULL, 0, &block), GM_ACQUIRE_FRESH);
    submit_work(&test, &block);
    gm_point point = work_is_done(&test);
    pool_bench_ok(gm_free_at(test.bench.pool, &block, &point, err));
    gm_point_release(test.bench.device, &point);
    assert_kept(&test);
    let_work_end(&test);
    assert_back(&test, &block);
    pool_bench_ok(gm_stream_passed(test.stream, NULL, err)); /* the point spoke for the block, not for the stream */
    silent_close(&test);
  }
}

/* The stream's own order is the engine's business: it gets its block again at once, after a barrier of the engine's. */
static void test_the_stream_itself_goes_on(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    silent_test test = {0};
    silent_open(&test, silent_strategies[i]);
    gm_block block, again;
    assert_int_equal(take(&test, test.stream, 0, &block), GM_ACQUIRE_FRESH);
    submit_work(&test, &block);
    assert_int_equal(gm_free(test.bench.pool, &block, test.stream), GM_OK);
    assert_int_equal(take(&test, test.stream, 0, &again), GM_ACQUIRE_NEEDS_BARRIER);
    assert_int_equal(again.address, block.address);
    assert_int_equal(gm_free(test.bench.pool, &again, test.stream), GM_OK);
    assert_kept(&test);
    let_work_end(&test);
    pool_bench_ok(gm_stream_passed(test.stream, NULL, err));
    assert_back(&test, &block);
    silent_close(&test);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_told_by_a_point),
      cmocka_unit_test(test_told_in_words),
      cmocka_unit_test(test_freed_at_a_point),
      cmocka_unit_test(test_the_stream_itself_goes_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
