#include "backends/vulkan/vulkan_map.h"

#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_stream.h"
#include "core/base/error.h"

/* Invariants: gm maps its own VkDeviceMemory as a whole, at most once. gm never maps the engine's memory. */

enum { MAP_PAGE = 4096 };

bool gm__vulkan_visible(const gm__vulkan_memory *memory) {
  if (memory->wrapped) return atomic_load(&memory->mapped) != NULL;
  return (memory->type.flags & GM_MEMORY_HOST_VISIBLE) != 0;
}

static gm_status map_memory(gm__vulkan_device *device, gm__vulkan_memory *memory, gm_error *err) {
  if (atomic_load(&memory->mapped)) return GM_OK;
  void *mapped = NULL;
  VkResult result = device->syms.vkMapMemory(device->handle, memory->memory, 0, VK_WHOLE_SIZE, 0, &mapped);
  if (result || !mapped) return gm__vulkan_device_fail(device, result, "vkMapMemory", err);
  atomic_store(&memory->mapped, (unsigned char *)mapped + memory->memory_at);
  return GM_OK;
}

gm_status gm__vulkan_host(gm__vulkan_device *device, gm__vulkan_memory *memory, unsigned char **out, gm_error *err) {
  gm__mutex_lock(&device->mutex);
  gm_status status = map_memory(device, memory, err);
  gm__mutex_unlock(&device->mutex);
  if (!status) *out = atomic_load(&memory->mapped);
  return status;
}

static VkMappedMemoryRange map_range(const gm__vulkan_memory *memory, uint64_t offset, uint64_t bytes) {
  uint64_t atom = memory->type.atom;
  uint64_t begin = memory->memory_at + offset, end = begin + bytes;
  begin -= begin % atom;
  end += (atom - end % atom) % atom;
  if (memory->allocated && end > memory->allocated) end = memory->allocated;
  return (VkMappedMemoryRange){
      .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = memory->memory, .offset = begin, .size = end - begin};
}

bool gm__vulkan_whole_atoms(const gm__vulkan_memory *memory, uint64_t offset, uint64_t bytes) {
  uint64_t begin = memory->memory_at + offset, end = begin + bytes, atom = memory->type.atom;
  return memory->type.coherent || (begin % atom == 0 && (end % atom == 0 || end == memory->allocated));
}

gm_status gm__vulkan_flush(gm__vulkan_device *device, const gm__vulkan_memory *memory, uint64_t offset, uint64_t bytes,
                           gm_error *err) {
  if (memory->type.coherent || !bytes || !atomic_load(&memory->mapped)) return GM_OK;
  const VkMappedMemoryRange range = map_range(memory, offset, bytes);
  VkResult result = device->syms.vkFlushMappedMemoryRanges(device->handle, 1, &range);
  return result ? gm__vulkan_device_fail(device, result, "vkFlushMappedMemoryRanges", err) : GM_OK;
}

gm_status gm__vulkan_invalidate(gm__vulkan_device *device, const gm__vulkan_memory *memory, uint64_t offset,
                                uint64_t bytes, gm_error *err) {
  if (memory->type.coherent || !bytes || !atomic_load(&memory->mapped)) return GM_OK;
  const VkMappedMemoryRange range = map_range(memory, offset, bytes);
  VkResult result = device->syms.vkInvalidateMappedMemoryRanges(device->handle, 1, &range);
  return result ? gm__vulkan_device_fail(device, result, "vkInvalidateMappedMemoryRanges", err) : GM_OK;
}

/* A driver on the CPU takes pages at the first write. gm can map its memory even where it presents it as not visible.
 */
static bool map_is_lazy(const gm__vulkan_device *device, const gm__vulkan_memory *memory) {
  if (memory->range) return false; /* the driver took its pieces when it made them */
  if (memory->host) return false;  /* it is the caller's */
  if (device->physical.props.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU) return false;
  if (memory->wrapped) return gm__vulkan_visible(memory);
  return device->physical.memory.memoryTypes[memory->type.index].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
}

gm_status gm__vulkan_touch(gm__vulkan_device *device, gm__vulkan_memory *memory, uint64_t offset, uint64_t bytes,
                           gm_error *err) {
  if (!bytes || !map_is_lazy(device, memory)) return GM_OK;
  unsigned char *host;
  gm_status status = gm__vulkan_host(device, memory, &host, err);
  if (status) return status;
  /* Adding 0 is a write, so it takes the page. It is atomic, so it loses no other thread's write. */
  uint64_t last = offset + bytes - 1;
  for (uint64_t at = offset; at < last; at += MAP_PAGE) __atomic_fetch_add(host + at, 0, __ATOMIC_RELAXED);
  __atomic_fetch_add(host + last, 0, __ATOMIC_RELAXED);
  return GM_OK;
}

static gm_status map_not_visible(const gm__vulkan_memory *memory, const char *op, gm_error *err) {
  if (memory->range) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "many allocations may lie behind a reserved range: copy");
  }
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op,
                  memory->wrapped ? "wrapped memory can be mapped only if the engine gave its own mapping"
                                  : "this memory type is not host-visible: ask for one that is, or copy");
}

gm_status gm__vulkan_op_map(void *user, void *stream, const gm_memory *described, uint64_t offset, uint64_t bytes,
                            uint32_t mode, void **out, gm_error *err) {
  (void)bytes;
  (void)mode;
  gm__vulkan_device *device = user;
  gm__vulkan_memory *memory = gm__vulkan_memory_of(described);
  if (!gm__vulkan_visible(memory)) return map_not_visible(memory, "gm_backend_ops.map", err);
  gm_status status = stream ? gm__vulkan_stream_drain(stream, err) : GM_OK;
  unsigned char *host;
  if (!status) status = gm__vulkan_host(device, memory, &host, err);
  if (status) return status;
  atomic_fetch_add(&memory->users, 1);
  *out = host + offset;
  return GM_OK;
}

gm_status gm__vulkan_op_unmap(void *user, void *stream, const gm_memory *described, void *pointer, gm_error *err) {
  (void)user;
  (void)stream; /* later submissions see host writes */
  gm__vulkan_memory *memory = gm__vulkan_memory_of(described);
  unsigned char *first = atomic_load(&memory->mapped);
  uintptr_t at = (uintptr_t)pointer, begin = (uintptr_t)first;
  if (!first || !atomic_load(&memory->users) || at < begin || at - begin >= memory->bytes) {
    return gm__bad_argument(err, "gm_backend_ops.unmap", "`pointer` is not a mapping of this memory");
  }
  atomic_fetch_sub(&memory->users, 1);
  return GM_OK;
}

gm_status gm__vulkan_op_flush(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err) {
  return gm__vulkan_flush(device, gm__vulkan_memory_of(memory), offset, bytes, err);
}

gm_status gm__vulkan_op_invalidate(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                   gm_error *err) {
  return gm__vulkan_invalidate(device, gm__vulkan_memory_of(memory), offset, bytes, err);
}

gm_status gm__vulkan_op_commit(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                               gm_error *err) {
  (void)stream;
  return gm__vulkan_touch(device, gm__vulkan_memory_of(memory), offset, bytes, err);
}
