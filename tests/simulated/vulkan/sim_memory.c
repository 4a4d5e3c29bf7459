#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simulated/vulkan/sim_vulkan.h"

/* Memory: every allocation is the real driver's, of its one type. Limits are kept as a real card keeps them. Where a
 * type is not coherent the host gets a copy, filled with nonsense. Only flush and invalidate carry bytes between it and
 * the device, of exactly the ranges asked for. So a forgotten or a wrong range is wrong data. */

typedef struct sim_memory {
  VkDevice device;
  VkDeviceMemory handle;
  uint32_t index, heap;
  VkMemoryPropertyFlags flags;
  uint64_t bytes, held;       /* of its own; of its heap */
  unsigned char *real, *copy; /* mapped; copy: NULL where coherent */
  unsigned char *peek;        /* mapped for what is bound to a sparse buffer */
  struct sim_memory *next;
} sim_memory;

static sim_memory *memory_list;

static sim_memory *memory_find(VkDeviceMemory handle) {
  sim_memory *at = memory_list;
  while (at && at->handle != handle) at = at->next;
  if (!at) shim_violation("vulkan", "a VkDeviceMemory that does not exist");
  return at;
}

/* Counts it, if there is room. Under the mutex. */
static VkResult memory_admit(sim_device *played, const VkMemoryAllocateInfo *info, sim_memory *out) {
  VkPhysicalDeviceMemoryProperties memory;
  sim_memory_layout(&memory);
  if (info->memoryTypeIndex >= memory.memoryTypeCount) {
    shim_violation("vulkan", "memory type %u of %u", info->memoryTypeIndex, memory.memoryTypeCount);
  }
  const VkMemoryType *type = &memory.memoryTypes[info->memoryTypeIndex];
  const uint64_t size = memory.memoryHeaps[type->heapIndex].size;
  const uint64_t others = shim_script_number(&sim.script, "others", 0);
  uint64_t *held = &sim.held[played->index][type->heapIndex];
  const uint64_t bytes = sim_share_is_host(info) ? 0 : info->allocationSize; /* of the heap */
  if (info->allocationSize > size) shim_violation("vulkan", "an allocation is larger than its heap");
  if (played->live >= shim_script_number(&sim.script, "count", UINT32_MAX)) return VK_ERROR_TOO_MANY_OBJECTS;
  if (info->allocationSize > shim_script_number(&sim.script, "maxalloc", UINT64_MAX) ||
      info->allocationSize > shim_script_number(&sim.script, "fails_above", UINT64_MAX) ||
      *held + bytes > (size > others ? size - others : 0)) {
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  *held += bytes;
  played->live++;
  *out = (sim_memory){.device = played->handle,
                      .index = played->index,
                      .heap = type->heapIndex,
                      .flags = type->propertyFlags,
                      .bytes = info->allocationSize,
                      .held = bytes};
  return VK_SUCCESS;
}

/* Under the mutex. */
static void memory_dismiss(const sim_memory *memory) {
  sim_device *played = sim_device_find(memory->device);
  sim.held[memory->index][memory->heap] -= memory->held;
  if (played) played->live--;
}

static VkResult memory_make(sim_device *played, const VkMemoryAllocateInfo *info,
                            const VkAllocationCallbacks *callbacks, VkDeviceMemory *out) {
  sim_memory *made = calloc(1, sizeof *made);
  if (!made) abort();
  VkMemoryAllocateInfo real = *info;
  real.memoryTypeIndex = 0;
  sim_share_memory(&real);
  VkResult result = memory_admit(played, info, made);
  if (result == VK_SUCCESS) {
    result = sim.real.vkAllocateMemory(played->handle, &real, callbacks, &made->handle);
    if (result != VK_SUCCESS) memory_dismiss(made);
  }
  if (result != VK_SUCCESS) {
    free(made);
    return result;
  }
  made->next = memory_list;
  memory_list = made;
  *out = made->handle;
  return VK_SUCCESS;
}

VkResult sim_allocate(VkDevice device, const VkMemoryAllocateInfo *info, const VkAllocationCallbacks *callbacks,
                      VkDeviceMemory *out) {
  if (sim_null("vkAllocateMemory")) {
    *out = VK_NULL_HANDLE;
    return VK_SUCCESS;
  }
  pthread_mutex_lock(&sim.mutex);
  sim_device *played = sim_device_find(device);
  const VkResult result = played ? memory_make(played, info, callbacks, out) : VK_ERROR_UNKNOWN;
  pthread_mutex_unlock(&sim.mutex);
  return result;
}

static void memory_unshadow(sim_memory *memory) {
  if (memory->copy) munmap(memory->copy, memory->bytes);
  memory->copy = NULL;
}

void sim_free(VkDevice device, VkDeviceMemory handle, const VkAllocationCallbacks *callbacks) {
  if (!handle) return;
  pthread_mutex_lock(&sim.mutex);
  sim_memory *memory = memory_find(handle);
  sim_memory **at = &memory_list;
  sim_sparse_freed(handle);
  while (*at != memory) at = &(*at)->next;
  *at = memory->next;
  memory_dismiss(memory);
  sim.real.vkFreeMemory(device, handle, callbacks);
  pthread_mutex_unlock(&sim.mutex);
  memory_unshadow(memory);
  free(memory);
}

uint64_t sim_memory_bytes(VkDeviceMemory handle) { return memory_find(handle)->bytes; }

unsigned char *sim_memory_host(VkDeviceMemory handle) {
  sim_memory *memory = memory_find(handle);
  void *mapped = NULL;
  if (memory->real) shim_violation("vulkan", "memory is bound to a sparse buffer that the host has mapped");
  if (memory->peek) return memory->peek;
  if (sim.real.vkMapMemory(memory->device, handle, 0, VK_WHOLE_SIZE, 0, &mapped) != VK_SUCCESS) abort();
  memory->peek = mapped;
  return mapped;
}

VkDeviceAddress sim_buffer_address(VkDevice device, const VkBufferDeviceAddressInfo *info) {
  return sim_null("vkGetBufferDeviceAddress") ? 0 : sim.real.vkGetBufferDeviceAddress(device, info);
}

enum { NONSENSE_BYTES = 1 << 20 };

/* A file of nonsense: a page of a shadow costs nothing until it is written. */
static int memory_nonsense(void) {
  static int file = -1;
  if (file >= 0) return file;
  char *nonsense = malloc(NONSENSE_BYTES);
  file = memfd_create("nonsense", MFD_CLOEXEC);
  if (!nonsense || file < 0) abort();
  memset(nonsense, 0xA5, NONSENSE_BYTES);
  if (write(file, nonsense, NONSENSE_BYTES) != NONSENSE_BYTES) abort();
  free(nonsense);
  return file;
}

static void memory_shadow(sim_memory *memory) {
  const int rights = PROT_READ | PROT_WRITE;
  memory->copy = mmap(NULL, memory->bytes, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory->copy == MAP_FAILED) abort();
  for (uint64_t at = 0; at < memory->bytes; at += NONSENSE_BYTES) {
    const uint64_t left = memory->bytes - at, bytes = left < NONSENSE_BYTES ? left : NONSENSE_BYTES;
    if (mmap(memory->copy + at, bytes, rights, MAP_PRIVATE | MAP_FIXED, memory_nonsense(), 0) == MAP_FAILED) abort();
  }
}

VkResult sim_map(VkDevice device, VkDeviceMemory handle, VkDeviceSize offset, VkDeviceSize bytes,
                 VkMemoryMapFlags flags, void **out) {
  void *mapped = NULL;
  (void)bytes;
  if (sim_null("vkMapMemory")) {
    *out = NULL;
    return VK_SUCCESS;
  }
  pthread_mutex_lock(&sim.mutex);
  sim_memory *memory = memory_find(handle);
  if (!(memory->flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) {
    shim_violation("vulkan", "memory is mapped that the host does not see");
  }
  if (memory->real) shim_violation("vulkan", "memory is mapped twice");
  const VkResult result = sim.real.vkMapMemory(device, handle, 0, VK_WHOLE_SIZE, flags, &mapped);
  if (result == VK_SUCCESS) {
    memory->real = mapped;
    if (!(memory->flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)) memory_shadow(memory);
    *out = (memory->copy ? memory->copy : memory->real) + offset;
  }
  pthread_mutex_unlock(&sim.mutex);
  return result;
}

static void memory_sync(const VkMappedMemoryRange *range, bool to_device) {
  sim_memory *memory = memory_find(range->memory);
  const uint64_t scripted = shim_script_number(&sim.script, "atom", 64), atom = scripted ? scripted : 1;
  const uint64_t offset = range->offset;
  const uint64_t bytes = range->size == VK_WHOLE_SIZE ? memory->bytes - offset : range->size;
  if (!memory->real) shim_violation("vulkan", "a range of memory that is not mapped");
  if (offset > memory->bytes || bytes > memory->bytes - offset) shim_violation("vulkan", "a range beyond its memory");
  if (offset % atom || (bytes % atom && offset + bytes != memory->bytes)) {
    shim_violation("vulkan", "a range of %llu bytes at %llu is no whole number of atoms of %llu",
                   (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)atom);
  }
  if (!memory->copy) return;
  if (to_device)
    memcpy(memory->real + offset, memory->copy + offset, bytes);
  else
    memcpy(memory->copy + offset, memory->real + offset, bytes);
}

static VkResult memory_sync_all(uint32_t count, const VkMappedMemoryRange *ranges, bool to_device) {
  pthread_mutex_lock(&sim.mutex);
  for (uint32_t i = 0; i < count; i++) memory_sync(&ranges[i], to_device);
  pthread_mutex_unlock(&sim.mutex);
  return VK_SUCCESS;
}

VkResult sim_flush(VkDevice device, uint32_t count, const VkMappedMemoryRange *ranges) {
  (void)device;
  return memory_sync_all(count, ranges, true);
}

VkResult sim_invalidate(VkDevice device, uint32_t count, const VkMappedMemoryRange *ranges) {
  (void)device;
  return memory_sync_all(count, ranges, false);
}

VkResult sim_create_buffer(VkDevice device, const VkBufferCreateInfo *info, const VkAllocationCallbacks *callbacks,
                           VkBuffer *out) {
  if (sim_null("vkCreateBuffer")) {
    *out = VK_NULL_HANDLE;
    return VK_SUCCESS;
  }
  if (info->size > shim_script_number(&sim.script, "maxbuffer", UINT64_MAX)) {
    shim_violation("vulkan", "a buffer of more than maxBufferSize");
  }
  if (info->flags & VK_BUFFER_CREATE_SPARSE_BINDING_BIT) return sim_sparse_create(device, info, out);
  VkExternalMemoryBufferCreateInfo outside;
  VkBufferCreateInfo real = *info;
  real.pNext = sim_share_buffer(info, &outside);
  return sim.real.vkCreateBuffer(device, &real, callbacks, out);
}

void sim_needs(VkDevice device, const VkBufferMemoryRequirementsInfo2 *info, VkMemoryRequirements2 *out) {
  VkPhysicalDeviceMemoryProperties memory;
  sim.real.vkGetBufferMemoryRequirements2(device, info, out);
  sim_memory_layout(&memory);
  out->memoryRequirements.memoryTypeBits = (1u << memory.memoryTypeCount) - 1;
  if (sim_sparse_is(info->buffer)) {
    out->memoryRequirements.alignment = shim_script_is(&sim.script, "hostile", "granularity") ? 0 : sim_granule();
  }
  if (shim_script_is(&sim.script, "hostile", "alignment")) out->memoryRequirements.alignment = 0;
  if (shim_script_is(&sim.script, "hostile", "needs")) {
    out->memoryRequirements.size = UINT64_MAX;
    out->memoryRequirements.memoryTypeBits = UINT32_MAX;
  }
  VkBaseOutStructure *item = out->pNext;
  while (item && item->sType != VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS) item = item->pNext;
  if (item && shim_script_has(&sim.script, "dedicated")) {
    ((VkMemoryDedicatedRequirements *)(void *)item)->prefersDedicatedAllocation = VK_TRUE;
  }
}
