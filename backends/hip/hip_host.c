#include "backends/hip/hip_host.h"

#include "backends/hip/hip_current.h"
#include "backends/hip/hip_status.h"
#include "backends/hip/hip_stream.h"
#include "core/base/error.h"
#include "core/base/pointer_memory.h"

static gm_status hip_host_lock_pages(gm__hip_device *device, void *pointer, uint64_t bytes, gm_error *err) {
  const gm_status status = gm__hip_capture_check(device, err);
  if (status != GM_OK) return status;
  const unsigned int flags = hipHostRegisterPortable | hipHostRegisterMapped;
  const hipError_t code = device->hip->hipHostRegister(pointer, (size_t)bytes, flags);
  if (code == hipSuccess) return GM_OK;
  if (code == hipErrorOutOfMemory) return gm__hip_fail_as(err, GM_ERR_PINNED_LIMIT, code, "hipHostRegister");
  return gm__hip_device_fail(device, code, "hipHostRegister", err);
}

gm_status gm__hip_host_register(void *device, void *pointer, uint64_t bytes, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  gm_status status = gm__pointer_check_host("hipHostRegister", &opened->info, pointer, bytes, err);
  if (status == GM_OK) status = gm__hip_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = hip_host_lock_pages(opened, pointer, bytes, err);
  gm__hip_leave(&scope);
  return status;
}

gm_status gm__hip_host_unregister(void *device, void *pointer, gm_close_mode mode, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON) return GM_OK;
  if (!opened->hip->hipHostUnregister) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "hipHostUnregister", "HIP cannot register host memory");
  }
  gm_status status = gm__hip_enter_release(opened, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const hipError_t code = opened->hip->hipHostUnregister(pointer);
  status = gm__hip_device_released(opened, code, "hipHostUnregister", err);
  gm__hip_leave(&scope);
  return status;
}
