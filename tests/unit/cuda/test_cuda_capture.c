/* gm's pools beside an engine that captures, on the simulated CUDA driver; and what the seam says of a capture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "gm/buffer.h"
#include "gm/relocation.h"
#include "gm/share.h"
#include "gm/transfer.h"
#include "support/capture_owners.h"
#include "support/cuda_fixture.h"

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;

static struct {
  CUresult (*init)(unsigned flags);
  CUresult (*retain)(CUcontext *out, CUdevice device);
  CUresult (*release)(CUdevice device);
  CUresult (*set)(CUcontext context);
  CUresult (*stream_create)(CUstream *out, unsigned flags);
  CUresult (*stream_destroy)(CUstream stream);
  CUresult (*begin_capture)(CUstream stream, CUstreamCaptureMode mode);
  CUresult (*end_capture)(CUstream stream, CUgraph *out);
  CUresult (*graph_destroy)(CUgraph graph);
  CUresult (*capturing)(CUstream stream, CUstreamCaptureStatus *out);
  CUresult (*instantiate)(CUgraphExec *out, CUgraph graph, unsigned long long flags);
  CUresult (*launch)(CUgraphExec exec, CUstream stream);
  CUresult (*exec_destroy)(CUgraphExec exec);
  CUresult (*fill)(CUdeviceptr dst, unsigned char value, size_t bytes, CUstream stream);
  CUresult (*copy)(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
} engine;

static capture_engine cuda_engine;

/* The primary context, current in the calling thread. */
static void engine_enter(void) {
  CUcontext context = NULL;
  assert_int_equal(engine.init(0), CUDA_SUCCESS);
  assert_int_equal(engine.retain(&context, 0), CUDA_SUCCESS);
  assert_int_equal(engine.set(context), CUDA_SUCCESS);
  assert_int_equal(engine.release(0), CUDA_SUCCESS); /* gm's device keeps it */
}

static uintptr_t engine_stream_create(void) {
  CUstream stream = NULL;
  assert_int_equal(engine.stream_create(&stream, 0), CUDA_SUCCESS);
  return (uintptr_t)stream;
}

static void engine_stream_destroy(uintptr_t stream) {
  assert_int_equal(engine.stream_destroy((CUstream)stream), CUDA_SUCCESS);
  assert_int_equal(engine.set(NULL), CUDA_SUCCESS);
}

static gm_status engine_lend(gm_device *device, uintptr_t stream, gm_stream **out) {
  const gm_cuda_stream lent = {.head = {sizeof lent, GM_API_CUDA}, .stream = stream};
  return gm_stream_adopt(device, &lent.head, out, NULL);
}

static void engine_begin(uintptr_t stream, int mode) {
  assert_int_equal(engine.begin_capture((CUstream)stream, (CUstreamCaptureMode)mode), CUDA_SUCCESS);
}

