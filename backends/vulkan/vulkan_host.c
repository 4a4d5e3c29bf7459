#include "backends/vulkan/vulkan_host.h"

#include <inttypes.h>

#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_map.h"
#include "backends/vulkan/vulkan_mem_open.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

/* Invariants: the device lock guards the list, and the members of its ranges but for `memory`. A range leaves the list
 * when no copy holds it, and its memory goes after the last point that a copy gave. Only coherent types serve: no range
 * is ever flushed. */

enum { HOST_POINTS = 8, HOST_PAGE = 4096 };

struct gm__vulkan_host_range {
  gm__vulkan_host_range *next;
  uintptr_t begin;
  uint64_t bytes;
  gm__vulkan_memory *memory;
  uint32_t holders;                     /* copies that are being submitted */
  gm_backend_point points[HOST_POINTS]; /* the last one of each of the last timelines; zero: none */
  uint32_t next_point;
};

static const VkExternalMemoryHandleTypeFlagBits host_kind = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;

/* May the caller's memory have this type? Nobody flushes it. */
static bool host_suits(const gm__vulkan_type *type) { return type->coherent && type->flags & GM_MEMORY_HOST_VISIBLE; }

void gm__vulkan_host_ask(gm__vulkan_device *device) {
  const gm__vulkan_buffer_params params = {.bytes = 65536, .host = true};
  gm__vulkan_needs needs;
  device->host_types = 0;
  if (!(device->features & GM_VULKAN_EXTERNAL_MEMORY_HOST) || !device->physical.host_align ||
      !device->syms.vkGetMemoryHostPointerPropertiesEXT) {
    return;
  }
  const VkBufferUsageFlags usage = gm__vulkan_buffer_usage(device->address) | device->usage;
  const gm__vulkan_sharing can = gm__vulkan_ask_sharing(&device->syms, &device->physical, host_kind, usage);
  if (!can.imports || can.dedicated || gm__vulkan_buffer_ask(device, &params, &needs, NULL)) return;
  for (uint32_t i = 0; i < device->type_count; i++) {
    const gm__vulkan_type *type = &device->types[i];
    if (host_suits(type)) device->host_types |= needs.type_bits & UINT32_C(1) << type->index;
  }
}

/* ---- import ---- */

static gm_status host_not_supported(const gm__vulkan_device *device, const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op,
                  "%.100s does not reach the caller's memory (VK_EXT_external_memory_host; on an engine's device also "
                  "GM_VULKAN_EXTERNAL_MEMORY_HOST)",
                  device->physical.props.deviceName);
}

/* Chooses the first coherent type that the driver allows for this memory. */
static gm_status host_type(gm__vulkan_device *device, const void *pages, const char *op, uint32_t *out, gm_error *err) {
  VkMemoryHostPointerPropertiesEXT props = {.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  const VkResult result = device->syms.vkGetMemoryHostPointerPropertiesEXT(device->handle, host_kind, pages, &props);
  if (result) return gm__vulkan_device_fail(device, result, "vkGetMemoryHostPointerPropertiesEXT", err);
  const uint32_t bits = props.memoryTypeBits & device->host_types;
  for (uint32_t i = 0; i < device->type_count; i++) {
    const gm__vulkan_type *type = &device->types[i];
    if (!(bits >> type->index & 1) || !host_suits(type)) continue;
    *out = i;
    return GM_OK;
  }
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "the driver has no coherent memory type for this host memory");
}

gm_status gm__vulkan_host_import(gm__vulkan_device *device, void *pointer, uint64_t bytes, const char *op,
                                 gm__vulkan_memory **out, uint32_t *out_type, gm_error *err) {
  if (!device->host_types) return host_not_supported(device, op, err);
  const uint64_t align = device->physical.host_align, offset = (uintptr_t)pointer % align;
  const uint64_t whole = gm__round_up(gm__add_sat(offset, bytes), align);
  void *pages = (unsigned char *)pointer - offset;
  gm_status status = gm__vulkan_device_state(device, err);
  if (!status) status = host_type(device, pages, op, out_type, err);
  if (status) return status;
  gm__vulkan_memory_wish wish = {.type = &device->types[*out_type],
                                 .bytes = bytes,
                                 .import = true,
                                 .pages = pages,
                                 .offset = offset,
                                 .buffer_bytes = whole,
                                 .whole_bytes = whole};
  status = gm__vulkan_memory_make(device, &wish, out, err);
  if (!status) atomic_init(&(*out)->mapped, pointer);
  return gm__error_of(op, status, err);
}

