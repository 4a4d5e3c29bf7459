/* gm's pools beside an engine that captures, on the simulated CUDA driver; and what the seam says of a capture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "gm/share.h"
#include "support/capture_owners.h"
#include "support/cuda_fixture.h"

typedef struct CUgraph_st *CUgraph;

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

static void test_owners_of_blocks_beside_a_capture(void **state) {
  (void)state;
  capture_play_owners(&cuda_engine, GM_STRATEGY_BUCKET);
  capture_play_owners(&cuda_engine, GM_STRATEGY_BEST_FIT);
}

/* What gm_free would have to wait for, and cannot. */
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

/* What a forbidden call does to a capture in its global mode, from whatever thread: the simulated driver plays it, or
 * the tests above would prove nothing. */
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_which_streams_are_captured),
      cmocka_unit_test(test_a_foreign_allocation_would_break_it),
      cmocka_unit_test(test_pools_beside_a_capture),
      cmocka_unit_test(test_segments_beside_a_capture),
      cmocka_unit_test(test_owners_of_blocks_beside_a_capture),
      cmocka_unit_test(test_imported_memory_is_kept_for_a_capture),
  };
  return cmocka_run_group_tests(tests, engine_load, NULL);
}
