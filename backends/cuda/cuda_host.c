#include "backends/cuda/cuda_host.h"

#include "backends/cuda/cuda_context.h"
#include "backends/cuda/cuda_info.h"
#include "backends/cuda/cuda_status.h"
#include "backends/cuda/cuda_stream.h"
#include "core/base/error.h"
#include "core/base/pointer_memory.h"

/* One call registers less than 512 GiB on the drivers of today, so larger ranges are registered in parts, and then
 * remembered, since unregistering needs each part's address. Where the device uses the host's page tables registering
 * pins nothing: it succeeds, and that is all that CUDA promises. */

#define CUDA_MOST_REGISTERED (UINT64_C(256) << 30)

/* Memory that is mapped read-only is refused unless it is said to be so, and then only where the device can. */
static CUresult cuda_host_register_part(const gm__cuda_device *device, unsigned char *at, uint64_t bytes) {
  const unsigned int flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
  const CUresult code = device->cu->cuMemHostRegister_v2(at, (size_t)bytes, flags);
  const bool final = code == CUDA_SUCCESS || code == CUDA_ERROR_OUT_OF_MEMORY ||
                     code == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED ||
                     gm__cuda_status((int)code) == GM_ERR_DEVICE_LOST;
  if (final || gm__cuda_attribute(device->driver, device->ordinal,
                                  CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 0) <= 0) {
    return code;
  }
  const CUresult again = device->cu->cuMemHostRegister_v2(at, (size_t)bytes, flags | CU_MEMHOSTREGISTER_READ_ONLY);
  return again == CUDA_SUCCESS ? again : code;
}

static CUresult cuda_host_unregister_parts(const gm__cuda_device *device, unsigned char *at, uint64_t bytes) {
  CUresult code = CUDA_SUCCESS;
  for (uint64_t done = 0; done < bytes; done += CUDA_MOST_REGISTERED) {
    const CUresult answer = device->cu->cuMemHostUnregister(at + done);
    if (answer != CUDA_SUCCESS) code = answer;
  }
  return code;
}

static CUresult cuda_host_register_parts(const gm__cuda_device *device, unsigned char *at, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes; done += CUDA_MOST_REGISTERED) {
    const uint64_t left = bytes - done;
    const CUresult code =
        cuda_host_register_part(device, at + done, left < CUDA_MOST_REGISTERED ? left : CUDA_MOST_REGISTERED);
    if (code == CUDA_SUCCESS) continue;
    cuda_host_unregister_parts(device, at, done);
    return code;
  }
  return CUDA_SUCCESS;
}

static gm_status cuda_host_remember(gm__cuda_device *device, const void *pointer, uint64_t bytes, gm_error *err) {
  if (bytes <= CUDA_MOST_REGISTERED) return GM_OK;
  gm__mutex_lock(&device->lock);
  const gm_status status = gm__map_insert(&device->registered, (uintptr_t)pointer, bytes);
  gm__mutex_unlock(&device->lock);
  return status == GM_OK ? GM_OK : gm__fail(err, status, 0, "cuMemHostRegister", "no host memory for the record");
}

static uint64_t cuda_host_forget(gm__cuda_device *device, const void *pointer) {
  uint64_t bytes = 1; /* one part, of a size that the driver knows */
  gm__mutex_lock(&device->lock);
  gm__map_remove(&device->registered, (uintptr_t)pointer, &bytes);
  gm__mutex_unlock(&device->lock);
  return bytes;
}

static gm_status cuda_host_lock_pages(gm__cuda_device *device, void *pointer, uint64_t bytes, gm_error *err) {
  gm_status status = gm__cuda_capture_check(device, err);
  if (status == GM_OK) status = cuda_host_remember(device, pointer, bytes, err);
  if (status != GM_OK) return status;
  const CUresult code = cuda_host_register_parts(device, pointer, bytes);
  if (code == CUDA_SUCCESS) return GM_OK;
  cuda_host_forget(device, pointer);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    return gm__cuda_fail_as(err, GM_ERR_PINNED_LIMIT, code, "cuMemHostRegister");
  }
  return gm__cuda_device_fail(device, code, "cuMemHostRegister", err);
}

gm_status gm__cuda_host_register(void *device, void *pointer, uint64_t bytes, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_scope scope;
  gm_status status = gm__pointer_check_host("cuMemHostRegister", &opened->info, pointer, bytes, err);
  if (status == GM_OK) status = gm__cuda_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = cuda_host_lock_pages(opened, pointer, bytes, err);
  gm__cuda_leave(&scope);
  return status;
}

gm_status gm__cuda_host_unregister(void *device, void *pointer, gm_close_mode mode, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON) return GM_OK;
  if (!opened->cu->cuMemHostUnregister) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "cuMemHostUnregister", "the driver cannot register host memory");
  }
  const gm_status status = gm__cuda_enter_release(opened, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const CUresult code = cuda_host_unregister_parts(opened, pointer, cuda_host_forget(opened, pointer));
  gm__cuda_leave(&scope);
  return gm__cuda_device_released(opened, code, "cuMemHostUnregister", err);
}
