/* Streams and points of the CUDA backend: the engine's default streams, captures, recycled handles and events. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "support/cuda_fixture.h"

typedef struct CUgraph_st *CUgraph;

typedef struct engine_api {
  CUresult (*create)(CUcontext *out, unsigned flags, CUdevice device);
  CUresult (*destroy)(CUcontext context);
  CUresult (*set)(CUcontext context);
  CUresult (*stream_create)(CUstream *out, unsigned flags);
  CUresult (*stream_destroy)(CUstream stream);
  CUresult (*event_create)(CUevent *out, unsigned flags);
  CUresult (*event_destroy)(CUevent event);
  CUresult (*event_record)(CUevent event, CUstream stream);
  CUresult (*begin_capture)(CUstream stream, CUstreamCaptureMode mode);
  CUresult (*end_capture)(CUstream stream, CUgraph *out);
  CUresult (*graph_destroy)(CUgraph graph);
  CUresult (*capturing)(CUstream stream, CUstreamCaptureStatus *out);
} engine_api;

static engine_api engine;
static CUcontext engine_context;

static int engine_load(void **state) {
  (void)state;
  cuda_entry("cuCtxCreate_v2", &engine.create);
  cuda_entry("cuCtxDestroy_v2", &engine.destroy);
  cuda_entry("cuCtxSetCurrent", &engine.set);
  cuda_entry("cuStreamCreate", &engine.stream_create);
  cuda_entry("cuStreamDestroy_v2", &engine.stream_destroy);
  cuda_entry("cuEventCreate", &engine.event_create);
  cuda_entry("cuEventDestroy_v2", &engine.event_destroy);
  cuda_entry("cuEventRecord", &engine.event_record);
  cuda_entry("cuStreamBeginCapture_v2", &engine.begin_capture);
  cuda_entry("cuStreamEndCapture", &engine.end_capture);
  cuda_entry("cuGraphDestroy", &engine.graph_destroy);
  cuda_entry("cuStreamIsCapturing", &engine.capturing);
  return 0;
}

static void engine_adopt(cuda_fixture *f) {
  cuda_init(f);
  assert_int_equal(engine.create(&engine_context, 0, 0), CUDA_SUCCESS);
  const gm_cuda_device lent = {.head = {sizeof lent, GM_API_CUDA}, .context = (uintptr_t)engine_context};
  assert_int_equal(f->ops->device_adopt(f->driver, &lent.head, &f->device, &f->err), GM_OK);
}

static void engine_begin(cuda_fixture *f) {
  cuda_begin(f);
  engine_adopt(f);
}

static void engine_end(cuda_fixture *f) {
  f->ops->device_close(f->device, GM_CLOSE_NORMAL);
  f->device = NULL;
  assert_int_equal(engine.destroy(engine_context), CUDA_SUCCESS);
  cuda_end(f);
}

static gm_status engine_lend(cuda_fixture *f, uintptr_t handle, void **out) {
  gm_stream_kind kind = GM_STREAM_UNORDERED;
  const gm_cuda_stream lent = {.head = {sizeof lent, GM_API_CUDA}, .stream = handle};
  const gm_status status = f->ops->stream_adopt(f->device, &lent.head, out, &kind, &f->err);
  if (status == GM_OK) assert_int_equal(kind, GM_STREAM_FIFO);
  return status;
}

static void test_default_streams_are_told_apart(void **state) {
  (void)state;
  cuda_fixture f;
  void *zero = NULL, *legacy = NULL, *mine = NULL;
  const uint32_t pattern = 1;
  engine_begin(&f);
  gm_memory memory = cuda_memory(&f, 0, 4096);
  assert_int_equal(engine_lend(&f, 0, &zero), GM_OK);
  assert_int_equal(engine_lend(&f, 1, &legacy), GM_OK);
  assert_int_equal(engine_lend(&f, 2, &mine), GM_OK);
  cuda_say("zero");
  void *streams[] = {zero, legacy, mine};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(f.ops->fill(f.device, streams[i], &memory, 0, 4096, &pattern, 4, NULL, &f.err), GM_OK);
    f.ops->stream_close(f.device, streams[i], GM_CLOSE_NORMAL);
  }
  assert_int_equal(cuda_calls("cuStreamDestroy_v2"), 0);
  cuda_free(&f, &memory);
  engine_end(&f);
}

typedef struct other_thread {
  cuda_fixture *f;
  void *stream;
  gm_status status;
} other_thread;

static void *other_thread_run(void *user) {
  other_thread *other = user;
  gm_error err;
  other->status = other->f->ops->stream_sync(other->f->device, other->stream, &err);
  return NULL;
}

/* CU_STREAM_PER_THREAD is another stream in each thread: FIFO holds only where it was adopted. */
static void test_the_per_thread_stream_stays_in_its_thread(void **state) {
  (void)state;
  cuda_fixture f;
  pthread_t thread;
  engine_begin(&f);
  other_thread other = {.f = &f};
  assert_int_equal(engine_lend(&f, 2, &other.stream), GM_OK);
  assert_int_equal(f.ops->stream_sync(f.device, other.stream, &f.err), GM_OK);
  assert_int_equal(pthread_create(&thread, NULL, other_thread_run, &other), 0);
  pthread_join(thread, NULL);
  assert_int_equal(other.status, GM_ERR_INVALID_ARGUMENT);
  f.ops->stream_close(f.device, other.stream, GM_CLOSE_NORMAL);
  engine_end(&f);
}

