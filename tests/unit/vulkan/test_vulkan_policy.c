/* An engine's own VkDevice. No limit of gm holds unless somebody sets one, heaps have their figures, and copies go into
 * the engine's command buffer. */
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

typedef struct policy_test {
  pool_bench bench;
  vulkan_fixture fixture;
  vulkan_engine engine;
  gm_stream *stream;
} policy_test;

static void policy_open(policy_test *test) {
  gm_context_params context = {.struct_size = sizeof context, .libraries = named_libraries()};
  vulkan_fixture_init(&test->fixture, "");
  vulkan_engine_open(&test->engine, &test->fixture.host);
  const gm_vulkan_device device = vulkan_engine_native(&test->engine);
  const gm_vulkan_queue queue = {.head = {sizeof queue, GM_API_VULKAN},
                                 .queue = (uintptr_t)test->engine.queue,
                                 .family = test->engine.family,
                                 .may_submit = true};
  counted_services_init(&test->bench.host);
  context.services = &test->bench.host.services;
  context.ignore_environment = true;
  pool_bench_ok(gm_context_create(&context, &test->bench.ctx, err));
  pool_bench_ok(gm_device_adopt(test->bench.ctx, &device.head, &test->bench.device, err));
  pool_bench_ok(gm_stream_adopt(test->bench.device, &queue.head, &test->stream, err));
  pool_bench_ok(gm_pool_create(test->bench.device, NULL, &test->bench.pool, err));
}

static void policy_close(policy_test *test) {
  pool_bench_ok(gm_stream_close(test->stream, err));
  pool_bench_close(&test->bench);
  vulkan_engine_close(&test->engine);
  vulkan_fixture_close(&test->fixture);
}

static gm_block take(const policy_test *test, gm_pool *pool, uint64_t bytes) {
  const gm_request request = {.bytes = bytes, .stream = test->stream, .flags = GM_INSERT_WAIT};
  gm_block block;
  assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
  return block;
}

static void test_no_limit_holds_that_nobody_set(void **state) {
  (void)state;
  policy_test test = {0};
  gm_memory_info memory = {.struct_size = sizeof memory};
  gm_block block;
  policy_open(&test);
  pool_bench_ok(gm_device_memory_info(test.bench.device, &memory, err));
  assert_int_equal(memory.margin_bytes, 0);
  const gm_request huge = {.bytes = memory.total_bytes * 2, .stream = test.stream};
  assert_int_equal(gm_alloc(test.bench.pool, &huge, &block), GM_ACQUIRE_EXHAUSTED); /* the driver's word, not gm's */
  assert_int_equal(pool_bench_stats(&test.bench).over_limit, 0);
  pool_bench_ok(gm_config_set(test.bench.ctx, "memory_fraction", "0.0001", err));
  const gm_request large = {.bytes = memory.total_bytes / 100, .stream = test.stream};
  gm_pool *bound = NULL;
  pool_bench_ok(gm_pool_create(test.bench.device, NULL, &bound, err));
  assert_int_equal(gm_alloc(bound, &large, &block), GM_ACQUIRE_OVER_LIMIT);
  pool_bench_ok(gm_pool_destroy(bound, err));
  policy_close(&test);
}

static void test_heaps_are_the_apis(void **state) {
  (void)state;
  policy_test test = {0};
  uint32_t count = 0;
  uint64_t reserved = 0;
  policy_open(&test);
  VkPhysicalDeviceMemoryProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  test.engine.vk.vkGetPhysicalDeviceMemoryProperties2(test.engine.physical, &properties);
  const VkPhysicalDeviceMemoryProperties memory = properties.memoryProperties;
  pool_bench_ok(gm_device_heap_count(test.bench.device, &count, err));
  assert_int_equal(count, memory.memoryHeapCount);
  gm_block block = take(&test, test.bench.pool, 1 << 20);
  for (uint32_t i = 0; i < count; i++) {
    gm_heap_info heap = {.struct_size = sizeof heap};
    pool_bench_ok(gm_device_heap(test.bench.device, i, &heap, err));
    assert_int_equal(heap.number, i);
    assert_int_equal(heap.total_bytes, memory.memoryHeaps[i].size);
    assert_true(heap.budget_bytes <= heap.total_bytes && heap.free_bytes <= heap.budget_bytes);
    assert_int_equal(heap.free_state, GM_FIGURE_ESTIMATED);
    reserved += heap.reserved_bytes;
  }
  assert_int_equal(reserved, pool_bench_stats(&test.bench).reserved_bytes);
  assert_int_equal(gm_free(test.bench.pool, &block, test.stream), GM_OK);
  policy_close(&test);
}

