/* Frees, with all that the fast path leaves out. */
#ifndef GM_CORE_POOL_FREE_H
#define GM_CORE_POOL_FREE_H

#include "core/base/inner.h"
#include "core/pool/pool.h"

/* gm_free, gm_free_ptr. */
gm_status gm__block_free(gm_pool *pool, const gm_block *block, gm_stream *stream);
gm_status gm__block_free_ptr(gm_pool *pool, const void *pointer, uint64_t bytes_or_0, gm_stream *stream);

/* Undoes a gm_alloc on `stream`. No work that the stream was given on the block since then is left to wait for. */
GM__INNER gm_status gm__block_free_unused(gm_pool *pool, const gm_block *block, gm_stream *stream);

#endif
