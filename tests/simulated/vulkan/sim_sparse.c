#include <stdlib.h>
#include <string.h>

#include "simulated/vulkan/sim_vulkan.h"

/* Sparse buffers, which no CPU driver has: each is a plain buffer with memory of its own behind all of it. Binding
 * carries the bytes of the piece in, unbinding carries them out. Where nothing is bound lies poison, which a reader
 * sees and which nobody may have written to. */

enum { SPARSE_POISON = 0xEE, SPARSE_BINDS = 256 };

typedef struct sparse_bind {
  uint64_t at, bytes, offset;
  VkDeviceMemory memory;
} sparse_bind;

typedef struct sparse_buffer {
  VkBuffer handle;
  VkDevice device;
  VkDeviceMemory behind;
  unsigned char *host;
  uint64_t bytes;
  uint32_t count;
  sparse_bind binds[SPARSE_BINDS];
  struct sparse_buffer *next;
} sparse_buffer;

static sparse_buffer *sparse_list;

static sparse_buffer *sparse_find(VkBuffer handle) {
  sparse_buffer *at = sparse_list;
  while (at && at->handle != handle) at = at->next;
  return at;
}

uint64_t sim_granule(void) { return shim_script_number(&sim.script, "granule", 65536); }

bool sim_sparse_is(VkBuffer buffer) {
  pthread_mutex_lock(&sim.mutex);
  const bool is = sparse_find(buffer) != NULL;
  pthread_mutex_unlock(&sim.mutex);
  return is;
}

/* Room for an address that is a multiple of the granule, which a host address is on this driver. */
static VkResult sparse_back(sparse_buffer *buffer, bool address) {
  const uint64_t granule = sim_granule();
  const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                           .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
  const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                     .pNext = address ? &flags : NULL,
                                     .allocationSize = buffer->bytes + granule};
  void *mapped = NULL;
  VkResult result = sim.real.vkAllocateMemory(buffer->device, &info, NULL, &buffer->behind);
  if (result == VK_SUCCESS) {
    result = sim.real.vkMapMemory(buffer->device, buffer->behind, 0, VK_WHOLE_SIZE, 0, &mapped);
  }
  if (result != VK_SUCCESS) return result;
  const uint64_t pad = (granule - (uintptr_t)mapped % granule) % granule;
  buffer->host = (unsigned char *)mapped + pad;
  memset(buffer->host, SPARSE_POISON, buffer->bytes);
  return sim.real.vkBindBufferMemory(buffer->device, buffer->handle, buffer->behind, pad);
}

static void sparse_free(sparse_buffer *buffer) {
  if (buffer->handle) sim.real.vkDestroyBuffer(buffer->device, buffer->handle, NULL);
  if (buffer->behind) sim.real.vkFreeMemory(buffer->device, buffer->behind, NULL);
  free(buffer);
}

VkResult sim_sparse_create(VkDevice device, const VkBufferCreateInfo *info, VkBuffer *out) {
  const uint64_t granule = sim_granule();
  VkBufferCreateInfo plain = *info;
  sparse_buffer *made = calloc(1, sizeof *made);
  if (!made) abort();
  if (!shim_script_has(&sim.script, "sparse")) shim_violation("vulkan", "a sparse buffer on a device without");
  made->device = device;
  made->bytes = plain.size = (info->size + granule - 1) / granule * granule;
  plain.flags = 0;
  VkResult result = sim.real.vkCreateBuffer(device, &plain, NULL, &made->handle);
  if (result == VK_SUCCESS) result = sparse_back(made, info->usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT);
  if (result != VK_SUCCESS) {
    sparse_free(made);
    return result;
  }
  pthread_mutex_lock(&sim.mutex);
  made->next = sparse_list;
  sparse_list = made;
  pthread_mutex_unlock(&sim.mutex);
  *out = made->handle;
  return VK_SUCCESS;
}

/* One byte is everywhere if it is the first one, and each is equal to the next. So a sanitizer looks at a range once,
 * not at each byte. */
static void sparse_check_poison(const sparse_buffer *buffer, uint64_t at, uint64_t bytes) {
  const unsigned char *host = buffer->host + at;
  if (bytes == 0 || (host[0] == SPARSE_POISON && memcmp(host, host + 1, bytes - 1) == 0)) return;
  uint64_t i = 0;
  while (host[i] == SPARSE_POISON) i++;
  shim_violation("vulkan", "byte %llu of a sparse buffer was written, and nothing was bound there",
                 (unsigned long long)(at + i));
}

