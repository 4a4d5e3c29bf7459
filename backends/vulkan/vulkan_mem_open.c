#include "backends/vulkan/vulkan_mem_open.h"

#include <inttypes.h>

#include "backends/shared/plain.h"
#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_map.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

/* Invariants: gm never asks the driver for more than its limits. The heap counts the bytes of each live VkDeviceMemory
 * of gm exactly once, whatever the driver itself would allow. Non-coherent memory is a whole number of atoms, so a
 * widened range never leaves it. */

static const char memory_op[] = "gm_backend_ops.memory_alloc";

static gm_status memory_too_large(const gm__vulkan_type *type, uint64_t bytes, gm_error *err) {
  return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, memory_op,
                  "%" PRIu64 " bytes asked; one allocation of this type may have %" PRIu64 " (heap of %" PRIu64
                  ", maxMemoryAllocationSize, maxBufferSize): split it",
                  bytes, type->max_bytes, type->heap_bytes);
}

/* Count one allocation of `bytes`, before the driver is asked. */
static gm_status memory_take(gm__vulkan_device *device, const gm__vulkan_type *type, uint64_t bytes, gm_error *err) {
  uint32_t limit = device->physical.props.limits.maxMemoryAllocationCount;
  if (atomic_fetch_add(&device->live, 1) >= limit) {
    atomic_fetch_sub(&device->live, 1);
    return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, memory_op,
                    "the device allows %u allocations at a time (maxMemoryAllocationCount), all are in use: use a pool",
                    limit);
  }
  if (gm__vulkan_heaps_take(device->heaps, type->heap, bytes, type->heap_bytes)) return GM_OK;
  atomic_fetch_sub(&device->live, 1);
  return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, memory_op,
                  "%" PRIu64 " bytes asked of heap %u of %" PRIu64 " bytes, of which gm holds %" PRIu64, bytes,
                  type->heap, type->heap_bytes, atomic_load(&device->heaps->held[type->heap]));
}

static void memory_give(gm__vulkan_device *device, const gm__vulkan_memory *memory) {
  gm__vulkan_heaps_give(device->heaps, memory->type.heap, memory->counted);
  atomic_fetch_sub(&device->live, 1);
}

static uint64_t memory_padded(const gm__vulkan_type *type, uint64_t bytes) {
  return gm__round_up(bytes, gm__max(type->atom, 4));
}

/* All structures that can describe an allocation. Only those that apply are linked. */
typedef struct memory_chain {
  VkMemoryAllocateInfo head;
  VkMemoryDedicatedAllocateInfo dedicated;
  VkMemoryAllocateFlagsInfo flags;
  VkExportMemoryAllocateInfo leaves;
  VkImportMemoryFdInfoKHR comes;
  VkImportMemoryHostPointerInfoEXT host;
  VkMemoryPriorityAllocateInfoEXT priority;
} memory_chain;

static void memory_link(memory_chain *chain, void *item) {
  VkBaseOutStructure *base = item;
  base->pNext = (VkBaseOutStructure *)(uintptr_t)chain->head.pNext;
  chain->head.pNext = base;
}

static void memory_make_chain(const gm__vulkan_device *device, const gm__vulkan_memory *memory,
                              const gm__vulkan_memory_wish *wish, memory_chain *out) {
  const VkExternalMemoryHandleTypeFlagBits kind = gm__vulkan_handle_type(wish->share);
  *out = (memory_chain){
      .head = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
               .allocationSize = memory->allocated,
               .memoryTypeIndex = memory->type.index},
      .dedicated = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .buffer = memory->buffer},
      .flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT},
      .leaves = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .handleTypes = kind},
      .comes = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, .handleType = kind, .fd = wish->fd},
      .host = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
               .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
               .pHostPointer = wish->pages},
      .priority = {.sType = VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT, .priority = wish->priority}};
  if (memory->dedicated) memory_link(out, &out->dedicated);
  if (device->address) memory_link(out, &out->flags);
  if (kind && !wish->import) memory_link(out, &out->leaves);
  if (wish->import && !wish->pages) memory_link(out, &out->comes);
  if (wish->pages) memory_link(out, &out->host);
  if (wish->priority > 0 && device->features & GM_VULKAN_MEMORY_PRIORITY) memory_link(out, &out->priority);
}

