/* How an arena gets more memory from the provider. REQUIRES: no lock. */
#ifndef GM_CORE_ARENA_GROW_H
#define GM_CORE_ARENA_GROW_H

#include "core/arena/arena.h"

/* Takes a new segment, or maps pages, and carves the request's chunk out of it before another thread can. The chunk is
 * AWAY. The provider's answers: where several sizes are tried, that to the smallest. */
gm_status gm__growth_take(gm__arena *arena, const gm__want *want, uint32_t *out, gm_error *err);

/* ---- map_grow.c: on mapped pages ---- */

/* The request's chunk, AWAY, out of the free chunk that was made for it. The provider's answers. */
gm_status gm__map_grow(gm__arena *arena, const gm__want *want, uint32_t *out, gm_error *err);

/* ---- growth_size.c: how much at a time ---- */

#define GM__GROWTH_UNIT (UINT64_C(2) << 20)
#define GM__GROWTH_OWN (UINT64_C(1) << 20) /* the least size of a request that gets a segment of its own size */
#define GM__GROWTH_OWN_UNIT (UINT64_C(64) << 10)
#define GM__GROWTH_MOST (UINT64_C(64) << 20) /* the most for a pool that holds less than a GiB */

/* The bytes that the arena would like to map at the end of a range of the area, where a request lacks `bytes`.
 * REQUIRES: pages lock. */
uint64_t gm__growth_pages(const gm__arena *arena, gm__area area, uint64_t bytes);

/* The bytes that the arena would like to take for a request. `relieved`: bytes of smaller segments that were given back
 * for it. Then the segment may be a little larger, so that the next request finds room. REQUIRES: no lock. */
uint64_t gm__growth_wish(gm__arena *arena, const gm__want *want, uint64_t relieved);

#endif
