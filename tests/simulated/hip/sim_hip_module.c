/* Modules and launches: those of the simulated CUDA. The one kernel that is known is gm's fill, compiled here from the
 * backend's own text, and run for each thread in turn. */
#include <pthread.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulated/cuda/sim_control.h"
#include "tests/simulated/hip/sim_hip_thread.h"
#include "tests/simulated/hip/sim_hiprtc_image.h"

enum { MODULE_PIECE = 64 << 10 }; /* mapped memory lies in granules of no less */

typedef struct module_index {
  unsigned x;
} module_index;

static _Thread_local module_index blockIdx, threadIdx, blockDim, gridDim;

#define GM__HIP_PROGRAM(...) static __VA_ARGS__
#include "backends/hip/hip_program.def"
#undef GM__HIP_PROGRAM

static uint64_t module_word(const sim_launch *launch, int index) {
  uint64_t word = 0;
  memcpy(&word, launch->arguments[index], sizeof word);
  return word;
}

static void module_threads(const sim_launch *launch, unsigned char *at, uint64_t bytes) {
  blockDim.x = launch->block[0];
  gridDim.x = launch->grid[0];
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) {
    for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) {
      gm_hip_fill((uintptr_t)at, bytes, module_word(launch, 2), module_word(launch, 3));
    }
  }
}

/* Into memory of several pieces, through a copy that begins as far behind a multiple of 16. */
static int module_fill_pieces(const sim_launch *launch, uint64_t at, uint64_t bytes) {
  unsigned char *copy = aligned_alloc(16, (bytes / 16 + 2) * 16);
  int code = copy ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  if (copy) module_threads(launch, copy + at % 16, bytes);
  for (uint64_t done = 0; done < bytes && !code;) {
    const uint64_t left = MODULE_PIECE - (at + done) % MODULE_PIECE, piece = left < bytes - done ? left : bytes - done;
    void *view = launch->view(launch->view_user, at + done, piece);
    if (view) memcpy(view, copy + at % 16 + done, piece);
    code = view ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
    done += piece;
  }
  free(copy);
  return code;
}

static int module_fill(const sim_launch *launch) {
  const uint64_t at = module_word(launch, 0), bytes = module_word(launch, 1);
  void *view = launch->view(launch->view_user, at, bytes);
  if (!view) return module_fill_pieces(launch, at, bytes);
  module_threads(launch, view, bytes);
  return CUDA_SUCCESS;
}

static void module_register(void) {
  static const size_t sizes[] = {8, 8, 8, 8};
  simCudaRegisterKernel("gm_hip_fill", module_fill, sizes, 4);
}

/* Code for another architecture is refused, and whatever is no code. */
static CUresult module_check(const void *image) {
  const char *wanted = getenv("SIMHIP_ARCH"), *found = image;
  const char *own = wanted ? wanted : SIM_HIP_ARCHITECTURE;
  if (!image || strncmp(found, SIM_HIP_IMAGE_HEAD, strlen(SIM_HIP_IMAGE_HEAD)) != 0) return CUDA_ERROR_INVALID_IMAGE;
  found += strlen(SIM_HIP_IMAGE_HEAD);
  const size_t length = strcspn(found, "\n");
  const bool fits = length == strlen(own) && strncmp(found, own, length) == 0;
  return fits ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

hipError_t hipModuleLoadData(hipModule_t *module, const void *code) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  CUmodule made = NULL;
  CUresult result = sim_hip_context();
  pthread_once(&once, module_register);
  if (!result) result = module_check(code);
  if (!result) result = cuModuleLoadData(&made, code);
  if (!result) *module = (hipModule_t)(void *)made;
  return sim_hip_answer(result);
}

hipError_t hipModuleUnload(hipModule_t module) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result : cuModuleUnload((CUmodule)(void *)module));
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
  CUfunction found = NULL;
  CUresult result = sim_hip_context();
  if (!result) result = cuModuleGetFunction(&found, (CUmodule)(void *)module, name);
  if (!result) *function = (hipFunction_t)(void *)found;
  return sim_hip_answer(result);
}

hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                                 unsigned int block_x, unsigned int block_y, unsigned int block_z,
                                 unsigned int shared_bytes, hipStream_t stream, void **parameters, void **extra) {
  const CUresult result = sim_hip_context();
  return sim_hip_answer(result ? result
                               : cuLaunchKernel((CUfunction)(void *)function, grid_x, grid_y, grid_z, block_x, block_y,
                                                block_z, shared_bytes, (CUstream)(void *)stream, parameters, extra));
}