static gm_status memory_allocate(gm__vulkan_device *device, gm__vulkan_memory *memory, gm__vulkan_memory_wish *wish,
                                 gm_error *err) {
  memory_chain chain;
  memory_make_chain(device, memory, wish, &chain);
  VkResult result = device->syms.vkAllocateMemory(device->handle, &chain.head, NULL, &memory->memory);
  wish->taken = wish->import && !wish->pages && !result;
  if (!result && memory->memory) return GM_OK;
  memory->memory = VK_NULL_HANDLE;
  return gm__vulkan_device_fail(device, result, "vkAllocateMemory", err);
}

static gm_status memory_bind(gm__vulkan_device *device, gm__vulkan_memory *memory, uint64_t at, gm_error *err) {
  VkResult result = device->syms.vkBindBufferMemory(device->handle, memory->buffer, memory->memory, at);
  if (result) return gm__vulkan_device_fail(device, result, "vkBindBufferMemory", err);
  return gm__vulkan_buffer_address(device, memory->buffer, &memory->address, err);
}

/* Choose the size, and whether the allocation is dedicated. An import has its size already: the buffer must fit in it.
 */
static gm_status memory_size(gm__vulkan_device *device, gm__vulkan_memory *memory, const gm__vulkan_memory_wish *wish,
                             gm_error *err) {
  const gm__vulkan_needs needs = gm__vulkan_buffer_needs(device, memory->buffer);
  const uint64_t wanted = needs.bytes > memory->buffer_bytes ? needs.bytes : memory->buffer_bytes;
  memory->allocated = wish->import ? wish->whole_bytes : memory_padded(&memory->type, gm__add_sat(wanted, wish->room));
  memory->dedicated =
      wish->import ? wish->dedicated
                   : needs.dedicated || wish->flags & GM_ALLOC_DEDICATED || device->shares[wish->share].can.dedicated;
  if (wish->import && (wanted > wish->whole_bytes || !(needs.type_bits >> memory->type.index & 1))) {
    return gm__bad_argument(err, "gm_backend_ops.share_import",
                            "%s%" PRIu64 " bytes of memory type %u, a buffer of %" PRIu64 " does not fit in it",
                            wish->pages ? "" : "`shared`: ", wish->whole_bytes, memory->type.index,
                            memory->buffer_bytes);
  }
  return memory->allocated > memory->type.max_bytes ? memory_too_large(&memory->type, memory->allocated, err) : GM_OK;
}

static gm_status memory_count(gm__vulkan_device *device, gm__vulkan_memory *memory, uint64_t bytes, gm_error *err) {
  gm_status status = memory_take(device, &memory->type, bytes, err);
  if (status) return status;
  memory->counted = bytes;
  memory->live = true;
  return GM_OK;
}

/* How far behind `address` the next aligned one is. NOT_SUPPORTED: descriptors cannot have that offset. */
static gm_status memory_pad(const gm__vulkan_device *device, uint64_t address, uint64_t align, uint64_t *out,
                            gm_error *err) {
  *out = (align - address % align) % align;
  if (*out % device->alignment == 0) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, memory_op,
                  "the driver placed the memory at %" PRIu64
                  "; no offset that descriptors can have makes that a "
                  "multiple of %" PRIu64,
                  address, align);
}

/* Bind the buffer where its address is aligned. Another buffer asks for the address of the memory, because each is
 * bound once. */
