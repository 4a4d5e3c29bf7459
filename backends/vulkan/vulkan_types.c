#include "backends/vulkan/vulkan_types.h"

#include "backends/shared/plain.h"
#include "backends/vulkan/vulkan_device.h"
#include "backends/vulkan/vulkan_entries.h"

enum {
  /* Data does not belong into protected, lazily allocated, or the vendors' uncached debugging types. */
  TYPES_REFUSED = VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |
                  VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD |
                  VK_MEMORY_PROPERTY_RDMA_CAPABLE_BIT_NV,
  TYPES_USEFUL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
  TYPES_MIN_ALIGNMENT = 256, /* drivers ask no more for buffers, and gm's blocks are no finer */
  TYPES_HOST = GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT | GM_MEMORY_HOST_CACHED | GM_MEMORY_WRITE_COMBINED |
               GM_MEMORY_PERSISTENT_MAP
};

/* Memory that is visible and not cached is write-combined, by the practice of all drivers. Drivers on the CPU take
 * pages at the first write. `system`: all memory of the device is the host's. */
static uint32_t types_flags(VkMemoryPropertyFlags bits, bool system, bool lazy) {
  const bool visible = bits & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, cached = bits & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  uint32_t flags = 0;
  if (bits & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) flags |= GM_MEMORY_DEVICE_LOCAL;
  if (visible) flags |= GM_MEMORY_HOST_VISIBLE | GM_MEMORY_PERSISTENT_MAP;
  if (bits & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) flags |= GM_MEMORY_HOST_COHERENT;
  if (cached) flags |= GM_MEMORY_HOST_CACHED;
  if (visible && !cached) flags |= GM_MEMORY_WRITE_COMBINED;
  if (system || !(bits & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT)) flags |= GM_MEMORY_SYSTEM;
  if (visible && lazy) flags |= GM_MEMORY_LAZY;
  return flags;
}

static uint64_t types_min(uint64_t a, uint64_t b) { return a < b ? a : b; }

static gm__vulkan_type types_make(const gm__vulkan_physical *physical, uint32_t index) {
  const VkMemoryType *type = &physical->memory.memoryTypes[index];
  uint64_t heap_bytes = physical->memory.memoryHeaps[type->heapIndex].size;
  uint64_t atom = physical->props.limits.nonCoherentAtomSize;
  bool coherent = (type->propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) ||
                  !(type->propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT);
  const VkPhysicalDeviceType kind = physical->props.deviceType;
  const bool cpu = kind == VK_PHYSICAL_DEVICE_TYPE_CPU;
  return (gm__vulkan_type){
      .index = index,
      .heap = type->heapIndex,
      .flags = types_flags(type->propertyFlags, cpu || kind == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, cpu),
      .coherent = coherent,
      .atom = coherent || !atom ? 1 : atom,
      .heap_bytes = heap_bytes,
      .max_bytes = types_min(heap_bytes, types_min(physical->max_memory_bytes, physical->max_buffer_bytes))};
}

/* A lower rank is better for kernels. Device memory comes before host memory. Invisible device memory comes first,
 * because a visible heap may be only a small window. In host memory, cached types come first. */
static uint32_t types_rank(const gm__vulkan_type *type) {
  if (type->flags & GM_MEMORY_DEVICE_LOCAL) return type->flags & GM_MEMORY_HOST_VISIBLE ? 1 : 0;
  return type->flags & GM_MEMORY_HOST_CACHED ? 2 : 3;
}

static void types_insert(gm__vulkan_type *list, uint32_t *count, gm__vulkan_type type) {
  if (*count == VULKAN_MAX_TYPES) return;
  uint32_t at = (*count)++;
  for (; at > 0 && types_rank(&list[at - 1]) > types_rank(&type); at--) list[at] = list[at - 1];
  list[at] = type;
}

uint32_t gm__vulkan_types_list(const gm__vulkan_physical *physical, uint32_t bits, bool split,
                               gm__vulkan_type out[VULKAN_MAX_TYPES]) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < physical->memory.memoryTypeCount; i++) {
    VkMemoryPropertyFlags has = physical->memory.memoryTypes[i].propertyFlags;
    if (!(bits & (1u << i)) || !(has & TYPES_USEFUL) || (has & TYPES_REFUSED)) continue;
    gm__vulkan_type type = types_make(physical, i);
    if (split && (type.flags & GM_MEMORY_DEVICE_LOCAL) && (type.flags & GM_MEMORY_HOST_VISIBLE)) {
      gm__vulkan_type local = type;
      local.flags &= ~(uint32_t)TYPES_HOST;
      types_insert(out, &count, local);
      type.flags &= ~(uint32_t)GM_MEMORY_DEVICE_LOCAL;
    }
    types_insert(out, &count, type);
  }
  return count;
}

uint64_t gm__vulkan_alignment(const gm__vulkan_physical *physical, uint64_t buffer_alignment) {
  const VkPhysicalDeviceLimits *limits = &physical->props.limits;
  const uint64_t wanted[] = {limits->minStorageBufferOffsetAlignment, limits->minUniformBufferOffsetAlignment,
                             limits->minTexelBufferOffsetAlignment, limits->nonCoherentAtomSize, buffer_alignment};
  uint64_t alignment = TYPES_MIN_ALIGNMENT;
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    bool power = wanted[i] && !(wanted[i] & (wanted[i] - 1));
    if (power && wanted[i] > alignment) alignment = wanted[i];
  }
  return alignment;
}

gm_status gm__vulkan_memory_type_count(void *user, uint32_t *out, gm_error *err) {
  (void)err;
  const gm__vulkan_device *device = user;
  *out = device->type_count;
  return GM_OK;
}

static uint32_t types_share_kinds(const gm__vulkan_device *device, const gm__vulkan_type *type) {
  uint32_t kinds = 0;
  for (uint32_t kind = 0; kind < VULKAN_SHARE_KINDS; kind++) {
    const gm__vulkan_shares *shares = &device->shares[kind];
    if (shares->can.exports && (shares->type_bits >> type->index & 1)) kinds |= 1u << kind;
  }
  return kinds;
}

gm_status gm__vulkan_memory_type(void *user, uint32_t index, gm_memory_type *out, gm_error *err) {
  const gm__vulkan_device *device = user;
  const gm_status status = gm__plain_check_type("gm_backend_ops.memory_type", device->type_count, index, err);
  if (status) return status;
  const gm__vulkan_type *type = &device->types[index];
  *out = (gm_memory_type){.struct_size = sizeof *out,
                          .flags = type->flags,
                          .heap = type->heap,
                          .heap_bytes = type->heap_bytes,
                          .max_alloc_bytes = type->max_bytes,
                          .atom_bytes = type->atom,
                          .share_kinds = types_share_kinds(device, type)};
  return GM_OK;
}
