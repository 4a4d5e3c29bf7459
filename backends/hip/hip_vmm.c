#include "backends/hip/hip_vmm.h"

#include "backends/hip/hip_current.h"
#include "backends/hip/hip_mem.h"
#include "backends/hip/hip_range.h"
#include "backends/hip/hip_status.h"
#include "backends/hip/hip_stream.h"
#include "core/base/error.h"

/* Calls that work on a range hold `ranges_lock`, also while HIP works: a range must not be renewed while somebody maps
 * into it. */

static hipMemAllocationProp hip_vmm_props(const gm__hip_device *device, const gm_vmm_props *props) {
  hipMemAllocationProp wanted = {.type = hipMemAllocationTypePinned};
  wanted.requestedHandleType = props->shareable ? hipMemHandleTypePosixFileDescriptor : hipMemHandleTypeNone;
  wanted.location.type = hipMemLocationTypeDevice;
  wanted.location.id = (int)device->info.index;
  return wanted;
}

static gm_status hip_vmm_check(const gm__hip_device *device, gm_error *err) {
  if (device->info.capabilities & GM_CAP_VMM) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "hip", "%s has no virtual memory management that works",
                  device->info.name);
}

static gm_status hip_vmm_enter(gm__hip_device *device, gm__hip_scope *scope, gm_error *err) {
  const gm_status status = hip_vmm_check(device, err);
  return status == GM_OK ? gm__hip_enter(device, scope, err) : status;
}

static gm_status hip_vmm_check_props(const gm__hip_device *device, const gm_vmm_props *props, gm_error *err) {
  const gm_status status = hip_vmm_check(device, err);
  if (status != GM_OK || props->type == GM__HIP_DEVICE_MEMORY) return status;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "hip", "virtual memory is of type 0, the device's, not of type %u",
                  (unsigned)props->type);
}

gm_status gm__hip_vmm_granularity(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  size_t granule = 0;
  gm_status status = hip_vmm_check_props(opened, props, err);
  if (status == GM_OK) status = gm__hip_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const hipMemAllocationProp wanted = hip_vmm_props(opened, props);
  const hipError_t code =
      opened->hip->hipMemGetAllocationGranularity(&granule, &wanted, hipMemAllocationGranularityMinimum);
  if (code != hipSuccess) status = gm__hip_device_fail(opened, code, "hipMemGetAllocationGranularity", err);
  gm__hip_leave(&scope);
  if (status != GM_OK) return status;
  if (granule == 0 || (granule & (granule - 1))) {
    return gm__fail(err, GM_ERR_DRIVER, 0, "hipMemGetAllocationGranularity",
                    "HIP says that the granularity is %zu, which is no power of two", granule);
  }
  *out = granule;
  return GM_OK;
}

gm_status gm__hip_vmm_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  gm__hip_range *range = NULL;
  gm_status status = hip_vmm_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = gm__hip_range_take(opened, bytes, align, &range, err);
  gm__hip_leave(&scope);
  if (status != GM_OK) return status;
  gm__mutex_lock(&opened->ranges_lock);
  gm__hip_range_add(opened, range);
  gm__mutex_unlock(&opened->ranges_lock);
  *out_address = range->address;
  return GM_OK;
}

gm_status gm__hip_vmm_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  bool gone = false;
  /* In a forked child a thread that is not there may hold the lock, for ever, and nobody else is at the list. */
  if (mode == GM_CLOSE_NORMAL) gm__mutex_lock(&opened->ranges_lock);
  gm__hip_range *range = gm__hip_range_remove(opened, address);
  if (mode == GM_CLOSE_NORMAL) gm__mutex_unlock(&opened->ranges_lock);
  if (!range) return gm__bad_argument(err, "hip", "no range was reserved at %#llx", (unsigned long long)address);
  gm_status status = GM_OK;
  if (mode == GM_CLOSE_NORMAL && !range->lost) {
    status = gm__hip_enter_release(opened, &scope, &gone, err);
    if (status == GM_OK && !gone) {
      const hipError_t code = opened->hip->hipMemAddressFree((void *)(uintptr_t)address, (size_t)bytes);
      status = gm__hip_device_released(opened, code, "hipMemAddressFree", err);
      gm__hip_leave(&scope);
    }
  }
  gm__hip_range_discard(opened, range);
  return status;
}

gm_status gm__hip_vmm_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out_handle,
                             gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  hipMemGenericAllocationHandle_t handle = NULL;
  gm_status status = hip_vmm_check_props(opened, props, err);
  if (status == GM_OK) status = gm__hip_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const hipMemAllocationProp wanted = hip_vmm_props(opened, props);
  status = gm__hip_capture_check(opened, err);
  const hipError_t code = status == GM_OK ? opened->hip->hipMemCreate(&handle, (size_t)bytes, &wanted, 0) : hipSuccess;
  if (code != hipSuccess) status = gm__hip_device_fail(opened, code, "hipMemCreate", err);
  gm__hip_leave(&scope);
  if (status != GM_OK) return status;
  if (!handle) return gm__hip_nonsense(err, "hipMemCreate", "gave no handle");
  *out_handle = (uintptr_t)handle;
  return GM_OK;
}

gm_status gm__hip_vmm_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  bool gone = false;
  (void)bytes;
  if (mode == GM_CLOSE_ABANDON) return GM_OK;
  gm_status status = hip_vmm_check(opened, err);
  if (status == GM_OK) status = gm__hip_enter_release(opened, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const hipError_t code = opened->hip->hipMemRelease((hipMemGenericAllocationHandle_t)(uintptr_t)handle);
  status = gm__hip_device_released(opened, code, "hipMemRelease", err);
  gm__hip_leave(&scope);
  return status;
}

gm_status gm__hip_vmm_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                          gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  const gm__hip_mapping mapping = {address, bytes, handle, offset};
  gm_status status = hip_vmm_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  gm__mutex_lock(&opened->ranges_lock);
  status = gm__hip_range_map(opened, &mapping, err);
  gm__mutex_unlock(&opened->ranges_lock);
  gm__hip_leave(&scope);
  return status;
}

gm_status gm__hip_vmm_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  bool gone = false;
  gm_status status = hip_vmm_check(opened, err);
  if (status == GM_OK) status = gm__hip_enter_release(opened, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  gm__mutex_lock(&opened->ranges_lock);
  status = gm__hip_range_unmap(opened, address, bytes, err);
  gm__mutex_unlock(&opened->ranges_lock);
  gm__hip_leave(&scope);
  return status;
}

gm_status gm__hip_vmm_access(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  gm_status status = hip_vmm_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  gm__mutex_lock(&opened->ranges_lock);
  status = gm__hip_range_access(opened, opened->info.index, address, bytes, err);
  gm__mutex_unlock(&opened->ranges_lock);
  gm__hip_leave(&scope);
  return status;
}

void gm__hip_vmm_discard(gm__hip_device *device) {
  while (device->ranges) gm__hip_range_discard(device, gm__hip_range_remove(device, device->ranges->address));
}
