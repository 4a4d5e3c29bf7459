#include "tests/integrations/torch_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls that CUDA and HIP have alike, with CUDA's name and HIP's. */
#define DRIVER_CALLS(X)                                                                                          \
  X(init, (unsigned flags), "cuInit", "hipInit")                                                                 \
  X(stream_create, (void **out, unsigned flags), "cuStreamCreate", "hipStreamCreateWithFlags")                   \
  X(stream_destroy, (void *stream), "cuStreamDestroy_v2", "hipStreamDestroy")                                    \
  X(stream_sync, (void *stream), "cuStreamSynchronize", "hipStreamSynchronize")                                  \
  X(stream_wait, (void *stream, void *event, unsigned flags), "cuStreamWaitEvent", "hipStreamWaitEvent")         \
  X(event_create, (void **out, unsigned flags), "cuEventCreate", "hipEventCreateWithFlags")                      \
  X(event_record, (void *event, void *stream), "cuEventRecord", "hipEventRecord")                                \
  X(event_destroy, (void *event), "cuEventDestroy_v2", "hipEventDestroy")                                        \
  X(fill, (void *to, unsigned word, size_t count, void *stream), "cuMemsetD32Async", "hipMemsetD32Async")        \
  X(pinned, (void **out, size_t bytes, unsigned flags), "cuMemHostAlloc", "hipHostMalloc")                       \
  X(pinned_free, (void *memory), "cuMemFreeHost", "hipHostFree")                                                 \
  X(capture_begin, (void *stream, int mode), "cuStreamBeginCapture_v2", "hipStreamBeginCapture")                 \
  X(capture_end, (void *stream, void **out), "cuStreamEndCapture", "hipStreamEndCapture")                        \
  X(capture_info, (void *stream, int *state, uint64_t *id), "cuStreamGetCaptureInfo", "hipStreamGetCaptureInfo") \
  X(instantiate, (void **out, void *graph, unsigned long long flags), "cuGraphInstantiateWithFlags",             \
    "hipGraphInstantiateWithFlags")                                                                              \
  X(launch, (void *graph, void *stream), "cuGraphLaunch", "hipGraphLaunch")                                      \
  X(exec_destroy, (void *graph), "cuGraphExecDestroy", "hipGraphExecDestroy")                                    \
  X(graph_destroy, (void *graph), "cuGraphDestroy", "hipGraphDestroy")

enum { NON_BLOCKING = 1, NO_TIMING = 2, THREAD_LOCAL = 1, ACTIVE = 1, HIP_TO_HOST = 2, HIP_ON_CARD = 3 };

static struct {
#define X(name, parameters, cuda, hip) int(*name) parameters;
  DRIVER_CALLS(X)
#undef X
  /* CUDA's own */
  int (*retain)(void **out, int device);
  int (*release)(int device);
  int (*set_context)(void *context);
  int (*cuda_copy)(void *to, const void *from, size_t bytes, void *stream);
  /* HIP's own */
  int (*set_device)(int device);
  int (*hip_copy)(void *to, const void *from, size_t bytes, int kind, void *stream);
  int (*control)(const char *command, char *reply, size_t capacity); /* a simulated driver's */
} driver;

static void *library;
static bool is_hip;
static void *context;

void driver_check(bool condition, const char *text, const char *file, int line) {
  if (condition) return;
  (void)fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
  exit(1);
}

static void none(const char *why) {
  (void)fprintf(stderr, "skipped: %s\n", why);
  exit(77);
}

static void find(const char *name, void *out) {
  void *symbol = dlsym(library, name);
  char why[96];
  (void)snprintf(why, sizeof why, "the driver has no %s", name);
  if (!symbol) none(why);
  memcpy(out, &symbol, sizeof symbol);
}

static void open_library(const char *backend) {
  static const char *const names[2][4] = {{"libcuda.so.1"},
                                          {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}};
  const char *wanted = getenv(is_hip ? "GM_HIP_LIBRARY" : "GM_CUDA_LIBRARY");
  if (wanted) library = dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
  for (int i = 0; !wanted && !library && names[is_hip][i]; i++)
    library = dlopen(names[is_hip][i], RTLD_NOW | RTLD_LOCAL);
  if (!library) none(is_hip ? "there is no runtime of HIP" : "there is no driver of CUDA");
  DRIVER_CHECK(setenv("GM_BACKENDS", backend, 1) == 0); /* gm takes the card that the engine has */
}

