/* The words of enumerations that devices are described with. */
#include "gm/device_info.h"
#include "gm/native.h"

const char *gm_api_name(gm_api api) {
  switch (api) {
    case GM_API_CPU: return "cpu";
    case GM_API_CUDA: return "cuda";
    case GM_API_HIP: return "hip";
    case GM_API_OPENCL: return "opencl";
    case GM_API_VULKAN: return "vulkan";
    case GM_API_NULL: return "null";
    case GM_API_METAL: return "metal";
    case GM_API_OTHER: break;
  }
  return "other";
}

const char *gm_device_type_name(gm_device_type type) {
  switch (type) {
    case GM_DEVICE_TYPE_DISCRETE: return "discrete";
    case GM_DEVICE_TYPE_INTEGRATED: return "integrated";
    case GM_DEVICE_TYPE_CPU: return "cpu";
    case GM_DEVICE_TYPE_UNKNOWN: break;
  }
  return "unknown";
}

void gm_capability_words(uint64_t capabilities, void (*each)(void *user, const char *word), void *user) {
#define X(name, bit, word, text) \
  if (capabilities & name) each(user, word);
  GM_CAPABILITY_MAP(X)
#undef X
}
