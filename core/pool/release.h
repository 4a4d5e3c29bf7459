/* Blocks on their way back, with all that the fast path leaves out. */
#ifndef GM_CORE_POOL_RELEASE_H
#define GM_CORE_POOL_RELEASE_H

#include "core/pool/pool.h"

/* gm_free, gm_free_ptr. */
gm_status gm__give_back(gm_pool *pool, const gm_block *block, gm_stream *stream);
gm_status gm__give_back_ptr(gm_pool *pool, const void *pointer, uint64_t bytes_or_0, gm_stream *stream);

/* Undo a gm_alloc on `stream`: of the work on the block since then none is left there. */
gm_status gm__give_back_unused(gm_pool *pool, const gm_block *block, gm_stream *stream);

/* The slot for a free on the stream. OUT_OF_HOST_MEMORY: it cannot be noted. With the lock. */
GM__MUST_USE gm_status gm__give_back_slot(gm_pool *pool, gm_stream *stream, int *out);

#endif
