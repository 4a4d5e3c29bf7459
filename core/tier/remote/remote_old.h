/* Chunks on the server that a value needs no more, or not yet for good. REQUIRES, for each function: the tier's turn.
 */
#ifndef GM_CORE_TIER_REMOTE_OLD_H
#define GM_CORE_TIER_REMOTE_OLD_H

#include "core/tier/remote/remote_manifest.h"
#include "core/tier/remote/remote_tier.h"

typedef enum gm__remote_fate {
  GM__REMOTE_PERSIST, /* for good */
  GM__REMOTE_EXPIRE,  /* for as long as somebody may still read them */
  GM__REMOTE_DELETE
} gm__remote_fate;

/* The first `count` chunks of a version. PERSIST fails with TIMEOUT where one is there no more. */
gm_status gm__remote_old_set(gm__remote_tier *tier, const gm__manifest *manifest, uint32_t count, gm__remote_fate fate);

/* `reply` is what stood under a key before it was replaced or removed: its chunks expire. Nobody waits for chunks that
 * do not: a failure is none of the caller's. */
void gm__remote_old_expire(gm__remote_tier *tier, const gm__reply *reply, const gm__manifest *except);

#endif
