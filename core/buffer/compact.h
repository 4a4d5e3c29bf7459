/* Compaction of a pool's relocatable buffers. */
#ifndef GM_CORE_BUFFER_COMPACT_H
#define GM_CORE_BUFFER_COMPACT_H

#include "gm/relocation.h"

/* As gm_pool_compact, with checked arguments; `report` is filled in always. It ends once `goal` bytes went back to the
 * driver. */
gm_status gm__compact(gm_pool *pool, const gm_compact_params *params, uint64_t goal, gm_compact_report *report,
                      gm_error *err);

#endif
