/* Red zones, patterns, blocks held back: what a pool with debugging aids does beside its work (gm/debug.h). A pool
 * without has no guard. Thread-safe. */
#ifndef GM_CORE_POOL_GUARD_H
#define GM_CORE_POOL_GUARD_H

#include "core/pool/request.h"
#include "core/track/marks.h"
#include "gm/debug.h"

typedef struct gm__guard gm__guard;
typedef struct gm__guard_record gm__guard_record;

/* What the parameters and the configuration ask for; *out is NULL when that is nothing. NOT_SUPPORTED: see
 * gm_pool_create. */
gm_status gm__guard_create(gm_device *device, const gm_pool_params *params, const gm__marks *marks, gm__guard **out,
                           gm_error *err);

/* All that a pool's guard still knows; `forked`: host memory only. NULL is fine. */
void gm__guard_end(gm_pool *pool, bool forked);

/* Bytes that the pool takes for a request of `bytes` at a multiple of `align`, zones included. */
uint64_t gm__guard_bytes(const gm__guard *guard, uint64_t bytes, uint64_t align);

/* True when gm gives streams work on blocks: then waits go into the streams, as with GM_INSERT_WAIT. */
bool gm__guard_writes(const gm__guard *guard);

/* The block that the pool gave (*block, of the whole range) becomes the caller's: zones and patterns are written. What
 * gm_alloc answers. */
gm_acquire gm__guard_hand_out(gm_pool *pool, const gm__want *want, gm_acquire answer, gm_block *block);

/* gm_free. The pool gets the block now, or later, when the stream's work has passed. */
gm_status gm__guard_free(gm_pool *pool, const gm_block *block, gm_stream *stream);

/* Give the pool the freed blocks whose work has passed. `all`: wait for the work of the others (up to a second each),
 * and hold none back. True if the pool got any. */
bool gm__guard_reap(gm_pool *pool, bool all);

/* Has all work passed that it gave to streams on blocks which it knows? */
bool gm__guard_is_idle(gm_pool *pool);

/* A stream has done all its work, and goes. False: a thread is at work on something that names it. */
bool gm__guard_drained(gm_pool *pool);

/* The caller's view of a block that is guarded: the block, where it begins in what the pool gave, and whether the
 * caller has given it back. With the lock of the block. */
gm_block gm__guard_block(const gm__guard_record *record);
uint64_t gm__guard_front(const gm__guard_record *record);
bool gm__guard_freed(const gm__guard_record *record);

/* gm itself is about to write to pooled memory. */
void gm__guard_open(const gm_pool *pool, const gm_memory *memory, uint64_t offset, uint64_t bytes);

#endif