/* Without a number nothing tells whose it is, and points would be recorded on the stream of whoever asks. */
static void test_the_per_thread_stream_without_a_number_is_refused(void **state) {
  (void)state;
  cuda_fixture f;
  void *out = NULL;
  cuda_begin(&f);
  cuda_say("set VERSION 11080");
  engine_adopt(&f);
  assert_int_equal(engine_lend(&f, 2, &out), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(f.err.message, "CU_STREAM_PER_THREAD"));
  assert_null(out);
  engine_end(&f);
}

static void test_a_stream_of_another_context_is_refused(void **state) {
  (void)state;
  cuda_fixture f;
  CUcontext other = NULL;
  CUstream stream = NULL;
  void *out = NULL;
  engine_begin(&f);
  assert_int_equal(engine.create(&other, 0, 0), CUDA_SUCCESS);
  assert_int_equal(engine.stream_create(&stream, 1), CUDA_SUCCESS);
  assert_int_equal(engine_lend(&f, (uintptr_t)stream, &out), GM_ERR_INVALID_ARGUMENT);
  assert_null(out);
  engine.stream_destroy(stream);
  engine.destroy(other);
  engine.set(engine_context);
  engine_end(&f);
}

/* FIELD: handles of streams are recycled. gm's knowledge of the first must not stick to the second. */
static void test_recycled_stream_handles(void **state) {
  (void)state;
  cuda_fixture f;
  CUgraph graph = NULL;
  const uint32_t pattern = 2;
  engine_begin(&f);
  gm_memory memory = cuda_memory(&f, 0, 4096);
  for (int i = 0; i < 20; i++) {
    CUstream stream = NULL;
    void *lent = NULL;
    assert_int_equal(engine.stream_create(&stream, 1), CUDA_SUCCESS);
    assert_int_equal(engine_lend(&f, (uintptr_t)stream, &lent), GM_OK);
    if (i % 2) assert_int_equal(engine.begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    const gm_status status = f.ops->fill(f.device, lent, &memory, 0, 64, &pattern, 4, NULL, &f.err);
    assert_int_equal(status, i % 2 ? GM_ERR_NOT_SUPPORTED : GM_OK);
    f.ops->stream_close(f.device, lent, GM_CLOSE_NORMAL);
    if (i % 2) assert_int_equal(engine.end_capture(stream, &graph), CUDA_SUCCESS);
    if (i % 2) engine.graph_destroy(graph);
    assert_int_equal(engine.stream_destroy(stream), CUDA_SUCCESS);
  }
  cuda_free(&f, &memory);
  engine_end(&f);
}

/* Inside a capture gm neither submits, nor fills new memory, nor asks for figures, and the capture lives. */
static void test_a_capture_is_left_alone(void **state) {
  (void)state;
  static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                              CU_STREAM_CAPTURE_MODE_RELAXED};
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    cuda_fixture f;
    CUstream stream = NULL;
    CUgraph graph = NULL;
    CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
    void *lent = NULL;
    const uint32_t pattern = 4;
    bool done = false;
    gm_backend_point before = {0}, point = {0};
    gm_raw_figures figures = {.struct_size = sizeof figures};
    const gm_memory_params params = {.struct_size = sizeof params, .bytes = 4096};
    const gm_memory_params filled = {.struct_size = sizeof filled, .bytes = 4096, .flags = GM_ALLOC_COMMIT};
    engine_begin(&f);
    gm_memory first = cuda_memory(&f, 0, 4096), second;
    assert_int_equal(engine.stream_create(&stream, 1), CUDA_SUCCESS);
    assert_int_equal(engine_lend(&f, (uintptr_t)stream, &lent), GM_OK);
    assert_int_equal(f.ops->fill(f.device, lent, &first, 0, 64, &pattern, 4, &before, &f.err), GM_OK);
    assert_int_equal(engine.begin_capture(stream, modes[i]), CUDA_SUCCESS);
    assert_int_equal(f.ops->memory_alloc(f.device, &filled, &second, &f.err), GM_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(f.err.message, "captur"));
    assert_int_equal(f.ops->memory_alloc(f.device, &params, &second, &f.err), GM_OK); /* its thread's mode is relaxed */
    assert_int_equal(f.ops->fill(f.device, lent, &first, 0, 64, &pattern, 4, NULL, &f.err), GM_ERR_NOT_SUPPORTED);
    assert_int_equal(f.ops->point_record(f.device, lent, &point, &f.err), GM_ERR_NOT_SUPPORTED);
    assert_int_equal(f.ops->stream_sync(f.device, lent, &f.err), GM_ERR_NOT_SUPPORTED);
    assert_int_equal(f.ops->figures(f.driver, 0, f.device, &figures, &f.err), GM_OK);
    assert_int_equal(figures.driver.state, GM_RAW_ABSENT);
    assert_int_equal(f.ops->point_done(f.device, &before, &done, &f.err), GM_OK); /* of work before the capture */
    cuda_free(&f, &first);
    assert_int_equal(engine.capturing(stream, &capturing), CUDA_SUCCESS);
    assert_int_equal(capturing, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_int_equal(engine.end_capture(stream, &graph), CUDA_SUCCESS);
    engine.graph_destroy(graph);
    f.ops->point_release(f.device, &before, GM_CLOSE_NORMAL);
    cuda_free(&f, &second);
    f.ops->stream_close(f.device, lent, GM_CLOSE_NORMAL);
    engine.stream_destroy(stream);
    engine_end(&f);
  }
}

