/* Memory that an engine lends: its own VkDeviceMemory and buffer, or plain memory of the host. */
#include <inttypes.h>

#include "backends/shared/native.h"
#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_host.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

static const char wrap_op[] = "gm_backend_ops.memory_wrap";

static uint32_t wrap_type(const gm__vulkan_device *device, uint32_t index) {
  for (uint32_t i = 0; i < device->type_count; i++) {
    if (device->types[i].index == index) return i;
  }
  return UINT32_MAX;
}

static gm_status wrap_objects(gm__vulkan_device *device, const gm_vulkan_memory *native, gm_memory *out,
                              gm_error *err) {
  const uint32_t type = wrap_type(device, native->memory_type);
  if (type == UINT32_MAX) {
    return gm__bad_argument(err, wrap_op, "`native`: no buffer lies in memory type %u of this device",
                            native->memory_type);
  }
  gm__vulkan_memory *memory = gm__alloc(device->services, sizeof *memory);
  if (!memory) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, wrap_op, "no host memory for the record");
  memory->memory = (VkDeviceMemory)native->memory;
  memory->buffer = (VkBuffer)native->buffer;
  memory->bytes = native->bytes;
  memory->memory_at = native->memory_offset;
  memory->buffer_at = native->buffer_offset;
  memory->type = device->types[type];
  memory->address = native->device_address;
  memory->wrapped = true;
  atomic_init(&memory->mapped, native->mapped);
  *out = gm__vulkan_memory_describe(memory, type);
  return GM_OK;
}

/* Kernels reach the memory by a buffer of gm's, which goes with the record. */
static gm_status wrap_host(gm__vulkan_device *device, const gm_vulkan_memory *native, gm_memory *out, gm_error *err) {
  gm__vulkan_memory *memory;
  uint32_t type;
  if ((uintptr_t)native->mapped % device->alignment) {
    return gm__bad_argument(err, wrap_op, "`native`: mapped must be a multiple of the device's alignment, %" PRIu64,
                            device->alignment);
  }
  const gm_status status = gm__vulkan_host_import(device, native->mapped, native->bytes, wrap_op, &memory, &type, err);
  if (status) return status;
  *out = gm__vulkan_memory_describe(memory, type);
  out->wrapped = true;
  return GM_OK;
}

gm_status gm__vulkan_memory_wrap(void *user, const gm_native_memory *given, gm_memory *out, gm_error *err) {
  gm__vulkan_device *device = user;
  gm_vulkan_memory native;
  const gm_status status = gm__native_in(&native, sizeof native, given, GM_API_VULKAN, wrap_op, "native", err);
  if (status) return status;
  const bool host = !native.memory && !native.buffer && native.mapped;
  if (!native.bytes || (!host && (!native.memory || !native.buffer))) {
    return gm__bad_argument(err, wrap_op,
                            "`native` needs bytes, and memory and buffer, or mapped alone; something is 0");
  }
  return host ? wrap_host(device, &native, out, err) : wrap_objects(device, &native, out, err);
}
