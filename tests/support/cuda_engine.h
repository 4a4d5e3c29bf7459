/* The engine's side of the simulated CUDA driver, past gm: the primary context and its streams. Needs cmocka.h included
 * before. */
#ifndef GM_TESTS_SUPPORT_CUDA_ENGINE_H
#define GM_TESTS_SUPPORT_CUDA_ENGINE_H

#include "support/adopt_scene.h"
#include "support/cuda_fixture.h"

static struct {
  CUresult (*init)(unsigned flags);
  CUresult (*retain)(CUcontext *out, CUdevice device);
  CUresult (*release)(CUdevice device);
  CUresult (*set)(CUcontext context);
  CUresult (*stream_create)(CUstream *out, unsigned flags);
  CUresult (*stream_destroy)(CUstream stream);
} cuda_engine;

/* A fresh driver, whose primary context is current in the calling thread. For cmocka's set-up. */
static inline int cuda_engine_open(void **state) {
  CUcontext context = NULL;
  (void)state;
  cuda_entry("cuInit", &cuda_engine.init);
  cuda_entry("cuDevicePrimaryCtxRetain", &cuda_engine.retain);
  cuda_entry("cuDevicePrimaryCtxRelease_v2", &cuda_engine.release);
  cuda_entry("cuCtxSetCurrent", &cuda_engine.set);
  cuda_entry("cuStreamCreate", &cuda_engine.stream_create);
  cuda_entry("cuStreamDestroy_v2", &cuda_engine.stream_destroy);
  cuda_say("reload");
  assert_int_equal(cuda_engine.init(0), CUDA_SUCCESS);
  assert_int_equal(cuda_engine.retain(&context, 0), CUDA_SUCCESS);
  assert_int_equal(cuda_engine.set(context), CUDA_SUCCESS);
  return 0;
}

/* Fails when gm has left anything at the driver. For cmocka's tear-down. */
static inline int cuda_engine_close(void **state) {
  char left[1024];
  (void)state;
  assert_int_equal(cuda_engine.set(NULL), CUDA_SUCCESS);
  assert_int_equal(cuda_engine.release(0), CUDA_SUCCESS);
  if (cuda_script("leaks", left, sizeof left)) fail_msg("left at the driver:\n%s", left);
  return 0;
}

static inline uintptr_t cuda_engine_stream_create(void) {
  CUstream stream = NULL;
  assert_int_equal(cuda_engine.stream_create(&stream, 0), CUDA_SUCCESS);
  return (uintptr_t)stream;
}

static inline void cuda_engine_stream_destroy(uintptr_t stream) {
  assert_int_equal(cuda_engine.stream_destroy((CUstream)stream), CUDA_SUCCESS);
}

static inline gm_cuda_stream cuda_engine_native(uintptr_t handle) {
  return (gm_cuda_stream){.head = {sizeof(gm_cuda_stream), GM_API_CUDA}, .stream = handle};
}

#endif
