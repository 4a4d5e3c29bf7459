/* The driver, the device, its memory and its table. */
#include "cts/liars/lazy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cts/liars/lies_expand.h"

enum { LAZY_TYPES = 2, LAZY_ALIGNMENT = 256 };

gm_status lazy_fail(gm_error *err, gm_status status, const char *op, const char *message) {
  if (!err) return status;
  err->status = status;
  err->native_code = 0;
  snprintf(err->op, sizeof err->op, "%s", op);
  snprintf(err->message, sizeof err->message, "%s", message);
  return status;
}

static void *lazy_take(const gm_services *services, size_t bytes) {
  void *taken = services->alloc(services->user, bytes, 16);
  return taken ? memset(taken, 0, bytes) : NULL;
}

static gm_status lazy_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err) {
  (void)host, (void)level, (void)err;
  *out = (gm_driver_info){.struct_size = sizeof *out, .device_count = 1, .simulated = true};
  return GM_OK;
}

static gm_status lazy_init(const gm_backend_host *host, void **out_driver, gm_error *err) {
  lazy_driver *driver = lazy_take(host->services, sizeof *driver);
  if (!driver) return lazy_fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "init", "no host memory");
  driver->services = host->services;
  pthread_mutex_init(&driver->lock, NULL);
  *out_driver = driver;
  return GM_OK;
}

static void lazy_fini(void *driver, gm_close_mode mode) {
  lazy_driver *self = driver;
  if (mode == GM_CLOSE_NORMAL) pthread_mutex_destroy(&self->lock);
  self->services->release(self->services->user, self, sizeof *self);
}

static gm_status lazy_device_count(void *driver, uint32_t *out, gm_error *err) {
  (void)driver, (void)err;
  *out = 1;
  return GM_OK;
}

static gm_status lazy_index(uint32_t index, const char *op, gm_error *err) {
  return index == 0 ? GM_OK : lazy_fail(err, GM_ERR_NOT_FOUND, op, "there is one device");
}

static gm_status lazy_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  (void)driver;
  const gm_status status = lazy_index(device ? 0 : index, "device_info", err);
  if (status) return status;
  *out = (gm_device_info){.struct_size = sizeof *out,
                          .api = GM_API_OTHER,
                          .type = GM_DEVICE_TYPE_UNKNOWN,
                          .backend = "lazy",
                          .name = "lazy device",
                          .uuid = {'l', 'a', 'z', 'y'},
                          .simulated = true,
                          .numa_node = -1,
                          .total_bytes = LAZY_CAPACITY,
                          .max_alloc_bytes = LAZY_CAPACITY / 2,
                          .alignment = LAZY_ALIGNMENT,
                          .map_atom_bytes = 1,
                          .capabilities = LAZY_CAPABILITIES};
  return GM_OK;
}

static gm_status lazy_device_open(void *driver, uint32_t index, void **out_device, gm_error *err) {
  lazy_driver *owner = driver;
  const gm_status status = lazy_index(index, "device_open", err);
  if (status) return status;
  lazy_device *device = lazy_take(owner->services, sizeof *device);
  if (!device) return lazy_fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "device_open", "no host memory");
  device->services = owner->services;
  device->driver = owner;
  pthread_mutex_init(&device->lock, NULL);
  *out_device = device;
  return GM_OK;
}

static void lazy_device_close(void *device, gm_close_mode mode) {
  lazy_device *self = device;
  const gm_services *services = self->services;
  while (self->streams) {
    lazy_stream *stream = self->streams;
    self->streams = stream->next;
    if (stream->jobs) services->release(services->user, stream->jobs, stream->room * sizeof *stream->jobs);
    services->release(services->user, stream, sizeof *stream);
  }
  if (mode == GM_CLOSE_NORMAL) pthread_mutex_destroy(&self->lock);
  services->release(services->user, self, sizeof *self);
}

static gm_status lazy_device_state(void *device, gm_error *err) {
  (void)device, (void)err;
  return GM_OK;
}

static gm_status lazy_device_native(void *device, gm_native_device *out, gm_error *err) {
  (void)device, (void)out;
  return lazy_fail(err, GM_ERR_NOT_SUPPORTED, "device_native", "there is no native object");
}

static gm_status lazy_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  lazy_driver *self = driver;
  const gm_status status = lazy_index(device ? 0 : index, "figures", err);
  if (status) return status;
  pthread_mutex_lock(&self->lock);
  const uint64_t left = LAZY_CAPACITY - self->used;
  pthread_mutex_unlock(&self->lock);
  *out = (gm_raw_figures){.struct_size = sizeof *out, .rules = GM_RAW_DRIVER, .place = GM_RAW_OWN_MEMORY};
  out->driver = (gm_raw_reply){.state = GM_RAW_OK, .total_bytes = LAZY_CAPACITY, .free_bytes = left};
  return GM_OK;
}

static gm_status lazy_type_count(void *device, uint32_t *out, gm_error *err) {
  (void)device, (void)err;
  *out = LAZY_TYPES;
  return GM_OK;
}