static bool engine_is_active(uintptr_t stream) {
  CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
  return engine.capturing((CUstream)stream, &state) == CUDA_SUCCESS && state == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static void engine_end(uintptr_t stream) {
  CUgraph graph = NULL;
  assert_int_equal(engine.end_capture((CUstream)stream, &graph), CUDA_SUCCESS);
  assert_int_equal(engine.graph_destroy(graph), CUDA_SUCCESS);
}

static int engine_load(void **state) {
  (void)state;
  cuda_entry("cuInit", &engine.init);
  cuda_entry("cuDevicePrimaryCtxRetain", &engine.retain);
  cuda_entry("cuDevicePrimaryCtxRelease_v2", &engine.release);
  cuda_entry("cuCtxSetCurrent", &engine.set);
  cuda_entry("cuStreamCreate", &engine.stream_create);
  cuda_entry("cuStreamDestroy_v2", &engine.stream_destroy);
  cuda_entry("cuStreamBeginCapture_v2", &engine.begin_capture);
  cuda_entry("cuStreamEndCapture", &engine.end_capture);
  cuda_entry("cuGraphDestroy", &engine.graph_destroy);
  cuda_entry("cuStreamIsCapturing", &engine.capturing);
  cuda_entry("cuGraphInstantiateWithFlags", &engine.instantiate);
  cuda_entry("cuGraphLaunch", &engine.launch);
  cuda_entry("cuGraphExecDestroy", &engine.exec_destroy);
  cuda_entry("cuMemsetD8Async", &engine.fill);
  cuda_entry("cuMemcpyDtoDAsync_v2", &engine.copy);
  cuda_entry("simCudaControl", &cuda_script);
  cuda_engine = (capture_engine){.backend = "cuda",
                                 .library = getenv("GM_CUDA_LIBRARY"),
                                 .enter = engine_enter,
                                 .stream_create = engine_stream_create,
                                 .stream_destroy = engine_stream_destroy,
                                 .lend = engine_lend,
                                 .begin = engine_begin,
                                 .is_active = engine_is_active,
                                 .end = engine_end,
                                 .control = cuda_script};
  return 0;
}

static void test_pools_beside_a_capture(void **state) {
  (void)state;
  capture_play_all(&cuda_engine, GM_STRATEGY_BUCKET);
}

static void test_segments_beside_a_capture(void **state) {
  (void)state;
  capture_play_all(&cuda_engine, GM_STRATEGY_BEST_FIT);
}

static void test_fixed_sizes_beside_a_capture(void **state) {
  (void)state;
  capture_scene scene;
  const uint32_t word = 7;
  capture_open(&scene, &cuda_engine, GM_STRATEGY_FIXED);
  const uint64_t large = UINT64_C(200) << 20; /* there is one block of such a size */
  gm_block block = capture_alloc(&scene, scene.own, large);
  pool_bench_ok(gm_block_fill(scene.bench.pool, &block, 0, CAPTURE_LARGE, &word, 4, scene.own, NULL, err));
  capture_free(&scene, &block, scene.own);
  cuda_engine.begin(scene.native, 0);
  capture_say(&scene, "zero");
  block = capture_alloc(&scene, scene.captured, CAPTURE_SMALL);
  capture_free(&scene, &block, scene.captured);
  assert_int_equal(capture_calls(&scene, "cuMemAlloc_v2"), 0);
  capture_refused(&scene, large, 0); /* it would need a wait */
  assert_true(cuda_engine.is_active(scene.native));
  cuda_engine.end(scene.native);
  block = capture_alloc(&scene, scene.captured, large);
  capture_free(&scene, &block, scene.captured);
  capture_close(&scene);
}

static void test_owners_of_blocks_beside_a_capture(void **state) {
  (void)state;
  capture_play_owners(&cuda_engine, GM_STRATEGY_BUCKET);
  capture_play_owners(&cuda_engine, GM_STRATEGY_BEST_FIT);
}

/* gm_free would have to wait for this, and cannot. */
static void test_imported_memory_is_kept_for_a_capture(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .share = GM_SHARE_FD};
  capture_scene scene;
  gm_pool *shares;
  gm_block block, imported, used;
  gm_shared shared = {.struct_size = sizeof shared};
  const gm_request request = {.bytes = CAPTURE_SMALL};
  capture_open(&scene, &cuda_engine, GM_STRATEGY_BUCKET);
  pool_bench_ok(gm_pool_create(scene.bench.device, &params, &shares, err));
  assert_int_equal(gm_alloc(shares, &request, &block), GM_ACQUIRE_FRESH);
  pool_bench_ok(gm_block_export(shares, &block, &shared, err));
  pool_bench_ok(gm_block_import(scene.bench.pool, &shared, &imported, err));
  pool_bench_ok(gm_block_import(scene.bench.pool, &shared, &used, err));
  assert_int_equal(gm_use_on(scene.bench.pool, &used, scene.captured), GM_OK);
  engine_begin(scene.native, CU_STREAM_CAPTURE_MODE_GLOBAL);
  assert_int_equal(gm_free(scene.bench.pool, &imported, scene.captured), GM_ERR_BUSY);
  assert_int_equal(gm_free(scene.bench.pool, &used, NULL), GM_ERR_BUSY);
  assert_true(engine_is_active(scene.native));
  assert_int_equal(pool_bench_stats(&scene.bench).active, 2);
  engine_end(scene.native);
  assert_int_equal(gm_free(scene.bench.pool, &imported, scene.captured), GM_OK);
  assert_int_equal(gm_free(scene.bench.pool, &used, NULL), GM_OK);
  gm_shared_close(&shared);
  assert_int_equal(gm_free(shares, &block, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(shares, err));
  capture_close(&scene);
}

static void *adopt(cuda_fixture *f, uintptr_t stream) {
  const gm_cuda_stream lent = {.head = {sizeof lent, GM_API_CUDA}, .stream = stream};
  gm_stream_kind kind;
  void *out = NULL;
  assert_int_equal(f->ops->stream_adopt(f->device, &lent.head, &out, &kind, &f->err), GM_OK);
  return out;
}

static bool asked(cuda_fixture *f, void *stream) {
  bool capturing = false;
  assert_int_equal(f->ops->stream_capturing(f->device, stream, &capturing, &f->err), GM_OK);
  return capturing;
}

/* The default stream waits for blocking ones, so it cannot be used either; asking breaks nothing. */
static void test_which_streams_are_captured(void **state) {
  (void)state;
  cuda_fixture f;
  cuda_begin(&f);
  cuda_open(&f);
  engine_enter();
  const uintptr_t native = engine_stream_create();
  void *lent = adopt(&f, native), *legacy = adopt(&f, 0);
  assert_false(asked(&f, lent));
  engine_begin(native, CU_STREAM_CAPTURE_MODE_GLOBAL);
  cuda_say("zero");
  assert_false(asked(&f, f.stream)); /* gm's own, and none */
  assert_false(asked(&f, NULL));
  assert_int_equal(cuda_calls("cuStreamIsCapturing"), 0);
  assert_true(asked(&f, lent));
  assert_true(asked(&f, legacy));
  assert_true(engine_is_active(native));
  engine_end(native);
  assert_false(asked(&f, lent));
  assert_false(asked(&f, legacy));
  f.ops->stream_close(f.device, lent, GM_CLOSE_NORMAL);
  f.ops->stream_close(f.device, legacy, GM_CLOSE_NORMAL);
  engine_stream_destroy(native);
  cuda_end(&f);
}

/* A forbidden call, from whatever thread, ends a capture in its global mode. The simulated driver plays that, or the
 * tests above would prove nothing. */
static void test_a_foreign_allocation_would_break_it(void **state) {
  (void)state;
  cuda_fixture f;
  CUresult (*alloc)(CUdeviceptr *, size_t);
  CUdeviceptr none = 0;
  CUgraph graph = NULL;
  cuda_begin(&f);
  cuda_open(&f);
  cuda_entry("cuMemAlloc_v2", &alloc);
  engine_enter();
  const uintptr_t native = engine_stream_create();
  engine_begin(native, CU_STREAM_CAPTURE_MODE_GLOBAL);
  assert_int_equal(alloc(&none, 64), 900); /* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED */
  assert_false(engine_is_active(native));
  assert_int_equal(engine.end_capture((CUstream)native, &graph), 901); /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */
  engine_stream_destroy(native);
  cuda_end(&f);
}

/* ---- private pools ---- */

typedef struct graph_scene {
  capture_scene scene;
  gm_pool *graphs; /* private */
  gm_block out;    /* of the ordinary pool: what a replay leaves */
  CUgraphExec exec;
} graph_scene;

static gm_block graph_alloc(const graph_scene *self, uint64_t bytes) {
  const gm_request request = {.bytes = bytes, .stream = self->scene.captured};
  gm_block block = {0};
  const gm_acquire answer = gm_alloc(self->graphs, &request, &block);
  if (answer != GM_ACQUIRE_OK && answer != GM_ACQUIRE_FRESH) {
    gm_explanation why = {.struct_size = sizeof why};
    pool_bench_ok(gm_explain(self->graphs, &request, &why, err));
    fail_msg("gm_alloc answered %s: %s", gm_acquire_name(answer), why.text);
  }
  return block;
}

static void graph_fill(const gm_block *block, unsigned char value, uintptr_t stream) {
  assert_int_equal(engine.fill(block->address, value, block->bytes, (CUstream)stream), CUDA_SUCCESS);
}

static void graph_open(graph_scene *self, gm_strategy strategy) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy, .flags = GM_POOL_CAPTURES};
  memset(self, 0, sizeof *self);
  capture_open(&self->scene, &cuda_engine, strategy);
  pool_bench_ok(gm_pool_create(self->scene.bench.device, &params, &self->graphs, err));
  self->out = capture_alloc(&self->scene, NULL, 2 * CAPTURE_LARGE);
}

