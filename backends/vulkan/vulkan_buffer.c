#include "backends/vulkan/vulkan_buffer.h"

#include "backends/vulkan/vulkan_device.h"
#include "core/base/error.h"

gm_status gm__vulkan_buffer_create(gm__vulkan_device *device, const gm__vulkan_buffer_params *params, VkBuffer *out,
                                   gm_error *err) {
  const bool shared = device->concurrent || (params->inner && device->family_count > 1);
  const VkExternalMemoryHandleTypeFlags host = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  const VkExternalMemoryBufferCreateInfo outside = {
      .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
      .handleTypes = params->host ? host : gm__vulkan_handle_type(params->share)};
  const VkBufferCreateFlags sparse = VK_BUFFER_CREATE_SPARSE_BINDING_BIT | VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT;
  const VkBufferCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .pNext = outside.handleTypes ? &outside : NULL,
      .flags = params->sparse ? sparse : 0,
      .size = params->bytes,
      .usage = device->usage | gm__vulkan_buffer_usage(device->address && !params->no_address),
      .sharingMode = shared ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
      .queueFamilyIndexCount = shared ? device->family_count : 0,
      .pQueueFamilyIndices = shared ? device->families : NULL};
  *out = VK_NULL_HANDLE;
  VkResult result = device->syms.vkCreateBuffer(device->handle, &info, NULL, out);
  return result || !*out ? gm__vulkan_device_fail(device, result, "vkCreateBuffer", err) : GM_OK;
}

gm__vulkan_needs gm__vulkan_buffer_needs(const gm__vulkan_device *device, VkBuffer buffer) {
  const VkBufferMemoryRequirementsInfo2 info = {.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2,
                                                .buffer = buffer};
  VkMemoryDedicatedRequirements dedicated = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS};
  VkMemoryRequirements2 needs = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2, .pNext = &dedicated};
  device->syms.vkGetBufferMemoryRequirements2(device->handle, &info, &needs);
  return (gm__vulkan_needs){.bytes = needs.memoryRequirements.size,
                            .alignment = needs.memoryRequirements.alignment,
                            .type_bits = needs.memoryRequirements.memoryTypeBits,
                            .dedicated = dedicated.requiresDedicatedAllocation || dedicated.prefersDedicatedAllocation};
}

gm_status gm__vulkan_buffer_ask(gm__vulkan_device *device, const gm__vulkan_buffer_params *params,
                                gm__vulkan_needs *out, gm_error *err) {
  VkBuffer buffer;
  gm_status status = gm__vulkan_buffer_create(device, params, &buffer, err);
  if (status) return status;
  *out = gm__vulkan_buffer_needs(device, buffer);
  device->syms.vkDestroyBuffer(device->handle, buffer, NULL);
  return GM_OK;
}

gm_status gm__vulkan_buffer_address(const gm__vulkan_device *device, VkBuffer buffer, uint64_t *out, gm_error *err) {
  *out = 0;
  if (!device->address) return GM_OK;
  const VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = buffer};
  *out = device->syms.vkGetBufferDeviceAddress(device->handle, &info);
  if (*out) return GM_OK;
  return gm__fail(err, GM_ERR_DRIVER, "vkGetBufferDeviceAddress", "vkGetBufferDeviceAddress gave no address");
}
