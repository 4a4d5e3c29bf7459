/* The facts that the engine is told of memory: its native objects. */
#include "backends/shared/native.h"
#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_map.h"
#include "core/base/error.h"
#include "core/base/sized.h"

/* The host's address of the memory; NULL: the host cannot see it, or the driver refuses to map it. */
static unsigned char *mem_mapped(gm__vulkan_device *device, gm__vulkan_memory *memory) {
  unsigned char *mapped = NULL;
  if (!gm__vulkan_visible(memory) || gm__vulkan_host(device, memory, &mapped, NULL)) return NULL;
  return mapped;
}

static gm_vulkan_memory mem_native(gm__vulkan_device *device, gm__vulkan_memory *memory, uint64_t offset,
                                   uint64_t bytes) {
  unsigned char *mapped = mem_mapped(device, memory);
  return (gm_vulkan_memory){.memory = (uint64_t)memory->memory,
                            .memory_offset = memory->memory_at + offset,
                            .buffer = (uint64_t)memory->buffer,
                            .buffer_offset = memory->buffer_at + offset,
                            .bytes = bytes,
                            .device_address = memory->address ? memory->address + offset : 0,
                            .mapped = mapped ? mapped + offset : NULL,
                            .memory_type = memory->type.index,
                            .buffer_bytes = memory->buffer_bytes,
                            .memory_bytes = memory->allocated};
}

gm_status gm__vulkan_memory_native(void *device, const gm_memory *described, uint64_t offset, uint64_t bytes,
                                   gm_native_memory *out, gm_error *err) {
  const gm_status status =
      gm__native_check(out, sizeof(gm_vulkan_memory), GM_API_VULKAN, "gm_backend_ops.memory_native", "out", err);
  if (status) return status;
  gm_vulkan_memory told = mem_native(device, gm__vulkan_memory_of(described), offset, bytes);
  told.head = *out;
  gm__sized_out(out, &told, sizeof told);
  return GM_OK;
}

gm_status gm__vulkan_view_native(void *device, const gm_memory *described, uint64_t offset, uint64_t bytes,
                                 uint64_t view, gm_native_memory *out, gm_error *err) {
  static const char op[] = "gm_backend_ops.view_native";
  const gm_status status = gm__native_check(out, sizeof(gm_vulkan_memory), GM_API_VULKAN, op, "out", err);
  if (status) return status;
  gm_vulkan_memory told = mem_native(device, gm__vulkan_memory_of(described), offset, bytes);
  if (!view && (told.buffer_offset || told.buffer_bytes != bytes)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "the range is a part of a buffer, and needs one of its own");
  }
  if (view) {
    told.buffer = view;
    told.buffer_offset = 0;
    told.buffer_bytes = bytes;
  }
  told.head = *out;
  gm__sized_out(out, &told, sizeof told);
  return GM_OK;
}
