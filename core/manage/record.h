/* A pool tells a recorder of its blocks: of a recording (record.c) or of a profile (profile.c). */
#ifndef GM_CORE_MANAGE_RECORD_H
#define GM_CORE_MANAGE_RECORD_H

#include "core/pool/pool.h"

enum {
  GM__RECORD_DEDICATED = 0 /* event buffer of dedicated blocks and marks; an arena has its number + 1 */
};

/* BUSY: the pool has a recorder already. REQUIRES: gate. */
gm_status gm__record_check_idle(const gm_pool *pool, const char *op, gm_error *err);

/* The recorder is told of each block that is alive, and of all blocks from now on. The pool owns it. REQUIRES: gate. */
void gm__record_start(gm_pool *pool, gm__recorder *recorder);

/* No arena and no dedicated block writes events any more. Returns the recorder, which the caller owns. REQUIRES: gate.
 */
gm__recorder *gm__record_stop(gm_pool *pool);

#endif
