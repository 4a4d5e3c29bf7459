#include "backends/hip/hip_device.h"

#include "backends/hip/hip_backend.h"
#include "backends/hip/hip_current.h"
#include "backends/hip/hip_info.h"
#include "backends/hip/hip_point.h"
#include "backends/hip/hip_program.h"
#include "backends/hip/hip_status.h"
#include "backends/hip/hip_stream.h"
#include "backends/hip/hip_vmm.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/native.h"
#include "core/base/sized.h"
#include "core/base/vmm_try.h"
#include "gm/native_hip.h"

/* Invariants: HIP keeps one context per device for the life of the process, so opening takes nothing that closing would
 * have to give back, and an adopted device differs from an opened one in nothing; `lost` is set once and stays. */

gm_status gm__hip_device_fail(gm__hip_device *device, hipError_t code, const char *op, gm_error *err) {
  const bool known = atomic_load(&device->lost) != 0;
  if (!known && gm__hip_status((int)code) != GM_ERR_DEVICE_LOST) return gm__hip_fail(err, code, op);
  int32_t none = 0;
  atomic_compare_exchange_strong(&device->lost, &none, (int32_t)code);
  return gm__fail(err, GM_ERR_DEVICE_LOST, (int)code, op, "%s: %s (%d): the device is lost; close and reopen it", op,
                  gm__hip_code_name((int)code), (int)code);
}

gm_status gm__hip_device_released(gm__hip_device *device, hipError_t code, const char *op, gm_error *err) {
  if (gm__hip_released(code)) return GM_OK;
  const gm_status status = gm__hip_device_fail(device, code, op, err);
  return status == GM_ERR_DEVICE_LOST ? GM_OK : status;
}

gm_status gm__hip_device_count(void *driver, uint32_t *out, gm_error *err) {
  (void)err;
  *out = ((gm__hip_driver *)driver)->count;
  return GM_OK;
}

static gm_status hip_device_check(const gm__hip_driver *driver, uint32_t index, gm_error *err) {
  if (index < driver->count) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_FOUND, 0, "hip", "there is no HIP device %u: %u are listed", (unsigned)index,
                  (unsigned)driver->count);
}

gm_status gm__hip_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  if (device) {
    *out = ((gm__hip_device *)device)->info;
    return GM_OK;
  }
  const gm_status status = hip_device_check(driver, index, err);
  if (status == GM_OK) *out = ((gm__hip_driver *)driver)->infos[index];
  return status;
}

/* Not asked while the engine captures on any stream that gm knows. */
static void hip_device_ask(gm__hip_device *device, gm_raw_figures *out) {
  gm__hip_scope scope;
  size_t room = 0, total = 0;
  if (gm__hip_enter(device, &scope, NULL) != GM_OK) {
    out->driver = (gm_raw_reply){.state = GM_RAW_ERROR, .code = atomic_load(&device->lost)};
    return;
  }
  if (gm__hip_capture_check(device, NULL) == GM_OK) {
    const hipError_t code = device->hip->hipMemGetInfo(&room, &total);
    out->driver.state = code == hipSuccess ? GM_RAW_OK : GM_RAW_ERROR;
    out->driver.code = (int32_t)code;
    out->driver.total_bytes = total;
    out->driver.free_bytes = room;
  }
  gm__hip_leave(&scope);
}

gm_status gm__hip_device_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  gm__hip_driver *owner = driver;
  if (device) {
    gm__hip_device *opened = device;
    gm__hip_figures(opened->driver, &opened->info, out);
    hip_device_ask(opened, out);
    return GM_OK;
  }
  const gm_status status = hip_device_check(owner, index, err);
  if (status == GM_OK) gm__hip_figures(owner, &owner->infos[index], out);
  return status;
}

static void hip_device_discard(gm__hip_device *device) {
  gm__hip_vmm_discard(device);
  gm__vmm_table_clear(&device->mapped);
  gm__event_slots_clear(&device->events);
  gm__map_clear(&device->peers);
  gm__mutex_destroy(&device->lock);
  gm__mutex_destroy(&device->ranges_lock);
  gm__release(device->services, device, sizeof *device);
}

