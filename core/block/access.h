/* From a block to the memory behind it, with the range checked. Copies, native objects and buffers begin here. */
#ifndef GM_CORE_BLOCK_ACCESS_H
#define GM_CORE_BLOCK_ACCESS_H

#include "core/pool/pool.h"
#include "core/staging/range.h"

/* Finds the memory behind a range of a live block. INVALID_ARGUMENT: no pool, no such block, or a range outside of it.
 * FORKED. NOT_SUPPORTED: the block lies in several memories (span_copy.h). BUSY: the pool sleeps, and `bytes` of the
 * block's memory are wanted, not its place alone. */
gm_status gm__access_open(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, const char *op,
                          gm__access *out, gm_error *err);

/* Checks a range of a block of several memories, which has no one memory behind it. Errors: as for gm__access_open. */
gm_status gm__access_check_spanned(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes,
                                   const char *op, gm_error *err);

/* Waits for the stream's earlier work. */
gm_status gm__access_settle(gm_stream *stream, gm_error *err);

#endif
