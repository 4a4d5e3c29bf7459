/* Memory of the null backend: addresses, and a count of bytes against the capacity. Entries 7 and 8. Thread-safe. */
#ifndef GM_BACKENDS_NULL_NULL_MEM_H
#define GM_BACKENDS_NULL_NULL_MEM_H

#include "backends/null/null_device.h"

/* Count `bytes` as used; GM_ERR_OUT_OF_DEVICE_MEMORY beyond the capacity. The card's lock is held. */
gm_status gm__null_charge(gm__null_device *device, uint64_t bytes, gm_error *err);

gm_status gm__null_memory_type_count(void *device, uint32_t *out, gm_error *err);
gm_status gm__null_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err);
gm_status gm__null_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err);
gm_status gm__null_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err);
gm_status gm__null_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                 gm_native_memory *out, gm_error *err);

#endif
