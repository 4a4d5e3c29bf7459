/* The OpenCL backend on a real driver, PoCL unless GM_TEST_OPENCL_DRIVER names another (the short word, "rusticl"), and
 * an engine's side of the same driver. Two devices where PoCL allows. Needs cmocka.h included before.
 *
 * Without a device of that driver a test is skipped (77), unless GM_REQUIRE_BACKENDS lists opencl: then it fails. */
#ifndef GM_TESTS_SUPPORT_OPENCL_FIXTURE_H
#define GM_TESTS_SUPPORT_OPENCL_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/opencl/opencl_backend.h"
#include "backends/opencl/opencl_syms.h"
#include "core/base/alloc.h"
#include "gm/native_opencl.h"

typedef struct opencl_fixture {
  gm_backend_host host;
  const gm_backend_ops *ops;
  void *driver, *device, *stream;
  uint32_t index;
  gm_device_info info;
} opencl_fixture;

/* The engine's own context and queue, made past gm. */
typedef struct opencl_engine {
  gm__dynlib *lib;
  gm__opencl_syms cl;
  cl_device_id device;
  cl_context context;
  cl_command_queue queue;
  bool unordered; /* the queue is out of order, as every driver but rusticl allows */
} opencl_engine;

static inline void opencl_fixture_host(gm_backend_host *host) {
  setenv("POCL_DEVICES", "pthread pthread", 0);
  *host = (gm_backend_host){.struct_size = sizeof *host, .services = gm__default_services(), .options = ""};
}

static inline void opencl_fixture_absent(const char *why) {
  const char *required = getenv("GM_REQUIRE_BACKENDS");
  printf("%s: no OpenCL device to test with: %s\n", required && strstr(required, "opencl") ? "failed" : "skipped", why);
  exit(required && strstr(required, "opencl") ? 1 : 77);
}

/* The first device of the wanted driver; false when there is none. */
static inline bool opencl_fixture_choose(opencl_fixture *fixture) {
  const char *wanted = getenv("GM_TEST_OPENCL_DRIVER");
  uint32_t count = 0;
  assert_int_equal(fixture->ops->device_count(fixture->driver, &count, NULL), GM_OK);
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(fixture->ops->device_info(fixture->driver, i, NULL, &fixture->info, NULL), GM_OK);
    if (strcmp(fixture->info.driver, wanted ? wanted : "pocl") != 0) continue;
    fixture->index = i;
    return true;
  }
  return false;
}

static inline void opencl_fixture_init(opencl_fixture *fixture) {
  gm_error err = {0};
  *fixture = (opencl_fixture){.ops = &gm__opencl_backend};
  opencl_fixture_host(&fixture->host);
  if (fixture->ops->init(&fixture->host, &fixture->driver, &err) != GM_OK) opencl_fixture_absent(err.message);
  if (!opencl_fixture_choose(fixture)) opencl_fixture_absent("the driver wanted is not there");
}

static inline void opencl_fixture_open(opencl_fixture *fixture) {
  gm_stream_kind kind;
  opencl_fixture_init(fixture);
  assert_int_equal(fixture->ops->device_open(fixture->driver, fixture->index, &fixture->device, NULL), GM_OK);
  assert_int_equal(fixture->ops->stream_create(fixture->device, &fixture->stream, &kind, NULL), GM_OK);
  assert_int_equal(kind, GM_STREAM_FIFO);
}

static inline void opencl_fixture_close(opencl_fixture *fixture) {
  if (fixture->stream) fixture->ops->stream_close(fixture->device, fixture->stream, GM_CLOSE_NORMAL);
  if (fixture->device) fixture->ops->device_close(fixture->device, GM_CLOSE_NORMAL);
  fixture->ops->fini(fixture->driver, GM_CLOSE_NORMAL);
}

/* The driver promises memory and takes it when it is touched: not so rusticl on llvmpipe and Oclgrind. */
static inline bool opencl_fixture_lazy(const opencl_fixture *fixture) {
  return strcmp(fixture->info.driver, "rusticl") != 0 && strcmp(fixture->info.driver, "oclgrind") != 0;
}

static inline gm_memory opencl_fixture_alloc(const opencl_fixture *fixture, uint32_t type, uint64_t bytes) {
  const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = bytes};
  gm_memory memory = {0};
  assert_int_equal(fixture->ops->memory_alloc(fixture->device, &params, &memory, NULL), GM_OK);
  return memory;
}

