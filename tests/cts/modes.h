/* Ways to get devices: one file for each backend, listed in modes.c. */
#ifndef GM_TESTS_CTS_MODES_H
#define GM_TESTS_CTS_MODES_H

#include "cts/cts.h"

extern const cts_mode cts_cpu_opened;
extern const cts_mode cts_null_opened, cts_null_late;
extern const cts_mode cts_cuda_opened, cts_cuda_adopted, cts_cuda_default;
extern const cts_mode cts_hip_opened, cts_hip_adopted, cts_hip_default, cts_hip_old;
extern const cts_mode cts_opencl_opened, cts_opencl_adopted, cts_opencl_unordered;
extern const cts_mode cts_vulkan_opened, cts_vulkan_plain, cts_vulkan_staging, cts_vulkan_adopted,
    cts_vulkan_adopted_staging, cts_vulkan_no_leave, cts_vulkan_fences, cts_vulkan_fences_no_leave;

/* The modes of this build, ended by NULL. */
const cts_mode *const *cts_modes(void);

/* A backend from outside: a module that exports `const gm_backend_ops *gm_backend_module(void)`. False: `why` tells. */
bool cts_module(const char *path, cts_mode *out, char *why, size_t capacity);

#endif