static void test_points_are_recycled_safely(void **state) {
  (void)state;
  cuda_fixture f;
  bool done = false;
  gm_backend_point old = {0}, fresh = {0};
  cuda_begin(&f);
  cuda_open(&f);
  assert_int_equal(f.ops->point_record(f.device, f.stream, &old, &f.err), GM_OK);
  f.ops->point_release(f.device, &old, GM_CLOSE_NORMAL);
  const long events = cuda_count("events");
  cuda_say("hold");
  assert_int_equal(f.ops->point_record(f.device, f.stream, &fresh, &f.err), GM_OK);
  assert_int_equal(cuda_count("events"), events); /* the same event serves again */
  assert_int_equal(f.ops->point_done(f.device, &fresh, &done, &f.err), GM_OK);
  assert_false(done);
  assert_int_equal(f.ops->point_done(f.device, &old, &done, &f.err), GM_OK);
  assert_true(done); /* given back: passed, whatever its event does now */
  assert_int_equal(f.ops->point_wait(f.device, &old, 0, &f.err), GM_OK);
  assert_int_equal(f.ops->point_wait(f.device, &fresh, 1000000, &f.err), GM_ERR_TIMEOUT);
  f.ops->point_release(f.device, &old, GM_CLOSE_NORMAL); /* once more does nothing */
  assert_int_equal(f.ops->point_done(f.device, &fresh, &done, &f.err), GM_OK);
  assert_false(done);
  cuda_say("release");
  assert_int_equal(f.ops->point_wait(f.device, &fresh, UINT64_MAX, &f.err), GM_OK);
  f.ops->point_release(f.device, &fresh, GM_CLOSE_NORMAL);
  cuda_end(&f);
}

static void test_the_event_cache_is_small(void **state) {
  (void)state;
  enum { POINTS = 300 };
  cuda_fixture f;
  static gm_backend_point points[POINTS];
  cuda_begin(&f);
  cuda_open(&f);
  for (int i = 0; i < POINTS; i++) {
    assert_int_equal(f.ops->point_record(f.device, f.stream, &points[i], &f.err), GM_OK);
  }
  assert_int_equal(cuda_count("events"), POINTS);
  for (int i = 0; i < POINTS; i++) f.ops->point_release(f.device, &points[i], GM_CLOSE_NORMAL);
  assert_true(cuda_count("events") <= 64);
  cuda_say("zero");
  for (int i = 0; i < POINTS; i++) {
    assert_int_equal(f.ops->point_record(f.device, f.stream, &points[0], &f.err), GM_OK);
    f.ops->point_release(f.device, &points[0], GM_CLOSE_NORMAL);
  }
  assert_int_equal(cuda_calls("cuEventCreate"), 0);
  assert_int_equal(cuda_calls("cuEventDestroy_v2"), 0);
  cuda_end(&f);
}

