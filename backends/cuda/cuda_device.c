#include "backends/cuda/cuda_device.h"

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/cuda_context.h"
#include "backends/cuda/cuda_info.h"
#include "backends/cuda/cuda_point.h"
#include "backends/cuda/cuda_status.h"
#include "backends/cuda/cuda_stream.h"
#include "backends/cuda/cuda_vmm.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/native.h"
#include "core/base/sized.h"
#include "core/base/vmm_try.h"
#include "gm/native_cuda.h"

/* Invariants: a device whose context is the primary one holds exactly one reference on it, and an engine's own context
 * is never destroyed; `lost` is set once and stays; nothing is created or destroyed at the driver under `lock`. */

gm_status gm__cuda_device_fail(gm__cuda_device *device, CUresult code, const char *op, gm_error *err) {
  const bool known = atomic_load(&device->lost) != 0;
  if (!known && gm__cuda_status((int)code) != GM_ERR_DEVICE_LOST) return gm__cuda_fail(err, code, op);
  int32_t none = 0;
  atomic_compare_exchange_strong(&device->lost, &none, (int32_t)code);
  return gm__fail(err, GM_ERR_DEVICE_LOST, (int)code, op, "%s: %s (%d): the device is lost; close and reopen it", op,
                  gm__cuda_code_name((int)code), (int)code);
}

gm_status gm__cuda_device_released(gm__cuda_device *device, CUresult code, const char *op, gm_error *err) {
  if (gm__cuda_released(code)) return GM_OK;
  const gm_status status = gm__cuda_device_fail(device, code, op, err);
  return status == GM_ERR_DEVICE_LOST ? GM_OK : status;
}

gm_status gm__cuda_device_count(void *driver, uint32_t *out, gm_error *err) {
  (void)err;
  *out = ((gm__cuda_driver *)driver)->count;
  return GM_OK;
}

static gm_status cuda_device_check(const gm__cuda_driver *driver, uint32_t index, gm_error *err) {
  if (index < driver->count) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_FOUND, 0, "cuda", "there is no CUDA device %u: %u are listed", (unsigned)index,
                  (unsigned)driver->count);
}

gm_status gm__cuda_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  if (device) {
    *out = ((gm__cuda_device *)device)->info;
    return GM_OK;
  }
  const gm_status status = cuda_device_check(driver, index, err);
  if (status == GM_OK) *out = ((gm__cuda_driver *)driver)->infos[index];
  return status;
}

/* cuMemGetInfo is a query that a capture in the same thread would not survive on an old driver, and that is not asked
 * while the engine captures on any stream that gm knows. */
static void cuda_device_ask(gm__cuda_device *device, gm_raw_figures *out) {
  gm__cuda_scope scope;
  size_t room = 0, total = 0;
  if (gm__cuda_enter(device, &scope, NULL) != GM_OK) {
    out->driver = (gm_raw_reply){.state = GM_RAW_ERROR, .code = atomic_load(&device->lost)};
    return;
  }
  if (gm__cuda_capture_check(device, NULL) == GM_OK) {
    const CUresult code = device->cu->cuMemGetInfo_v2(&room, &total);
    out->driver.state = code == CUDA_SUCCESS ? GM_RAW_OK : GM_RAW_ERROR;
    out->driver.code = (int32_t)code;
    out->driver.total_bytes = total;
    out->driver.free_bytes = room;
  }
  gm__cuda_leave(&scope);
}

gm_status gm__cuda_device_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  gm__cuda_driver *owner = driver;
  if (device) {
    gm__cuda_device *opened = device;
    gm__cuda_figures(opened->driver, opened->info.index, &opened->info, out);
    cuda_device_ask(opened, out);
    return GM_OK;
  }
  const gm_status status = cuda_device_check(owner, index, err);
  if (status == GM_OK) gm__cuda_figures(owner, index, &owner->infos[index], out);
  return status;
}

static gm__cuda_device *cuda_device_make(gm__cuda_driver *driver, uint32_t index, gm_error *err) {
  gm__cuda_device *device = gm__alloc(driver->services, sizeof *device);
  if (!device) {
    gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "cuda", "no host memory for the device's record");
    return NULL;
  }
  device->driver = driver;
  device->cu = &driver->cu;
  device->services = driver->services;
  device->info = driver->infos[index];
  atomic_init(&device->own_stream, NULL);
  atomic_init(&device->lost, 0);
  gm__mutex_init(&device->lock, GM__RANK_BACKEND);
  gm__event_slots_init(&device->events, device->services);
  gm__map_init(&device->registered, device->services);
  gm__map_init(&device->peers, device->services);
  gm__vmm_table_init(&device->mapped, device->services, &gm__cuda_backend);
  return device;
}

static void cuda_device_discard(gm__cuda_device *device) {
  gm__map_clear(&device->registered);
  gm__map_clear(&device->peers);
  gm__vmm_table_clear(&device->mapped);
  gm__event_slots_clear(&device->events);
  gm__mutex_destroy(&device->lock);
  gm__release(device->services, device, sizeof *device);
}

/* What only trying tells, and what hangs on it. */
static void cuda_device_try(gm__cuda_device *device) {
  gm__vmm_try(&gm__cuda_backend, device, &device->info);
  if (gm__cuda_share_kinds(device->driver, device->ordinal, &device->info)) return;
  device->info.capabilities &= ~(uint64_t)GM_CAP_SHARE;
}

