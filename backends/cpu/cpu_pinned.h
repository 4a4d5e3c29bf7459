/* Page-locking of the caller's memory by mlock. Entry 15. */
#ifndef GM_BACKENDS_CPU_CPU_PINNED_H
#define GM_BACKENDS_CPU_CPU_PINNED_H

#include "backends/cpu/cpu_device.h"

/* Ranges that overlap a registered one are refused (GM_ERR_INVALID_ARGUMENT); sharing a page is fine. What the system
 * does not let us lock (RLIMIT_MEMLOCK) is GM_ERR_PINNED_LIMIT. */
gm_status gm__cpu_host_register(void *device, void *pointer, uint64_t bytes, gm_error *err);

/* `pointer` as registered, else GM_ERR_NOT_FOUND. */
gm_status gm__cpu_host_unregister(void *device, void *pointer, gm_close_mode mode, gm_error *err);

/* Forgets what is still registered; with GM_CLOSE_NORMAL unlocks it too. */
void gm__cpu_pinned_clear(gm__cpu_device *device, gm_close_mode mode);

#endif
