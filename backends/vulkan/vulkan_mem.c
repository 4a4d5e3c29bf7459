#include "backends/vulkan/vulkan_mem.h"

#include <inttypes.h>

#include "backends/vulkan/vulkan_device.h"
#include "backends/vulkan/vulkan_map.h"
#include "backends/vulkan/vulkan_status.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

/* Invariants: no call asks the driver for more than it said it can give; the bytes of every live VkDeviceMemory of gm
 * are counted in its heap exactly once, whatever the driver itself would hand out; non-coherent memory is a whole
 * number of atoms, so that widening a range never leaves it. */

static const char memory_op[] = "gm_backend_ops.memory_alloc";

static gm_status memory_too_large(const gm__vulkan_type *type, uint64_t bytes, gm_error *err) {
  return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, 0, memory_op,
                  "%" PRIu64 " bytes asked; one allocation of this type may have %" PRIu64 " (heap of %" PRIu64
                  ", maxMemoryAllocationSize, maxBufferSize): split it",
                  bytes, type->max_bytes, type->heap_bytes);
}

/* Count one allocation of `bytes`; the driver is not asked yet. */
static gm_status memory_take(gm__vulkan_device *device, const gm__vulkan_type *type, uint64_t bytes, gm_error *err) {
  uint32_t limit = device->physical.props.limits.maxMemoryAllocationCount;
  if (atomic_fetch_add(&device->live, 1) >= limit) {
    atomic_fetch_sub(&device->live, 1);
    return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, 0, memory_op,
                    "the device allows %u allocations at a time (maxMemoryAllocationCount), all are in use: use a pool",
                    limit);
  }
  if (gm__vulkan_heaps_take(device->heaps, type->heap, bytes, type->heap_bytes)) return GM_OK;
  atomic_fetch_sub(&device->live, 1);
  return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, 0, memory_op,
                  "%" PRIu64 " bytes asked of heap %u of %" PRIu64 " bytes, of which gm holds %" PRIu64, bytes,
                  type->heap, type->heap_bytes, atomic_load(&device->heaps->held[type->heap]));
}

static void memory_give(gm__vulkan_device *device, const gm__vulkan_memory *memory) {
  gm__vulkan_heaps_give(device->heaps, memory->type.heap, memory->allocated);
  atomic_fetch_sub(&device->live, 1);
}

static uint64_t memory_padded(const gm__vulkan_type *type, uint64_t bytes) {
  uint64_t unit = type->atom > 4 ? type->atom : 4;
  uint64_t rest = bytes % unit;
  if (!rest) return bytes;
  return bytes > UINT64_MAX - unit ? UINT64_MAX : bytes - rest + unit;
}

typedef struct memory_needs {
  uint64_t bytes;
  bool dedicated;
} memory_needs;

static memory_needs memory_ask(gm__vulkan_device *device, const gm__vulkan_memory *memory, uint32_t flags) {
  const VkBufferMemoryRequirementsInfo2 info = {.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2,
                                                .buffer = memory->buffer};
  VkMemoryDedicatedRequirements dedicated = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS};
  VkMemoryRequirements2 needs = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2, .pNext = &dedicated};
  device->syms.vkGetBufferMemoryRequirements2(device->handle, &info, &needs);
  uint64_t bytes = needs.memoryRequirements.size > memory->bytes ? needs.memoryRequirements.size : memory->bytes;
  return (memory_needs){.bytes = memory_padded(&memory->type, bytes),
                        .dedicated = dedicated.requiresDedicatedAllocation || dedicated.prefersDedicatedAllocation ||
                                     (flags & GM_ALLOC_DEDICATED)};
}

static gm_status memory_allocate(gm__vulkan_device *device, gm__vulkan_memory *memory, gm_error *err) {
  const VkMemoryDedicatedAllocateInfo dedicated = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
                                                   .buffer = memory->buffer};
  const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                     .pNext = memory->dedicated ? &dedicated : NULL,
                                     .allocationSize = memory->allocated,
                                     .memoryTypeIndex = memory->type.index};
  VkResult result = device->syms.vkAllocateMemory(device->handle, &info, NULL, &memory->memory);
  if (result || !memory->memory) {
    memory->memory = VK_NULL_HANDLE;
    return gm__vulkan_device_fail(device, result, "vkAllocateMemory", err);
  }
  result = device->syms.vkBindBufferMemory(device->handle, memory->buffer, memory->memory, 0);
  return result ? gm__vulkan_device_fail(device, result, "vkBindBufferMemory", err) : GM_OK;
}

static gm_status memory_fill_in(gm__vulkan_device *device, gm__vulkan_memory *memory, uint32_t flags, gm_error *err) {
  gm_status status = gm__vulkan_device_buffer(device, memory->bytes, &memory->buffer, err);
  if (status) return status;
  memory_needs needs = memory_ask(device, memory, flags);
  if (needs.bytes > memory->type.max_bytes) return memory_too_large(&memory->type, needs.bytes, err);
  status = memory_take(device, &memory->type, needs.bytes, err);
  if (status) return status;
  memory->allocated = needs.bytes;
  memory->dedicated = needs.dedicated;
  status = memory_allocate(device, memory, err);
  if (!status && (flags & GM_ALLOC_COMMIT)) status = gm__vulkan_touch(device, memory, 0, memory->bytes, err);
  return status;
}

