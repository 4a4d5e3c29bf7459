#include "template_mem.h"

#include <stdlib.h>
#include <string.h>

#include "template_device.h"

gm_status template_memory_type_count(void *device, uint32_t *out, gm_error *err) {
  (void)device, (void)err;
  *out = 1;
  return GM_OK;
}

static gm_status mem_check_type(uint32_t type, const char *op, gm_error *err) {
  if (type == 0) return GM_OK;
  return template_fail(err, GM_ERR_INVALID_ARGUMENT, op, "`type` is %u, but there is one: 0", type);
}

gm_status template_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  (void)device;
  const gm_status status = mem_check_type(type, "memory_type", err);
  if (status) return status;
  *out = (gm_memory_type){
      .struct_size = sizeof *out, .flags = GM_MEMORY_DEVICE_LOCAL, .heap_bytes = TEMPLATE_CAPACITY, .atom_bytes = 1};
  return GM_OK;
}

static gm_status mem_check(const gm_memory_params *params, gm_error *err) {
  const char *op = "memory_alloc";
  if (params->bytes == 0) return template_fail(err, GM_ERR_INVALID_ARGUMENT, op, "`bytes` must not be 0");
  if (params->align & (params->align - 1)) {
    return template_fail(err, GM_ERR_INVALID_ARGUMENT, op, "`align` must be a power of two, is %llu",
                         (unsigned long long)params->align);
  }
  if (params->bytes > TEMPLATE_CAPACITY || params->align > TEMPLATE_CAPACITY) {
    return template_fail(err, GM_ERR_ALLOCATION_TOO_LARGE, op, "%llu bytes are more than the device has",
                         (unsigned long long)params->bytes);
  }
  return mem_check_type(params->type, op, err);
}

/* Count the bytes. 0: the device has not so many left. */
static int mem_charge(template_driver *driver, uint64_t bytes) {
  uint64_t used = atomic_load(&driver->used);
  do {
    if (bytes > TEMPLATE_CAPACITY - used) return 0;
  } while (!atomic_compare_exchange_weak(&driver->used, &used, used + bytes));
  return 1;
}

gm_status template_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  const gm_status status = mem_check(params, err);
  if (status) return status;
  template_driver *driver = ((template_device *)device)->driver;
  const uint64_t align = params->align > TEMPLATE_ALIGNMENT ? params->align : TEMPLATE_ALIGNMENT;
  const uint64_t bytes = (params->bytes + align - 1) / align * align;
  if (!mem_charge(driver, bytes)) {
    return template_fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, "memory_alloc", "%llu bytes are not left",
                         (unsigned long long)bytes);
  }
  void *begin = aligned_alloc(align, bytes);
  if (!begin) {
    atomic_fetch_sub(&driver->used, bytes);
    return template_fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, "aligned_alloc", "%llu bytes", (unsigned long long)bytes);
  }
  *out = (gm_memory){.handle = (uintptr_t)begin, .address = (uintptr_t)begin, .bytes = bytes};
  return GM_OK;
}

gm_status template_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  (void)mode, (void)err;
  free((void *)(uintptr_t)memory->handle);
  atomic_fetch_sub(&((template_device *)device)->driver->used, memory->bytes);
  return GM_OK;
}

/* If your API has native objects, publish a struct like those of gm/native_opencl.h, and fill it here. */
gm_status template_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                 gm_native_memory *out, gm_error *err) {
  (void)device, (void)memory, (void)offset, (void)bytes, (void)out;
  return template_fail(err, GM_ERR_INVALID_ARGUMENT, "memory_native", "`out`: this API has no native objects");
}

static unsigned char *mem_at(const gm_memory *memory, uint64_t offset) {
  return (unsigned char *)(uintptr_t)memory->handle + offset;
}

/* All work is done when a call returns, so every point has passed. */
static gm_status mem_done(gm_backend_point *out) {
  if (out) *out = (gm_backend_point){0};
  return GM_OK;
}

gm_status template_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                  uint64_t bytes, gm_backend_point *out, gm_error *err) {
  (void)device, (void)stream, (void)err;
  memcpy(mem_at(dst, offset), src, bytes);
  return mem_done(out);
}

gm_status template_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                uint64_t bytes, gm_backend_point *out, gm_error *err) {
  (void)device, (void)stream, (void)err;
  memcpy(dst, mem_at(src, offset), bytes);
  return mem_done(out);
}

gm_status template_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err) {
  (void)device, (void)stream, (void)err;
  memcpy(mem_at(item->dst, item->dst_offset), mem_at(item->src, item->src_offset), item->bytes);
  return mem_done(out);
}

gm_status template_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                        const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  (void)device, (void)stream, (void)err;
  unsigned char *begin = mem_at(dst, offset);
  for (uint64_t at = 0; at < bytes; at += pattern_bytes) {
    memcpy(begin + at, pattern, bytes - at < pattern_bytes ? bytes - at : pattern_bytes);
  }
  return mem_done(out);
}
