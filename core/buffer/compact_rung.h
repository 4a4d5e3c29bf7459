/* Compaction before a refusal: a pool with relocatable buffers is an evictor of its device, asked before all others. */
#ifndef GM_CORE_BUFFER_COMPACT_RUNG_H
#define GM_CORE_BUFFER_COMPACT_RUNG_H

#include "core/pool/pool.h"

/* Makes sure that the pool is asked. The pool's end takes that back. Errors: those of gm_evictor_register. */
gm_status gm__compact_rung_begin(gm_pool *pool, gm_error *err);

#endif
