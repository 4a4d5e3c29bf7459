/* Frees one block: guard, then heap. */
#ifndef GM_CORE_POOL_FREE_ONE_H
#define GM_CORE_POOL_FREE_ONE_H

#include "core/pool/pool.h"

/* gm_free of a block that lies in one memory. */
gm_status gm__free_one(gm_pool *pool, const gm_block *block, gm_stream *stream);

/* gm_use_on of a block that lies in one memory. */
gm_status gm__use_on_one(gm_pool *pool, const gm_block *block, gm_stream *stream);

/* Frees a block by calling `free_block`. A stream that gm has no host memory to note is waited for. */
gm_status gm__free_waiting(gm_pool *pool, const gm_block *block, gm_stream *stream,
                           gm_status (*free_block)(gm_pool *pool, const gm_block *block, gm_stream *stream));

/* Undoes an allocation on `stream` by calling `free_block`. No work that the stream was given on the block since then
 * is left to wait for. */
gm_status gm__free_unused(gm_pool *pool, const gm_block *block, gm_stream *stream,
                          gm_status (*free_block)(gm_pool *pool, const gm_block *block, gm_stream *stream));

#endif
