/* Native objects of exactly a range, on a real driver with validation: a VkBuffer that work uses is not destroyed.
 * Mapped blocks, flushes and maps without a wait on a queue that gm may not submit to are tested, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/heap/object_sweep.h"
#include "core/pool/pool.h"
#include "gm/copy.h"
#include "support/vulkan_fixture.h"
/* after the fixture */
#include "support/named_libraries.h"
#include "support/random.h"
#include "support/vulkan_engine.h"

enum { BLOCKS = 12, STEPS = 900, UNIT = 256, BLOCK_UNITS = 64, BUSY_STEPS = 2000, BUSY_LAG = 8 };

typedef struct bench {
  vulkan_fixture fixture;
  vulkan_engine engine;
  gm_context *ctx;
  gm_device *device;
  gm_stream *stream;
  gm_pool *pool;
} bench;

#define ok(call)                                                          \
  do {                                                                    \
    gm_error failure = {.status = GM_OK}, *err = &failure;                \
    if (call) fail_msg("%s: %s: %s", #call, failure.op, failure.message); \
  } while (0)

static void bench_open(bench *b, bool may_submit, gm_strategy strategy) {
  const gm_context_params params = {
      .struct_size = sizeof params, .ignore_environment = true, .libraries = named_libraries()};
  const gm_pool_params pool = {.struct_size = sizeof pool, .strategy = strategy, .no_vmm = true};
  vulkan_fixture_init(&b->fixture, "");
  vulkan_engine_open(&b->engine, &b->fixture.host);
  const gm_vulkan_device native = vulkan_engine_native(&b->engine);
  ok(gm_context_create(&params, &b->ctx, err));
  ok(gm_device_adopt(b->ctx, &native.head, &b->device, err));
  const gm_vulkan_queue queue = {.head = {sizeof queue, GM_API_VULKAN},
                                 .queue = (uintptr_t)b->engine.queue,
                                 .family = b->engine.family,
                                 .may_submit = may_submit};
  ok(gm_stream_adopt(b->device, &queue.head, &b->stream, err));
  ok(gm_pool_create(b->device, &pool, &b->pool, err));
}

static void bench_close(bench *b) {
  ok(gm_pool_destroy(b->pool, err));
  ok(gm_stream_close(b->stream, err));
  ok(gm_device_close(b->device, err));
  ok(gm_context_destroy(b->ctx, err));
  vulkan_engine_close(&b->engine);
  vulkan_fixture_close(&b->fixture);
}

static gm_vulkan_memory object(bench *b, const gm_block *block, uint64_t offset, uint64_t bytes) {
  gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}};
  ok(gm_block_object(b->pool, block, offset, bytes, &native.head, err));
  assert_true(native.buffer && native.buffer_offset == 0 && native.bytes == bytes && native.buffer_bytes == bytes);
  return native;
}