/* Temporaries are made and freed while the graph is captured, the second at the place of the first. The graph leaves
 * 0x11 in the first half of `out`, and 0x22 in the second. */
static void graph_capture(graph_scene *self, int mode) {
  const uintptr_t native = self->scene.native;
  CUgraph graph = NULL;
  engine_begin(native, mode);
  const gm_block first = graph_alloc(self, CAPTURE_LARGE), kept = graph_alloc(self, CAPTURE_LARGE);
  graph_fill(&first, 0x11, native);
  assert_int_equal(engine.copy(kept.address, first.address, CAPTURE_LARGE, (CUstream)native), CUDA_SUCCESS);
  assert_int_equal(gm_free(self->graphs, &first, self->scene.captured), GM_OK);
  const gm_block second = graph_alloc(self, CAPTURE_LARGE);
  assert_true(second.address == first.address);
  graph_fill(&second, 0x22, native);
  assert_int_equal(engine.copy(self->out.address, kept.address, CAPTURE_LARGE, (CUstream)native), CUDA_SUCCESS);
  assert_int_equal(engine.copy(self->out.address + CAPTURE_LARGE, second.address, CAPTURE_LARGE, (CUstream)native),
                   CUDA_SUCCESS);
  assert_int_equal(gm_free(self->graphs, &kept, self->scene.captured), GM_OK);
  assert_int_equal(gm_free(self->graphs, &second, self->scene.captured), GM_OK);
  assert_true(engine_is_active(native));
  assert_int_equal(engine.end_capture((CUstream)native, &graph), CUDA_SUCCESS);
  assert_int_equal(engine.instantiate(&self->exec, graph, 0), CUDA_SUCCESS);
  assert_int_equal(engine.graph_destroy(graph), CUDA_SUCCESS);
}

