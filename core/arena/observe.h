/* The observers of an arena's blocks: the ledger of a tracked pool, the event buffer of a recorded one, the quota book.
 * An arena without observers pays for one look at gm__arena.observed. REQUIRES: arena lock, for all of it. */
#ifndef GM_CORE_ARENA_OBSERVE_H
#define GM_CORE_ARENA_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/arena/arena.h"
#include "core/track/event_buffer.h"

/* Tells the observers that the live chunk was handed out for work of the stream (NULL: of the host). It may take host
 * memory, and write to a file. Without host memory the block is not tracked. `counted`: the quota has its bytes. */
void gm__observe_enter(gm__arena *arena, uint32_t number, const gm_stream *stream, bool counted);

/* Tells the observers that the chunk is freed in the order of the stream. The chunk still says what it was. A second
 * call does nothing. */
void gm__observe_leave(gm__arena *arena, uint32_t number, const gm_stream *stream);

/* A new arena gets the observers of its pool. No other thread knows it yet. REQUIRES: provider lock. */
void gm__observe_new(gm__arena *arena);

/* Tracks the arena's blocks from now on, and those that are out. False without host memory. It leaves the lock now and
 * then (walk.h), as the next two that begin do. gm__observe_untrack ends that. REQUIRES: no arena lock, for that. */
bool gm__observe_track(gm__arena *arena);
void gm__observe_untrack(gm__arena *arena);

/* Records the arena's blocks from now on, and those that are out. Returns how many those are. The second function ends
 * that. */
uint64_t gm__observe_record(gm__arena *arena, gm__event_buffer *events);
void gm__observe_unrecord(gm__arena *arena);

/* The quota book counts the arena's blocks from now on, and those that are out. The fast path is closed. */
void gm__observe_count(gm__arena *arena, gm__quotas *quotas);

/* Takes the chunk from its owner: tells the observers and counts. */
static inline void gm__arena_take_back(gm__arena *arena, gm__chunk *chunk, uint32_t number, const gm_stream *stream) {
  if (__builtin_expect(arena->observed, 0)) gm__observe_leave(arena, number, stream);
  gm__arena_count_back(arena, chunk, gm__arena_bytes(arena, chunk));
}

#endif
