/* Compaction of a pool's relocatable buffers. */
#ifndef GM_CORE_BUFFER_COMPACT_H
#define GM_CORE_BUFFER_COMPACT_H

#include "gm/relocation.h"

/* The aim of a compaction. */
typedef struct gm__compact_aim {
  uint64_t goal; /* it ends once so many bytes went back to the driver */
  uint64_t keep; /* so much pooled memory stays. UINT64_MAX: nothing goes back */
  size_t looks;  /* so many buffers and holes it plans for at a time. SIZE_MAX: all */
} gm__compact_aim;

enum { GM__COMPACT_LOOKS = 768 }; /* of a run with bounds */

/* Does what gm_pool_compact does, with checked arguments; `report` is filled in always. */
gm_status gm__compact(gm_pool *pool, const gm_compact_params *params, const gm__compact_aim *aim,
                      gm_compact_report *report, gm_error *err);

#endif
