/* Modules and launches: those of the simulated CUDA. */
#include <stdlib.h>
#include <string.h>

#include "tests/simulated/hip/sim_hip_thread.h"
#include "tests/simulated/hip/sim_hiprtc_image.h"

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
  CUmodule made = NULL;
  CUresult result = sim_hip_context();
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
