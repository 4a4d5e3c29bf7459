/* Arenas on mapped pages: where a request finds no hole, pages are mapped between holes so that there is one, and whole
 * free handles leave holes again. Takes the locks it needs; none may be held. */
#ifndef GM_CORE_POOL_VMM_H
#define GM_CORE_POOL_VMM_H

#include "core/pool/arena.h"

/* Does the arena's memory come in pages? */
bool gm__vmm_serves(const gm__arena *arena);

/* The request's span, AWAY, out of a hole made for it. The supply layer's answers. */
gm_status gm__vmm_take(gm__arena *arena, const gm__want *want, uint32_t *out, gm_error *err);

/* Give idle handles of all arenas back until at most `keep_bytes` are pooled: only those in holes that were freed last
 * by that time of the device's clock, and spare ones. The bytes given back. */
uint64_t gm__vmm_trim(gm_pool *pool, uint64_t keep_bytes, uint64_t freed_by);

/* Bytes of the handles in the arena that a trim could give back: it looks at idle holes of a page and more, and at no
 * other span. Inside the arena's lock. */
uint64_t gm__vmm_idle_bytes(const gm__arena *arena);

#endif
