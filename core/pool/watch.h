/* Who is told of each block that an arena hands out and takes back: a tracked pool's ledger, a recorded pool's tape. An
 * arena that nobody watches pays for one look at gm__arena.watched. Inside the arena's lock. */
#ifndef GM_CORE_POOL_WATCH_H
#define GM_CORE_POOL_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/track/tape.h"
#include "gm/stream.h"

struct gm__arena;

/* The live span was handed out for work of the stream, NULL: the host's. May take host memory, and write to a file;
 * without host memory the block is not tracked. */
void gm__watch_enter(struct gm__arena *arena, uint32_t number, const gm_stream *stream);

/* The span, still as it was handed out, was freed in the order of the stream. Once more is harmless. */
void gm__watch_leave(struct gm__arena *arena, uint32_t number, const gm_stream *stream);

/* The arena is new and nobody else's yet: it is watched as its pool is. With the pool's lock. */
void gm__watch_new(struct gm__arena *arena);

/* Track it from now on, with what is out; false without host memory. And no more. */
bool gm__watch_track(struct gm__arena *arena);
void gm__watch_untrack(struct gm__arena *arena);

/* Record it from now on, beginning with what is out: how many blocks. And no more. */
uint64_t gm__watch_record(struct gm__arena *arena, gm__tape *tape);
void gm__watch_unrecord(struct gm__arena *arena);

#endif
