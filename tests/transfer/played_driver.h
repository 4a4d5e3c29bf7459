/* The simulated driver of a test that is given "cuda" or "hip": its script. Needs cmocka.h included before. */
#ifndef GM_TESTS_TRANSFER_PLAYED_DRIVER_H
#define GM_TESTS_TRANSFER_PLAYED_DRIVER_H

#include <dlfcn.h>

#include "gm/native_cuda.h"
#include "gm/native_hip.h"
#include "transfer/transfer_world.h"

static const char *played_backend = "cuda";
static void *played_library;
static int (*played_script)(const char *command, char *reply, size_t capacity);

static inline bool played_is_hip(void) { return strcmp(played_backend, "hip") == 0; }

/* 77 where no simulated driver is named: a real one follows no script. */
static inline int played_load(int argc, char **argv) {
  if (argc > 1) played_backend = argv[1];
  const bool hip = played_is_hip();
  const char *path = getenv(hip ? "GM_HIP_LIBRARY" : "GM_CUDA_LIBRARY");
  played_library = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  void *symbol = played_library ? dlsym(played_library, hip ? "simHipControl" : "simCudaControl") : NULL;
  if (!symbol) {
    printf("skipped: no simulated %s driver is named\n", played_backend);
    return 77;
  }
  memcpy(&played_script, &symbol, sizeof symbol);
  return 0;
}

/* An entry of the library itself, past gm. */
static inline void played_entry(const char *name, void *out) {
  void *symbol = dlsym(played_library, name);
  if (!symbol) fail_msg("%s is not exported", name);
  memcpy(out, &symbol, sizeof symbol);
}

static inline void played_say(const char *command) { assert_int_equal(played_script(command, NULL, 0), 0); }

static inline long played_number(const char *command) {
  char reply[64] = "";
  assert_int_equal(played_script(command, reply, sizeof reply), 0);
  return strtol(reply, NULL, 10);
}

/* The engine's side of the driver: a stream of its own on a device that gm has open, lent to gm. The thread's current
 * device is that one until the engine leaves. */
typedef struct played_engine {
  uintptr_t stream;
  gm_stream *lent;
} played_engine;

static inline void played_set(uintptr_t context, int ordinal) {
  int (*set_context)(uintptr_t) = NULL, (*set_device)(int) = NULL;
  if (played_is_hip()) {
    played_entry("hipSetDevice", &set_device);
    assert_int_equal(set_device(ordinal), 0);
  } else {
    played_entry("cuCtxSetCurrent", &set_context);
    assert_int_equal(set_context(context), 0);
  }
}

static inline void played_engine_open(played_engine *e, gm_device *device) {
  gm_cuda_device cuda = {.head = {sizeof cuda, GM_API_CUDA}};
  gm_hip_device hip = {.head = {sizeof hip, GM_API_HIP}};
  int (*create)(uintptr_t *, unsigned) = NULL;
  world_ok(gm_device_native(device, played_is_hip() ? &hip.head : &cuda.head, err));
  played_set(cuda.context, hip.ordinal);
  played_entry(played_is_hip() ? "hipStreamCreateWithFlags" : "cuStreamCreate", &create);
  assert_int_equal(create(&e->stream, 1), 0);
  const gm_cuda_stream of_cuda = {.head = {sizeof of_cuda, GM_API_CUDA}, .stream = e->stream};
  const gm_hip_stream of_hip = {.head = {sizeof of_hip, GM_API_HIP}, .stream = e->stream};
  world_ok(gm_stream_adopt(device, played_is_hip() ? &of_hip.head : &of_cuda.head, &e->lent, err));
}

static inline void played_engine_close(played_engine *e) {
  int (*destroy)(uintptr_t) = NULL;
  world_ok(gm_stream_close(e->lent, err));
  played_entry(played_is_hip() ? "hipStreamDestroy" : "cuStreamDestroy_v2", &destroy);
  assert_int_equal(destroy(e->stream), 0);
  played_set(0, 0);
}

static inline void played_capture_begin(const played_engine *e) {
  int (*begin)(uintptr_t, int) = NULL;
  played_entry(played_is_hip() ? "hipStreamBeginCapture" : "cuStreamBeginCapture_v2", &begin);
  assert_int_equal(begin(e->stream, 0), 0);
}

/* It is whole. */
static inline void played_capture_end(const played_engine *e) {
  uintptr_t graph = 0;
  int (*end)(uintptr_t, uintptr_t *) = NULL, (*forget)(uintptr_t) = NULL;
  played_entry(played_is_hip() ? "hipStreamEndCapture" : "cuStreamEndCapture", &end);
  played_entry(played_is_hip() ? "hipGraphDestroy" : "cuGraphDestroy", &forget);
  assert_int_equal(end(e->stream, &graph), 0);
  assert_int_equal(forget(graph), 0);
}

/* It is as the environment says, without latency, with so many devices. */
static inline void played_begin(transfer_world *w, unsigned devices) {
  played_say("reload");
  played_say("set DEVICES 3");
  played_say("set LATENCY_US 0");
  world_begin(w);
  for (unsigned i = 0; i < devices; i++) {
    if (!world_add(w, played_backend, i)) fail_msg("device %u is not there", i);
  }
  played_say("zero");
}

/* Everything is given back, to the driver too. */
static inline void played_end(transfer_world *w) {
  char left[2048] = "";
  played_say("release");
  world_finish(w);
  if (played_script("leaks", left, sizeof left)) fail_msg("left at the driver:\n%s", left);
}

#endif