/* Other work of the engine: it takes memory of the ordinary pool, writes all of it, and gives it back. */
static void graph_meanwhile(const graph_scene *self, unsigned char value) {
  gm_block blocks[8];
  for (int i = 0; i < 8; i++) {
    blocks[i] = capture_alloc(&self->scene, self->scene.own, CAPTURE_LARGE);
    pool_bench_ok(
        gm_block_fill(self->scene.bench.pool, &blocks[i], 0, CAPTURE_LARGE, &value, 1, self->scene.own, NULL, err));
  }
  for (int i = 0; i < 8; i++) capture_free(&self->scene, &blocks[i], self->scene.own);
  gm_pool_trim(self->scene.bench.pool, 0);
}

static void graph_replay(const graph_scene *self) {
  static unsigned char got[2 * CAPTURE_LARGE], want[2 * CAPTURE_LARGE];
  memset(want, 0x11, CAPTURE_LARGE);
  memset(want + CAPTURE_LARGE, 0x22, CAPTURE_LARGE);
  graph_fill(&self->out, 0xee, self->scene.native);
  assert_int_equal(engine.launch(self->exec, (CUstream)self->scene.native), CUDA_SUCCESS);
  pool_bench_ok(gm_block_read(self->scene.bench.pool, &self->out, 0, got, sizeof got, self->scene.captured, NULL, err));
  if (memcmp(got, want, sizeof got) != 0) assert_memory_equal(got, want, sizeof got);
}