/* ---- the driver's memory ---- */

/* The host's own cached memory is best for the host, then other cached memory, then any. 0: the host does not see it.
 */
static int host_worth(const gm__vulkan_type *type) {
  if (!(type->flags & GM_MEMORY_HOST_VISIBLE)) return 0;
  return 1 + (type->flags & GM_MEMORY_HOST_CACHED ? 2 : 0) + (type->flags & GM_MEMORY_DEVICE_LOCAL ? 0 : 1);
}

static const gm__vulkan_type *host_best(const gm__vulkan_device *device, bool coherent) {
  const gm__vulkan_type *best = NULL;
  for (uint32_t i = 0; i < device->type_count; i++) {
    const gm__vulkan_type *type = &device->types[i];
    if (coherent && !type->coherent) continue;
    if (host_worth(type) > (best ? host_worth(best) : 0)) best = type;
  }
  return best;
}

gm_status gm__vulkan_host_make(gm__vulkan_device *device, uint64_t bytes, bool coherent, const char *op,
                               gm__vulkan_memory **out, unsigned char **out_host, gm_error *err) {
  gm__vulkan_memory_wish wish = {.type = host_best(device, coherent), .bytes = bytes, .inner = true};
  gm__vulkan_memory *memory = NULL;
  if (!wish.type) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "the device has no %smemory type that the host sees",
                    coherent ? "coherent " : "");
  }
  gm_status status = gm__vulkan_memory_make(device, &wish, &memory, err);
  if (status) return status;
  status = gm__vulkan_host(device, memory, out_host, err);
  if (status) {
    gm__vulkan_memory_unmake(device, memory, GM_CLOSE_NORMAL);
    return status;
  }
  *out = memory;
  return GM_OK;
}

/* ---- ranges that copies find ---- */

static gm_status host_range_new(const gm__vulkan_device *device, const char *op, gm__vulkan_host_range **out,
                                gm_error *err) {
  *out = gm__alloc(device->services, sizeof **out);
  if (*out) return GM_OK;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for the record of a range");
}

/* The range enters the list, unless `status` says that its memory did not come. */
static gm_status host_range_enter(gm__vulkan_device *device, gm__vulkan_host_range *range, gm_status status) {
  if (status) {
    gm__release(device->services, range, sizeof *range);
    return status;
  }
  gm__mutex_lock(&device->mutex);
  range->next = device->host_ranges;
  device->host_ranges = range;
  gm__mutex_unlock(&device->mutex);
  atomic_fetch_add(&device->host_range_count, 1);
  return GM_OK;
}

gm_status gm__vulkan_host_register(void *user, void *pointer, uint64_t bytes, gm_error *err) {
  static const char op[] = "gm_backend_ops.host_register";
  gm__vulkan_device *device = user;
  gm__vulkan_host_range *range;
  uint32_t type;
  gm_status status = host_range_new(device, op, &range, err);
  if (status) return status;
  status = gm__vulkan_host_import(device, pointer, bytes, op, &range->memory, &type, err);
  range->begin = (uintptr_t)pointer;
  range->bytes = bytes;
  return host_range_enter(device, range, status);
}

/* Drivers map whole allocations, at a page. */
static gm_status host_check_page(gm__vulkan_device *device, gm__vulkan_memory *memory, const unsigned char *host,
                                 const char *op, gm_error *err) {
  if ((uintptr_t)host % HOST_PAGE == 0) return GM_OK;
  gm__vulkan_memory_unmake(device, memory, GM_CLOSE_NORMAL);
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "the driver maps memory beside a page");
}

gm_status gm__vulkan_host_alloc(void *user, uint64_t bytes, void **out, gm_error *err) {
  static const char op[] = "gm_backend_ops.host_alloc";
  gm__vulkan_device *device = user;
  gm__vulkan_host_range *range;
  unsigned char *host = NULL;
  gm_status status = gm__vulkan_device_state(device, err);
  if (!status && !bytes) status = gm__bad_argument(err, op, "`bytes` is 0");
  if (!status) status = host_range_new(device, op, &range, err);
  if (status) return status;
  status = gm__vulkan_host_make(device, bytes, true, op, &range->memory, &host, err);
  if (!status) status = host_check_page(device, range->memory, host, op, err);
  range->begin = (uintptr_t)host;
  range->bytes = bytes;
  status = host_range_enter(device, range, status);
  if (!status) *out = host;
  return status;
}