/* FIELD: an event made or destroyed under a lock stalls every thread that frees. Here the driver's call itself frees:
 * it would wait for ever. */
static cuda_fixture *locked_fixture;
static gm_backend_point locked_point;
static gm__cuda_syms locked_real;
static unsigned locked_calls;

static void locked_free(void) {
  gm_backend_point point = locked_point;
  locked_point = (gm_backend_point){0};
  locked_calls++;
  if (point.handle) locked_fixture->ops->point_release(locked_fixture->device, &point, GM_CLOSE_NORMAL);
}

static CUresult locked_create(CUevent *event, unsigned flags) {
  locked_free();
  return locked_real.cuEventCreate(event, flags);
}

static CUresult locked_destroy(CUevent event) {
  locked_free();
  return locked_real.cuEventDestroy_v2(event);
}

static void *locked_hook(void *user, const char *backend, const char *symbol, void *real) {
  (void)user, (void)backend;
  CUresult (*creating)(CUevent *, unsigned) = locked_create;
  CUresult (*destroying)(CUevent) = locked_destroy;
  if (strcmp(symbol, "cuEventCreate") == 0) {
    memcpy(&locked_real.cuEventCreate, &real, sizeof real);
    memcpy(&real, &creating, sizeof real);
  }
  if (strcmp(symbol, "cuEventDestroy_v2") == 0) {
    memcpy(&locked_real.cuEventDestroy_v2, &real, sizeof real);
    memcpy(&real, &destroying, sizeof real);
  }
  return real;
}

static void test_events_are_made_and_destroyed_without_a_lock(void **state) {
  (void)state;
  enum { POINTS = 70 };
  cuda_fixture f;
  gm_backend_point points[POINTS];
  cuda_begin(&f);
  f.host.symbol_hook = locked_hook;
  cuda_open(&f);
  locked_fixture = &f;
  for (int i = 0; i < POINTS; i++) {
    if (i == POINTS - 1) locked_point = points[0];
    assert_int_equal(f.ops->point_record(f.device, f.stream, &points[i], &f.err), GM_OK);
  }
  assert_int_equal(locked_point.handle, 0); /* given back while an event was made */
  for (int i = 1; i < POINTS; i++) {
    if (i == 65) locked_point = points[POINTS - 1];
    f.ops->point_release(f.device, &points[i], GM_CLOSE_NORMAL);
  }
  assert_int_equal(locked_point.handle, 0); /* and while one was destroyed */
  assert_true(locked_calls > POINTS);
  cuda_end(&f);
}

static void test_imported_points(void **state) {
  (void)state;
  cuda_fixture f;
  CUevent event = NULL;
  CUstream stream = NULL;
  gm_backend_point point = {7, 7};
  engine_begin(&f);
  assert_int_equal(engine.stream_create(&stream, 1), CUDA_SUCCESS);
  assert_int_equal(engine.event_create(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  const gm_cuda_point lent = {.head = {sizeof lent, GM_API_CUDA}, .event = (uintptr_t)event};
  assert_int_equal(f.ops->point_import(f.device, &lent.head, &point, &f.err), GM_OK);
  assert_int_equal(point.handle, 0); /* never recorded is passed */
  for (int i = 0; i < 200; i++) {
    cuda_say("hold");
    assert_int_equal(engine.event_record(event, stream), CUDA_SUCCESS);
    assert_int_equal(f.ops->point_import(f.device, &lent.head, &point, &f.err), GM_OK);
    assert_int_not_equal(point.handle, 0);
    cuda_say("release");
    assert_int_equal(f.ops->point_wait(f.device, &point, UINT64_MAX, &f.err), GM_OK);
    f.ops->point_release(f.device, &point, GM_CLOSE_NORMAL);
  }
  assert_int_equal(cuda_count("events"), 1); /* the engine's, which gm neither copied nor destroyed */
  engine.event_destroy(event);
  engine.stream_destroy(stream);
  engine_end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_default_streams_are_told_apart),
      cmocka_unit_test(test_the_per_thread_stream_stays_in_its_thread),
      cmocka_unit_test(test_the_per_thread_stream_without_a_number_is_refused),
      cmocka_unit_test(test_a_stream_of_another_context_is_refused),
      cmocka_unit_test(test_recycled_stream_handles),
      cmocka_unit_test(test_a_capture_is_left_alone),
      cmocka_unit_test(test_points_are_recycled_safely),
      cmocka_unit_test(test_the_event_cache_is_small),
      cmocka_unit_test(test_events_are_made_and_destroyed_without_a_lock),
      cmocka_unit_test(test_imported_points),
  };
  return cmocka_run_group_tests(tests, engine_load, NULL);
}
