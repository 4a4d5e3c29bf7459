/* Requests served from arenas, and blocks given back to them, with all that the fast path leaves out. Takes the locks
 * it needs; none may be held. */
#ifndef GM_CORE_POOL_SERVE_H
#define GM_CORE_POOL_SERVE_H

#include "core/pool/arena.h"
#include "core/pool/taken.h"

/* Memory for the request, AWAY; or handed out already (taken->done, *block filled) if it is pooled and needs nothing
 * more. *out_answer says what it needs. The status is that of the last attempt to get more. */
gm_status gm__serve(gm_pool *pool, const gm__want *want, gm__taken *taken, gm_acquire *out_answer, gm_block *block,
                    gm_error *err);

/* The span is the caller's: what it was asked for. */
void gm__serve_hand_out(const gm__taken *taken, const gm__want *want, bool fresh, gm_block *block);

/* A span that was never handed out goes back, in the order of the stream that may have been given work on it. */
void gm__serve_undo(const gm__taken *taken, gm_stream *stream);

/* Its owner loses the block, and nobody gets it. */
void gm__serve_quarantine(gm_pool *pool, const gm_block *block);

/* gm_free_ptr of what begins at the address: is a live block of the arena, of at least so many bytes. */
gm_status gm__serve_give_back_at(gm__arena *arena, uint64_t address, uint64_t bytes, gm_stream *stream);

/* gm_free of a block of an arena. */
gm_status gm__serve_give_back(gm_pool *pool, const gm_block *block, gm_stream *stream);

#endif