/* The engine's own work: fills a whole buffer, after all earlier work. */
static void fill(bench *b, VkBuffer buffer, uint32_t word) {
  const gm__vulkan_syms *vk = &b->engine.vk;
  const VkCommandBufferAllocateInfo wanted = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = b->engine.pool,
                                              .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                              .commandBufferCount = 1};
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                          .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_MEMORY_READ_BIT,
                               .dstAccessMask = VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_MEMORY_READ_BIT};
  VkCommandBuffer commands;
  assert_int_equal(vk->vkAllocateCommandBuffers(b->engine.device, &wanted, &commands), VK_SUCCESS);
  assert_int_equal(vk->vkBeginCommandBuffer(commands, &begin), VK_SUCCESS);
  vk->vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, &all,
                           0, NULL, 0, NULL);
  vk->vkCmdFillBuffer(commands, buffer, 0, VK_WHOLE_SIZE, word);
  assert_int_equal(vk->vkEndCommandBuffer(commands), VK_SUCCESS);
  const VkSubmitInfo submit = {
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
  assert_int_equal(vk->vkQueueSubmit(b->engine.queue, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
}

/* The engine waits for its queue. */
static void engine_wait(bench *b) {
  const gm__vulkan_syms *vk = &b->engine.vk;
  const VkSubmitInfo nothing = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};
  assert_int_equal(vk->vkQueueSubmit(b->engine.queue, 1, &nothing, b->engine.fence), VK_SUCCESS);
  assert_int_equal(vk->vkWaitForFences(b->engine.device, 1, &b->engine.fence, VK_TRUE, UINT64_MAX), VK_SUCCESS);
}

static void check_word(bench *b, const gm_block *block, uint64_t offset, uint32_t word) {
  uint32_t read = 0;
  ok(gm_block_read(b->pool, block, offset, &read, sizeof read, b->stream, NULL, err));
  assert_int_equal(read, word);
}

static uint32_t kept(const bench *b) { return atomic_load(&b->pool->heap.provider.object_count); }

/* Blocks come and go in the queue's order while their objects are in use. */
static void churn(bench *b, uint64_t seed) {
  gm_block blocks[BLOCKS];
  bool live[BLOCKS] = {false};
  uint32_t most = 0;
  for (uint32_t step = 1; step <= STEPS; step++) {
    const unsigned i = (unsigned)(test_random(&seed) % BLOCKS);
    if (!live[i]) {
      const gm_request request = {.bytes = UINT64_C(256) * (1 + test_random(&seed) % BLOCK_UNITS),
                                  .stream = b->stream,
                                  .flags = GM_INSERT_WAIT};
      assert_true(gm_acquired(gm_alloc(b->pool, &request, &blocks[i])));
      live[i] = true;
    }
    const uint64_t units = blocks[i].bytes / UNIT, at = test_random(&seed) % units;
    const uint64_t bytes = UNIT * (1 + test_random(&seed) % (units - at));
    const gm_vulkan_memory native = object(b, &blocks[i], at * UNIT, bytes);
    assert_true(object(b, &blocks[i], at * UNIT, bytes).buffer == native.buffer);
    fill(b, (VkBuffer)native.buffer, step);
    if (step % 16 == 0) check_word(b, &blocks[i], at * UNIT + bytes - 4, step);
    if (kept(b) > most) most = kept(b);
    if (test_random(&seed) % 2 == 0) {
      assert_int_equal(gm_free(b->pool, &blocks[i], b->stream), GM_OK);
      live[i] = false;
    }
  }
  for (int i = 0; i < BLOCKS; i++) {
    if (live[i]) assert_int_equal(gm_free(b->pool, &blocks[i], b->stream), GM_OK);
  }
  /* The bound was met. Some objects stay longer, because a block asks for them once more. */
  assert_in_range(most, GM__OBJECTS_LEAST, 3 * GM__OBJECTS_LEAST);
}

/* ---- a stream that is never idle ---- */

typedef struct queue_leash {
  bench *b;
  PFN_vkSignalSemaphore signal;
  VkSemaphore held, reached; /* timelines */
} queue_leash;

static VkSemaphore timeline(const bench *b) {
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  VkSemaphore made = VK_NULL_HANDLE;
  assert_int_equal(b->engine.vk.vkCreateSemaphore(b->engine.device, &info, NULL, &made), VK_SUCCESS);
  return made;
}

static queue_leash leash_make(bench *b) {
  queue_leash leash = {.b = b, .held = timeline(b), .reached = timeline(b)};
  leash.signal = (PFN_vkSignalSemaphore)b->engine.vk.vkGetDeviceProcAddr(b->engine.device, "vkSignalSemaphore");
  assert_non_null(leash.signal);
  return leash;
}

/* All later work of the queue waits for leash_give(step), which waits for all earlier work. */
static void leash_hold(const queue_leash *leash, uint64_t step) {
  static const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  const VkTimelineSemaphoreSubmitInfo values = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                .waitSemaphoreValueCount = 1,
                                                .pWaitSemaphoreValues = &step,
                                                .signalSemaphoreValueCount = 1,
                                                .pSignalSemaphoreValues = &step};
  const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &values,
                               .waitSemaphoreCount = 1,
                               .pWaitSemaphores = &leash->held,
                               .pWaitDstStageMask = &all,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &leash->reached};
  assert_int_equal(leash->b->engine.vk.vkQueueSubmit(leash->b->engine.queue, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
}

static void leash_give(const queue_leash *leash, uint64_t step) {
  const gm__vulkan_syms *vk = &leash->b->engine.vk;
  const VkDevice device = leash->b->engine.device;
  const VkSemaphoreSignalInfo go = {
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = leash->held, .value = step};
  const VkSemaphoreWaitInfo reached = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                       .semaphoreCount = 1,
                                       .pSemaphores = &leash->reached,
                                       .pValues = &step};
  assert_int_equal(leash->signal(device, &go), VK_SUCCESS);
  assert_int_equal(vk->vkWaitSemaphores(device, &reached, UINT64_MAX), VK_SUCCESS);
}