static void graph_close(graph_scene *self) {
  gm_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(engine.exec_destroy(self->exec), CUDA_SUCCESS);
  assert_int_equal(gm_pool_stats(self->graphs, &stats), GM_OK);
  assert_int_equal(stats.active, 0);
  assert_true(stats.pooled_bytes >= 2 * CAPTURE_LARGE);
  pool_bench_ok(gm_pool_destroy(self->graphs, err));
  capture_free(&self->scene, &self->out, self->scene.captured);
  capture_close(&self->scene);
}

static void test_a_graph_replays_while_other_work_goes_on(void **state) {
  (void)state;
  for (int mode = 0; mode < 3; mode++) {
    for (gm_strategy strategy = GM_STRATEGY_BUCKET; strategy <= GM_STRATEGY_BEST_FIT; strategy++) {
      graph_scene self;
      graph_open(&self, strategy);
      graph_capture(&self, mode);
      assert_int_equal(gm_pool_trim(self.graphs, 0), 0);
      for (int i = 0; i < 50; i++) {
        graph_meanwhile(&self, (unsigned char)i);
        graph_replay(&self);
      }
      graph_close(&self);
    }
  }
}

/* Memory of one capture serves the next one in the same pool, which then holds no more. */
static void test_captures_of_one_pool_share_its_memory(void **state) {
  (void)state;
  graph_scene self;
  gm_stats first = {.struct_size = sizeof first}, then = {.struct_size = sizeof then};
  graph_open(&self, GM_STRATEGY_BEST_FIT);
  graph_capture(&self, 0);
  assert_int_equal(gm_pool_stats(self.graphs, &first), GM_OK);
  for (int i = 0; i < 10; i++) {
    assert_int_equal(engine.exec_destroy(self.exec), CUDA_SUCCESS);
    graph_capture(&self, i % 3);
    graph_replay(&self);
  }
  assert_int_equal(gm_pool_stats(self.graphs, &then), GM_OK);
  assert_int_equal(then.reserved_bytes, first.reserved_bytes);
  graph_close(&self);
}

/* The driver does not tell during a capture what is free. A share of the total needs no such figure. */
static void test_a_share_of_the_device_bounds_a_capture(void **state) {
  (void)state;
  gm_explanation why = {.struct_size = sizeof why};
  capture_scene scene;
  gm_block block;
  capture_open(&scene, &cuda_engine, GM_STRATEGY_BEST_FIT);
  gm_memory_info memory = {.struct_size = sizeof memory};
  pool_bench_ok(gm_device_memory_info(scene.bench.device, &memory, err));
  const gm_pool_params params = {.struct_size = sizeof params, .memory_fraction = 0.25, .flags = GM_POOL_CAPTURES};
  pool_bench_ok(gm_pool_destroy(scene.bench.pool, err));
  pool_bench_ok(gm_pool_create(scene.bench.device, &params, &scene.bench.pool, err));
  engine_begin(scene.native, CU_STREAM_CAPTURE_MODE_GLOBAL);
  const gm_request large = {.bytes = memory.total_bytes / 3, .stream = scene.captured};
  assert_int_equal(gm_alloc(scene.bench.pool, &large, &block), GM_ACQUIRE_OVER_LIMIT);
  pool_bench_ok(gm_explain(scene.bench.pool, &large, &why, err));
  assert_int_equal(why.last_failure.status, GM_ERR_OVER_LIMIT);
  block = capture_alloc(&scene, scene.captured, memory.total_bytes / 8);
  capture_free(&scene, &block, scene.captured);
  assert_true(engine_is_active(scene.native));
  engine_end(scene.native);
  capture_close(&scene);
}

