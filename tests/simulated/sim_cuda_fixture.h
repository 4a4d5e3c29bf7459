/* For tests of the simulated CUDA driver itself: every entry point by its name, the control entry, and a device to use.
 */
#ifndef GM_TESTS_SIMULATED_SIM_CUDA_FIXTURE_H
#define GM_TESTS_SIMULATED_SIM_CUDA_FIXTURE_H

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "tests/simulated/cuda/sim_control.h"
#include "tests/simulated/cuda/sim_cuda_api.h"

typedef struct sim_api {
#define SIM_SYMBOL(name, since, needs) __typeof__(name) *name;
#define SIM_PTSZ_SYMBOL(name, alias_of, since) __typeof__(name) *name;
#include "tests/simulated/cuda/sim_symbols.def"
  sim_control_function *control;
  sim_register_kernel_function *register_kernel;
} sim_api;

static sim_api cu;
static void *fixture_library;

#define assert_cu(call) assert_int_equal(call, CUDA_SUCCESS)

static inline void *fixture_exported(const char *name) { return dlsym(fixture_library, name); }

static void fixture_symbol(const char *name, void *out) {
  void *symbol = fixture_exported(name);
  if (!symbol) fail_msg("%s is not exported", name);
  memcpy(out, &symbol, sizeof symbol);
}

static int fixture_load(void **state) {
  (void)state;
  fixture_library = dlopen(SIM_CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!fixture_library) fail_msg("%s", dlerror());
#define SIM_SYMBOL(name, since, needs) fixture_symbol(#name, &cu.name);
#define SIM_PTSZ_SYMBOL(name, alias_of, since) fixture_symbol(#name, &cu.name);
#include "tests/simulated/cuda/sim_symbols.def"
  fixture_symbol("simCudaControl", &cu.control);
  fixture_symbol("simCudaRegisterKernel", &cu.register_kernel);
  return (int)cu.cuInit(0);
}

static void fixture_do(const char *command) { assert_int_equal(cu.control(command, NULL, 0), 0); }

static inline long long fixture_number(const char *command) {
  char reply[64];
  assert_int_equal(cu.control(command, reply, sizeof reply), 0);
  return atoll(reply);
}

/* Each test: as scripted by the environment, the primary context of device 0 current. */
static inline int fixture_begin(void **state) {
  (void)state;
  fixture_do("reload");
  fixture_do("set DEVICES 2");
  CUcontext context = NULL;
  if (cu.cuDevicePrimaryCtxRetain(&context, 0)) return 1;
  return (int)cu.cuCtxSetCurrent(context);
}

/* Nothing may be left. */
static inline int fixture_end(void **state) {
  (void)state;
  fixture_do("release");
  cu.cuCtxSetCurrent(NULL);
  cu.cuDevicePrimaryCtxRelease_v2(0);
  char left[2048];
  if (cu.control("leaks", left, sizeof left)) {
    print_error("left behind:\n%s", left);
    return 1;
  }
  return 0;
}

static inline CUdeviceptr fixture_alloc(size_t bytes) {
  CUdeviceptr address = 0;
  assert_cu(cu.cuMemAlloc_v2(&address, bytes));
  return address;
}

static inline CUstream fixture_stream(unsigned flags) {
  CUstream stream = NULL;
  assert_cu(cu.cuStreamCreate(&stream, flags));
  return stream;
}

static inline unsigned long long fixture_stream_id(CUstream stream) {
  unsigned long long id = 0;
  assert_cu(cu.cuStreamGetId(stream, &id));
  return id;
}

static inline CUevent fixture_event(unsigned flags) {
  CUevent event = NULL;
  assert_cu(cu.cuEventCreate(&event, flags));
  return event;
}

/* "hold" or "release" of one stream. */
static inline void fixture_gate(const char *word, CUstream stream) {
  char command[64];
  snprintf(command, sizeof command, "%s %llu", word, fixture_stream_id(stream));
  fixture_do(command);
}

static inline unsigned fixture_word(CUdeviceptr address) {
  unsigned word = 0;
  assert_cu(cu.cuMemcpyDtoH_v2(&word, address, sizeof word));
  return word;
}

#endif
