/* The state that the CUDA backend leaves of the calling thread: its current context, its capture mode; and of the
 * engine's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "support/cuda_fixture.h"

typedef struct engine_api {
  CUresult (*create)(CUcontext *out, unsigned flags, CUdevice device);
  CUresult (*destroy)(CUcontext context);
  CUresult (*set)(CUcontext context);
  CUresult (*get)(CUcontext *out);
  CUresult (*exchange)(CUstreamCaptureMode *mode);
} engine_api;

static engine_api engine;

static int engine_load(void **state) {
  (void)state;
  cuda_entry("cuCtxCreate_v2", &engine.create);
  cuda_entry("cuCtxDestroy_v2", &engine.destroy);
  cuda_entry("cuCtxSetCurrent", &engine.set);
  cuda_entry("cuCtxGetCurrent", &engine.get);
  cuda_entry("cuThreadExchangeStreamCaptureMode", &engine.exchange);
  return 0;
}

static CUcontext engine_current(void) {
  CUcontext current = NULL;
  assert_int_equal(engine.get(&current), CUDA_SUCCESS);
  return current;
}

static CUstreamCaptureMode engine_mode(void) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, ignored;
  assert_int_equal(engine.exchange(&mode), CUDA_SUCCESS);
  ignored = mode;
  assert_int_equal(engine.exchange(&ignored), CUDA_SUCCESS);
  return mode;
}

/* Everything that reaches the driver, good and bad. */
static void use_all(cuda_fixture *f) {
  const gm_backend_ops *ops = f->ops;
  const uint32_t pattern = 3;
  const gm_vmm_props props = {0};
  gm_backend_point point = {0};
  gm_raw_figures figures = {.struct_size = sizeof figures};
  static unsigned char host[8192];
  uint64_t granule = 0, address = 0;
  bool done = false;
  void *mapped = NULL;
  for (uint32_t type = 0; type < 3; type++) {
    gm_memory memory = cuda_memory(f, type, sizeof host);
    assert_int_equal(ops->copy_to_device(f->device, f->stream, &memory, 0, host, sizeof host, NULL, &f->err), GM_OK);
    assert_int_equal(ops->copy_to_host(f->device, NULL, &memory, 0, host, sizeof host, NULL, &f->err), GM_OK);
    assert_int_equal(ops->fill(f->device, f->stream, &memory, 0, 100, &pattern, 4, &point, &f->err), GM_OK);
    assert_int_equal(ops->point_wait_on(f->device, NULL, &point, &f->err), GM_OK);
    assert_int_equal(ops->point_wait(f->device, &point, UINT64_MAX, &f->err), GM_OK);
    assert_int_equal(ops->point_done(f->device, &point, &done, &f->err), GM_OK);
    ops->point_release(f->device, &point, GM_CLOSE_NORMAL);
    const gm_status status = ops->map(f->device, f->stream, &memory, 0, 100, GM_MAP_READ, &mapped, &f->err);
    assert_int_equal(status, type ? GM_OK : GM_ERR_NOT_SUPPORTED);
    cuda_free(f, &memory);
  }
  const gm_memory_params large = {.struct_size = sizeof large, .bytes = UINT64_C(1) << 29};
  gm_memory first, second;
  assert_int_equal(ops->memory_alloc(f->device, &large, &first, &f->err), GM_OK);
  assert_int_equal(ops->memory_alloc(f->device, &large, &second, &f->err), GM_ERR_OUT_OF_DEVICE_MEMORY);
  cuda_free(f, &first);
  assert_int_equal(ops->host_register(f->device, host, sizeof host, &f->err), GM_OK);
  assert_int_equal(ops->host_unregister(f->device, host, GM_CLOSE_NORMAL, &f->err), GM_OK);
  assert_int_equal(ops->vmm_granularity(f->device, &props, &granule, &f->err), GM_OK);
  assert_int_equal(ops->vmm_reserve(f->device, granule, 0, &address, &f->err), GM_OK);
  assert_int_not_equal(ops->vmm_access(f->device, address, granule, &f->err), GM_OK); /* nothing is mapped */
  assert_int_equal(ops->vmm_unreserve(f->device, address, granule, GM_CLOSE_NORMAL, &f->err), GM_OK);
  assert_int_equal(ops->figures(f->driver, 0, f->device, &figures, &f->err), GM_OK);
  assert_int_equal(ops->device_state(f->device, &f->err), GM_OK);
  assert_int_equal(ops->stream_sync(f->device, f->stream, &f->err), GM_OK);
}

