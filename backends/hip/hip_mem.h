/* Memory: the device's (plain hipMalloc), page-locked host memory, managed memory; all with one address for host and
 * device where both reach it. No record is kept: gm_memory.handle is the pointer that HIP gave. */
#ifndef GM_BACKENDS_HIP_MEM_H
#define GM_BACKENDS_HIP_MEM_H

#include "backends/hip/hip_device.h"
#include "core/base/pointer_memory.h"

enum {
  GM__HIP_DEVICE_MEMORY = GM__POINTER_DEVICE,
  GM__HIP_PINNED = GM__POINTER_PINNED,
  GM__HIP_MANAGED = GM__POINTER_MANAGED
};

/* The entries of the seam, groups 7 and 8, and map. */
gm_status gm__hip_memory_type_count(void *device, uint32_t *out, gm_error *err);
gm_status gm__hip_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err);
gm_status gm__hip_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err);
gm_status gm__hip_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err);
gm_status gm__hip_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                gm_native_memory *out, gm_error *err);
gm_status gm__hip_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                      uint32_t mode, void **out, gm_error *err);

#endif
