/* The arithmetic of selection that limits share. */
#ifndef GM_CORE_DEVICE_SELECTION_H
#define GM_CORE_DEVICE_SELECTION_H

#include "gm/memory_info.h"

/* What gm may still take: min(fraction × total − used by us, effective free − keep_free). Reclaimable bytes are neither
 * used nor missing from free. 0 where nothing is known. */
uint64_t gm__headroom(const gm_memory_info *memory, double fraction, uint64_t keep_free_bytes);

#endif