static void test_the_callers_context_comes_back(void **state) {
  (void)state;
  cuda_fixture f;
  CUcontext own = NULL;
  cuda_begin(&f);
  cuda_open(&f);
  for (int round = 0; round < 3; round++) { /* none; another one; gm's own */
    if (round == 1) assert_int_equal(engine.create(&own, 0, 0), CUDA_SUCCESS);
    if (round == 2) {
      gm_cuda_device native = {.head = {sizeof native, GM_API_CUDA}};
      assert_int_equal(f.ops->device_native(f.device, &native.head, &f.err), GM_OK);
      assert_int_equal(engine.set((CUcontext)native.context), CUDA_SUCCESS);
    }
    CUcontext before = engine_current();
    assert_true(round > 0 || before == NULL);
    use_all(&f);
    assert_ptr_equal(engine_current(), before);
    assert_int_equal(engine_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL); /* a thread's default */
  }
  engine.set(NULL);
  assert_int_equal(engine.destroy(own), CUDA_SUCCESS);
  cuda_end(&f);
}

/* Where a push, a pop or the question fails once, the caller's context is there all the same. */
static void test_the_context_survives_failing_calls(void **state) {
  (void)state;
  static const char *const specs[] = {"fail cuCtxPushCurrent:1:1", "fail cuCtxPopCurrent:1:1",
                                      "fail cuCtxGetCurrent:1:1", "fail cuThreadExchangeStreamCaptureMode:1:1"};
  cuda_fixture f;
  CUcontext own = NULL;
  cuda_begin(&f);
  cuda_open(&f);
  assert_int_equal(engine.create(&own, 0, 0), CUDA_SUCCESS);
  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
    gm_memory memory = cuda_memory(&f, 0, 4096);
    cuda_say(specs[i]);
    cuda_free(&f, &memory);
    cuda_say("fail");
    assert_ptr_equal(engine_current(), own);
  }
  engine.set(NULL);
  engine.destroy(own);
  cuda_end(&f);
}

static void test_primary_contexts_are_retained_in_balance(void **state) {
  (void)state;
  cuda_fixture f;
  void *devices[4];
  cuda_begin(&f);
  cuda_init(&f);
  for (int i = 0; i < 4; i++) assert_int_equal(f.ops->device_open(f.driver, 0, &devices[i], &f.err), GM_OK);
  assert_int_equal(cuda_count("primary_references"), 4);
  for (int i = 0; i < 4; i++) f.ops->device_close(devices[i], GM_CLOSE_NORMAL);
  assert_int_equal(cuda_count("primary_references"), 0);
  cuda_say("fail cuDevicePrimaryCtxRetain:1:2");
  assert_int_equal(f.ops->device_open(f.driver, 0, &devices[0], &f.err), GM_ERR_OUT_OF_DEVICE_MEMORY);
  const gm_cuda_device primary = {.head = {sizeof primary, GM_API_CUDA}}; /* context 0: the primary one */
  assert_int_equal(f.ops->device_adopt(f.driver, &primary.head, &devices[0], &f.err), GM_OK);
  assert_int_equal(cuda_count("primary_references"), 1);
  f.ops->device_close(devices[0], GM_CLOSE_NORMAL);
  cuda_end(&f);
}

static void test_an_engines_context_is_used_and_left(void **state) {
  (void)state;
  cuda_fixture f;
  CUcontext own = NULL;
  gm_stream_kind kind;
  gm_device_info info = {.struct_size = sizeof info};
  cuda_begin(&f);
  cuda_say("set DEVICES 2");
  cuda_init(&f);
  assert_int_equal(engine.create(&own, 0, 1), CUDA_SUCCESS);
  assert_int_equal(engine.set(NULL), CUDA_SUCCESS);
  cuda_say("zero");
  gm_cuda_device lent = {.head = {sizeof lent, GM_API_CUDA}, .context = (uintptr_t)own};
  assert_int_equal(f.ops->device_adopt(f.driver, &lent.head, &f.device, &f.err), GM_OK);
  assert_int_equal(f.ops->device_info(f.driver, 0, f.device, &info, &f.err), GM_OK);
  assert_int_equal(info.index, 1); /* its device is asked for, `ordinal` is not read */
  assert_int_equal(f.ops->stream_create(f.device, &f.stream, &kind, &f.err), GM_OK);
  use_all(&f);
  assert_int_equal(cuda_calls("cuDevicePrimaryCtxRetain"), 0);
  f.ops->stream_close(f.device, f.stream, GM_CLOSE_NORMAL);
  f.ops->device_close(f.device, GM_CLOSE_NORMAL);
  f.stream = f.device = NULL;
  assert_int_equal(engine.set(own), CUDA_SUCCESS); /* it is still there */
  assert_int_equal(engine.destroy(own), CUDA_SUCCESS);
  lent.context = 0;
  lent.ordinal = -1;
  assert_int_equal(f.ops->device_adopt(f.driver, &lent.head, &f.device, &f.err), GM_ERR_INVALID_ARGUMENT);
  lent.ordinal = 2;
  assert_int_equal(f.ops->device_adopt(f.driver, &lent.head, &f.device, &f.err), GM_ERR_NOT_FOUND);
  cuda_end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_callers_context_comes_back),
      cmocka_unit_test(test_the_context_survives_failing_calls),
      cmocka_unit_test(test_primary_contexts_are_retained_in_balance),
      cmocka_unit_test(test_an_engines_context_is_used_and_left),
  };
  return cmocka_run_group_tests(tests, engine_load, NULL);
}
