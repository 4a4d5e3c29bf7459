/* Free chunks of streams that are done become idle. A stream cache may have any number of them, so a sweep looks at a
 * piece of them at a time. REQUIRES: arena lock, for all of it. */
#ifndef GM_CORE_ARENA_SETTLE_H
#define GM_CORE_ARENA_SETTLE_H

#include "core/arena/arena.h"

enum { GM__SETTLE_PIECE = 1024 }; /* so many chunks are looked at, until other threads may enter */

/* Moves free chunks of streams that are done into the idle stream cache, one piece, large ones first. It asks the
 * driver of points of single chunks only. True: there are more to look at. */
bool gm__settle_piece(gm__arena *arena);

/* Moves all of them. It leaves the lock after each piece. */
void gm__settle_all(gm__arena *arena);

/* Asks the streams of *out_pending how far they are. Then it settles pieces until a free chunk serves the request
 * (gm__free_chunks_find), and leaves the lock in between. 0: none does. */
uint32_t gm__settle_find(gm__arena *arena, const gm__want *want, gm__area area, int slot, uint64_t *out_pending,
                         gm__order_verdict *out_verdict);

/* Joins the free chunks of the slot's stream with idle neighbours, large ones first. Those wait for the stream, too,
 * from then on. It leaves the lock after each piece. */
void gm__settle_join(gm__arena *arena, int slot);

#endif
