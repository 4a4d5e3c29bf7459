/* Physical memory, and its mappings in reserved ranges. */
#include <inttypes.h>
#include <string.h>

#include "backends/shared/plain.h"
#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_mem_open.h"
#include "backends/vulkan/vulkan_range.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

/* Invariants: the mappings of a range are ordered and do not overlap. A byte of a piece is mapped at one place at most:
 * a sparse buffer that is not made for aliases must not have them. The mappings agree with the driver's bindings. On a
 * lost device only the mappings count. */

static gm_status vmm_type(const gm__vulkan_device *device, uint32_t type, const char *op, const gm__vulkan_type **out,
                          gm_error *err) {
  const gm_status status = gm__plain_check_type(op, device->type_count, type, err);
  if (status) return status;
  *out = &device->types[type];
  if (device->sparse.type_bits >> (*out)->index & 1) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "memory of type %u cannot lie behind sparse buffers", type);
}

gm_status gm__vulkan_vmm_granularity(void *user, const gm_vmm_props *props, uint64_t *out, gm_error *err) {
  static const char op[] = "gm_backend_ops.vmm_granularity";
  const gm__vulkan_device *device = user;
  const gm__vulkan_type *type;
  gm_status status = gm__vulkan_sparse_check(device, op, err);
  if (!status) status = vmm_type(device, props->type, op, &type, err);
  if (!status) *out = device->sparse.granule;
  return status;
}

gm_status gm__vulkan_vmm_create(void *user, const gm_vmm_props *props, uint64_t bytes, uint64_t *out_handle,
                                gm_error *err) {
  static const char op[] = "gm_backend_ops.vmm_create";
  gm__vulkan_device *device = user;
  const gm__vulkan_type *type = NULL;
  gm_status status = gm__vulkan_sparse_check_bytes(device, bytes, op, err);
  if (!status) status = vmm_type(device, props->type, op, &type, err);
  if (!status && props->shareable) {
    status = gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "memory behind sparse buffers is not shared: use memory_alloc");
  }
  if (!status) status = gm__vulkan_device_state(device, err);
  if (status) return status;
  gm__vulkan_piece *piece = gm__alloc(device->services, sizeof *piece);
  if (!piece) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for the record");
  status = gm__vulkan_memory_make_bare(device, type, bytes, &piece->memory, err);
  if (status) {
    gm__release(device->services, piece, sizeof *piece);
    return status;
  }
  piece->uses = 1;
  *out_handle = (uintptr_t)piece;
  return GM_OK;
}

gm_status gm__vulkan_vmm_destroy(void *user, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  (void)bytes, (void)err;
  gm__vulkan_device *device = user;
  if (mode == GM_CLOSE_NORMAL) gm__mutex_lock(&device->sparse.mutex);
  gm__vulkan_piece_drop(device, (gm__vulkan_piece *)(uintptr_t)handle, mode);
  if (mode == GM_CLOSE_NORMAL) gm__mutex_unlock(&device->sparse.mutex);
  return GM_OK;
}

/* The index of the first mapping that ends after `at`. REQUIRES: sparse lock. */
static uint64_t vmm_place(const gm__vulkan_range *range, uint64_t at) {
  uint64_t low = 0, high = range->count;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (range->mappings[middle].at + range->mappings[middle].bytes <= at) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static bool vmm_piece_mapped(const gm__vulkan_device *device, const gm__vulkan_mapping *wanted) {
  if (wanted->piece->uses == 1) return false; /* only the handle uses it */
  for (const gm__vulkan_range *range = device->sparse.ranges; range; range = range->next) {
    for (uint64_t i = 0; i < range->count; i++) {
      const gm__vulkan_mapping *there = &range->mappings[i];
      if (there->piece == wanted->piece && there->offset < wanted->offset + wanted->bytes &&
          wanted->offset < there->offset + there->bytes) {
        return true;
      }
    }
  }
  return false;
}

static gm_status vmm_room(gm__vulkan_device *device, gm__vulkan_range *range, gm_error *err) {
  if (range->count < range->capacity) return GM_OK;
  const uint64_t capacity = range->capacity ? 2 * range->capacity : 8;
  gm__vulkan_mapping *larger = gm__alloc_array(device->services, (size_t)capacity, sizeof *larger);
  if (!larger) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_backend_ops.vmm_map", "no host memory for the table");
  }
  if (range->count) memcpy(larger, range->mappings, range->count * sizeof *larger);
  gm__release(device->services, range->mappings, range->capacity * sizeof *larger);
  range->mappings = larger;
  range->capacity = capacity;
  return GM_OK;
}

