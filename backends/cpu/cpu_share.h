/* Memory that other processes see, by memfds. A descriptor from another process is hostile input: gm checks it, and
 * takes no memory whose use could end this process. */
#ifndef GM_BACKENDS_CPU_CPU_SHARE_H
#define GM_BACKENDS_CPU_CPU_SHARE_H

#include "backends/cpu/cpu_device.h"

/* The bits of gm_memory_type.share_kinds: what the system makes for this process now. */
uint32_t gm__cpu_share_kinds(const gm__cpu_device *device);

/* Allocate memory to share. NOT_SUPPORTED for every kind but FD. */
gm_status gm__cpu_share_alloc(gm__cpu_device *device, const gm_memory_params *params, gm_memory *out, gm_error *err);

/* Did gm__cpu_share_alloc or the entry share_import make `memory`? */
bool gm__cpu_share_is(const gm_memory *memory);

/* Free such memory. Do not call it again after a failure: the record is gone. */
gm_status gm__cpu_share_free(gm__cpu_device *device, const gm_memory *memory, gm_error *err);

#endif
