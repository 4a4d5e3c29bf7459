/* Requests of every sort on the simulated CUDA driver: gm_explain tells what gm_alloc did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/cuda_fixture.h"
#include "support/fixed_scene.h"
#include "support/pool_bench.h"
#include "support/request_sweep.h"

static void test_the_report_tells_what_was_done(void **state) {
  (void)state;
  gm_context *ctx;
  gm_device *device;
  gm_stream *stream;
  const gm_context_params params = {.struct_size = sizeof params}; /* GM_CUDA_LIBRARY */
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  pool_bench_ok(gm_device_open_index(ctx, "cuda", 0, &device, err));
  pool_bench_ok(gm_stream_create(device, &stream, err));
  assert_in_range(sweep_device(device, stream, stream), sweep_least(500), 6000);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_ok(gm_device_close(device, err));
  pool_bench_ok(gm_context_destroy(ctx, err));
}

/* The calls of the driver that map a page, and those that give pinned memory, for one plain request of such a pool. */
static void check_pool(gm_device *device, const gm_pool_params *params, bool pages) {
  gm_pool *pool;
  gm_block block;
  gm_memory memory;
  uint64_t offset;
  gm_memory_type type = {.struct_size = sizeof type};
  cuda_say("zero");
  pool_bench_ok(gm_pool_create(device, params, &pool, err));
  assert_int_equal(gm_block_of(pool, gm_malloc(pool, 4096, NULL), &block), GM_OK);
  assert_int_equal(gm_block_memory(pool, &block, &memory, &offset), GM_OK);
  pool_bench_ok(gm_device_memory_type(device, memory.type, &type, err));
  assert_int_equal((type.flags & GM_MEMORY_DEVICE_LOCAL) != 0, pages);
  assert_int_equal(cuda_calls("cuMemMap") > 0, pages);
  assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(pool, err));
}

/* A pool that wishes for other memory than the device's first type maps no pages, and one that names that type does. */
static void test_a_pool_of_pinned_memory(void **state) {
  (void)state;
  gm_context *ctx;
  gm_device *device;
  const gm_context_params params = {.struct_size = sizeof params}; /* GM_CUDA_LIBRARY */
  const gm_pool_params plain = {.struct_size = sizeof plain}, first = {.struct_size = sizeof first, .memory_types = 1};
  const gm_pool_params pinned = {
      .struct_size = sizeof pinned, .must_be = GM_DEVICE_ACCESSIBLE, .require = GM_MEMORY_PINNED};
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  pool_bench_ok(gm_device_open_index(ctx, "cuda", 0, &device, err));
  check_pool(device, &plain, true);
  check_pool(device, &first, true);
  check_pool(device, &pinned, false);
  pool_bench_ok(gm_device_close(device, err));
  pool_bench_ok(gm_context_destroy(ctx, err));
}

static void zero_calls(void) { cuda_say("zero"); }

/* Calls for memory, of all sorts that the backend has. */
static long calls_for_memory(void) {
  return cuda_calls("cuMemAlloc_v2") + cuda_calls("cuMemFree_v2") + cuda_calls("cuMemCreate") +
         cuda_calls("cuMemRelease") + cuda_calls("cuMemMap") + cuda_calls("cuMemUnmap") + cuda_calls("cuMemGetInfo_v2");
}

static void test_a_pool_of_fixed_sizes(void **state) {
  (void)state;
  gm_context *ctx;
  gm_device *device;
  gm_stream *stream;
  const gm_context_params params = {.struct_size = sizeof params};
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  pool_bench_ok(gm_device_open_index(ctx, "cuda", 0, &device, err));
  pool_bench_ok(gm_stream_create(device, &stream, err));
  fixed_scene_run(device, stream, zero_calls, calls_for_memory);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_ok(gm_device_close(device, err));
  pool_bench_ok(gm_context_destroy(ctx, err));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_report_tells_what_was_done),
                                     cmocka_unit_test(test_a_pool_of_pinned_memory),
                                     cmocka_unit_test(test_a_pool_of_fixed_sizes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