static void leash_end(const queue_leash *leash) {
  leash->b->engine.vk.vkDestroySemaphore(leash->b->engine.device, leash->held, NULL);
  leash->b->engine.vk.vkDestroySemaphore(leash->b->engine.device, leash->reached, NULL);
}

/* One place of memory, used again and again; its newest work has never passed. Old objects go all the same. */
static void test_a_stream_that_is_never_idle(void **state) {
  (void)state;
  bench b;
  uint64_t at = 0, units = 1; /* of no two steps alike */
  bench_open(&b, true, GM_STRATEGY_BEST_FIT);
  const queue_leash leash = leash_make(&b);
  for (uint64_t step = 1; step <= BUSY_STEPS; step++) {
    const gm_request request = {.bytes = (uint64_t)UNIT * BLOCK_UNITS, .stream = b.stream, .flags = GM_INSERT_WAIT};
    gm_block block;
    assert_true(gm_acquired(gm_alloc(b.pool, &request, &block)));
    leash_hold(&leash, step);
    fill(&b, (VkBuffer)object(&b, &block, at * UNIT, units * UNIT).buffer, (uint32_t)step);
    assert_int_equal(gm_free(b.pool, &block, b.stream), GM_OK);
    assert_in_range(kept(&b), 1, 3 * GM__OBJECTS_LEAST + 1);
    if (step > BUSY_LAG) leash_give(&leash, step - BUSY_LAG);
    at++;
    if (at + units > BLOCK_UNITS) at = 0, units++;
  }
  leash_give(&leash, BUSY_STEPS);
  ok(gm_stream_sync(b.stream, err));
  leash_end(&leash);
  bench_close(&b);
}

static void test_objects_live_as_long_as_work_uses_them(void **state) {
  (void)state;
  bench b;
  bench_open(&b, true, GM_STRATEGY_BEST_FIT);
  churn(&b, 7);
  ok(gm_stream_sync(b.stream, err));
  gm_pool_trim(b.pool, 0);
  assert_int_equal(kept(&b), 0);
  bench_close(&b);
}

/* The next block at the same place costs no driver call. */
static void test_objects_serve_again(void **state) {
  (void)state;
  bench b;
  uint64_t first = 0;
  bench_open(&b, true, GM_STRATEGY_BEST_FIT);
  for (int i = 0; i < 20; i++) {
    const gm_request request = {.bytes = 3000, .stream = b.stream, .flags = GM_INSERT_WAIT};
    gm_block block;
    assert_true(gm_acquired(gm_alloc(b.pool, &request, &block)));
    const gm_vulkan_memory native = object(&b, &block, 0, 3000);
    if (!first) first = native.buffer;
    assert_true(native.buffer == first);
    fill(&b, (VkBuffer)native.buffer, 5);
    assert_int_equal(gm_free(b.pool, &block, b.stream), GM_OK);
  }
  assert_int_equal(kept(&b), 1);
  bench_close(&b);
}

static void test_a_dedicated_block_is_its_object(void **state) {
  (void)state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BEST_FIT, GM_STRATEGY_BUCKET};
  for (int i = 0; i < 2; i++) {
    bench b;
    gm_block block;
    gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}};
    bench_open(&b, true, strategies[i]);
    const gm_request request = {
        .bytes = 1000004, .stream = b.stream, .flags = GM_DEDICATED | GM_MAPPED | GM_INSERT_WAIT};
    assert_true(gm_acquired(gm_alloc(b.pool, &request, &block)));
    ok(gm_block_native(b.pool, &block, &native.head, err));
    assert_true(native.buffer_offset == 0 && native.bytes == block.bytes && native.buffer_bytes == block.bytes);
    assert_true(block.bytes - 1000004 < 256);
    assert_non_null(native.mapped);
    void *host = NULL;
    ok(gm_block_host(b.pool, &block, &host, err));
    assert_ptr_equal(host, native.mapped);
    const gm_vulkan_memory whole = object(&b, &block, 0, block.bytes);
    assert_true(whole.buffer == native.buffer);
    assert_int_equal(kept(&b), 0);
    assert_int_equal(gm_block_object(b.pool, &block, 256, 256, &native.head, NULL), GM_ERR_NOT_SUPPORTED);
    fill(&b, (VkBuffer)whole.buffer, 9);
    check_word(&b, &block, 1000000, 9);
    assert_int_equal(gm_free(b.pool, &block, b.stream), GM_OK);
    bench_close(&b);
  }
}

