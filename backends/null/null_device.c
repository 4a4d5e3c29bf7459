#include "backends/null/null_device.h"

#include "backends/null/null_entries.h"
#include "backends/null/null_link.h"
#include "backends/shared/plain.h"
#include "backends/shared/uuid.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

void gm__null_lock(gm__mutex *mutex, gm_close_mode mode) {
  if (mode == GM_CLOSE_NORMAL) gm__mutex_lock(mutex);
}

void gm__null_unlock(gm__mutex *mutex, gm_close_mode mode) {
  if (mode == GM_CLOSE_NORMAL) gm__mutex_unlock(mutex);
}

gm_status gm__null_charge(gm__null_device *device, uint64_t bytes, gm_error *err) {
  const uint64_t left = device->options->capacity - device->card->used;
  if (bytes > left) {
    return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, "null memory", "%llu bytes asked for, %llu of %llu are left",
                    (unsigned long long)bytes, (unsigned long long)left, (unsigned long long)device->options->capacity);
  }
  device->card->used += bytes;
  return GM_OK;
}

gm_status gm__null_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err) {
  (void)level;
  gm__null_options options;
  const gm_status status = gm__null_options_parse(host->options, &options, err);
  if (status) return status;
  *out = (gm_driver_info){.struct_size = sizeof *out, .device_count = (uint32_t)options.devices, .simulated = true};
  return GM_OK;
}

gm_status gm__null_init(const gm_backend_host *host, void **out_driver, gm_error *err) {
  gm__null_options options;
  const gm_status status = gm__null_options_parse(host->options, &options, err);
  if (status) return status;
  gm__null_driver *driver = gm__alloc(host->services, sizeof *driver);
  if (!driver) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "null init", "no host memory for the driver object");
  driver->services = host->services;
  driver->options = options;
  for (uint32_t i = 0; i < GM__NULL_DEVICES_MAX; i++) {
    gm__mutex_init(&driver->cards[i].lock, GM__RANK_CARD);
    gm__null_ranges_init(&driver->cards[i].ranges, host->services, i);
  }
  *out_driver = driver;
  return GM_OK;
}

void gm__null_fini(void *driver, gm_close_mode mode) {
  gm__null_driver *self = driver;
  for (uint32_t i = 0; i < GM__NULL_DEVICES_MAX; i++) {
    gm__null_ranges_clear(&self->cards[i].ranges);
    if (mode == GM_CLOSE_NORMAL) gm__mutex_destroy(&self->cards[i].lock);
  }
  gm__release(self->services, self, sizeof *self);
}

gm_status gm__null_device_count(void *driver, uint32_t *out, gm_error *err) {
  (void)err;
  *out = (uint32_t)((gm__null_driver *)driver)->options.devices;
  return GM_OK;
}

gm_status gm__null_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  const gm__null_driver *self = driver;
  if (device) index = ((gm__null_device *)device)->index;
  const gm_status status = gm__plain_check_index("null device_info", self->options.devices, index, err);
  if (status) return status;
  *out = (gm_device_info){.struct_size = sizeof *out,
                          .index = index,
                          .api = GM_API_NULL,
                          .type = GM_DEVICE_TYPE_UNKNOWN,
                          .backend = "null",
                          .name = "simulated device without memory",
                          .vendor = "gm",
                          .driver = "null",
                          .uuid_derived = true,
                          .simulated = true,
                          .numa_node = -1,
                          .total_bytes = self->options.capacity,
                          .max_alloc_bytes = self->options.max_alloc,
                          .alignment = self->options.alignment,
                          .map_atom_bytes = 1,
                          .page_bytes = self->options.alignment,
                          .capabilities = GM__NULL_CAPABILITIES};
  gm__uuid_derive(out->backend, out->driver, out->name, index, out->uuid);
  return GM_OK;
}

gm_status gm__null_device_open(void *driver, uint32_t index, void **out_device, gm_error *err) {
  gm__null_driver *self = driver;
  const gm_status status = gm__plain_check_index("null device_open", self->options.devices, index, err);
  if (status) return status;
  gm__null_device *device = gm__alloc(self->services, sizeof *device);
  if (!device) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "null device_open", "no host memory for the device");
  device->services = self->services;
  device->options = &self->options;
  device->card = &self->cards[index];
  device->index = index;
  gm__mutex_init(&device->lock, GM__RANK_BACKEND);
  gm__map_init(&device->reservations, device->services);
  gm__map_init(&device->mappings, device->services);
  *out_device = device;
  return GM_OK;
}

void gm__null_device_close(void *device, gm_close_mode mode) {
  gm__null_device *self = device;
  gm__map_clear(&self->reservations);
  gm__map_clear(&self->mappings);
  gm__null_link_end(self);
  if (mode == GM_CLOSE_NORMAL) gm__mutex_destroy(&self->lock);
  gm__release(self->services, self, sizeof *self);
}

gm_status gm__null_device_native(void *device, gm_native_device *out, gm_error *err) {
  (void)device, (void)out;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "null device_native", "a simulated device has no native object");
}

gm_status gm__null_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  gm__null_driver *self = driver;
  if (device) index = ((gm__null_device *)device)->index;
  const gm_status status = gm__plain_check_index("null figures", self->options.devices, index, err);
  if (status) return status;
  gm__null_card *card = &self->cards[index];
  gm__mutex_lock(&card->lock);
  const uint64_t used = card->used;
  gm__mutex_unlock(&card->lock);
  *out = (gm_raw_figures){.struct_size = sizeof *out, .rules = GM_RAW_DRIVER, .place = GM_RAW_OWN_MEMORY};
  out->driver = (gm_raw_reply){
      .state = GM_RAW_OK, .total_bytes = self->options.capacity, .free_bytes = self->options.capacity - used};
  return GM_OK;
}
