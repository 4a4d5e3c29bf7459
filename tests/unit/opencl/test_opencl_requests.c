/* Flags that need a queue (GM_ZERO, GM_COMMIT) on an engine's OpenCL device, with and without leave for a queue of
 * gm's own. The words of gm_explain on them are checked, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gm/context.h"
#include "gm/device.h"
#include "gm/stream.h"
#include "support/opencl_fixture.h"
/* after the fixture */
#include "support/aligned_requests.h"
#include "support/fixed_scene.h"
#include "support/request_sweep.h"
#include "test_data.h"

static opencl_fixture f;
static opencl_engine engine;

/* The engine's device and queues in gm's hands. */
typedef struct bench {
  gm_context *ctx;
  gm_device *device;
  gm_stream *stream, *in_order;
  cl_command_queue queue;
} bench;

#define ok(call)                                                          \
  do {                                                                    \
    gm_error failure = {.status = GM_OK}, *err = &failure;                \
    if (call) fail_msg("%s: %s: %s", #call, failure.op, failure.message); \
  } while (0)

OPENCL_ENGINE_GROUP(f, engine)

static gm_stream *adopt_queue(gm_device *device, cl_command_queue queue) {
  const gm_opencl_queue native = {.head = {sizeof native, GM_API_OPENCL}, .queue = (uintptr_t)queue};
  gm_stream *stream = NULL;
  ok(gm_stream_adopt(device, &native.head, &stream, err));
  return stream;
}

static bench bench_open(bool allow_queue) {
  const gm_context_params params = {.struct_size = sizeof params,
                                    .host_root = GM_TEST_DATA "/fault/host", /* each request reads the host's memory */
                                    .ignore_environment = true};
  const gm_opencl_device native = {.head = {sizeof native, GM_API_OPENCL},
                                   .device = (uintptr_t)engine.device,
                                   .context = (uintptr_t)engine.context,
                                   .allow_queue = allow_queue};
  bench made = {0};
  cl_int code = CL_SUCCESS;
  ok(gm_context_create(&params, &made.ctx, err));
  ok(gm_device_adopt(made.ctx, &native.head, &made.device, err));
  made.queue = engine.cl.clCreateCommandQueue(engine.context, engine.device, 0, &code);
  assert_non_null(made.queue);
  made.stream = adopt_queue(made.device, engine.queue);
  made.in_order = adopt_queue(made.device, made.queue);
  return made;
}

static void bench_close(bench *made) {
  ok(gm_stream_close(made->stream, err));
  ok(gm_stream_close(made->in_order, err));
  ok(gm_device_close(made->device, err));
  ok(gm_context_destroy(made->ctx, err));
  assert_int_equal(engine.cl.clReleaseCommandQueue(made->queue), CL_SUCCESS);
}

static gm_pool *make_pool(const bench *made, gm_strategy strategy) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy, .name = "requests"};
  gm_pool *pool = NULL;
  ok(gm_pool_create(made->device, &params, &pool, err));
  return pool;
}

/* The stream that the request names is the queue that the memory is committed on. */
static void test_memory_is_committed_on_the_stream_of_the_request(void **state) {
  (void)state;
  bench made = bench_open(false);
  for (int i = 0; i < 4; i++) {
    gm_pool *pool = make_pool(&made, i & 1 ? GM_STRATEGY_BUCKET : GM_STRATEGY_BEST_FIT);
    gm_stream *stream = i & 2 ? made.stream : made.in_order;
    const gm_request request = {.bytes = 1 << 20, .stream = stream, .flags = GM_COMMIT};
    gm_block block;
    char seen[5] = "";
    assert_int_equal(gm_alloc(pool, &request, &block), GM_ACQUIRE_FRESH);
    ok(gm_block_write(pool, &block, (1 << 20) - 5, "last", 5, stream, NULL, err));
    ok(gm_block_read(pool, &block, (1 << 20) - 5, seen, 5, stream, NULL, err));
    assert_string_equal(seen, "last");
    assert_int_equal(gm_free(pool, &block, stream), GM_OK);
    assert_true(sweep_has_block(gm_alloc(pool, &request, &block)));
    assert_int_equal(gm_free(pool, &block, stream), GM_OK);
    ok(gm_pool_destroy(pool, err));
  }
  bench_close(&made);
}

