/* The HIP backend on a simulated runtime: the world of its tests. Needs cmocka.h included before, and
 * SIM_HIP5_LIBRARY and SIM_HIP6_LIBRARY, which name the two. */
#ifndef GM_TESTS_SIMULATED_HIP_HIP_WORLD_H
#define GM_TESTS_SIMULATED_HIP_HIP_WORLD_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/hip/hip_backend.h"
#include "gm/native_hip.h"
#include "support/counted_services.h"
#include "tests/simulated/hip/sim_hip_api.h"

enum { BLOCK = 1 << 20 };

typedef struct hip_world {
  counted_services memory;
  gm_backend_host host;
  const gm_backend_ops *ops;
  void *driver, *device;
  void *library; /* the engine's own handle of it */
  gm_device_info info;
} hip_world;

static hip_world world;

/* The calls of the engine, past gm. */
#define ENGINE_CALLS(X)         \
  X(hipDeviceDisablePeerAccess) \
  X(hipDeviceEnablePeerAccess)  \
  X(hipFree)                    \
  X(hipGetDevice)               \
  X(hipGetLastError)            \
  X(hipGraphDestroy)            \
  X(hipMalloc)                  \
  X(hipPeekAtLastError)         \
  X(hipSetDevice)               \
  X(hipStreamBeginCapture)      \
  X(hipStreamCreateWithFlags)   \
  X(hipStreamDestroy)           \
  X(hipStreamEndCapture)        \
  X(hipStreamIsCapturing)       \
  X(simHipControl)

static struct {
#define X(name) __typeof__(name) *name;
  ENGINE_CALLS(X)
#undef X
} engine;

static inline void engine_symbol(const char *name, void *out) {
  void *symbol = dlsym(world.library, name);
  if (!symbol) fail_msg("%s is not exported", name);
  memcpy(out, &symbol, sizeof symbol);
}

static inline void engine_load(void) {
#define X(name) engine_symbol(#name, &engine.name);
  ENGINE_CALLS(X)
#undef X
}

static inline void control(const char *command) { assert_int_equal(engine.simHipControl(command, NULL, 0), 0); }

static inline long long number(const char *command) {
  char reply[64];
  assert_int_equal(engine.simHipControl(command, reply, sizeof reply), 0);
  return atoll(reply);
}

static inline void world_load(const char *library) {
  world = (hip_world){.ops = &gm__hip_backend};
  counted_services_init(&world.memory);
  world.host = (gm_backend_host){
      .struct_size = sizeof world.host, .services = &world.memory.services, .library = library, .options = ""};
  world.library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(world.library);
  engine_load();
  control("reload");
  control("set DEVICES 2");
  control("set LATENCY_US 0");
}

static inline void world_open(const char *library, uint32_t index) {
  gm_error err = {0};
  world_load(library);
  if (world.ops->init(&world.host, &world.driver, &err) != GM_OK) fail_msg("%s", err.message);
  if (world.ops->device_open(world.driver, index, &world.device, &err) != GM_OK) fail_msg("%s", err.message);
  assert_int_equal(world.ops->device_info(world.driver, 0, world.device, &world.info, NULL), GM_OK);
}

static inline int world_begin_new(void **state) {
  (void)state;
  world_open(SIM_HIP6_LIBRARY, 1);
  return 0;
}

static inline int world_begin_old(void **state) {
  (void)state;
  world_open(SIM_HIP5_LIBRARY, 1);
  return 0;
}

/* Nothing is left at the driver or of host memory. */
static inline int world_end(void **state) {
  char left[2048] = "";
  (void)state;
  control("release");
  if (world.device) world.ops->device_close(world.device, GM_CLOSE_NORMAL);
  if (world.driver) world.ops->fini(world.driver, GM_CLOSE_NORMAL);
  counted_services_check(&world.memory);
  if (engine.simHipControl("leaks", left, sizeof left)) fail_msg("left behind:\n%s", left);
  engine.hipSetDevice(0);
  engine.hipGetLastError();
  return 0;
}

static inline gm_memory take(uint32_t type) {
  gm_memory memory = {0};
  const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = BLOCK};
  assert_int_equal(world.ops->memory_alloc(world.device, &params, &memory, NULL), GM_OK);
  return memory;
}

static inline void give(const gm_memory *memory) {
  assert_int_equal(world.ops->memory_free(world.device, memory, GM_CLOSE_NORMAL, NULL), GM_OK);
}

static inline gm_status wrap(uint64_t pointer, uint64_t bytes, gm_memory *out) {
  const gm_hip_memory lent = {.head = {sizeof lent, GM_API_HIP}, .pointer = pointer, .bytes = bytes};
  return world.ops->memory_wrap(world.device, &lent.head, out, NULL);
}

#endif
