#include "core/provider/upstream.h"

#include <inttypes.h>

#include "core/base/error.h"
#include "core/device/memory_answer.h"
#include "gm/native_cpu.h"
#include "gm/native_cuda.h"
#include "gm/native_hip.h"
#include "gm/native_opencl.h"
#include "gm/native_vulkan.h"

/* Space for the native memory struct of any API. An unknown API may use all of it. */
typedef union upstream_native {
  gm_native_memory head;
  gm_cpu_memory cpu;
  gm_cuda_memory cuda;
  gm_hip_memory hip;
  gm_opencl_memory opencl;
  gm_vulkan_memory vulkan;
  unsigned char other[256];
} upstream_native;

static uint32_t upstream_native_size(gm_api api) {
  switch (api) {
    case GM_API_CPU: return sizeof(gm_cpu_memory);
    case GM_API_CUDA: return sizeof(gm_cuda_memory);
    case GM_API_HIP: return sizeof(gm_hip_memory);
    case GM_API_OPENCL: return sizeof(gm_opencl_memory);
    case GM_API_VULKAN: return sizeof(gm_vulkan_memory);
    default: return sizeof(upstream_native);
  }
}

/* The memory from the user's code is hostile input: it must have enough bytes and the alignment. An address that an
 * API does not show is 0. */
static gm_status upstream_check(uint64_t bytes, uint32_t align, const gm_memory *memory, gm_error *err) {
  if (memory->bytes < bytes) {
    return gm__fail(err, GM_ERR_DRIVER, "gm_upstream.allocate",
                    "asked for %" PRIu64 " bytes, the pool's upstream said GM_OK and gave %" PRIu64, bytes,
                    memory->bytes);
  }
  if (memory->address % align == 0) return GM_OK;
  return gm__fail(err, GM_ERR_DRIVER, "gm_upstream.allocate",
                  "asked for a multiple of %" PRIu32 ", the pool's upstream said GM_OK and gave 0x%" PRIx64, align,
                  memory->address);
}

static gm_status upstream_wrap(gm__provider *provider, uint64_t bytes, uint32_t align, const gm_native_memory *native,
                               gm_memory *out, gm_error *err) {
  const gm_device *device = provider->device;
  gm_status status = device->ops->memory_wrap(device->handle, native, out, err);
  if (status == GM_OK) status = gm__answer_check_wrapped(device, out, err);
  if (status != GM_OK) return status;
  status = upstream_check(bytes, align, out, err);
  if (status != GM_OK) gm__device_free(provider->device, out, NULL);
  return status;
}

gm_status gm__upstream_alloc(gm__provider *provider, uint64_t bytes, uint32_t align, gm_memory *out, void **out_token,
                             gm_error *err) {
  const gm_upstream *upstream = &provider->upstream;
  upstream_native native = {.head = {0}};
  native.head = (gm_native_memory){upstream_native_size(provider->device->info.api), provider->device->info.api};
  void *token = NULL;
  gm_status status = upstream->allocate(upstream->user, bytes, align, &native.head, &token);
  if (status != GM_OK) {
    return gm__fail(err, status, "gm_upstream.allocate", "the pool's upstream refused %" PRIu64 " bytes", bytes);
  }
  status = upstream_wrap(provider, bytes, align, &native.head, out, err);
  if (status != GM_OK) {
    upstream->release(upstream->user, token);
    return status;
  }
  *out_token = token;
  return GM_OK;
}

void gm__upstream_free(gm__provider *provider, const gm_memory *memory, void *token) {
  gm__device_free(provider->device, memory, NULL);
  if (!gm__context_forked(provider->device->ctx)) provider->upstream.release(provider->upstream.user, token);
}