/* Where the list has the range that begins there. REQUIRES: device lock. */
static gm__vulkan_host_range **host_at(gm__vulkan_device *device, uintptr_t begin) {
  gm__vulkan_host_range **at = &device->host_ranges;
  while (*at && (*at)->begin != begin) at = &(*at)->next;
  return at;
}

static void host_drop(gm__vulkan_device *device, gm__vulkan_host_range *range, gm_close_mode mode) {
  for (uint32_t i = 0; mode == GM_CLOSE_NORMAL && i < HOST_POINTS; i++) {
    gm__vulkan_point_wait(device, &range->points[i], UINT64_MAX, NULL);
  }
  gm__vulkan_memory_unmake(device, range->memory, mode);
  gm__release(device->services, range, sizeof *range);
}

gm_status gm__vulkan_host_unregister(void *user, void *pointer, gm_close_mode mode, gm_error *err) {
  static const char op[] = "gm_backend_ops.host_unregister";
  gm__vulkan_device *device = user;
  const bool locks = mode == GM_CLOSE_NORMAL; /* in a forked child a thread that is not there may hold the lock */
  if (locks) gm__mutex_lock(&device->mutex);
  gm__vulkan_host_range **at = host_at(device, (uintptr_t)pointer), *range = *at;
  const bool held = locks && range && range->holders;
  if (range && !held) *at = range->next;
  if (locks) gm__mutex_unlock(&device->mutex);
  if (!range) return gm__fail(err, GM_ERR_NOT_FOUND, op, "`pointer` is not registered");
  if (held) return gm__fail(err, GM_ERR_BUSY, op, "another thread copies from or to this memory");
  atomic_fetch_sub(&device->host_range_count, 1);
  host_drop(device, range, mode);
  return GM_OK;
}

void gm__vulkan_host_forget(gm__vulkan_device *device) {
  for (gm__vulkan_host_range *range = device->host_ranges, *next; range; range = next) {
    next = range->next;
    host_drop(device, range, GM_CLOSE_ABANDON);
  }
  device->host_ranges = NULL;
}

/* ---- copies ---- */

gm__vulkan_host_range *gm__vulkan_host_take(gm__vulkan_device *device, const void *pointer, uint64_t bytes,
                                            uint64_t *out_offset) {
  const uintptr_t begin = (uintptr_t)pointer;
  if (!atomic_load_explicit(&device->host_range_count, memory_order_acquire)) return NULL;
  gm__mutex_lock(&device->mutex);
  gm__vulkan_host_range *range = device->host_ranges;
  while (range && !(begin >= range->begin && begin - range->begin <= range->bytes &&
                    bytes <= range->bytes - (begin - range->begin))) {
    range = range->next;
  }
  if (range) {
    range->holders++;
    *out_offset = begin - range->begin;
  }
  gm__mutex_unlock(&device->mutex);
  return range;
}

const gm__vulkan_memory *gm__vulkan_host_memory(const gm__vulkan_host_range *range) { return range->memory; }

/* The place for a point: that of its timeline, an empty one, or the oldest, whose point *out_before must pass first.
 * REQUIRES: device lock. */
static gm_backend_point *host_place(gm__vulkan_host_range *range, const gm_backend_point *point,
                                    gm_backend_point *out_before) {
  for (uint32_t i = 0; i < HOST_POINTS; i++) {
    if (range->points[i].handle == point->handle || !range->points[i].handle) return &range->points[i];
  }
  gm_backend_point *oldest = &range->points[range->next_point++ % HOST_POINTS];
  *out_before = *oldest;
  return oldest;
}

void gm__vulkan_host_give(gm__vulkan_device *device, gm__vulkan_host_range *range, const gm_backend_point *point) {
  gm_backend_point before = {0};
  gm__mutex_lock(&device->mutex);
  if (point->handle) {
    gm_backend_point *place = host_place(range, point, &before);
    if (place->handle != point->handle || place->value < point->value) *place = *point;
  }
  gm__mutex_unlock(&device->mutex);
  if (before.handle) gm__vulkan_point_wait(device, &before, UINT64_MAX, NULL);
  gm__mutex_lock(&device->mutex);
  range->holders--;
  gm__mutex_unlock(&device->mutex);
}
