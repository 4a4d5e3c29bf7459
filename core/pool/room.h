/* Whether a pool has room for a request at all, by its cap and its device's figures; and what it sets free for one. */
#ifndef GM_CORE_POOL_ROOM_H
#define GM_CORE_POOL_ROOM_H

#include "core/pool/pool.h"
#include "core/pool/request.h"

/* OVER_LIMIT if there is no room even without all that the pool, and others of its device, keep: whoever is told so
 * need not try, and nothing that is kept need go. Reads the device's figures only before it refuses. */
gm_status gm__room_check(gm_pool *pool, const gm__want *want, gm_error *err);

/* Set memory free for a request that was refused with that status: as much as the cap is short of, or all when the
 * device is full; and of other pools of the device what it still lacks. False: nothing was. No lock may be held. */
bool gm__room_make(gm_pool *pool, const gm__want *want, gm_status status);

#endif
