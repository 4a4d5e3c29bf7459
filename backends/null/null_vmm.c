/* Virtual memory of the null backend: VA ranges, pieces of the capacity, and which piece is mapped where. Misuse (a
 * range that is not reserved, or is mapped twice) is GM_ERR_INVALID_ARGUMENT. Thread-safe. */
#include "backends/null/null_device.h"
#include "backends/null/null_entries.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

/* The device lock guards both maps. `reservations` maps the address of a range, plus its order, to the range. A granule
 * has 64 bytes or more, so the low six bits are free. `mappings` maps the number of a granule of addresses to the piece
 * that is mapped there. A piece is freed when neither its handle nor a mapping is left: CUDA does the same. */

typedef struct vmm_piece {
  uint64_t bytes;
  uint64_t uses; /* 1 for the handle, 1 for each granule mapped */
} vmm_piece;

static gm_status vmm_check(const gm__null_device *device, const char *what, uint64_t number, gm_error *err) {
  const uint64_t granule = device->options->align_granule;
  if (number % granule == 0) return GM_OK;
  return gm__bad_argument(err, "null vmm", "`%s` must be a multiple of %llu, is %llu", what,
                          (unsigned long long)granule, (unsigned long long)number);
}

static gm_status vmm_check_bytes(const gm__null_device *device, uint64_t bytes, gm_error *err) {
  if (bytes == 0 || bytes > UINT64_C(1) << 62) {
    return gm__bad_argument(err, "null vmm", "`bytes` must be 1 to 2^62, is %llu", (unsigned long long)bytes);
  }
  return vmm_check(device, "bytes", bytes, err);
}

gm_status gm__null_vmm_granularity(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err) {
  (void)props, (void)err;
  *out = ((gm__null_device *)device)->options->align_granule;
  return GM_OK;
}

gm_status gm__null_vmm_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err) {
  gm__null_device *self = device;
  gm_status status = vmm_check_bytes(self, bytes, err);
  if (status) return status;
  const uint64_t granule = self->options->align_granule;
  gm__null_range *range = NULL;
  gm__mutex_lock(&self->card->lock);
  status = gm__null_range_take(&self->card->ranges, bytes, align > granule ? align : granule, &range, err);
  gm__mutex_unlock(&self->card->lock);
  if (status) return status;
  range->bytes = bytes;
  gm__mutex_lock(&self->lock);
  status = gm__map_insert(&self->reservations, range->address | range->order, (uintptr_t)range);
  self->orders |= UINT64_C(1) << range->order;
  gm__mutex_unlock(&self->lock);
  if (status) {
    gm__mutex_lock(&self->card->lock);
    gm__null_range_free(&self->card->ranges, range);
    gm__mutex_unlock(&self->card->lock);
    return gm__fail(err, status, "vmm_reserve", "no host memory for the table");
  }
  *out_address = range->address;
  return GM_OK;
}

/* The reserved range that holds [address, address + bytes), or NULL. REQUIRES: device lock. */
static gm__null_range *vmm_find(const gm__null_device *device, uint64_t address, uint64_t bytes) {
  for (uint64_t left = device->orders; left; left &= left - 1) {
    const uint32_t order = (uint32_t)__builtin_ctzll(left);
    uint64_t found;
    const uint64_t base = address & ~((UINT64_C(1) << order) - 1);
    if (!gm__map_find(&device->reservations, base | order, &found)) continue;
    gm__null_range *range = (gm__null_range *)(uintptr_t)found;
    const uint64_t at = address - range->address;
    if (range->order == order && at <= range->bytes && bytes <= range->bytes - at) return range;
  }
  return NULL;
}

/* The number of granules of the range that are mapped. REQUIRES: device lock. */
static uint64_t vmm_mapped(const gm__null_device *device, uint64_t address, uint64_t bytes) {
  const uint64_t granule = device->options->align_granule;
  uint64_t mapped = 0;
  for (uint64_t at = 0; at < bytes; at += granule) {
    if (gm__map_find(&device->mappings, (address + at) / granule, NULL)) mapped++;
  }
  return mapped;
}

/* REQUIRES: device lock. */
static void vmm_drop(gm__null_device *device, vmm_piece *piece, gm_close_mode mode) {
  if (--piece->uses) return;
  gm__null_lock(&device->card->lock, mode);
  device->card->used -= piece->bytes;
  gm__null_unlock(&device->card->lock, mode);
  gm__release(device->services, piece, sizeof *piece);
}

/* REQUIRES: device lock, unless `mode` is GM_CLOSE_ABANDON. */
static void vmm_forget(gm__null_device *device, uint64_t address, uint64_t bytes, gm_close_mode mode) {
  const uint64_t granule = device->options->align_granule;
  for (uint64_t at = 0; at < bytes; at += granule) {
    uint64_t piece;
    if (gm__map_remove(&device->mappings, (address + at) / granule, &piece)) {
      vmm_drop(device, (vmm_piece *)(uintptr_t)piece, mode);
    }
  }
}

