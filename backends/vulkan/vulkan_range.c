#include "backends/vulkan/vulkan_range.h"

#include <inttypes.h>

#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_mem_open.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

/* Invariants: a range is one sparse buffer, and gm hands an aligned part of it out. Where buffers have no addresses,
 * the range has an address that nothing else has. */

void gm__vulkan_piece_drop(gm__vulkan_device *device, gm__vulkan_piece *piece, gm_close_mode mode) {
  if (--piece->uses) return;
  gm__vulkan_memory_unmake(device, piece->memory, mode);
  gm__release(device->services, piece, sizeof *piece);
}

gm__vulkan_range *gm__vulkan_range_find(const gm__vulkan_device *device, uint64_t address, uint64_t bytes) {
  gm__vulkan_range *range = device->sparse.ranges;
  for (; range; range = range->next) {
    const uint64_t at = address - range->address;
    if (address >= range->address && at <= range->bytes && bytes <= range->bytes - at) return range;
  }
  return NULL;
}

static gm_status range_check(gm__vulkan_device *device, uint64_t bytes, uint64_t align, uint64_t *out_whole,
                             gm_error *err) {
  static const char op[] = "gm_backend_ops.vmm_reserve";
  const uint64_t granule = device->sparse.granule, extra = align > granule ? align - granule : 0;
  const uint64_t space = device->physical.props.limits.sparseAddressSpaceSize;
  if (align & (align - 1)) return gm__bad_argument(err, op, "`align` must be a power of two, is %" PRIu64, align);
  const uint64_t whole = bytes > UINT64_MAX - extra ? UINT64_MAX : bytes + extra;
  const uint64_t left = space > device->sparse.reserved ? space - device->sparse.reserved : 0;
  if (whole > left || whole > device->physical.max_buffer_bytes) {
    return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, op,
                    "%" PRIu64 " bytes of addresses asked; %" PRIu64
                    " are left (sparseAddressSpaceSize), and one "
                    "range may have %" PRIu64 " (maxBufferSize)",
                    whole, left, device->physical.max_buffer_bytes);
  }
  *out_whole = whole;
  return GM_OK;
}

/* Choose the first byte of the range. The driver's address is hostile input. */
static gm_status range_place(gm__vulkan_device *device, gm__vulkan_range *range, uint64_t align, gm_error *err) {
  const uint64_t granule = device->sparse.granule, unit = align > granule ? align : granule;
  uint64_t base = 0;
  gm_status status = gm__vulkan_buffer_address(device, range->buffer, &base, err);
  if (status) return status;
  if (!device->address) base = device->sparse.next + (granule - device->sparse.next % granule) % granule;
  if (base % granule || base > UINT64_MAX - range->buffer_bytes) {
    return gm__fail(err, GM_ERR_DRIVER, "vkGetBufferDeviceAddress",
                    "the driver placed a sparse buffer of %" PRIu64 " bytes at %" PRIu64 ", granularity %" PRIu64,
                    range->buffer_bytes, base, granule);
  }
  if (!device->address) device->sparse.next = base + range->buffer_bytes;
  range->buffer_at = (unit - base % unit) % unit;
  range->address = base + range->buffer_at;
  return GM_OK;
}

static void range_release(gm__vulkan_device *device, gm__vulkan_range *range, gm_close_mode mode) {
  if (mode == GM_CLOSE_NORMAL && range->buffer) {
    device->syms.vkDestroyBuffer(device->handle, range->buffer, NULL);
  }
  gm__release(device->services, range->mappings, range->capacity * sizeof *range->mappings);
  gm__release(device->services, range, sizeof *range);
}

/* REQUIRES: sparse lock. */
static gm_status range_make(gm__vulkan_device *device, uint64_t bytes, uint64_t align, gm__vulkan_range **out,
                            gm_error *err) {
  gm__vulkan_buffer_params params = {.sparse = true};
  gm_status status = range_check(device, bytes, align, &params.bytes, err);
  if (status) return status;
  gm__vulkan_range *range = gm__alloc(device->services, sizeof *range);
  if (!range) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_backend_ops.vmm_reserve", "no host memory for the record");
  }
  range->buffer_bytes = params.bytes;
  range->bytes = bytes;
  status = gm__vulkan_buffer_create(device, &params, &range->buffer, err);
  if (!status) status = range_place(device, range, align, err);
  if (status) {
    range_release(device, range, GM_CLOSE_NORMAL);
    return status;
  }
  device->sparse.reserved += range->buffer_bytes;
  range->next = device->sparse.ranges;
  device->sparse.ranges = range;
  *out = range;
  return GM_OK;
}

gm_status gm__vulkan_vmm_reserve(void *user, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err) {
  gm__vulkan_device *device = user;
  gm__vulkan_range *range = NULL;
  gm_status status = gm__vulkan_sparse_check_bytes(device, bytes, "gm_backend_ops.vmm_reserve", err);
  if (!status) status = gm__vulkan_device_state(device, err);
  if (status) return status;
  gm__mutex_lock(&device->sparse.mutex);
  status = range_make(device, bytes, align, &range, err);
  if (!status) *out_address = range->address;
  gm__mutex_unlock(&device->sparse.mutex);
  return status;
}

/* REQUIRES: sparse lock, unless `mode` is GM_CLOSE_ABANDON. */
static gm_status range_unmake(gm__vulkan_device *device, uint64_t address, uint64_t bytes, gm_close_mode mode,
                              gm_error *err) {
  static const char op[] = "gm_backend_ops.vmm_unreserve";
  gm__vulkan_range **at = &device->sparse.ranges;
  while (*at && ((*at)->address != address || (*at)->bytes != bytes)) at = &(*at)->next;
  gm__vulkan_range *range = *at;
  if (!range) return gm__bad_argument(err, op, "`address` and `bytes` are no reserved range");
  if (range->count && mode == GM_CLOSE_NORMAL) {
    return gm__fail(err, GM_ERR_BUSY, op, "something is still mapped in the range");
  }
  for (uint64_t i = 0; i < range->count; i++) gm__vulkan_piece_drop(device, range->mappings[i].piece, mode);
  *at = range->next;
  device->sparse.reserved -= range->buffer_bytes;
  range_release(device, range, mode);
  return GM_OK;
}

gm_status gm__vulkan_vmm_unreserve(void *user, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  gm__vulkan_device *device = user;
  if (mode == GM_CLOSE_ABANDON) return range_unmake(device, address, bytes, mode, err);
  gm__mutex_lock(&device->sparse.mutex);
  gm_status status = range_unmake(device, address, bytes, mode, err);
  gm__mutex_unlock(&device->sparse.mutex);
  return status;
}
