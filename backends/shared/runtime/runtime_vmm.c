#include "backends/shared/runtime/runtime_vmm.h"

#include "backends/shared/pointer_memory.h"
#include "backends/shared/runtime/runtime_entries.h"
#include "backends/shared/runtime/runtime_stream.h"
#include "core/base/error.h"

static gm_status vmm_check(const gm__runtime_device *device, gm_error *err) {
  if (device->info.capabilities & GM_CAP_VMM) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, device->api->name, "%s has no virtual memory management that works",
                  device->info.name);
}

gm_status gm__runtime_vmm_enter(gm__runtime_device *device, gm__runtime_scope *out, gm_error *err) {
  const gm_status status = vmm_check(device, err);
  return status == GM_OK ? gm__runtime_enter(device, out, err) : status;
}

gm_status gm__runtime_vmm_enter_release(gm__runtime_device *device, gm__runtime_scope *out, bool *out_gone,
                                        gm_error *err) {
  const gm_status status = vmm_check(device, err);
  return status == GM_OK ? gm__runtime_enter_release(device, out, out_gone, err) : status;
}

static gm_status vmm_enter_props(gm__runtime_device *device, const gm_vmm_props *props, gm__runtime_scope *out,
                                 gm_error *err) {
  const gm_status status = vmm_check(device, err);
  if (status == GM_OK && props->type != GM__POINTER_DEVICE) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, device->api->name,
                    "virtual memory is of type 0, the device's, not of type %u", (unsigned)props->type);
  }
  return status == GM_OK ? gm__runtime_enter(device, out, err) : status;
}

gm_status gm__runtime_vmm_granularity(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime_ask *ask = &opened->api->vmm_granularity;
  gm__runtime_scope scope;
  gm__runtime_word granule = 0;
  const gm_status status = vmm_enter_props(opened, props, &scope, err);
  if (status != GM_OK) return status;
  const int code = ask->call(opened, props->shareable, &granule);
  gm__runtime_leave(opened, &scope);
  if (code != GM__RUNTIME_SUCCESS) return gm__runtime_fail(opened, code, ask->op, err);
  if (granule == 0 || (granule & (granule - 1))) {
    return gm__fail(err, GM_ERR_DRIVER, ask->op, "%s says that the granularity is %llu, which is no power of two",
                    opened->api->codes->speaker, granule);
  }
  *out = granule;
  return GM_OK;
}

gm_status gm__runtime_vmm_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out_handle,
                                 gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime *api = opened->api;
  gm__runtime_scope scope;
  gm__runtime_word handle = 0;
  gm_status status = vmm_enter_props(opened, props, &scope, err);
  if (status != GM_OK) return status;
  status = gm__runtime_capture_check(opened, err);
  const int code = status == GM_OK ? api->vmm_create(opened, props->shareable, bytes, &handle) : GM__RUNTIME_SUCCESS;
  gm__runtime_leave(opened, &scope);
  if (status == GM_OK) status = gm__runtime_answer(opened, code, api->vmm_create_op, err);
  if (status != GM_OK) return status;
  if (!handle) return gm__runtime_nonsense(opened, api->vmm_create_op, "gave no handle", err);
  *out_handle = handle;
  return GM_OK;
}

gm_status gm__runtime_vmm_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime_give *give = &opened->api->vmm_release;
  gm__runtime_scope scope;
  bool gone = false;
  (void)bytes;
  if (mode == GM_CLOSE_ABANDON) return GM_OK;
  const gm_status status = gm__runtime_vmm_enter_release(opened, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const int code = give->call(opened, handle);
  gm__runtime_leave(opened, &scope);
  return gm__runtime_released(opened, code, give->op, err);
}

gm_status gm__runtime_vmm_access(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__runtime_device *opened = device;
  gm__runtime_scope scope;
  gm_status status = gm__runtime_vmm_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = opened->api->vmm_open(opened, opened->ordinal, address, bytes, err);
  gm__runtime_leave(opened, &scope);
  return status;
}
