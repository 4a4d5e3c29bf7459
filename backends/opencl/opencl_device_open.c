#include <string.h>

#include "backends/opencl/opencl_device.h"
#include "backends/opencl/opencl_entries.h"
#include "backends/opencl/opencl_host.h"
#include "backends/opencl/opencl_info.h"
#include "backends/opencl/opencl_kernels.h"
#include "backends/opencl/opencl_point.h"
#include "backends/opencl/opencl_status.h"
#include "backends/shared/native.h"
#include "backends/shared/plain.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "gm/native_opencl.h"

/* The life of a device: opened, adopted, closed. Invariants: a device holds exactly one reference on its context, made
 * or adopted. Every open device has its own context, because OpenCL's memory belongs to a context and not to a device.
 */

enum { OPENCL_OLDEST = 12 }; /* clEnqueueFillBuffer, markers and barriers with wait lists */

gm_status gm__opencl_device_count(void *driver, uint32_t *out, gm_error *err) {
  (void)err;
  *out = ((gm__opencl_driver *)driver)->count;
  return GM_OK;
}

static gm_status opencl_device_entry(gm__opencl_driver *driver, uint32_t index, gm__opencl_entry **out, gm_error *err) {
  const gm_status status = gm__plain_check_index("opencl", driver->count, index, err);
  if (status == GM_OK) *out = &driver->entries[index];
  return status;
}

gm_status gm__opencl_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  if (device) {
    *out = ((gm__opencl_device *)device)->info;
    return GM_OK;
  }
  gm__opencl_entry *entry = NULL;
  const gm_status status = opencl_device_entry(driver, index, &entry, err);
  if (status == GM_OK) *out = entry->info;
  return status;
}

gm_status gm__opencl_device_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  if (device) {
    const gm__opencl_device *opened = device;
    gm__opencl_figures(opened->driver, opened->id, &opened->info, out);
    return GM_OK;
  }
  gm__opencl_entry *entry = NULL;
  const gm_status status = opencl_device_entry(driver, index, &entry, err);
  if (status == GM_OK) gm__opencl_figures(driver, entry->id, &entry->info, out);
  return status;
}

static gm__opencl_device *opencl_device_make(gm__opencl_driver *driver, cl_device_id id, gm_error *err) {
  gm__opencl_device *device = gm__alloc(driver->services, sizeof *device);
  if (!device) {
    gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "opencl", "no host memory for the device's record");
    return NULL;
  }
  device->driver = driver;
  device->cl = &driver->cl;
  device->services = driver->services;
  device->id = id;
  device->allow_queue = true;
  atomic_init(&device->own_held, 0);
  atomic_init(&device->own_queue, NULL);
  atomic_init(&device->lost, 0);
  device->held = &device->own_held;
  gm__mutex_init(&device->lock, GM__RANK_BACKEND);
  gm__opencl_kernels_open(device);
  gm__map_init(&device->mapped, driver->services);
  return device;
}

static void opencl_device_discard(gm__opencl_device *device, gm_close_mode mode) {
  gm__opencl_kernels_close(device, mode);
  gm__opencl_host_forget(device);
  if (mode == GM_CLOSE_NORMAL) gm__mutex_destroy(&device->lock);
  gm__map_clear(&device->mapped);
  if (device->alone) gm__opencl_driver_close(device->driver);
  gm__release(device->services, device, sizeof *device);
}

static gm_status opencl_device_check_version(const gm_device_info *info, gm_error *err) {
  if (gm__opencl_version(info) >= OPENCL_OLDEST) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "opencl", "%s has %s, gm needs OpenCL 1.2 or newer", info->name,
                  info->capability[0] ? info->capability : "no OpenCL version that it tells");
}

/* PoCL of each version: 3.1 has the faults, its source of 2024 the first one, and what gm does instead costs little. gm
 * does not try them out: that needs a queue, which the engine may not allow. A driver without a name may be PoCL. */
static void opencl_device_take_faults(gm__opencl_device *device) {
  const char *driver = device->info.driver;
  device->drops_copies = device->crashes_on_box = strcmp(driver, "pocl") == 0 || strcmp(driver, "unknown") == 0;
}

static void opencl_device_is(gm__opencl_device *device, gm__opencl_entry *entry) {
  device->info = entry->info;
  device->kinds = entry->kinds;
  device->held = &entry->held;
  opencl_device_take_faults(device);
}

gm_status gm__opencl_device_open(void *driver, uint32_t index, void **out_device, gm_error *err) {
  gm__opencl_driver *owner = driver;
  gm__opencl_entry *entry = NULL;
  gm_status status = opencl_device_entry(owner, index, &entry, err);
  if (status == GM_OK) status = opencl_device_check_version(&entry->info, err);
  if (status != GM_OK) return status;
  gm__opencl_device *device = opencl_device_make(owner, entry->id, err);
  if (!device) return GM_ERR_OUT_OF_HOST_MEMORY;
  opencl_device_is(device, entry);
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)entry->platform, 0};
  cl_int code = CL_SUCCESS;
  device->context = owner->cl.clCreateContext(properties, 1, &entry->id, NULL, NULL, &code);
  if (!device->context) {
    opencl_device_discard(device, GM_CLOSE_NORMAL);
    status = gm__opencl_fail(err, code, "clCreateContext");
    /* The device was not open yet, so it cannot be lost. */
    return status == GM_ERR_DEVICE_LOST
               ? gm__fail_native(err, GM_ERR_UNAVAILABLE, code, "clCreateContext", "the device is not available now")
               : status;
  }
  *out_device = device;
  return GM_OK;
}