gm_status gm__null_vmm_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  gm__null_device *self = device;
  gm_status status = GM_OK;
  gm__null_lock(&self->lock, mode);
  gm__null_range *range = vmm_find(self, address, bytes);
  if (!range || range->address != address || range->bytes != bytes) {
    status = gm__bad_argument(err, "vmm_unreserve", "`address` and `bytes` are no reserved range");
  } else if (mode == GM_CLOSE_NORMAL && vmm_mapped(self, address, bytes)) {
    status = gm__fail(err, GM_ERR_BUSY, "vmm_unreserve", "something is still mapped in the range");
  } else {
    if (mode == GM_CLOSE_ABANDON) vmm_forget(self, address, bytes, mode); /* a forked child unmaps nothing */
    gm__map_remove(&self->reservations, address | range->order, NULL);
  }
  gm__null_unlock(&self->lock, mode);
  if (status) return status;
  gm__null_lock(&self->card->lock, mode);
  gm__null_range_free(&self->card->ranges, range);
  gm__null_unlock(&self->card->lock, mode);
  return GM_OK;
}

gm_status gm__null_vmm_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out_handle,
                              gm_error *err) {
  (void)props;
  gm__null_device *self = device;
  gm_status status = vmm_check_bytes(self, bytes, err);
  if (status) return status;
  vmm_piece *piece = gm__alloc(self->services, sizeof *piece);
  if (!piece) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "vmm_create", "no host memory for the record");
  *piece = (vmm_piece){.bytes = bytes, .uses = 1};
  gm__mutex_lock(&self->card->lock);
  status = gm__null_charge(self, bytes, err);
  gm__mutex_unlock(&self->card->lock);
  if (status) {
    gm__release(self->services, piece, sizeof *piece);
    return status;
  }
  *out_handle = (uintptr_t)piece;
  return GM_OK;
}

gm_status gm__null_vmm_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  (void)bytes, (void)err;
  gm__null_device *self = device;
  gm__null_lock(&self->lock, mode);
  vmm_drop(self, (vmm_piece *)(uintptr_t)handle, mode);
  gm__null_unlock(&self->lock, mode);
  return GM_OK;
}

/* REQUIRES: device lock. */
static gm_status vmm_place(gm__null_device *device, uint64_t address, uint64_t bytes, vmm_piece *piece, gm_error *err) {
  const uint64_t granule = device->options->align_granule;
  if (!vmm_find(device, address, bytes)) return gm__bad_argument(err, "vmm_map", "`address`: not all is reserved");
  if (vmm_mapped(device, address, bytes)) return gm__bad_argument(err, "vmm_map", "`address`: mapped already");
  if (gm__map_reserve(&device->mappings, device->mappings.count + bytes / granule)) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "vmm_map", "no host memory for the table");
  }
  for (uint64_t at = 0; at < bytes; at += granule) {
    gm__map_insert(&device->mappings, (address + at) / granule, (uintptr_t)piece);
  }
  piece->uses += bytes / granule;
  return GM_OK;
}

gm_status gm__null_vmm_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                           gm_error *err) {
  gm__null_device *self = device;
  vmm_piece *piece = (vmm_piece *)(uintptr_t)handle;
  gm_status status = vmm_check_bytes(self, bytes, err);
  if (status == GM_OK) status = vmm_check(self, "address", address, err);
  if (status == GM_OK) status = vmm_check(self, "offset", offset, err);
  if (status) return status;
  if (offset > piece->bytes || bytes > piece->bytes - offset) {
    return gm__bad_argument(err, "vmm_map", "`offset` and `bytes` go beyond the %llu bytes of the memory",
                            (unsigned long long)piece->bytes);
  }
  gm__mutex_lock(&self->lock);
  status = vmm_place(self, address, bytes, piece, err);
  gm__mutex_unlock(&self->lock);
  return status;
}

gm_status gm__null_vmm_access(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__null_device *self = device;
  gm_status status = vmm_check_bytes(self, bytes, err);
  if (status == GM_OK) status = vmm_check(self, "address", address, err);
  if (status) return status;
  gm__mutex_lock(&self->lock);
  const bool all = vmm_mapped(self, address, bytes) == bytes / self->options->align_granule;
  gm__mutex_unlock(&self->lock);
  return all ? GM_OK : gm__bad_argument(err, "null vmm", "`address`: not all of the range is mapped");
}

gm_status gm__null_vmm_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__null_device *self = device;
  const gm_status status = gm__null_vmm_access(device, address, bytes, err);
  if (status) return status;
  gm__mutex_lock(&self->lock);
  vmm_forget(self, address, bytes, GM_CLOSE_NORMAL);
  gm__mutex_unlock(&self->lock);
  return GM_OK;
}
