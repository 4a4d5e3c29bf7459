// Three types of Vulkan 1.3.272, which ggml-vulkan names but uses under GGML_VULKAN_VALIDATE only. With them it
// compiles with Vulkan's headers 1.3.239.
#pragma once
#include <vulkan/vulkan_core.h>
#ifndef VK_EXT_layer_settings
#include <vector>

namespace vk {
enum class LayerSettingTypeEXT { eBool32 };
struct LayerSettingEXT {
  const char *layer, *name;
  LayerSettingTypeEXT type;
  uint32_t count;
  const void *values;
};
struct LayerSettingsCreateInfoEXT : VkValidationFeaturesEXT {  // an older member of the chain, which asks for nothing
  explicit LayerSettingsCreateInfoEXT(const std::vector<LayerSettingEXT> &)
      : VkValidationFeaturesEXT{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT, nullptr, 0, nullptr, 0, nullptr} {}
};
}  // namespace vk
#endif
