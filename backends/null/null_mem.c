/* Memory of the null backend: addresses, and a count of bytes against the capacity. Thread-safe. */
#include "backends/null/null_device.h"
#include "backends/null/null_entries.h"
#include "backends/shared/plain.h"
#include "core/base/error.h"

gm_status gm__null_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  const gm_status status = gm__plain_check_type("memory_type", 1, type, err);
  if (status) return status;
  const gm__null_options *options = ((gm__null_device *)device)->options;
  *out = (gm_memory_type){.struct_size = sizeof *out,
                          .flags = GM_MEMORY_DEVICE_LOCAL,
                          .heap_bytes = options->capacity,
                          .max_alloc_bytes = options->max_alloc,
                          .atom_bytes = 1};
  return GM_OK;
}

static gm_status mem_check(const gm__null_device *device, const gm_memory_params *params, gm_error *err) {
  const uint64_t limit = device->options->max_alloc;
  const gm_status status = gm__plain_check("memory_alloc", 1, params, err);
  if (status) return status;
  if (params->bytes > UINT64_C(1) << 62 || params->align > UINT64_C(1) << 62 || (limit && params->bytes > limit)) {
    return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, "memory_alloc", "%llu bytes asked for, max_alloc is %llu",
                    (unsigned long long)params->bytes, (unsigned long long)limit);
  }
  return GM_OK;
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
  gm__null_range_free(&card->ranges, range);
  gm__null_unlock(&card->lock, mode);
  return GM_OK;
}

gm_status gm__null_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                 gm_native_memory *out, gm_error *err) {
  (void)device, (void)memory, (void)offset, (void)bytes, (void)out;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "memory_native", "a simulated device has no native objects");
}