/* The binding in [at, at + bytes), whole. Its bytes go back to where they belong. */
static void sparse_unbind(sparse_buffer *buffer, uint64_t at, uint64_t bytes) {
  for (uint32_t i = 0; i < buffer->count;) {
    const sparse_bind bind = buffer->binds[i];
    if (bind.at + bind.bytes <= at || bind.at >= at + bytes) {
      i++;
      continue;
    }
    if (bind.at < at || bind.at + bind.bytes > at + bytes) shim_violation("vulkan", "a part of a bind is unbound");
    memcpy(sim_memory_host(bind.memory) + bind.offset, buffer->host + bind.at, bind.bytes);
    memset(buffer->host + bind.at, SPARSE_POISON, bind.bytes);
    buffer->binds[i] = buffer->binds[--buffer->count];
  }
}

static void sparse_bind_one(sparse_buffer *buffer, const VkSparseMemoryBind *bind) {
  const uint64_t granule = sim_granule();
  if (bind->resourceOffset % granule || bind->size % granule || bind->memoryOffset % granule) {
    shim_violation("vulkan", "a bind of %llu bytes at %llu is no whole number of granules",
                   (unsigned long long)bind->size, (unsigned long long)bind->resourceOffset);
  }
  if (bind->resourceOffset > buffer->bytes || bind->size > buffer->bytes - bind->resourceOffset) {
    shim_violation("vulkan", "a bind beyond its buffer");
  }
  sparse_unbind(buffer, bind->resourceOffset, bind->size);
  if (!bind->memory) return;
  sparse_check_poison(buffer, bind->resourceOffset, bind->size);
  if (bind->memoryOffset + bind->size > sim_memory_bytes(bind->memory)) {
    shim_violation("vulkan", "a bind beyond its memory");
  }
  if (buffer->count == SPARSE_BINDS) shim_violation("vulkan", "more binds than are kept");
  memcpy(buffer->host + bind->resourceOffset, sim_memory_host(bind->memory) + bind->memoryOffset, bind->size);
  buffer->binds[buffer->count++] = (sparse_bind){bind->resourceOffset, bind->size, bind->memoryOffset, bind->memory};
}

void sim_sparse_bind(const VkBindSparseInfo *info) {
  pthread_mutex_lock(&sim.mutex);
  for (uint32_t i = 0; i < info->bufferBindCount; i++) {
    const VkSparseBufferMemoryBindInfo *binds = &info->pBufferBinds[i];
    sparse_buffer *buffer = sparse_find(binds->buffer);
    if (!buffer) shim_violation("vulkan", "a buffer is bound that is not sparse");
    for (uint32_t j = 0; j < binds->bindCount; j++) sparse_bind_one(buffer, &binds->pBinds[j]);
  }
  pthread_mutex_unlock(&sim.mutex);
}

/* Memory may be freed while it is bound; nothing is there any more. Under the mutex. */
void sim_sparse_freed(VkDeviceMemory memory) {
  for (sparse_buffer *at = sparse_list; at; at = at->next) {
    for (uint32_t i = 0; i < at->count;) {
      const sparse_bind bind = at->binds[i];
      if (bind.memory != memory) {
        i++;
        continue;
      }
      memset(at->host + bind.at, SPARSE_POISON, bind.bytes);
      at->binds[i] = at->binds[--at->count];
    }
  }
}

void sim_destroy_buffer(VkDevice device, VkBuffer handle, const VkAllocationCallbacks *callbacks) {
  pthread_mutex_lock(&sim.mutex);
  sparse_buffer **at = &sparse_list;
  while (*at && (*at)->handle != handle) at = &(*at)->next;
  sparse_buffer *found = *at;
  if (found) {
    *at = found->next;
    for (uint32_t i = 0; i < found->count; i++) {
      const sparse_bind *bind = &found->binds[i];
      memset(found->host + bind->at, SPARSE_POISON, bind->bytes);
    }
    sparse_check_poison(found, 0, found->bytes);
    sparse_free(found);
  }
  pthread_mutex_unlock(&sim.mutex);
  if (!found) sim.real.vkDestroyBuffer(device, handle, callbacks);
}