/* That the device answers is seen here: hipSetDevice makes its context. */
static gm_status hip_device_try(gm__hip_device *device, gm_error *err) {
  gm__hip_scope scope;
  const gm_status status = gm__hip_enter(device, &scope, err);
  if (status != GM_OK) return status;
  gm__hip_leave(&scope);
  gm__vmm_try(&gm__hip_backend, device, &device->info);
  if (!gm__hip_share_kinds(device->driver, &device->info)) device->info.capabilities &= ~(uint64_t)GM_CAP_SHARE;
  return GM_OK;
}

gm_status gm__hip_device_open(void *driver, uint32_t index, void **out_device, gm_error *err) {
  gm__hip_driver *owner = driver;
  gm_status status = hip_device_check(owner, index, err);
  if (status != GM_OK) return status;
  gm__hip_device *device = gm__alloc(owner->services, sizeof *device);
  if (!device) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "hip", "no host memory for the device's record");
  device->driver = owner;
  device->hip = &owner->hip;
  device->services = owner->services;
  device->info = owner->infos[index];
  atomic_init(&device->own_stream, NULL);
  atomic_init(&device->lost, 0);
  atomic_init(&device->program.state, GM__HIP_PROGRAM_NONE);
  gm__event_slots_init(&device->events, device->services);
  gm__mutex_init(&device->lock, GM__RANK_BACKEND);
  gm__map_init(&device->peers, device->services);
  gm__mutex_init(&device->ranges_lock, GM__RANK_STAGING);
  gm__vmm_table_init(&device->mapped, device->services, &gm__hip_backend);
  status = hip_device_try(device, err);
  if (status != GM_OK) {
    hip_device_discard(device);
    return status;
  }
  *out_device = device;
  return GM_OK;
}

gm_status gm__hip_device_adopt(void *driver, const gm_native_device *native, void **out_device, gm_error *err) {
  gm_hip_device lent;
  const gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_HIP, "hip", "native", err);
  if (status != GM_OK) return status;
  if (lent.context) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "hip",
                    "`context` must be 0: a device of HIP has one context, that of its ordinal");
  }
  if (lent.ordinal < 0) return gm__bad_argument(err, "hip", "`ordinal` must not be negative, is %d", lent.ordinal);
  return gm__hip_device_open(driver, (uint32_t)lent.ordinal, out_device, err);
}

static void hip_device_give_back(gm__hip_device *device) {
  gm__hip_scope scope;
  if (gm__hip_enter(device, &scope, NULL) != GM_OK) return;
  hipStream_t stream = atomic_load(&device->own_stream);
  if (stream) {
    device->hip->hipStreamSynchronize(stream);
    device->hip->hipStreamDestroy(stream);
  }
  gm__hip_program_unload(device);
  gm__hip_events_destroy(device);
  gm__hip_leave(&scope);
}

void gm__hip_device_close(void *device, gm_close_mode mode) {
  gm__hip_device *opened = device;
  if (!opened) return;
  if (mode == GM_CLOSE_NORMAL) hip_device_give_back(opened);
  hip_device_discard(opened);
}

/* An error of the device's shows in every call, also in one that only looks. */
gm_status gm__hip_device_state(void *device, gm_error *err) {
  gm__hip_device *opened = device;
  gm__hip_scope scope;
  const gm_status status = gm__hip_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const hipError_t code = opened->hip->hipStreamQuery(atomic_load(&opened->own_stream));
  gm__hip_leave(&scope);
  if (code != hipErrorUnknown && gm__hip_status((int)code) != GM_ERR_DEVICE_LOST) return GM_OK;
  int32_t none = 0;
  atomic_compare_exchange_strong(&opened->lost, &none, (int32_t)code);
  return gm__hip_device_fail(opened, code, "hipStreamQuery", err);
}

gm_status gm__hip_device_native(void *device, gm_native_device *out, gm_error *err) {
  const gm__hip_device *opened = device;
  gm_hip_device native = {.head = *out};
  const gm_status status = gm__native_check(out, sizeof native, GM_API_HIP, "hip", "out", err);
  if (status != GM_OK) return status;
  native.context = 0;
  native.ordinal = (int32_t)opened->info.index;
  gm__sized_out(out, &native, sizeof native);
  return GM_OK;
}
