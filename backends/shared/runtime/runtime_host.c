/* Host registration: the caller's memory, page-locked in place. The entries of the seam, group 15. */
#include "backends/shared/pointer_memory.h"
#include "backends/shared/runtime/runtime_entries.h"
#include "backends/shared/runtime/runtime_stream.h"
#include "core/base/error.h"

/* A range of more than `most_registered` bytes is registered in parts. The device remembers its size, since each part
 * is unregistered by its own address. */

static int host_unregister_parts(const gm__runtime_device *device, unsigned char *at, uint64_t bytes) {
  const gm__runtime *api = device->api;
  int code = GM__RUNTIME_SUCCESS;
  for (uint64_t done = 0, part = 0; done < bytes; done += part) {
    part = bytes - done < api->most_registered ? bytes - done : api->most_registered;
    const int answer = api->host_unregister.call(device, at + done);
    if (answer != GM__RUNTIME_SUCCESS) code = answer;
  }
  return code;
}

static int host_register_parts(const gm__runtime_device *device, unsigned char *at, uint64_t bytes) {
  const gm__runtime *api = device->api;
  for (uint64_t done = 0, part = 0; done < bytes; done += part) {
    part = bytes - done < api->most_registered ? bytes - done : api->most_registered;
    const int code = api->host_register(device, at + done, part);
    if (code == GM__RUNTIME_SUCCESS) continue;
    host_unregister_parts(device, at, done);
    return code;
  }
  return GM__RUNTIME_SUCCESS;
}

static gm_status host_remember(gm__runtime_device *device, const void *pointer, uint64_t bytes, gm_error *err) {
  if (bytes <= device->api->most_registered) return GM_OK;
  gm__mutex_lock(&device->lock);
  const gm_status status = gm__map_insert(&device->registered, (uintptr_t)pointer, bytes);
  gm__mutex_unlock(&device->lock);
  if (status == GM_OK) return GM_OK;
  return gm__fail(err, status, device->api->host_register_op, "no host memory for the record");
}

static uint64_t host_forget(gm__runtime_device *device, const void *pointer) {
  uint64_t bytes = 1; /* one part, of a size that the driver knows */
  gm__mutex_lock(&device->lock);
  gm__map_remove(&device->registered, (uintptr_t)pointer, &bytes);
  gm__mutex_unlock(&device->lock);
  return bytes;
}

static gm_status host_lock_pages(gm__runtime_device *device, void *pointer, uint64_t bytes, gm_error *err) {
  const gm__runtime *api = device->api;
  gm_status status = gm__runtime_capture_check(device, err);
  if (status == GM_OK) status = host_remember(device, pointer, bytes, err);
  if (status != GM_OK) return status;
  const int code = host_register_parts(device, pointer, bytes);
  if (code == GM__RUNTIME_SUCCESS) return GM_OK;
  host_forget(device, pointer);
  if (code != GM__RUNTIME_OUT_OF_MEMORY) return gm__runtime_fail(device, code, api->host_register_op, err);
  return gm__code_fail_as(api->codes, err, GM_ERR_PINNED_LIMIT, code, api->host_register_op);
}

gm_status gm__runtime_host_register(void *device, void *pointer, uint64_t bytes, gm_error *err) {
  gm__runtime_device *opened = device;
  gm__runtime_scope scope;
  gm_status status = gm__pointer_check_host(opened->api->host_register_op, &opened->info, pointer, bytes, err);
  if (status == GM_OK) status = gm__runtime_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = host_lock_pages(opened, pointer, bytes, err);
  gm__runtime_leave(opened, &scope);
  return status;
}

gm_status gm__runtime_host_unregister(void *device, void *pointer, gm_close_mode mode, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime *api = opened->api;
  gm__runtime_scope scope;
  bool gone = false;
  if (mode == GM_CLOSE_ABANDON) return GM_OK;
  if (!(opened->info.capabilities & GM_CAP_REGISTRATION)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, api->host_unregister.op, "%s cannot register host memory",
                    opened->info.name);
  }
  const gm_status status = gm__runtime_enter_release(opened, &scope, &gone, err);
  if (status != GM_OK || gone) return status;
  const int code = host_unregister_parts(opened, pointer, host_forget(opened, pointer));
  gm__runtime_leave(opened, &scope);
  return gm__runtime_released(opened, code, api->host_unregister.op, err);
}