/* One copy by gm into the engine's commands, which the engine submits with its own. */
static void test_a_copy_in_the_engines_command_buffer(void **state) {
  (void)state;
  policy_test test = {0};
  char bytes[900];
  policy_open(&test);
  gm_pool *pool = test.bench.pool;
  gm_block a = take(&test, pool, 1000), b = take(&test, pool, 1000);
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  const VkSubmitInfo submit = {
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &test.engine.commands};
  pool_bench_ok(gm_block_fill(pool, &a, 0, 1000, "gm", 2, test.stream, NULL, err));
  test.engine.vk.vkBeginCommandBuffer(test.engine.commands, &begin);
  pool_bench_ok(gm_block_copy_record(pool, &b, 3, pool, &a, 1, 900, (uintptr_t)test.engine.commands, err));
  pool_bench_ok(gm_block_copy_record(pool, &b, 3, pool, &a, 1, 0, (uintptr_t)test.engine.commands, err)); /* nothing */
  test.engine.vk.vkEndCommandBuffer(test.engine.commands);
  assert_int_equal(test.engine.vk.vkQueueSubmit(test.engine.queue, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
  pool_bench_ok(gm_stream_barrier(test.stream, err));
  pool_bench_ok(gm_block_read(pool, &b, 3, bytes, sizeof bytes, test.stream, NULL, err));
  for (size_t i = 0; i < sizeof bytes; i++) assert_int_equal(bytes[i], "gm"[(i + 1) % 2]);
  assert_int_equal(gm_free(pool, &a, test.stream), GM_OK);
  assert_int_equal(gm_free(pool, &b, test.stream), GM_OK);
  policy_close(&test);
}

/* ncnn's way: blocks are freed while commands that name them are recorded, and nothing runs on freed memory. */
static void test_frees_while_recording(void **state) {
  (void)state;
  policy_test test = {0};
  gm_pool *pool = NULL, *needy = NULL;
  policy_open(&test);
  const gm_pool_params params = {.struct_size = sizeof params, .flags = GM_POOL_NO_TRIM};
  const gm_pool_params small = {.struct_size = sizeof small, .memory_fraction = 1e-9};
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  const VkSubmitInfo submit = {
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &test.engine.commands};
  pool_bench_ok(gm_pool_create(test.bench.device, &params, &pool, err));
  pool_bench_ok(gm_pool_create(test.bench.device, &small, &needy, err));
  gm_block a = take(&test, pool, 1 << 20), b = take(&test, pool, 1 << 20), other;
  test.engine.vk.vkBeginCommandBuffer(test.engine.commands, &begin);
  pool_bench_ok(gm_block_copy_record(pool, &b, 0, pool, &a, 0, 1 << 20, (uintptr_t)test.engine.commands, err));
  assert_int_equal(gm_free(pool, &a, NULL), GM_OK);
  assert_int_equal(gm_free(pool, &b, NULL), GM_OK);
  const gm_request request = {.bytes = 1 << 20};
  assert_false(gm_acquired(gm_alloc(needy, &request, &other))); /* a shortage, which trims whom it may */
  test.engine.vk.vkEndCommandBuffer(test.engine.commands);
  assert_int_equal(test.engine.vk.vkQueueSubmit(test.engine.queue, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
  pool_bench_ok(gm_stream_barrier(test.stream, err));
  pool_bench_ok(gm_stream_sync(test.stream, err));
  pool_bench_ok(gm_pool_destroy(needy, err));
  pool_bench_ok(gm_pool_destroy(pool, err));
  policy_close(&test);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_limit_holds_that_nobody_set),
      cmocka_unit_test(test_heaps_are_the_apis),
      cmocka_unit_test(test_a_copy_in_the_engines_command_buffer),
      cmocka_unit_test(test_frees_while_recording),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
