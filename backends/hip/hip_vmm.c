#include "backends/hip/hip_vmm.h"

#include "backends/hip/hip_range.h"
#include "backends/shared/runtime/runtime_vmm.h"
#include "core/base/error.h"

/* A call on a range holds `ranges_lock` while HIP works: nobody may map into a range while it is renewed. */

gm_status gm__hip_vmm_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err) {
  gm__hip_device *opened = device;
  gm__runtime_scope scope;
  gm__hip_range *range = NULL;
  gm_status status = gm__runtime_vmm_enter(&opened->base, &scope, err);
  if (status != GM_OK) return status;
  status = gm__hip_range_take(opened, bytes, align, &range, err);
  gm__runtime_leave(&opened->base, &scope);
  if (status != GM_OK) return status;
  gm__mutex_lock(&opened->ranges_lock);
  gm__hip_range_add(opened, range);
  gm__mutex_unlock(&opened->ranges_lock);
  *out_address = range->address;
  return GM_OK;
}

gm_status gm__hip_vmm_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  gm__hip_device *opened = device;
  gm__runtime_scope scope;
  bool gone = false;
  /* In a forked child a thread that does not exist there may hold the lock for ever. Nobody else uses the list. */
  if (mode == GM_CLOSE_NORMAL) gm__mutex_lock(&opened->ranges_lock);
  gm__hip_range *range = gm__hip_range_remove(opened, address);
  if (mode == GM_CLOSE_NORMAL) gm__mutex_unlock(&opened->ranges_lock);
  if (!range) return gm__bad_argument(err, "hip", "no range was reserved at %#llx", (unsigned long long)address);
  gm_status status = GM_OK;
  if (mode == GM_CLOSE_NORMAL && !range->lost) {
    status = gm__runtime_enter_release(&opened->base, &scope, &gone, err);
    if (status == GM_OK && !gone) {
      const hipError_t code = gm__hip_of(opened)->hipMemAddressFree(gm__hip_at(address), (size_t)bytes);
      status = gm__runtime_released(&opened->base, (int)code, "hipMemAddressFree", err);
      gm__runtime_leave(&opened->base, &scope);
    }
  }
  gm__hip_range_discard(opened, range);
  return status;
}

gm_status gm__hip_vmm_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                          gm_error *err) {
  gm__hip_device *opened = device;
  gm__runtime_scope scope;
  const gm__hip_mapping mapping = {address, bytes, handle, offset};
  gm_status status = gm__runtime_vmm_enter(&opened->base, &scope, err);
  if (status != GM_OK) return status;
  gm__mutex_lock(&opened->ranges_lock);
  status = gm__hip_range_map(opened, &mapping, err);
  gm__mutex_unlock(&opened->ranges_lock);
  gm__runtime_leave(&opened->base, &scope);
  return status;
}

gm_status gm__hip_vmm_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__hip_device *opened = device;
  gm__runtime_scope scope;
  bool gone = false;
  gm_status status = gm__runtime_vmm_enter_release(&opened->base, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  gm__mutex_lock(&opened->ranges_lock);
  status = gm__hip_range_unmap(opened, address, bytes, err);
  gm__mutex_unlock(&opened->ranges_lock);
  gm__runtime_leave(&opened->base, &scope);
  return status;
}

gm_status gm__hip_vmm_open(gm__runtime_device *device, int ordinal, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__hip_device *owner = (gm__hip_device *)device;
  gm__mutex_lock(&owner->ranges_lock);
  const gm_status status = gm__hip_range_access(owner, ordinal, address, bytes, err);
  gm__mutex_unlock(&owner->ranges_lock);
  return status;
}