/* Tell the driver with the sparse lock released, because an engine's hook may wait. The range stays meanwhile: one of
 * its mappings is busy. REQUIRES: sparse lock. */
static gm_status vmm_tell(gm__vulkan_device *device, const gm__vulkan_range *range, const gm__vulkan_mapping *mapping,
                          gm_error *err) {
  const VkBuffer buffer = range->buffer;
  const VkSparseMemoryBind bind = {.resourceOffset = range->buffer_at + mapping->at,
                                   .size = mapping->bytes,
                                   .memory = mapping->piece ? mapping->piece->memory->memory : VK_NULL_HANDLE,
                                   .memoryOffset = mapping->offset};
  gm__mutex_unlock(&device->sparse.mutex);
  gm_status status = gm__vulkan_sparse_bind(device, buffer, &bind, err);
  gm__mutex_lock(&device->sparse.mutex);
  return status;
}

/* Remove the mappings [first, last). REQUIRES: sparse lock. */
static void vmm_leave(gm__vulkan_device *device, gm__vulkan_range *range, uint64_t first, uint64_t last) {
  for (uint64_t i = first; i < last; i++) gm__vulkan_piece_drop(device, range->mappings[i].piece, GM_CLOSE_NORMAL);
  memmove(range->mappings + first, range->mappings + last, (range->count - last) * sizeof *range->mappings);
  range->count -= last - first;
}

/* `mapping.at` is still an address here. REQUIRES: sparse lock. */
static gm_status vmm_map(gm__vulkan_device *device, gm__vulkan_mapping mapping, gm_error *err) {
  static const char op[] = "gm_backend_ops.vmm_map";
  gm__vulkan_range *range = gm__vulkan_range_find(device, mapping.at, mapping.bytes);
  if (!range) return gm__bad_argument(err, op, "`address`: not all is reserved");
  mapping.at -= range->address;
  uint64_t place = vmm_place(range, mapping.at);
  if (place < range->count && range->mappings[place].at < mapping.at + mapping.bytes) {
    return gm__bad_argument(err, op, "`address`: mapped already");
  }
  if (vmm_piece_mapped(device, &mapping)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "the memory is mapped elsewhere, and has one place at a time");
  }
  gm_status status = vmm_room(device, range, err);
  if (status) return status;
  mapping.busy = true;
  memmove(range->mappings + place + 1, range->mappings + place, (range->count - place) * sizeof mapping);
  range->mappings[place] = mapping;
  range->count++;
  mapping.piece->uses++;
  status = vmm_tell(device, range, &mapping, err);
  place = vmm_place(range, mapping.at); /* other mappings may have come and gone */
  range->mappings[place].busy = false;
  if (status) vmm_leave(device, range, place, place + 1);
  return status;
}

gm_status gm__vulkan_vmm_map(void *user, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                             gm_error *err) {
  static const char op[] = "gm_backend_ops.vmm_map";
  gm__vulkan_device *device = user;
  gm__vulkan_piece *piece = (gm__vulkan_piece *)(uintptr_t)handle;
  gm_status status = gm__vulkan_sparse_check_bytes(device, bytes, op, err);
  if (status) return status;
  if (address % device->sparse.granule || offset % device->sparse.granule) {
    return gm__bad_argument(err, op, "`address` and `offset` must be multiples of the granularity, %" PRIu64,
                            device->sparse.granule);
  }
  if (offset > piece->memory->bytes || bytes > piece->memory->bytes - offset) {
    return gm__bad_argument(err, op, "`offset` and `bytes` go beyond the %" PRIu64 " bytes of the memory",
                            piece->memory->bytes);
  }
  const gm__vulkan_mapping mapping = {.at = address, .bytes = bytes, .piece = piece, .offset = offset};
  gm__mutex_lock(&device->sparse.mutex);
  status = vmm_map(device, mapping, err);
  gm__mutex_unlock(&device->sparse.mutex);
  return status;
}

/* Find the mappings [*out_first, *out_last) that fill the range without a gap. `whole`: they begin and end with it.
 * REQUIRES: sparse lock. */
static gm_status vmm_mapped(const gm__vulkan_device *device, uint64_t address, uint64_t bytes, bool whole,
                            gm__vulkan_range **out, uint64_t *out_first, uint64_t *out_last, gm_error *err) {
  static const char op[] = "gm_backend_ops.vmm_access";
  gm__vulkan_range *range = gm__vulkan_range_find(device, address, bytes);
  if (!range) return gm__bad_argument(err, op, "`address`: not all is reserved");
  const uint64_t at = address - range->address, first = vmm_place(range, at);
  uint64_t last = first, reached = at;
  while (last < range->count && reached < at + bytes && range->mappings[last].at <= reached) {
    reached = range->mappings[last].at + range->mappings[last].bytes;
    last++;
  }
  if (reached < at + bytes) return gm__bad_argument(err, op, "`address`: not all of the range is mapped");
  if (whole && (range->mappings[first].at != at || reached != at + bytes)) {
    return gm__bad_argument(err, "gm_backend_ops.vmm_unmap", "what was mapped in one piece is unmapped in one piece");
  }
  *out = range;
  *out_first = first;
  *out_last = last;
  return GM_OK;
}

