/* The memory that an arena gives up: idle segments and idle pages, to other arenas or to the driver. REQUIRES: no
 * lock, unless a function says otherwise. */
#ifndef GM_CORE_ARENA_RECLAIM_H
#define GM_CORE_ARENA_RECLAIM_H

#include "core/arena/arena.h"
#include "core/provider/provider.h"

/* ---- one arena ---- */

/* Asks the streams how far they are, and joins the free chunks that this sets free. Without `submit` it records no
 * points for that. REQUIRES: arena lock. */
void gm__arena_tidy(gm__arena *arena, bool submit);

/* Tells the figures of the pool and of the device what the arena could give back now. REQUIRES: arena lock. */
void gm__arena_publish(gm__arena *arena);

/* Empties the quick lists of all arenas whose lock the calling thread gets without disturbing another thread. */
void gm__arenas_look(gm__arena_set *set);

/* Bytes of the handles of the area that a trim could give back: those that idle free chunks cover. REQUIRES: arena
 * lock. */
uint64_t gm__arena_idle_page_bytes(const gm__arena *arena, gm__area area);

/* Bytes of the handles that lie wholly within so many bytes of the range, from the address on. REQUIRES: arena lock. */
uint64_t gm__reclaim_handle_bytes(const gm__arena *arena, const gm__va_range *range, uint64_t address, uint64_t bytes);

/* Bytes that are mapped and not in a block: free chunks, quick lists, and what lies beside them in a page. */
uint64_t gm__arena_unused_page_bytes(const gm__arena *arena);

/* Tries again to unmap shut pages, and to free chunks that are stranded. REQUIRES: pages lock. */
void gm__arena_retry(gm__arena *arena);

/* ---- pages ---- */

/* Chooses the handles to give up. They lie in free chunks that were freed by that time, and they are small enough to be
 * of use. `large_only`: the pages of small blocks stay. Those are few, and small blocks come again soon. */
typedef struct gm__page_choice {
  uint64_t freed_by, most_pages;
  bool large_only;
} gm__page_choice;

/* Moves chosen handles into the handle cache, until they have `bytes` or no more are left. The first takes those of
 * the arena. The second asks the arena's streams before. The third takes those of all arenas, beginning with `first`.
 * Returns the bytes. REQUIRES: pages lock. */
uint64_t gm__reclaim_pages_from(gm__arena *arena, const gm__page_choice *choice, uint64_t bytes);
uint64_t gm__reclaim_pages_of(gm__arena *arena, const gm__page_choice *choice, uint64_t bytes);
uint64_t gm__reclaim_pages(gm__arena_set *set, const gm__arena *first, uint64_t bytes, uint64_t freed_by);

/* Gives idle handles back to the device until at most `keep_bytes` are pooled. It takes cached ones, and those in free
 * chunks that were freed by that time. Returns the bytes given back. */
uint64_t gm__reclaim_trim_pages(gm__arena_set *set, uint64_t keep_bytes, uint64_t freed_by);

/* ---- segments ---- */

/* Which idle segments go: until at most `keep_bytes` are pooled, and only those that were free by that time. Without
 * `submit` streams are asked without new points. */
typedef struct gm__segment_choice {
  uint64_t keep_bytes, freed_by;
  bool submit;
} gm__segment_choice;

/* Puts chosen segments of all arenas on the list, newest first. */
void gm__reclaim_segments(gm__arena_set *set, const gm__segment_choice *choice, gm__leaving *leaving);

/* Moves an idle segment from another arena of the same kind to this one. False: none is large enough. */
bool gm__reclaim_move(gm__arena *arena, const gm__want *want);

/* Gives back idle segments of the arena that have less than `bytes`, oldest first. The arena keeps as much as it may
 * need again. Returns the bytes given back. */
uint64_t gm__reclaim_small(gm__arena *arena, uint64_t bytes);

/* Puts a segment that no arena has on the list. */
void gm__segment_give_back(gm__arena_set *set, gm__segment *segment, gm__leaving *leaving);

#endif