static gm_status memory_bind_aligned(gm__vulkan_device *device, gm__vulkan_memory *memory, uint64_t align,
                                     gm_error *err) {
  const gm__vulkan_buffer_params params = {.bytes = memory->buffer_bytes};
  gm__vulkan_memory asked = {.memory = memory->memory};
  uint64_t pad = 0;
  gm_status status = gm__vulkan_buffer_create(device, &params, &asked.buffer, err);
  if (status) return status;
  status = memory_bind(device, &asked, 0, err);
  device->syms.vkDestroyBuffer(device->handle, asked.buffer, NULL);
  if (!status) status = memory_pad(device, asked.address, align, &pad, err);
  if (!status) status = memory_bind(device, memory, pad, err);
  if (status) return status;
  memory->memory_at = pad;
  if (memory->address % align == 0) return GM_OK;
  return gm__fail(err, GM_ERR_DRIVER, "vkGetBufferDeviceAddress",
                  "buffers at bytes 0 and %" PRIu64 " of a memory are at %" PRIu64 " and %" PRIu64, pad, asked.address,
                  memory->address);
}

static gm_status memory_fill_in(gm__vulkan_device *device, gm__vulkan_memory *memory, gm__vulkan_memory_wish *wish,
                                gm_error *err) {
  const gm__vulkan_buffer_params params = {
      .bytes = memory->buffer_bytes, .share = wish->share, .host = wish->pages != NULL, .inner = wish->inner};
  gm_status status = gm__vulkan_buffer_create(device, &params, &memory->buffer, err);
  if (!status) status = memory_size(device, memory, wish, err);
  if (!status) status = memory_count(device, memory, wish->import ? 0 : memory->allocated, err);
  if (!status) status = memory_allocate(device, memory, wish, err);
  if (status) return status;
  return wish->room ? memory_bind_aligned(device, memory, wish->align, err) : memory_bind(device, memory, 0, err);
}

static gm_status memory_new(gm__vulkan_device *device, const gm__vulkan_type *type, uint64_t bytes,
                            gm__vulkan_memory **out, gm_error *err) {
  gm__vulkan_memory *memory = gm__alloc(device->services, sizeof *memory);
  if (!memory) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, memory_op, "no host memory for the record");
  memory->bytes = bytes;
  memory->type = *type;
  *out = memory;
  return GM_OK;
}

/* Try to make memory whose buffer has `slack` bytes more than wanted. */
static gm_status memory_try(gm__vulkan_device *device, gm__vulkan_memory_wish *wish, uint64_t slack,
                            gm__vulkan_memory **out, gm_error *err) {
  const uint64_t padded = wish->import ? wish->bytes : memory_padded(wish->type, wish->bytes);
  const uint64_t most = wish->type->max_bytes, more = slack + wish->room;
  gm__vulkan_memory *memory = NULL;
  if (padded > most || more > most - padded) return memory_too_large(wish->type, wish->bytes, err);
  gm_status status = memory_new(device, wish->type, padded, &memory, err);
  if (status) return status;
  memory->buffer_bytes = wish->import ? wish->buffer_bytes : padded + slack;
  memory->memory_at = memory->buffer_at = wish->offset;
  memory->share = wish->share;
  memory->host = wish->pages != NULL;
  status = memory_fill_in(device, memory, wish, err);
  if (status) {
    gm__vulkan_memory_unmake(device, memory, GM_CLOSE_NORMAL);
    return status;
  }
  if (memory->address) memory->address += wish->offset;
  *out = memory;
  return GM_OK;
}

/* Make memory in which the first usable byte is at an aligned address. `plain`: its buffer may begin there, behind the
 * beginning of the memory. Otherwise the buffer begins with the memory, and the usable bytes begin in it. */
static gm_status memory_try_aligned(gm__vulkan_device *device, const gm__vulkan_memory_wish *wish, bool plain,
                                    gm__vulkan_memory **out, gm_error *err) {
  gm__vulkan_memory_wish roomy = *wish;
  if (plain) {
    roomy.room = wish->align;
    roomy.flags &= ~(uint32_t)GM_ALLOC_DEDICATED; /* dedicated memory begins where its buffer does */
    return memory_try(device, &roomy, 0, out, err);
  }
  gm_status status = memory_try(device, &roomy, wish->align, out, err);
  if (status) return status;
  gm__vulkan_memory *memory = *out;
  status = memory_pad(device, memory->address, wish->align, &memory->memory_at, err);
  memory->buffer_at = memory->memory_at;
  memory->address += memory->memory_at;
  return status;
}