gm_status gm__vulkan_vmm_access(void *user, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__vulkan_device *device = user;
  gm__vulkan_range *range;
  uint64_t first, last;
  gm_status status = gm__vulkan_sparse_check_bytes(device, bytes, "gm_backend_ops.vmm_access", err);
  if (status) return status;
  gm__mutex_lock(&device->sparse.mutex);
  status = vmm_mapped(device, address, bytes, false, &range, &first, &last, err);
  gm__mutex_unlock(&device->sparse.mutex);
  return status;
}

static bool vmm_busy(const gm__vulkan_range *range, uint64_t first, uint64_t last) {
  bool busy = false;
  for (uint64_t i = first; i < last; i++) busy |= range->mappings[i].busy;
  return busy;
}

static void vmm_set_busy(gm__vulkan_range *range, uint64_t first, uint64_t last, bool busy) {
  for (uint64_t i = first; i < last; i++) range->mappings[i].busy = busy;
}

/* On a lost device the driver's answer does not matter. REQUIRES: sparse lock. */
static gm_status vmm_unmap(gm__vulkan_device *device, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__vulkan_range *range = NULL;
  uint64_t first = 0, last = 0;
  gm_status status = vmm_mapped(device, address, bytes, true, &range, &first, &last, err);
  if (status) return status;
  if (vmm_busy(range, first, last)) {
    return gm__fail(err, GM_ERR_BUSY, "gm_backend_ops.vmm_unmap", "another thread maps or unmaps it");
  }
  const gm__vulkan_mapping nothing = {.at = address - range->address, .bytes = bytes};
  const uint64_t count = last - first;
  vmm_set_busy(range, first, last, true);
  status = vmm_tell(device, range, &nothing, err);
  first = vmm_place(range, nothing.at); /* other mappings may have come and gone */
  vmm_set_busy(range, first, first + count, false);
  if (status && !atomic_load(&device->lost)) return status;
  vmm_leave(device, range, first, first + count);
  return GM_OK;
}

gm_status gm__vulkan_vmm_unmap(void *user, uint64_t address, uint64_t bytes, gm_error *err) {
  gm__vulkan_device *device = user;
  gm_status status = gm__vulkan_sparse_check_bytes(device, bytes, "gm_backend_ops.vmm_unmap", err);
  if (status) return status;
  gm__mutex_lock(&device->sparse.mutex);
  status = vmm_unmap(device, address, bytes, err);
  gm__mutex_unlock(&device->sparse.mutex);
  return status;
}

/* Copies, views and handles take a part of a range as its buffer with an offset. Many allocations may lie behind it, so
 * the host cannot map it. */
gm_status gm__vulkan_vmm_memory(void *user, uint64_t address, uint64_t bytes, uint32_t type, gm_memory *out,
                                gm_error *err) {
  static const char op[] = "gm_backend_ops.vmm_memory";
  gm__vulkan_device *device = user;
  const gm__vulkan_type *found = NULL;
  gm_status status = gm__vulkan_sparse_check(device, op, err);
  if (!status) status = vmm_type(device, type, op, &found, err);
  if (status) return status;
  gm__vulkan_memory *memory = gm__alloc(device->services, sizeof *memory);
  if (!memory) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for the record");
  gm__mutex_lock(&device->sparse.mutex);
  const gm__vulkan_range *range = bytes ? gm__vulkan_range_find(device, address, bytes) : NULL;
  if (range) {
    memory->buffer = range->buffer;
    memory->buffer_bytes = range->buffer_bytes;
    memory->buffer_at = range->buffer_at + (address - range->address);
  }
  gm__mutex_unlock(&device->sparse.mutex);
  if (!range) {
    gm__release(device->services, memory, sizeof *memory);
    return gm__bad_argument(err, op, "`address` and `bytes` do not lie in a reserved range");
  }
  memory->address = device->address ? address : 0;
  memory->bytes = bytes;
  memory->type = *found;
  memory->type.flags &= (uint32_t)GM_MEMORY_DEVICE_LOCAL;
  memory->range = true;
  *out = gm__vulkan_memory_describe(memory, type);
  out->address = address; /* the range's address, even where buffers have none */
  return GM_OK;
}
