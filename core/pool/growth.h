/* How an arena gets more memory: from other arenas of its pool, and from the supply layer; and how it gives it back.
 * Takes the locks it needs itself; none may be held. */
#ifndef GM_CORE_POOL_GROWTH_H
#define GM_CORE_POOL_GROWTH_H

#include "core/pool/arena.h"
#include "core/pool/supply.h"

/* Bring a segment that no arena of the same kind uses over to this one, if any is large enough. */
bool gm__growth_move(gm__arena *arena, const gm__want *want);

/* A new segment, and the request's span out of it, AWAY, before anybody else can have it. The supply layer's answers;
 * of several sizes the pool would like, that to the smallest. */
gm_status gm__growth_take(gm__arena *arena, const gm__want *want, uint32_t *out, gm_error *err);

/* Put idle segments of all arenas on the list, newest first, until at most `keep_bytes` are pooled: only those of which
 * nothing was freed after that time of the device's clock. */
void gm__growth_trim(gm_pool *pool, uint64_t keep_bytes, uint64_t freed_by, gm__leaving *leaving);

/* What the arena could give back now, for the pool's and the device's figures. Inside the arena's lock. */
void gm__growth_publish(gm__arena *arena);

/* What the arena would like to map at once at the end of a range where a request lacks `bytes`. With the lock of the
 * pool's pages. */
uint64_t gm__growth_pages(const gm__arena *arena, uint64_t bytes);

/* All that is known and can be asked for is used: which streams are done, and which holes they leave behind together.
 * Inside the arena's lock. */
void gm__growth_tidy(gm__arena *arena);

#endif