/* Before there is a device there is none to lose. */
static gm_status cuda_device_retain(gm__cuda_device *device, gm_error *err) {
  CUresult code = device->cu->cuDeviceGet(&device->ordinal, (int)device->info.index);
  if (code != CUDA_SUCCESS) return gm__cuda_fail(err, code, "cuDeviceGet");
  code = device->cu->cuDevicePrimaryCtxRetain(&device->context, device->ordinal);
  if (code != CUDA_SUCCESS) {
    const gm_status status = gm__cuda_status((int)code);
    return gm__cuda_fail_as(err, status == GM_ERR_DEVICE_LOST ? GM_ERR_UNAVAILABLE : status, code,
                            "cuDevicePrimaryCtxRetain");
  }
  if (!device->context) {
    device->cu->cuDevicePrimaryCtxRelease_v2(device->ordinal); /* success is a reference, whatever came of it */
    return gm__cuda_nonsense(err, "cuDevicePrimaryCtxRetain", "gave no context");
  }
  device->retained = true;
  return GM_OK;
}

static gm_status cuda_device_open_primary(gm__cuda_driver *driver, uint32_t index, void **out_device, gm_error *err) {
  gm_status status = cuda_device_check(driver, index, err);
  if (status != GM_OK) return status;
  gm__cuda_device *device = cuda_device_make(driver, index, err);
  if (!device) return GM_ERR_OUT_OF_HOST_MEMORY;
  status = cuda_device_retain(device, err);
  if (status != GM_OK) {
    cuda_device_discard(device);
    return status;
  }
  cuda_device_try(device);
  *out_device = device;
  return GM_OK;
}

gm_status gm__cuda_device_open(void *driver, uint32_t index, void **out_device, gm_error *err) {
  return cuda_device_open_primary(driver, index, out_device, err);
}

/* The device that an engine's context is of: asked with the context current. */
static gm_status cuda_adopt_ordinal(gm__cuda_driver *driver, CUcontext context, CUdevice *out, gm_error *err) {
  CUcontext popped = NULL;
  CUresult code = driver->cu.cuCtxPushCurrent_v2(context);
  if (code != CUDA_SUCCESS) return gm__cuda_fail(err, code, "cuCtxPushCurrent");
  code = driver->cu.cuCtxGetDevice(out);
  const CUresult back = driver->cu.cuCtxPopCurrent_v2(&popped);
  if (code == CUDA_SUCCESS) code = back;
  return code == CUDA_SUCCESS ? GM_OK : gm__cuda_fail(err, code, "cuCtxGetDevice");
}

/* A CUdevice is a number, and gm's index is the same; anything else would be a device that the driver did not list. */
static gm_status cuda_adopt_context(gm__cuda_driver *driver, CUcontext context, void **out_device, gm_error *err) {
  CUdevice ordinal = -1;
  gm_status status = cuda_adopt_ordinal(driver, context, &ordinal, err);
  if (status == GM_OK) status = cuda_device_check(driver, ordinal < 0 ? UINT32_MAX : (uint32_t)ordinal, err);
  if (status != GM_OK) return status;
  gm__cuda_device *device = cuda_device_make(driver, (uint32_t)ordinal, err);
  if (!device) return GM_ERR_OUT_OF_HOST_MEMORY;
  device->ordinal = ordinal;
  device->context = context;
  cuda_device_try(device);
  *out_device = device;
  return GM_OK;
}

gm_status gm__cuda_device_adopt(void *driver, const gm_native_device *native, void **out_device, gm_error *err) {
  gm_cuda_device lent;
  const gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_CUDA, "cuda", "native", err);
  if (status != GM_OK) return status;
  if (lent.context) return cuda_adopt_context(driver, (CUcontext)lent.context, out_device, err);
  if (lent.ordinal < 0) return gm__bad_argument(err, "cuda", "`ordinal` must not be negative, is %d", lent.ordinal);
  return cuda_device_open_primary(driver, (uint32_t)lent.ordinal, out_device, err);
}

static void cuda_device_give_back(gm__cuda_device *device) {
  gm__cuda_scope scope;
  if (gm__cuda_enter(device, &scope, NULL) == GM_OK) {
    CUstream stream = atomic_load(&device->own_stream);
    if (stream) {
      device->cu->cuStreamSynchronize(stream);
      device->cu->cuStreamDestroy_v2(stream);
    }
    gm__cuda_events_destroy(device);
    gm__cuda_leave(&scope);
  }
  if (device->retained) device->cu->cuDevicePrimaryCtxRelease_v2(device->ordinal);
}

void gm__cuda_device_close(void *device, gm_close_mode mode) {
  gm__cuda_device *opened = device;
  if (!opened) return;
  if (mode == GM_CLOSE_NORMAL) cuda_device_give_back(opened);
  cuda_device_discard(opened);
}

/* A sticky error shows in every call, also in one that only looks. */
gm_status gm__cuda_device_state(void *device, gm_error *err) {
  gm__cuda_device *opened = device;
  gm__cuda_scope scope;
  const gm_status status = gm__cuda_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  const CUresult code = opened->cu->cuStreamQuery(atomic_load(&opened->own_stream));
  gm__cuda_leave(&scope);
  if (code != CUDA_ERROR_UNKNOWN && gm__cuda_status((int)code) != GM_ERR_DEVICE_LOST) return GM_OK;
  int32_t none = 0;
  atomic_compare_exchange_strong(&opened->lost, &none, (int32_t)code);
  return gm__cuda_device_fail(opened, code, "cuStreamQuery", err);
}

gm_status gm__cuda_device_native(void *device, gm_native_device *out, gm_error *err) {
  const gm__cuda_device *opened = device;
  gm_cuda_device native = {.head = *out};
  const gm_status status = gm__native_check(out, sizeof native, GM_API_CUDA, "cuda", "out", err);
  if (status != GM_OK) return status;
  native.context = (uintptr_t)opened->context;
  native.ordinal = opened->ordinal;
  gm__sized_out(out, &native, sizeof native);
  return GM_OK;
}