/* The first is hidden from the host, the second is not. */
static gm_status lazy_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  static const uint32_t flags[LAZY_TYPES] = {GM_MEMORY_DEVICE_LOCAL, GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_HOST_VISIBLE |
                                                                         GM_MEMORY_HOST_COHERENT |
                                                                         GM_MEMORY_PERSISTENT_MAP};
  (void)device;
  if (type >= LAZY_TYPES) return lazy_fail(err, GM_ERR_INVALID_ARGUMENT, "memory_type", "there is no such type");
  *out =
      (gm_memory_type){.struct_size = sizeof *out, .flags = flags[type], .heap_bytes = LAZY_CAPACITY, .atom_bytes = 1};
  return GM_OK;
}

static gm_status lazy_check(const gm_memory_params *params, gm_error *err) {
  const bool bad = !params->bytes || (params->align & (params->align - 1)) || params->type >= LAZY_TYPES;
  if (bad) return lazy_fail(err, GM_ERR_INVALID_ARGUMENT, "memory_alloc", "wrong bytes, alignment or type");
  if (params->bytes <= LAZY_CAPACITY / 2 && params->align <= LAZY_CAPACITY / 2) return GM_OK;
  return lazy_fail(err, GM_ERR_ALLOCATION_TOO_LARGE, "memory_alloc", "more than half of the device");
}

static bool lazy_charge(lazy_driver *driver, uint64_t bytes) {
  pthread_mutex_lock(&driver->lock);
  const bool good = bytes <= LAZY_CAPACITY - driver->used;
  if (good) driver->used += bytes;
  pthread_mutex_unlock(&driver->lock);
  return good;
}

static gm_status lazy_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  lazy_driver *driver = ((lazy_device *)device)->driver;
  const gm_status status = lazy_check(params, err);
  if (status) return status;
  const uint64_t align = params->align > LAZY_ALIGNMENT ? params->align : LAZY_ALIGNMENT;
  const uint64_t bytes = (params->bytes + align - 1) / align * align;
  if (!lazy_charge(driver, bytes)) {
    return lazy_fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, "memory_alloc", "the device has not so much left");
  }
  void *begin = aligned_alloc(align, bytes);
  if (!begin) abort(); /* at most LAZY_CAPACITY, in a test */
  *out = (gm_memory){.handle = (uintptr_t)begin, .address = (uintptr_t)begin, .bytes = bytes, .type = params->type};
  return GM_OK;
}

static gm_status lazy_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  lazy_driver *driver = ((lazy_device *)device)->driver;
  (void)err;
  free((void *)(uintptr_t)memory->handle);
  if (mode == GM_CLOSE_ABANDON) return GM_OK;
  pthread_mutex_lock(&driver->lock);
  driver->used -= memory->bytes;
  pthread_mutex_unlock(&driver->lock);
  return GM_OK;
}

static gm_status lazy_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                    gm_native_memory *out, gm_error *err) {
  (void)device, (void)memory, (void)offset, (void)bytes, (void)out;
  return lazy_fail(err, GM_ERR_INVALID_ARGUMENT, "memory_native", "`out`: there are no native objects");
}

static gm_status lazy_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                          uint32_t mode, void **out, gm_error *err) {
  (void)bytes, (void)mode;
  if (memory->type == 0) return lazy_fail(err, GM_ERR_NOT_SUPPORTED, "map", "the host cannot see this memory");
  const gm_status status = stream ? lazy_stream_sync(device, stream, err) : GM_OK;
  if (status == GM_OK) *out = (unsigned char *)(uintptr_t)memory->handle + offset;
  return status;
}

static gm_status lazy_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err) {
  (void)device, (void)stream, (void)memory, (void)pointer, (void)err;
  return GM_OK;
}

static gm_status lazy_coherent(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err) {
  (void)device, (void)memory, (void)offset, (void)bytes, (void)err;
  return GM_OK;
}

const gm_backend_ops lazy_ops = {
    .abi = GM_BACKEND_ABI,
    .struct_size = sizeof(gm_backend_ops),
    .name = "lazy",
    .api = GM_API_OTHER,
    .capabilities = LAZY_CAPABILITIES,
    .probe = lazy_probe,
    .init = lazy_init,
    .fini = lazy_fini,
    .device_count = lazy_device_count,
    .device_info = lazy_device_info,
    .device_open = lazy_device_open,
    .device_close = lazy_device_close,
    .device_state = lazy_device_state,
    .device_native = lazy_device_native,
    .figures = lazy_figures,
    .memory_type_count = lazy_type_count,
    .memory_type = lazy_type,
    .memory_alloc = lazy_memory_alloc,
    .memory_free = lazy_memory_free,
    .memory_native = lazy_memory_native,
    .map = lazy_map,
    .unmap = lazy_unmap,
    .flush = lazy_coherent,
    .invalidate = lazy_coherent,
    .stream_create = lazy_stream_create,
    .stream_close = lazy_stream_close,
    .stream_flush = lazy_stream_flush,
    .stream_sync = lazy_stream_sync,
    .point_record = lazy_point_record,
    .point_done = lazy_point_done,
    .point_wait = lazy_point_wait,
    .point_wait_on = lazy_point_wait_on,
    .stream_barrier = lazy_stream_barrier,
    .point_release = lazy_point_release,
    .copy_to_device = lazy_copy_to_device,
    .copy_to_host = lazy_copy_to_host,
    .copy = lazy_copy,
    .fill = lazy_fill,
    .rect_to_device = lazy_rect_to_device,
    .rect_to_host = lazy_rect_to_host,
    .rect_copy = lazy_rect_copy,
    .copy_many = lazy_copy_many,
    .expand = lazy_expand,
    .point_copy = lazy_point_copy,
};