/* A pool ends by force behind the engine's own work on an object, with a mapping that nobody ends. The layers are
 * silent. Where gm may not submit, the engine waits, and gm says that it could not ask. */
static void test_a_forced_end(void **state) {
  (void)state;
  for (int leave = 0; leave < 2; leave++) {
    bench b;
    gm_block block, seen;
    void *host = NULL;
    gm_error why = {.status = GM_OK};
    bench_open(&b, leave, GM_STRATEGY_BEST_FIT);
    const gm_request request = {.bytes = 1 << 20},
                     visible = {.bytes = 4096, .must_be = GM_DEVICE_ACCESSIBLE, .flags = GM_HOST_VISIBLE};
    assert_true(gm_acquired(gm_alloc(b.pool, &request, &block)));
    assert_true(gm_acquired(gm_alloc(b.pool, &visible, &seen)));
    ok(gm_block_map(b.pool, &seen, 64, 64, GM_MAP_WRITE | GM_MAP_NO_WAIT, NULL, &host, err));
    const gm_vulkan_memory native = object(&b, &block, 4096, 8192);
    for (uint32_t i = 0; i < 50; i++) fill(&b, (VkBuffer)native.buffer, i);
    if (!leave) engine_wait(&b);
    gm_pool *pool = b.pool;
    assert_int_equal(gm_pool_destroy_force(pool, &why), GM_OK);
    assert_non_null(strstr(why.message, "2 blocks of "));
    assert_non_null(strstr(why.message, leave ? "and 0 streams" : "and 1 streams"));
    assert_int_equal(gm_free(pool, &block, b.stream), GM_ERR_INVALID_ARGUMENT);
    ok(gm_pool_create(b.device, NULL, &b.pool, err));
    bench_close(&b);
  }
}

/* The queue is lent without leave to submit: mapping needs neither it nor any other. */
static void test_maps_without_leave_to_submit(void **state) {
  (void)state;
  bench b;
  gm_block block;
  void *host = NULL, *again = NULL, *life = NULL;
  bench_open(&b, false, GM_STRATEGY_BEST_FIT);
  const gm_request request = {.bytes = 4096, .must_be = GM_DEVICE_ACCESSIBLE, .flags = GM_HOST_VISIBLE};
  assert_true(gm_acquired(gm_alloc(b.pool, &request, &block)));
  assert_int_equal(gm_block_map(b.pool, &block, 0, 64, GM_MAP_WRITE, b.stream, &host, NULL), GM_ERR_NOT_SUPPORTED);
  ok(gm_block_map(b.pool, &block, 64, 64, GM_MAP_WRITE | GM_MAP_NO_WAIT, NULL, &host, err));
  ok(gm_block_map(b.pool, &block, 0, 4096, GM_MAP_READ | GM_MAP_NO_WAIT, NULL, &again, err));
  ok(gm_block_host(b.pool, &block, &life, err));
  assert_ptr_equal(again, life);
  memset(host, 'h', 64);
  ok(gm_block_flush(b.pool, &block, 64, 64, err));
  ok(gm_block_invalidate(b.pool, &block, 0, 4096, err));
  assert_int_equal(((char *)life)[127], 'h');
  assert_int_equal(gm_free(b.pool, &block, NULL), GM_ERR_BUSY);
  ok(gm_block_unmap(b.pool, &block, host, NULL, err));
  ok(gm_block_unmap(b.pool, &block, again, NULL, err));
  assert_int_equal(gm_free(b.pool, &block, NULL), GM_OK);
  bench_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_objects_live_as_long_as_work_uses_them),
                                     cmocka_unit_test(test_objects_serve_again),
                                     cmocka_unit_test(test_a_stream_that_is_never_idle),
                                     cmocka_unit_test(test_a_dedicated_block_is_its_object),
                                     cmocka_unit_test(test_a_forced_end),
                                     cmocka_unit_test(test_maps_without_leave_to_submit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