/* A matter of configuration: not FAILED, and the text says what to do. */
static void refused(gm_pool *pool, const gm_request *request, const char *word) {
  gm_explanation why = {.struct_size = sizeof why};
  gm_block block;
  assert_int_equal(gm_alloc(pool, request, &block), GM_ACQUIRE_INVALID);
  ok(gm_explain(pool, request, &why, err));
  assert_int_equal(why.status, GM_ERR_NOT_SUPPORTED);
  assert_ptr_equal(strstr(why.text, "gm_alloc: "), why.text);
  assert_non_null(strstr(why.text, word));
  assert_non_null(strstr(why.text, "`stream`"));
  assert_non_null(strstr(why.text, "allow_queue"));
}

static void test_without_a_stream_and_a_queue_they_are_refused_by_name(void **state) {
  (void)state;
  bench made = bench_open(false);
  for (int i = 0; i < 2; i++) {
    gm_pool *pool = make_pool(&made, i ? GM_STRATEGY_BUCKET : GM_STRATEGY_BEST_FIT);
    const gm_request commit = {.bytes = 4096, .flags = GM_COMMIT}, zero = {.bytes = 4096, .flags = GM_ZERO};
    const gm_request pieces = {.bytes = 8 << 20, .flags = GM_ZERO | GM_ALLOW_SPANS};
    refused(pool, &commit, "GM_COMMIT");
    refused(pool, &zero, "GM_ZERO");
    refused(pool, &pieces, "GM_ZERO");
    ok(gm_pool_destroy(pool, err));
  }
  bench_close(&made);
}

/* Copies without a stream, pools with guards: the call that was made is named, and what to do. */
static void test_calls_that_need_a_queue_name_themselves(void **state) {
  (void)state;
  bench made = bench_open(false);
  gm_pool *pool = make_pool(&made, GM_STRATEGY_BEST_FIT), *guarded;
  const gm_request request = {.bytes = 4096};
  const gm_pool_params zones = {.struct_size = sizeof zones, .red_zone_bytes = 64};
  gm_block block;
  gm_error told;
  assert_int_equal(gm_alloc(pool, &request, &block), GM_ACQUIRE_FRESH);
  assert_int_equal(gm_block_write(pool, &block, 0, "x", 1, NULL, NULL, &told), GM_ERR_NOT_SUPPORTED);
  assert_string_equal(told.op, "gm_block_write");
  assert_non_null(strstr(told.message, "`stream`"));
  assert_int_equal(gm_block_fill(pool, &block, 0, 16, "x", 1, NULL, NULL, &told), GM_ERR_NOT_SUPPORTED);
  assert_string_equal(told.op, "gm_block_fill");
  assert_int_equal(gm_pool_create(made.device, &zones, &guarded, &told), GM_ERR_NOT_SUPPORTED);
  assert_string_equal(told.op, "gm_pool_create");
  assert_non_null(strstr(told.message, "red zones and patterns"));
  assert_non_null(strstr(told.message, "allow_queue"));
  assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
  ok(gm_pool_destroy(pool, err));
  bench_close(&made);
}

/* The deeds that the report tells were done, on every sort of device and stream. */
static void test_the_report_tells_what_was_done(void **state) {
  (void)state;
  for (int leave = 0; leave < 2; leave++) {
    bench made = bench_open(leave);
    const unsigned unordered = sweep_device(made.device, made.stream, made.stream);
    const unsigned ordered = sweep_device(made.device, made.in_order, made.in_order);
    assert_int_equal(ordered, unordered);
    assert_in_range(ordered, sweep_least(leave ? 500 : 200), 6000);
    bench_close(&made);
  }
}

/* A cl_mem has no address that gm knows: the offset in it is what counts. */
static void check_aligned(gm_pool *pool, const gm_block *block, uint64_t align) {
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  ok(gm_block_native(pool, block, &native.head, err));
  assert_int_equal(native.offset % align, 0);
}

static void test_alignments_hold_for_offsets(void **state) {
  (void)state;
  bench made = bench_open(true);
  aligned_requests(made.device, GM_STRATEGY_BEST_FIT, check_aligned);
  aligned_requests(made.device, GM_STRATEGY_BUCKET, check_aligned);
  bench_close(&made);
}

static void test_a_pool_of_fixed_sizes(void **state) {
  (void)state;
  bench made = bench_open(true);
  fixed_scene_run(made.device, made.stream, NULL, NULL);
  fixed_scene_run(made.device, made.in_order, NULL, NULL);
  bench_close(&made);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_alignments_hold_for_offsets),
      cmocka_unit_test(test_memory_is_committed_on_the_stream_of_the_request),
      cmocka_unit_test(test_without_a_stream_and_a_queue_they_are_refused_by_name),
      cmocka_unit_test(test_calls_that_need_a_queue_name_themselves),
      cmocka_unit_test(test_the_report_tells_what_was_done),
      cmocka_unit_test(test_a_pool_of_fixed_sizes),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