gm_status gm__vulkan_memory_make(gm__vulkan_device *device, gm__vulkan_memory_wish *wish, gm__vulkan_memory **out,
                                 gm_error *err) {
  gm__vulkan_memory *memory = NULL;
  gm_status status = memory_try(device, wish, 0, &memory, err);
  if (status) return status;
  if (wish->align && memory->address % wish->align) { /* this is rare, because drivers align to pages */
    const bool plain = !wish->share && !gm__vulkan_buffer_needs(device, memory->buffer).dedicated;
    gm__vulkan_memory_unmake(device, memory, GM_CLOSE_NORMAL);
    memory = NULL;
    status = memory_try_aligned(device, wish, plain, &memory, err);
  }
  if (!status && (wish->flags & GM_ALLOC_COMMIT)) status = gm__vulkan_touch(device, memory, 0, memory->bytes, err);
  if (status) {
    gm__vulkan_memory_unmake(device, memory, GM_CLOSE_NORMAL);
    return status;
  }
  *out = memory;
  return GM_OK;
}

gm_status gm__vulkan_memory_make_bare(gm__vulkan_device *device, const gm__vulkan_type *type, uint64_t bytes,
                                      gm__vulkan_memory **out, gm_error *err) {
  gm__vulkan_memory_wish wish = {.type = type, .bytes = bytes};
  if (bytes > type->max_bytes) return memory_too_large(type, bytes, err);
  gm__vulkan_memory *memory = NULL;
  gm_status status = memory_new(device, type, bytes, &memory, err);
  if (status) return status;
  memory->allocated = bytes;
  status = memory_count(device, memory, bytes, err);
  if (!status) status = memory_allocate(device, memory, &wish, err);
  if (status) {
    gm__vulkan_memory_unmake(device, memory, GM_CLOSE_NORMAL);
    return status;
  }
  *out = memory;
  return GM_OK;
}

void gm__vulkan_memory_unmake(gm__vulkan_device *device, gm__vulkan_memory *memory, gm_close_mode mode) {
  if (!memory) return;
  if (mode == GM_CLOSE_NORMAL && !memory->wrapped && !memory->range) {
    if (memory->buffer) device->syms.vkDestroyBuffer(device->handle, memory->buffer, NULL);
    if (memory->memory) device->syms.vkFreeMemory(device->handle, memory->memory, NULL); /* unmaps it too */
  }
  if (memory->live) memory_give(device, memory);
  gm__release(device->services, memory, sizeof *memory);
}

static gm_status memory_check_share(const gm__vulkan_device *device, const gm_memory_params *params, gm_error *err) {
  const gm_share_kind kind = params->share;
  if (kind == GM_SHARE_NONE) return GM_OK;
  const bool known = kind == GM_SHARE_FD || kind == GM_SHARE_DMABUF;
  if (known && device->shares[kind].can.exports &&
      device->shares[kind].type_bits >> device->types[params->type].index & 1) {
    return GM_OK;
  }
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, memory_op,
                  "memory type %u of %.100s cannot be shared in way %d: share_kinds of the type says how", params->type,
                  device->physical.props.deviceName, (int)kind);
}

gm_status gm__vulkan_memory_alloc(void *user, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  gm__vulkan_device *device = user;
  gm_status status = gm__plain_check(memory_op, device->type_count, params, err);
  if (!status) status = memory_check_share(device, params, err);
  if (!status) status = gm__vulkan_device_state(device, err);
  if (status) return status;
  gm__vulkan_memory_wish wish = {.type = &device->types[params->type],
                                 .bytes = params->bytes,
                                 .align = params->align ? params->align : device->alignment,
                                 .flags = params->flags,
                                 .share = params->share,
                                 .priority = params->priority};
  gm__vulkan_memory *memory;
  status = gm__vulkan_memory_make(device, &wish, &memory, err);
  if (status) return status;
  *out = gm__vulkan_memory_describe(memory, params->type);
  return GM_OK;
}

gm_status gm__vulkan_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  (void)err;
  gm__vulkan_memory_unmake(device, gm__vulkan_memory_of(memory), mode);
  return GM_OK;
}
