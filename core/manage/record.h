/* A pool tells a recorder of its blocks. core/trace makes a recording or a profile of them. */
#ifndef GM_CORE_MANAGE_RECORD_H
#define GM_CORE_MANAGE_RECORD_H

#include "core/base/inner.h"
#include "core/pool/pool.h"

enum {
  GM__RECORD_DEDICATED = 0 /* event buffer of dedicated blocks and marks; an arena has its number + 1 */
};

/* BUSY: the pool has a recorder already. REQUIRES: gate. */
GM__INNER gm_status gm__record_check_idle(const gm_pool *pool, const char *op, gm_error *err);

/* Writes a mark into the pool's recording. NOT_FOUND: there is none. */
GM__INNER gm_status gm__record_mark(gm_pool *pool, const char *label);

/* Writes a mark into the recording that there is. Its end tells if there was no host memory. REQUIRES: provider lock.
 */
void gm__record_mark_in(gm_pool *pool, const char *label);

/* The recorder is told of each block that is alive, and of all blocks from now on. In a recording these lie between the
 * marks "start" and "recording". The pool owns the recorder. REQUIRES: gate. */
GM__INNER void gm__record_start(gm_pool *pool, gm__recorder *recorder);

/* No arena and no dedicated block writes events any more. Returns the recorder, which the caller owns. REQUIRES: gate.
 */
GM__INNER gm__recorder *gm__record_stop(gm_pool *pool);

#endif
