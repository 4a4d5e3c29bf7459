/* A registered backend with a driver, PoCL: a copy of the OpenCL backend from a module. It is discovered, also in the
 * helper, selected and filled; the engine's devices are adopted by it, and there the engine's limits hold alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gm/config.h"
#include "gm/copy.h"
#include "support/opencl_fixture.h"
/* after the fixture */
#include "support/stranger.h"

static opencl_fixture f;
static opencl_engine engine;

OPENCL_ENGINE_GROUP(f, engine)

static void test_discovered(void **state) {
  (void)state;
  static const gm_probe_level levels[] = {GM_PROBE_ISOLATED, GM_PROBE_ACTIVE};
  for (size_t i = 0; i < 2; i++) {
    const gm_backend_ops *ops = stranger_ops(GM_TEST_STRANGER);
    gm_context *ctx = stranger_context(ops, "opencl");
    stranger_is_discovered(ctx, ops, "opencl", levels[i]);
    pool_bench_ok(gm_context_destroy(ctx, err));
  }
}

static void test_selected(void **state) {
  (void)state;
  for (int isolated = 0; isolated < 2; isolated++) {
    const gm_backend_ops *ops = stranger_ops(GM_TEST_STRANGER);
    gm_context *ctx = stranger_context(ops, "opencl");
    if (isolated) (void)stranger_backend(ctx, ops->name, GM_PROBE_ISOLATED);
    stranger_is_selected(ctx, ops);
    if (f.info.type == GM_DEVICE_TYPE_CPU) stranger_is_refused(ctx, ops);
    pool_bench_ok(gm_context_destroy(ctx, err));
  }
}

/* ---- adopted devices ---- */

typedef struct lent {
  gm_context *ctx;
  gm_device *device;
  gm_stream *stream;
  uint64_t total;
} lent;

static void lent_open(lent *l) {
  const gm_backend_ops *ops = stranger_ops(GM_TEST_STRANGER);
  const gm_opencl_device native = {.head = {sizeof native, GM_API_OPENCL},
                                   .device = (uintptr_t)engine.device,
                                   .context = (uintptr_t)engine.context,
                                   .allow_queue = true};
  const gm_opencl_queue queue = {.head = {sizeof queue, GM_API_OPENCL}, .queue = (uintptr_t)engine.queue};
  l->ctx = stranger_context(ops, "opencl");
  pool_bench_ok(gm_device_adopt_as(l->ctx, ops->name, &native.head, &l->device, err));
  assert_string_equal(gm_device_get_info(l->device)->backend, ops->name);
  pool_bench_ok(gm_stream_adopt(l->device, &queue.head, &l->stream, err));
  l->total = gm_device_get_info(l->device)->total_bytes;
}

static void lent_close(lent *l) {
  pool_bench_ok(gm_stream_close(l->stream, err));
  pool_bench_ok(gm_device_close(l->device, err));
  pool_bench_ok(gm_context_destroy(l->ctx, err));
}

/* The answer of a pool with these parameters to a request. All goes back. PoCL takes no memory that nobody touches. */
static gm_acquire answer_to(const lent *l, gm_pool_params params, uint64_t bytes) {
  gm_pool *pool = NULL;
  gm_block block;
  params.struct_size = sizeof params;
  pool_bench_ok(gm_pool_create(l->device, &params, &pool, err));
  const gm_request request = {.bytes = bytes, .stream = l->stream};
  const gm_acquire answer = gm_alloc(pool, &request, &block);
  if (gm_acquired(answer)) assert_int_equal(gm_free(pool, &block, l->stream), GM_OK);
  pool_bench_ok(gm_pool_destroy(pool, err));
  return answer;
}

static void test_no_limit_holds_by_default(void **state) {
  (void)state;
  lent l;
  gm_memory_info memory = {.struct_size = sizeof memory};
  lent_open(&l);
  pool_bench_ok(gm_device_memory_info(l.device, &memory, err));
  assert_int_equal(memory.margin_bytes, 0);
  assert_int_equal(answer_to(&l, (gm_pool_params){.max_bytes = 0}, 64 * STRANGER_MIB), GM_ACQUIRE_FRESH);
  pool_bench_ok(gm_config_set(l.ctx, "memory_fraction", "0.001", err)); /* somebody set it */
  const uint64_t more = l.total / 1000 + STRANGER_MIB;
  assert_int_equal(answer_to(&l, (gm_pool_params){.max_bytes = 0}, more), GM_ACQUIRE_OVER_LIMIT);
  lent_close(&l);
}

static void test_each_pool_has_its_own_limits(void **state) {
  (void)state;
  lent l;
  lent_open(&l);
  const double fraction = 16.5 * (double)STRANGER_MIB / (double)l.total;
  const gm_pool_params share = {.memory_fraction = fraction}, cap = {.max_bytes = 16 * STRANGER_MIB};
  assert_int_equal(answer_to(&l, share, 16 * STRANGER_MIB), GM_ACQUIRE_FRESH);
  assert_int_equal(answer_to(&l, share, 17 * STRANGER_MIB), GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(answer_to(&l, cap, 16 * STRANGER_MIB), GM_ACQUIRE_FRESH);
  assert_int_equal(answer_to(&l, cap, 17 * STRANGER_MIB), GM_ACQUIRE_OVER_LIMIT);
  lent_close(&l);
}

static uint64_t heap_bytes(const lent *l) {
  uint32_t count = 0;
  uint64_t bytes = 0;
  pool_bench_ok(gm_device_heap_count(l->device, &count, err));
  for (uint32_t i = 0; i < count; i++) {
    gm_heap_info heap = {.struct_size = sizeof heap};
    pool_bench_ok(gm_device_heap(l->device, i, &heap, err));
    bytes += heap.reserved_bytes;
  }
  return bytes;
}

/* Memory, queue and placement as on a device of gm's own backend. */
static void test_work_on_the_engine_s_device(void **state) {
  (void)state;
  lent l;
  gm_pool *pool = NULL;
  gm_block block;
  char back[6] = "";
  lent_open(&l);
  stranger_gets_layers(l.device);
  pool_bench_ok(gm_pool_create(l.device, NULL, &pool, err));
  const gm_request request = {.bytes = STRANGER_MIB, .stream = l.stream, .flags = GM_INSERT_WAIT};
  for (int i = 0; i < 3; i++) {
    gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
    assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
    pool_bench_ok(gm_block_object(pool, &block, 0, STRANGER_MIB, &native.head, err));
    assert_true(native.view != 0);
    pool_bench_ok(gm_block_write(pool, &block, 100, "there", 6, l.stream, NULL, err));
    pool_bench_ok(gm_stream_barrier(l.stream, err));
    pool_bench_ok(gm_block_read(pool, &block, 100, back, 6, l.stream, NULL, err));
    assert_string_equal(back, "there");
    assert_true(heap_bytes(&l) >= STRANGER_MIB);
    assert_int_equal(gm_free(pool, &block, l.stream), GM_OK);
  }
  pool_bench_ok(gm_pool_destroy(pool, err));
  assert_int_equal(heap_bytes(&l), 0);
  lent_close(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_discovered),
      cmocka_unit_test(test_selected),
      cmocka_unit_test(test_no_limit_holds_by_default),
      cmocka_unit_test(test_each_pool_has_its_own_limits),
      cmocka_unit_test(test_work_on_the_engine_s_device),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