static inline void opencl_fixture_free(const opencl_fixture *fixture, const gm_memory *memory) {
  assert_int_equal(fixture->ops->memory_free(fixture->device, memory, GM_CLOSE_NORMAL, NULL), GM_OK);
}

/* On the device that the fixture has open. */
static inline void opencl_engine_open(opencl_engine *engine, const opencl_fixture *fixture) {
  gm_opencl_device native = {.head = {sizeof native, GM_API_OPENCL}};
  cl_int code = CL_SUCCESS;
  assert_int_equal(gm__opencl_load(&fixture->host, &engine->lib, &engine->cl, NULL), GM_OK);
  gm__dynlib_keep(engine->lib);
  assert_int_equal(fixture->ops->device_native(fixture->device, &native.head, NULL), GM_OK);
  engine->device = (cl_device_id)native.device;
  engine->context = engine->cl.clCreateContext(NULL, 1, &engine->device, NULL, NULL, &code);
  assert_non_null(engine->context);
  engine->queue =
      engine->cl.clCreateCommandQueue(engine->context, engine->device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
  engine->unordered = engine->queue != NULL;
  if (!engine->queue) engine->queue = engine->cl.clCreateCommandQueue(engine->context, engine->device, 0, &code);
  assert_non_null(engine->queue);
}

static inline cl_uint opencl_engine_references(const opencl_engine *engine) {
  cl_uint count = 0;
  assert_int_equal(engine->cl.clGetContextInfo(engine->context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL),
                   CL_SUCCESS);
  return count;
}

static inline cl_uint opencl_engine_queue_references(const opencl_engine *engine, cl_command_queue queue) {
  cl_uint count = 0;
  assert_int_equal(engine->cl.clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, NULL),
                   CL_SUCCESS);
  return count;
}

/* PoCL's threads release the context and the queue of a finished command a moment after they announce its end. A
 * reference that leaked is still there after ten seconds. */
enum { OPENCL_ENGINE_TURNS = 10000, OPENCL_ENGINE_TURN_NS = 1000000 };

static inline void opencl_engine_expect_references(const opencl_engine *engine, cl_uint expected) {
  const struct timespec turn = {.tv_nsec = OPENCL_ENGINE_TURN_NS};
  int turns = OPENCL_ENGINE_TURNS;
  while (turns-- && opencl_engine_references(engine) != expected) nanosleep(&turn, NULL);
  assert_int_equal(opencl_engine_references(engine), expected);
}

static inline void opencl_engine_expect_queue_references(const opencl_engine *engine, cl_command_queue queue,
                                                         cl_uint expected) {
  const struct timespec turn = {.tv_nsec = OPENCL_ENGINE_TURN_NS};
  int turns = OPENCL_ENGINE_TURNS;
  while (turns-- && opencl_engine_queue_references(engine, queue) != expected) nanosleep(&turn, NULL);
  assert_int_equal(opencl_engine_queue_references(engine, queue), expected);
}

static inline void opencl_engine_close(opencl_engine *engine) {
  assert_int_equal(engine->cl.clReleaseCommandQueue(engine->queue), CL_SUCCESS);
  assert_int_equal(engine->cl.clReleaseContext(engine->context), CL_SUCCESS);
  gm__dynlib_close(engine->lib);
}

/* open_all and close_all: the begin and the end of a program's tests, which share `fixture`, or an engine's side, too.
 */
#define OPENCL_FIXTURE_GROUP(fixture)  \
  static int open_all(void **state) {  \
    (void)state;                       \
    opencl_fixture_open(&(fixture));   \
    return 0;                          \
  }                                    \
  static int close_all(void **state) { \
    (void)state;                       \
    opencl_fixture_close(&(fixture));  \
    return 0;                          \
  }
#define OPENCL_ENGINE_GROUP(fixture, engine)   \
  static int open_all(void **state) {          \
    (void)state;                               \
    opencl_fixture_open(&(fixture));           \
    opencl_engine_open(&(engine), &(fixture)); \
    return 0;                                  \
  }                                            \
  static int close_all(void **state) {         \
    (void)state;                               \
    opencl_engine_close(&(engine));            \
    opencl_fixture_close(&(fixture));          \
    return 0;                                  \
  }

#endif