gm_status gm__vulkan_memory_make(gm__vulkan_device *device, const gm__vulkan_type *type, uint64_t bytes, uint32_t flags,
                                 gm__vulkan_memory **out, gm_error *err) {
  uint64_t padded = memory_padded(type, bytes);
  if (padded > type->max_bytes) return memory_too_large(type, bytes, err);
  gm__vulkan_memory *memory = gm__alloc(device->services, sizeof *memory);
  if (!memory) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, memory_op, "no host memory for the record");
  memory->bytes = padded;
  memory->type = *type;
  gm_status status = memory_fill_in(device, memory, flags, err);
  if (status) {
    gm__vulkan_memory_unmake(device, memory, GM_CLOSE_NORMAL);
    return status;
  }
  *out = memory;
  return GM_OK;
}

void gm__vulkan_memory_unmake(gm__vulkan_device *device, gm__vulkan_memory *memory, gm_close_mode mode) {
  if (!memory) return;
  if (mode == GM_CLOSE_NORMAL && !memory->wrapped) {
    if (memory->buffer) device->syms.vkDestroyBuffer(device->handle, memory->buffer, NULL);
    if (memory->memory) device->syms.vkFreeMemory(device->handle, memory->memory, NULL); /* unmaps it too */
  }
  if (memory->allocated) memory_give(device, memory);
  gm__release(device->services, memory, sizeof *memory);
}

static gm_memory memory_describe(const gm__vulkan_memory *memory, uint32_t type) {
  return (gm_memory){.handle = (uintptr_t)memory, .bytes = memory->bytes, .type = type, .wrapped = memory->wrapped};
}

gm_status gm__vulkan_memory_alloc(void *user, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  gm__vulkan_device *device = user;
  if (params->type >= device->type_count) {
    return gm__bad_argument(err, memory_op, "`type` is %u, the device has %u memory types", params->type,
                            device->type_count);
  }
  if (params->bytes == 0) return gm__bad_argument(err, memory_op, "`bytes` is 0");
  if (params->align & (params->align - 1)) {
    return gm__bad_argument(err, memory_op, "`align` must be a power of two, is %llu",
                            (unsigned long long)params->align);
  }
  gm_status status = gm__vulkan_device_state(device, err);
  if (status) return status;
  gm__vulkan_memory *memory;
  status = gm__vulkan_memory_make(device, &device->types[params->type], params->bytes, params->flags, &memory, err);
  if (status) return status;
  *out = memory_describe(memory, params->type);
  return GM_OK;
}

gm_status gm__vulkan_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  (void)err;
  gm__vulkan_memory_unmake(device, gm__vulkan_memory_of(memory), mode);
  return GM_OK;
}

static bool memory_is_native(const gm_native_memory *native) {
  return native->api == GM_API_VULKAN && native->struct_size >= sizeof(gm_vulkan_memory);
}

static uint32_t memory_type_of(const gm__vulkan_device *device, uint32_t index) {
  for (uint32_t i = 0; i < device->type_count; i++) {
    if (device->types[i].index == index) return i;
  }
  return UINT32_MAX;
}

gm_status gm__vulkan_memory_wrap(void *user, const gm_native_memory *given, gm_memory *out, gm_error *err) {
  static const char op[] = "gm_backend_ops.memory_wrap";
  gm__vulkan_device *device = user;
  if (!memory_is_native(given)) {
    return gm__bad_argument(err, op, "`native` must be a gm_vulkan_memory; is API %d, %u bytes", (int)given->api,
                            given->struct_size);
  }
  const gm_vulkan_memory *native = (const gm_vulkan_memory *)given;
  uint32_t type = memory_type_of(device, native->memory_type);
  if (!native->memory || !native->buffer || !native->bytes) {
    return gm__bad_argument(err, op, "`native` needs memory, buffer and bytes; one of them is 0");
  }
  if (type == UINT32_MAX) {
    return gm__bad_argument(err, op, "`native`: no buffer lies in memory type %u of this device", native->memory_type);
  }
  gm__vulkan_memory *memory = gm__alloc(device->services, sizeof *memory);
  if (!memory) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, op, "no host memory for the record");
  memory->memory = (VkDeviceMemory)native->memory;
  memory->buffer = (VkBuffer)native->buffer;
  memory->bytes = native->bytes;
  memory->memory_at = native->memory_offset;
  memory->buffer_at = native->buffer_offset;
  memory->type = device->types[type];
  memory->wrapped = true;
  atomic_init(&memory->mapped, native->mapped);
  *out = memory_describe(memory, type);
  return GM_OK;
}

gm_status gm__vulkan_memory_native(void *device, const gm_memory *described, uint64_t offset, uint64_t bytes,
                                   gm_native_memory *out, gm_error *err) {
  (void)device;
  const gm__vulkan_memory *memory = gm__vulkan_memory_of(described);
  if (!memory_is_native(out)) {
    return gm__bad_argument(err, "gm_backend_ops.memory_native",
                            "`out` must be a gm_vulkan_memory with its head filled; is API %d, %u bytes", (int)out->api,
                            out->struct_size);
  }
  unsigned char *mapped = atomic_load(&memory->mapped);
  gm_vulkan_memory *native = (gm_vulkan_memory *)out;
  *native = (gm_vulkan_memory){.head = *out,
                               .memory = (uint64_t)memory->memory,
                               .memory_offset = memory->memory_at + offset,
                               .buffer = (uint64_t)memory->buffer,
                               .buffer_offset = memory->buffer_at + offset,
                               .bytes = bytes,
                               .mapped = mapped ? mapped + offset : NULL,
                               .memory_type = memory->type.index};
  return GM_OK;
}
