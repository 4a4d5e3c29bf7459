#include "cts/modes.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

const cts_mode *const *cts_modes(void) {
  static const cts_mode *const modes[] = {
#if GM_HAVE_BACKEND_CPU
    &cts_cpu_opened,
#endif
#if GM_HAVE_BACKEND_NULL
    &cts_null_opened,
    &cts_null_late,
#endif
#if GM_HAVE_BACKEND_CUDA
    &cts_cuda_opened,
    &cts_cuda_adopted,
    &cts_cuda_default,
#endif
#if GM_HAVE_BACKEND_HIP
    &cts_hip_opened,
    &cts_hip_adopted,
    &cts_hip_default,
    &cts_hip_old,
#endif
#if GM_HAVE_BACKEND_OPENCL
    &cts_opencl_opened,
    &cts_opencl_adopted,
    &cts_opencl_unordered,
#endif
#if GM_HAVE_BACKEND_VULKAN
    &cts_vulkan_opened,
    &cts_vulkan_plain,
    &cts_vulkan_staging,
    &cts_vulkan_adopted,
    &cts_vulkan_adopted_staging,
    &cts_vulkan_no_leave,
    &cts_vulkan_fences,
    &cts_vulkan_fences_no_leave,
#endif
    NULL,
  };
  return modes;
}

bool cts_module(const char *path, cts_mode *out, char *why, size_t capacity) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, "gm_backend_module") : NULL;
  if (!symbol) {
    snprintf(why, capacity, "%s", dlerror());
    return false;
  }
  const gm_backend_ops *(*module)(void);
  memcpy(&module, &symbol, sizeof module); /* POSIX allows the conversion, ISO C has no cast for it */
  const gm_backend_ops *ops = module();
  if (!ops || !ops->name) {
    snprintf(why, capacity, "%s: gm_backend_module gives no table", path);
    return false;
  }
  *out = (cts_mode){.backend = ops->name, .name = "module", .ops = ops};
  return true;
}
