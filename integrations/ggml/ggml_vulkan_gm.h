// The calls of ggml-vulkan to gm. Included by ggml's own ggml-vulkan-types.h, behind its types.
#pragma once

// gm's context, adopted device and pool. The last owner closes them: before the VkDevice goes.
struct ggml_vk_gm;

// Fills in `buf`, from the first of the property sets that gm has memory for. False: gm is switched off
// (GGML_VK_GM=0), and ggml allocates itself. Throws vk::SystemError where ggml's own allocation does.
bool ggml_vk_gm_create_buffer(std::shared_ptr<vk_device_struct> &device, struct vk_buffer_struct &buf, size_t size,
                              const std::initializer_list<vk::MemoryPropertyFlags> &wanted);
