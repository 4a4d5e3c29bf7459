#include "template_device.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

gm_status template_fail(gm_error *err, gm_status status, const char *op, const char *format, ...) {
  if (!err) return status;
  err->status = status;
  err->native_code = 0; /* your driver's code, where it gave one */
  snprintf(err->op, sizeof err->op, "%s", op);
  va_list args;
  va_start(args, format);
  vsnprintf(err->message, sizeof err->message, format, args);
  va_end(args);
  return status;
}

void *template_take(const gm_services *services, size_t bytes) {
  void *ptr = services->alloc(services->user, bytes, 16);
  return ptr ? memset(ptr, 0, bytes) : NULL;
}

/* PASSIVE may only look at files. ACTIVE may load your driver and ask it, and leaves nothing behind. */
gm_status template_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err) {
  (void)host, (void)level, (void)err;
  *out = (gm_driver_info){.struct_size = sizeof *out, .device_count = 1, .simulated = true};
  return GM_OK;
}

/* Open your driver's library here. Without one, answer GM_ERR_UNAVAILABLE and name what you tried. */
gm_status template_init(const gm_backend_host *host, void **out_driver, gm_error *err) {
  template_driver *driver = template_take(host->services, sizeof *driver);
  if (!driver) return template_fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "template init", "no host memory");
  driver->services = host->services;
  *out_driver = driver;
  return GM_OK;
}

void template_fini(void *driver, gm_close_mode mode) {
  (void)mode; /* GM_CLOSE_ABANDON: release host memory, and do not call your driver */
  const gm_services *services = ((template_driver *)driver)->services;
  services->release(services->user, driver, sizeof(template_driver));
}

gm_status template_device_count(void *driver, uint32_t *out, gm_error *err) {
  (void)driver, (void)err;
  *out = 1;
  return GM_OK;
}

static gm_status device_check(uint32_t index, const char *op, gm_error *err) {
  return index == 0 ? GM_OK : template_fail(err, GM_ERR_NOT_FOUND, op, "`index` is %u, but there is one device", index);
}

gm_status template_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  (void)driver;
  const gm_status status = device_check(device ? 0 : index, "template device_info", err);
  if (status) return status;
  *out = (gm_device_info){.struct_size = sizeof *out,
                          .api = GM_API_OTHER,
                          .type = GM_DEVICE_TYPE_UNKNOWN,
                          .backend = "template",
                          .name = "template device",
                          .vendor = "template",
                          .driver = "template",
                          .uuid = {'t', 'e', 'm', 'p', 'l', 'a', 't', 'e', 0, 0, 0, 0, 0, 0, 0, 1},
                          .simulated = true,
                          .numa_node = -1,
                          .total_bytes = TEMPLATE_CAPACITY,
                          .max_alloc_bytes = TEMPLATE_CAPACITY,
                          .alignment = TEMPLATE_ALIGNMENT,
                          .map_atom_bytes = 1,
                          .capabilities = TEMPLATE_CAPABILITIES};
  return GM_OK;
}

gm_status template_device_open(void *driver, uint32_t index, void **out_device, gm_error *err) {
  const gm_status status = device_check(index, "template device_open", err);
  if (status) return status;
  template_driver *owner = driver;
  template_device *device = template_take(owner->services, sizeof *device);
  if (!device) return template_fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "template device_open", "no host memory");
  device->services = owner->services;
  device->driver = owner;
  *out_device = device;
  return GM_OK;
}

void template_device_close(void *device, gm_close_mode mode) {
  (void)mode;
  const gm_services *services = ((template_device *)device)->services;
  services->release(services->user, device, sizeof(template_device));
}

gm_status template_device_state(void *device, gm_error *err) {
  (void)device, (void)err; /* answer GM_ERR_DEVICE_LOST once your driver says so */
  return GM_OK;
}

gm_status template_device_native(void *device, gm_native_device *out, gm_error *err) {
  (void)device, (void)out;
  return template_fail(err, GM_ERR_NOT_SUPPORTED, "template device_native", "there is no native object");
}

/* Give raw numbers and repair nothing: gm has the rules. */
gm_status template_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  const gm_status status = device_check(device ? 0 : index, "template figures", err);
  if (status) return status;
  *out = (gm_raw_figures){.struct_size = sizeof *out, .rules = GM_RAW_DRIVER, .place = GM_RAW_OWN_MEMORY};
  out->driver.state = GM_RAW_OK;
  out->driver.total_bytes = TEMPLATE_CAPACITY;
  out->driver.free_bytes = TEMPLATE_CAPACITY - atomic_load(&((template_driver *)driver)->used);
  return GM_OK;
}
