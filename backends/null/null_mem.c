#include "backends/null/null_mem.h"

#include "core/base/error.h"

gm_status gm__null_memory_type_count(void *device, uint32_t *out, gm_error *err) {
  (void)device, (void)err;
  *out = 1;
  return GM_OK;
}

static gm_status mem_check_type(uint32_t type, const char *op, gm_error *err) {
  if (type == 0) return GM_OK;
  return gm__bad_argument(err, op, "`type` is %u, but there is one type: 0", type);
}

gm_status gm__null_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  const gm_status status = mem_check_type(type, "memory_type", err);
  if (status) return status;
  const gm__null_options *options = ((gm__null_device *)device)->options;
  *out = (gm_memory_type){.struct_size = sizeof *out,
                          .flags = GM_MEMORY_DEVICE_LOCAL,
                          .heap_bytes = options->capacity,
                          .max_alloc_bytes = options->max_alloc,
                          .atom_bytes = 1};
  return GM_OK;
}

gm_status gm__null_charge(gm__null_device *device, uint64_t bytes, gm_error *err) {
  const uint64_t left = device->options->capacity - device->card->used;
  if (bytes > left) {
    return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, 0, "null memory", "%llu bytes asked for, %llu of %llu are left",
                    (unsigned long long)bytes, (unsigned long long)left, (unsigned long long)device->options->capacity);
  }
  device->card->used += bytes;
  return GM_OK;
}

static gm_status mem_check(const gm__null_device *device, const gm_memory_params *params, gm_error *err) {
  const uint64_t limit = device->options->max_alloc;
  if (params->bytes == 0) return gm__bad_argument(err, "memory_alloc", "`bytes` must not be 0");
  if (params->align & (params->align - 1)) {
    return gm__bad_argument(err, "memory_alloc", "`align` must be a power of two, is %llu",
                            (unsigned long long)params->align);
  }
  if (params->bytes > UINT64_C(1) << 62 || params->align > UINT64_C(1) << 62 || (limit && params->bytes > limit)) {
    return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, 0, "memory_alloc", "%llu bytes asked for, max_alloc is %llu",
                    (unsigned long long)params->bytes, (unsigned long long)limit);
  }
  return mem_check_type(params->type, "memory_alloc", err);
}

gm_status gm__null_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  gm__null_device *self = device;
  gm_status status = mem_check(self, params, err);
  if (status) return status;
  const uint64_t unit = self->options->alignment;
  const uint64_t bytes = (params->bytes + unit - 1) & ~(unit - 1);
  gm__null_range *range = NULL;
  gm__mutex_lock(&self->card->lock);
  status = gm__null_charge(self, bytes, err);
  if (status == GM_OK) {
    status = gm__null_range_take(&self->card->ranges, bytes, params->align > unit ? params->align : unit, &range, err);
    if (status) self->card->used -= bytes;
  }
  gm__mutex_unlock(&self->card->lock);
  if (status) return status;
  range->bytes = bytes;
  *out = (gm_memory){.handle = (uintptr_t)range, .address = range->address, .bytes = bytes};
  return GM_OK;
}

gm_status gm__null_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  (void)err;
  gm__null_card *card = ((gm__null_device *)device)->card;
  gm__null_range *range = (gm__null_range *)(uintptr_t)memory->handle;
  gm__null_lock(&card->lock, mode);
  card->used -= range->bytes;
  gm__null_range_give(&card->ranges, range);
  gm__null_unlock(&card->lock, mode);
  return GM_OK;
}

gm_status gm__null_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                 gm_native_memory *out, gm_error *err) {
  (void)device, (void)memory, (void)offset, (void)bytes, (void)out;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "memory_native", "a simulated device has no native objects");
}