static void find_own(void) {
  void *control = dlsym(library, is_hip ? "simHipControl" : "simCudaControl");
  memcpy(&driver.control, &control, sizeof control);
  if (is_hip) {
    find("hipSetDevice", &driver.set_device);
    find("hipMemcpyAsync", &driver.hip_copy);
  } else {
    find("cuDevicePrimaryCtxRetain", &driver.retain);
    find("cuDevicePrimaryCtxRelease_v2", &driver.release);
    find("cuCtxSetCurrent", &driver.set_context);
    find("cuMemcpyAsync", &driver.cuda_copy);
  }
}

void driver_open(const char *backend) {
  is_hip = strcmp(backend, "hip") == 0;
  open_library(backend);
#define X(name, parameters, cuda, hip) find(is_hip ? (hip) : (cuda), &driver.name);
  DRIVER_CALLS(X)
#undef X
  find_own();
  if (driver.init(0) || (is_hip ? driver.set_device(0) : driver.retain(&context, 0))) none("there is no card");
  driver_enter();
}

void driver_enter(void) { DRIVER_CHECK((is_hip ? driver.set_device(0) : driver.set_context(context)) == 0); }

void driver_close(void) {
  if (is_hip) return;
  DRIVER_CHECK(driver.set_context(NULL) == 0);
  DRIVER_CHECK(driver.release(0) == 0);
}

void *driver_stream(void) {
  void *stream = NULL;
  DRIVER_CHECK(driver.stream_create(&stream, NON_BLOCKING) == 0);
  return stream;
}

void driver_stream_end(void *stream) { DRIVER_CHECK(driver.stream_destroy(stream) == 0); }

void driver_wait(void *stream) { DRIVER_CHECK(driver.stream_sync(stream) == 0); }

void driver_follow(void *later, void *earlier) {
  void *event = NULL;
  DRIVER_CHECK(driver.event_create(&event, NO_TIMING) == 0);
  DRIVER_CHECK(driver.event_record(event, earlier) == 0);
  DRIVER_CHECK(driver.stream_wait(later, event, 0) == 0);
  DRIVER_CHECK(driver.event_destroy(event) == 0);
}

void driver_fill(void *address, size_t bytes, unsigned word, void *stream) {
  if (bytes >= sizeof word) DRIVER_CHECK(driver.fill(address, word, bytes / sizeof word, stream) == 0);
}

static int copy(void *to, const void *from, size_t bytes, int kind, void *stream) {
  return is_hip ? driver.hip_copy(to, from, bytes, kind, stream) : driver.cuda_copy(to, from, bytes, stream);
}

void driver_copy(void *to, const void *from, size_t bytes, void *stream) {
  DRIVER_CHECK(copy(to, from, bytes, HIP_ON_CARD, stream) == 0);
}

void driver_read(void *to, const void *from, size_t bytes, void *stream) {
  DRIVER_CHECK(copy(to, from, bytes, HIP_TO_HOST, stream) == 0);
}

void *driver_pinned(size_t bytes) {
  void *memory = NULL;
  DRIVER_CHECK(driver.pinned(&memory, bytes, 0) == 0);
  return memory;
}

void driver_pinned_end(void *memory) { DRIVER_CHECK(driver.pinned_free(memory) == 0); }

void driver_capture_begin(void *stream) { DRIVER_CHECK(driver.capture_begin(stream, THREAD_LOCAL) == 0); }

void *driver_capture_end(void *stream) {
  void *graph = NULL, *exec = NULL;
  DRIVER_CHECK(driver.capture_end(stream, &graph) == 0);
  DRIVER_CHECK(driver.instantiate(&exec, graph, 0) == 0);
  DRIVER_CHECK(driver.graph_destroy(graph) == 0);
  return exec;
}

uint64_t driver_capture_of(void *stream) {
  int state = 0;
  uint64_t id = 0;
  return driver.capture_info(stream, &state, &id) == 0 && state == ACTIVE ? id : 0;
}

void driver_launch(void *graph, void *stream) { DRIVER_CHECK(driver.launch(graph, stream) == 0); }

void driver_graph_end(void *graph) { DRIVER_CHECK(driver.exec_destroy(graph) == 0); }

bool driver_has_leaks(void) {
  char left[2048] = "";
  const bool leaks = driver.control && driver.control("leaks", left, sizeof left) != 0;
  if (leaks) (void)fprintf(stderr, "left behind:\n%s", left);
  return leaks;
}