/* A pool that ends by force waits for streams that run, asks no captured one, and leaves the capture alone. */
static void test_a_forced_end_beside_a_capture(void **state) {
  (void)state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BEST_FIT, GM_STRATEGY_BUCKET};
  for (int i = 0; i < 2; i++) {
    capture_scene scene;
    gm_pool *pool;
    gm_point point;
    gm_error why = {.status = GM_OK};
    bool done = false;
    capture_open(&scene, &cuda_engine, strategies[i]);
    pool = scene.bench.pool;
    pool_bench_ok(gm_pool_create(scene.bench.device, NULL, &scene.bench.pool, err));
    const gm_request request = {.bytes = CAPTURE_LARGE, .stream = scene.captured};
    gm_block block, other;
    assert_true(gm_acquired(gm_alloc(pool, &request, &block)) && gm_acquired(gm_alloc(pool, &request, &other)));
    capture_say(&scene, "set LATENCY_US 20000");
    engine_begin(scene.native, CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_int_equal(gm_free(pool, &other, scene.captured), GM_OK);
    pool_bench_ok(gm_block_fill(pool, &block, 0, CAPTURE_LARGE, "x", 1, scene.own, &point, err));
    assert_int_equal(gm_pool_destroy(pool, NULL), GM_ERR_BUSY);
    assert_int_equal(gm_pool_destroy_force(pool, &why), GM_OK);
    assert_non_null(strstr(why.message, "1 blocks of "));
    assert_non_null(strstr(why.message, "and 1 streams could not be asked"));
    pool_bench_ok(gm_point_done(scene.bench.device, &point, &done, err));
    assert_true(done);
    gm_point_release(scene.bench.device, &point);
    assert_true(engine_is_active(scene.native));
    engine_end(scene.native);
    assert_int_equal(gm_free(pool, &block, scene.captured), GM_ERR_INVALID_ARGUMENT);
    capture_say(&scene, "set LATENCY_US 0");
    capture_close(&scene);
  }
}

/* A buffer that should move while an engine captures another stream locks no memory then, and does so later. */
static void test_a_move_beside_a_capture_costs_no_later_one(void **state) {
  (void)state;
  const gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = CAPTURE_OTHER}};
  gm_transfer_totals totals = {.struct_size = sizeof totals};
  capture_scene scene;
  gm_buffer *buffer;
  capture_open(&scene, &cuda_engine, GM_STRATEGY_BEST_FIT);
  pool_bench_ok(gm_buffer_create(scene.bench.pool, &params, &buffer, err));
  engine_begin(scene.native, CU_STREAM_CAPTURE_MODE_RELAXED);
  pool_bench_ok(gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, err));
  assert_true(engine_is_active(scene.native));
  engine_end(scene.native);
  pool_bench_ok(gm_buffer_move(buffer, GM_LOCATION_DEVICE, NULL, err));
  pool_bench_ok(gm_buffer_move(buffer, GM_LOCATION_HOST, NULL, err));
  pool_bench_ok(gm_device_transfer_totals(scene.bench.device, &totals, err));
  assert_int_equal(totals.down_bytes, CAPTURE_OTHER); /* by page-locked slots */
  gm_buffer_release(buffer, NULL);
  capture_close(&scene);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_which_streams_are_captured),
      cmocka_unit_test(test_a_foreign_allocation_would_break_it),
      cmocka_unit_test(test_pools_beside_a_capture),
      cmocka_unit_test(test_segments_beside_a_capture),
      cmocka_unit_test(test_fixed_sizes_beside_a_capture),
      cmocka_unit_test(test_owners_of_blocks_beside_a_capture),
      cmocka_unit_test(test_imported_memory_is_kept_for_a_capture),
      cmocka_unit_test(test_a_graph_replays_while_other_work_goes_on),
      cmocka_unit_test(test_captures_of_one_pool_share_its_memory),
      cmocka_unit_test(test_a_share_of_the_device_bounds_a_capture),
      cmocka_unit_test(test_a_forced_end_beside_a_capture),
      cmocka_unit_test(test_a_move_beside_a_capture_costs_no_later_one),
  };
  return cmocka_run_group_tests(tests, engine_load, NULL);
}
