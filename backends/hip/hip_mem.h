/* Memory: the device's (plain hipMalloc), page-locked host memory, managed memory; all with one address for host and
 * device where both reach it. No record is kept: gm_memory.handle is the pointer that HIP gave. */
#ifndef GM_BACKENDS_HIP_MEM_H
#define GM_BACKENDS_HIP_MEM_H

#include "backends/hip/hip_device.h"

/* Indices of the memory types; the last is there only where the device has GM_CAP_MANAGED. */
enum { GM__HIP_DEVICE_MEMORY = 0, GM__HIP_PINNED = 1, GM__HIP_MANAGED = 2 };

/* The entries of the seam, groups 7 and 8. */
gm_status gm__hip_memory_type_count(void *device, uint32_t *out, gm_error *err);
gm_status gm__hip_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err);
gm_status gm__hip_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err);
gm_status gm__hip_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err);
gm_status gm__hip_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                gm_native_memory *out, gm_error *err);

#endif
