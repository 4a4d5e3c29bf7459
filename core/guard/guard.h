/* A guard: red zones, patterns and quarantine of a pool with debugging aids (gm/debug.h). A pool without them has no
 * guard. Thread-safe. */
#ifndef GM_CORE_GUARD_GUARD_H
#define GM_CORE_GUARD_GUARD_H

#include "core/heap/heap.h"
#include "gm/debug.h"

typedef struct gm__guard gm__guard;
typedef struct gm__guard_record gm__guard_record;

/* Makes the guard that the parameters and the configuration ask for; *out is NULL when they ask for none.
 * NOT_SUPPORTED: see gm_pool_create. */
gm_status gm__guard_create(gm__heap *heap, gm_device *device, const gm_pool_params *params,
                           const gm__profiler *profiler, gm__guard **out, gm_error *err);

/* Ends the guard and all its records. `forked`: frees host memory only. NULL is fine. */
void gm__guard_end(gm__guard *guard, bool forked);

/* Bytes that a request of `bytes` takes at a multiple of `align`, zones included. */
uint64_t gm__guard_bytes(const gm__guard *guard, uint64_t bytes, uint64_t align);

/* Whether the guard gives streams work on blocks. Then waits go into the streams, as with GM_INSERT_WAIT. */
bool gm__guard_writes(const gm__guard *guard);

/* Makes the caller's block of memory in hand: *out is the part between the zones. Writes zones and patterns first.
 * Returns what gm_alloc answers; where that is no block, the heap has the memory back. */
gm_acquire gm__guard_hand_out(gm__guard *guard, const gm__want *want, const gm__grant *grant, gm_acquire answer,
                              gm_block *out);

/* gm_free. The heap gets the block now, or later when the stream's work has passed. */
gm_status gm__guard_free(gm__guard *guard, const gm_block *block, gm_stream *stream);

/* Gives the heap the freed blocks whose work has passed. With `all` it waits for the work of the others, up to a second
 * each, and holds no block back. Returns true if the heap got any. */
bool gm__guard_reap(gm__guard *guard, bool all);

/* Has all work passed that the guard gave to streams? */
bool gm__guard_is_idle(gm__guard *guard);

/* Must be called when a stream has done all its work, before it closes. False: a thread still works on a record of the
 * guard. */
bool gm__guard_drained(gm__guard *guard);

/* gm_pool_check: looks at each live block, and waits for those that were freed. Answers DAMAGED. `guard` NULL:
 * GM_OK. */
gm_status gm__guard_check(gm__guard *guard, gm_check_report *report);

#endif
