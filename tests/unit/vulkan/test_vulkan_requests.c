/* Flags that need work on a queue (GM_ZERO, GM_COMMIT) on an engine's VkDevice, with queues that gm may and may not
 * submit to. The words of gm_explain on them are checked, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gm/context.h"
#include "gm/device.h"
#include "gm/stream.h"
#include "support/vulkan_fixture.h"
/* after the fixture */
#include "support/aligned_requests.h"
#include "support/fixed_scene.h"
#include "support/named_libraries.h"
#include "support/request_sweep.h"
#include "support/vulkan_engine.h"
#include "test_data.h"

typedef struct bench {
  vulkan_fixture fixture;
  vulkan_engine engine;
  gm_context *ctx;
  gm_device *device;
  gm_stream *stream;
} bench;

#define ok(call)                                                          \
  do {                                                                    \
    gm_error failure = {.status = GM_OK}, *err = &failure;                \
    if (call) fail_msg("%s: %s: %s", #call, failure.op, failure.message); \
  } while (0)

static gm_stream *adopt_queue(bench *b, bool may_submit) {
  const gm_vulkan_queue native = {.head = {sizeof native, GM_API_VULKAN},
                                  .queue = (uintptr_t)b->engine.queue,
                                  .family = b->engine.family,
                                  .may_submit = may_submit};
  gm_stream *stream = NULL;
  ok(gm_stream_adopt(b->device, &native.head, &stream, err));
  return stream;
}

/* A queue has one adoption at a time: with leave to submit or without. */
static void bench_open(bench *b, bool may_submit) {
  const gm_context_params params = {.struct_size = sizeof params,
                                    .host_root = GM_TEST_DATA "/fault/host", /* each request reads the host's memory */
                                    .ignore_environment = true,
                                    .libraries = named_libraries()};
  vulkan_fixture_init(&b->fixture, "");
  vulkan_engine_open(&b->engine, &b->fixture.host);
  const gm_vulkan_device native = vulkan_engine_native(&b->engine);
  ok(gm_context_create(&params, &b->ctx, err));
  ok(gm_device_adopt(b->ctx, &native.head, &b->device, err));
  b->stream = adopt_queue(b, may_submit);
}

static void bench_close(bench *b) {
  ok(gm_stream_close(b->stream, err));
  ok(gm_device_close(b->device, err));
  ok(gm_context_destroy(b->ctx, err));
  vulkan_engine_close(&b->engine);
  vulkan_fixture_close(&b->fixture);
}

static void test_the_report_tells_what_was_done(void **state) {
  (void)state;
  bench b;
  bench_open(&b, true);
  const unsigned served = sweep_device(b.device, b.stream, b.stream);
  assert_in_range(served, sweep_least(200), 6000);
  bench_close(&b);
  bench_open(&b, false);
  assert_in_range(sweep_device(b.device, b.stream, NULL), sweep_least(100), served - 1);
  bench_close(&b);
}

static void test_a_stream_without_leave_zeroes_nothing(void **state) {
  (void)state;
  bench b;
  bench_open(&b, false);
  for (int i = 0; i < 2; i++) {
    const gm_pool_params params = {.struct_size = sizeof params,
                                   .strategy = i ? GM_STRATEGY_BUCKET : GM_STRATEGY_BEST_FIT};
    const gm_request zero = {.bytes = 4096, .stream = b.stream, .flags = GM_ZERO};
    const gm_request commit = {.bytes = 4096, .flags = GM_COMMIT}; /* takes no queue here */
    gm_explanation why = {.struct_size = sizeof why};
    gm_pool *pool = NULL;
    gm_block block;
    ok(gm_pool_create(b.device, &params, &pool, err));
    assert_int_equal(gm_alloc(pool, &zero, &block), GM_ACQUIRE_INVALID);
    ok(gm_explain(pool, &zero, &why, err));
    assert_int_equal(why.status, GM_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(why.text, "GM_ZERO"));
    assert_non_null(strstr(why.text, "may_submit"));
    assert_int_equal(gm_alloc(pool, &commit, &block), GM_ACQUIRE_FRESH);
    assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
    ok(gm_pool_destroy(pool, err));
  }
  bench_close(&b);
}

/* `bytes` are the block's; what it lies in is told beside it. */
static void test_the_sizes_of_buffer_and_memory_are_told(void **state) {
  (void)state;
  bench b;
  bench_open(&b, true);
  for (int i = 0; i < 2; i++) {
    const gm_pool_params params = {.struct_size = sizeof params,
                                   .strategy = i ? GM_STRATEGY_BUCKET : GM_STRATEGY_BEST_FIT};
    const gm_request request = {.bytes = 4096};
    gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}};
    gm_pool *pool = NULL;
    gm_block block;
    ok(gm_pool_create(b.device, &params, &pool, err));
    assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
    ok(gm_block_native(pool, &block, &native.head, err));
    const VkBufferMemoryRequirementsInfo2 info = {.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2,
                                                  .buffer = (VkBuffer)native.buffer};
    VkMemoryRequirements2 needs = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
    b.engine.vk.vkGetBufferMemoryRequirements2(b.engine.device, &info, &needs);
    assert_int_equal(native.bytes, block.bytes);
    assert_true(i ? native.buffer_bytes >= native.bytes : native.buffer_bytes > native.bytes);
    assert_in_range(needs.memoryRequirements.size, native.buffer_bytes, native.memory_bytes);
    assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
    ok(gm_pool_destroy(pool, err));
  }
  bench_close(&b);
}

/* The buffer's offset always. The memory's offset unless the memory itself begins at no such address: then no offset
 * could be aligned with the address. */
static void check_aligned(gm_pool *pool, const gm_block *block, uint64_t align) {
  gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}};
  ok(gm_block_native(pool, block, &native.head, err));
  assert_int_equal(native.device_address % align, 0);
  assert_int_equal(native.buffer_offset % align, 0);
  if ((native.device_address - native.memory_offset) % align == 0) {
    assert_int_equal(native.memory_offset % align, 0);
  }
}

static void test_alignments_hold_for_offsets_too(void **state) {
  (void)state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BEST_FIT, GM_STRATEGY_BUCKET};
  for (int i = 0; i < 4; i++) {
    const gm_context_params params = {
        .struct_size = sizeof params, .ignore_environment = true, .libraries = named_libraries()};
    bench b;
    if (i / 2) { /* the engine's device has no addresses */
      bench_open(&b, true);
    } else {
      ok(gm_context_create(&params, &b.ctx, err));
      ok(gm_device_open_index(b.ctx, "vulkan", 0, &b.device, err));
    }
    aligned_requests(b.device, strategies[i % 2], check_aligned);
    if (i / 2) {
      bench_close(&b);
    } else {
      ok(gm_device_close(b.device, err));
      ok(gm_context_destroy(b.ctx, err));
    }
  }
}

static void test_a_pool_of_fixed_sizes(void **state) {
  (void)state;
  bench b;
  bench_open(&b, true);
  fixed_scene_run(b.device, b.stream, NULL, NULL);
  bench_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_sizes_of_buffer_and_memory_are_told),
      cmocka_unit_test(test_a_stream_without_leave_zeroes_nothing),
      cmocka_unit_test(test_alignments_hold_for_offsets_too),
      cmocka_unit_test(test_the_report_tells_what_was_done),
      cmocka_unit_test(test_a_pool_of_fixed_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
