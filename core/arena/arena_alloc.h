/* Requests served from an arena, and blocks freed into it, apart from the fast path. Each function takes the locks that
 * it needs. REQUIRES: no lock. */
#ifndef GM_CORE_ARENA_ARENA_ALLOC_H
#define GM_CORE_ARENA_ARENA_ALLOC_H

#include "core/arena/arena.h"
#include "core/provider/grant.h"

/* The arena for the request: that of its target, or the thread's (gm__arena_of). */
gm__arena *gm__arena_for(gm__arena_set *set, const gm__want *want, const gm__memory_kind *kind);

/* Finds a pooled chunk for the request. The chunk is AWAY, or it is handed out already (grant->done, *block filled)
 * where nothing is left to do outside the lock. *answer says what the caller must do first. `others`: chunks that other
 * streams use serve, too, with a wait. False: there is no chunk. */
bool gm__arena_alloc_pooled(gm__arena *arena, const gm__want *want, bool others, gm__grant *grant, gm_acquire *answer,
                            gm_block *block);

/* Makes a chunk of new memory for the request. The chunk is AWAY. The provider's answers. */
gm_status gm__arena_alloc_fresh(gm__arena *arena, const gm__want *want, gm__grant *grant, gm_acquire *answer,
                                gm_error *err);

/* True when the arena's table has no numbers left for more chunks. */
bool gm__arena_is_full(gm__arena *arena);

/* Hands the grant's chunk out as a block. */
void gm__arena_alloc_hand_out(const gm__grant *grant, const gm__want *want, bool fresh, gm_block *block);

/* A chunk that was never handed out becomes free, in the order of the stream that may have got work on it. */
void gm__arena_alloc_undo(const gm__grant *grant, gm_stream *stream);

/* Takes a block from its owner for good: nobody gets its memory again. */
void gm__arena_alloc_quarantine(gm__arena_set *set, const gm_block *block);

/* gm_free_ptr: frees the live block that begins at the address and has at least `bytes`. */
gm_status gm__arena_free_at(gm__arena *arena, uint64_t address, uint64_t bytes, gm_stream *stream);

/* gm_free of a block of an arena. */
gm_status gm__arena_free(gm__arena_set *set, const gm_block *block, gm_stream *stream);

#endif