enum { OPENCL_MAX_CONTEXT_DEVICES = 64 };

/* Find the engine's device: the named one, if the context has it, else the only one of the context. */
static gm_status opencl_adopt_choose(const gm__opencl_driver *driver, const gm_opencl_device *native, cl_device_id *out,
                                     gm_error *err) {
  cl_device_id ids[OPENCL_MAX_CONTEXT_DEVICES];
  size_t bytes = 0;
  const cl_int code =
      driver->cl.clGetContextInfo((cl_context)native->context, CL_CONTEXT_DEVICES, sizeof ids, ids, &bytes);
  if (code != CL_SUCCESS) return gm__opencl_fail(err, code, "clGetContextInfo");
  const size_t count = bytes < sizeof ids ? bytes / sizeof ids[0] : OPENCL_MAX_CONTEXT_DEVICES;
  if (!native->device && count != 1) {
    return gm__bad_argument(err, "clGetContextInfo", "`device` must be given: `context` has %zu devices", count);
  }
  for (size_t i = 0; i < count; i++) {
    if (native->device && !gm__opencl_device_within(&driver->cl, (cl_device_id)native->device, ids[i])) continue;
    *out = ids[i];
    return GM_OK;
  }
  return gm__bad_argument(err, "clGetContextInfo", "`device` is not one of the %zu devices of `context`", count);
}

/* A device that the platforms do not list is a sub-device. gm describes it like any other, with its own byte count. */
static gm_status opencl_adopt_describe(gm__opencl_device *device, gm_error *err) {
  gm__opencl_driver *driver = device->driver;
  gm__opencl_entry *entry = gm__opencl_driver_find(driver, device->id);
  if (entry) {
    opencl_device_is(device, entry);
    return opencl_device_check_version(&device->info, err);
  }
  gm_status status = gm__opencl_describe_adopted(driver, device->id, &device->info, &device->kinds, err);
  if (status != GM_OK) return status;
  device->info.index = driver->count;
  opencl_device_take_faults(device);
  gm__opencl_derive_uuid(&device->info, driver->count);
  return opencl_device_check_version(&device->info, err);
}

gm_status gm__opencl_device_adopt(void *driver, const gm_native_device *native, void **out_device, gm_error *err) {
  gm__opencl_driver *owner = driver;
  gm_opencl_device lent;
  cl_device_id id = NULL;
  gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_OPENCL, "opencl", "native", err);
  if (status != GM_OK) return status;
  if (!lent.context) return gm__bad_argument(err, "opencl", "`context` of the native device must not be 0");
  status = opencl_adopt_choose(owner, &lent, &id, err);
  if (status != GM_OK) return status;
  gm__opencl_device *device = opencl_device_make(owner, id, err);
  if (!device) return GM_ERR_OUT_OF_HOST_MEMORY;
  device->allow_queue = lent.allow_queue;
  status = opencl_adopt_describe(device, err);
  if (status == GM_OK) {
    const cl_int code = owner->cl.clRetainContext((cl_context)lent.context);
    if (code != CL_SUCCESS) status = gm__opencl_fail(err, code, "clRetainContext");
  }
  if (status != GM_OK) {
    opencl_device_discard(device, GM_CLOSE_NORMAL);
    return status;
  }
  device->context = (cl_context)lent.context;
  if (!device->allow_queue) device->info.capabilities &= ~(uint64_t)GM_CAP_STREAMS;
  *out_device = device;
  return GM_OK;
}

gm_status gm__opencl_device_adopt_alone(const gm_backend_host *host, const gm_native_device *native, void **out_device,
                                        gm_error *err) {
  gm_opencl_device lent;
  void *driver = NULL;
  gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_OPENCL, "opencl", "native", err);
  if (status != GM_OK) return status;
  if (!lent.get_proc) return gm__fail(err, GM_ERR_NOT_SUPPORTED, "device_adopt_alone", "`get_proc` is NULL");
  status = gm__opencl_driver_open_from(host, lent.get_proc, lent.get_proc_user, &driver, err);
  if (status != GM_OK) return status;
  status = gm__opencl_device_adopt(driver, native, out_device, err);
  if (status == GM_OK) {
    ((gm__opencl_device *)*out_device)->alone = true;
  } else {
    gm__opencl_driver_close(driver);
  }
  return status;
}

void gm__opencl_device_close(void *device, gm_close_mode mode) {
  gm__opencl_device *opened = device;
  if (!opened) return;
  if (mode == GM_CLOSE_NORMAL) {
    cl_command_queue queue = atomic_load(&opened->own_queue);
    if (queue) {
      gm__opencl_point_mark(opened, queue, NULL, NULL);
      opened->cl->clReleaseCommandQueue(queue);
    }
    opened->cl->clReleaseContext(opened->context);
  }
  opencl_device_discard(opened, mode);
}
