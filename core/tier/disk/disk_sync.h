/* Waiting for the disk. REQUIRES, for each function: the writer's lock. */
#ifndef GM_CORE_TIER_DISK_SYNC_H
#define GM_CORE_TIER_DISK_SYNC_H

#include "core/tier/disk/disk_tier.h"

/* May something be written? IO: an earlier failure is in the way, until the tier was opened anew. */
gm_status gm__disk_is_stuck(const gm__disk_tier *tier, gm_error *err);

/* Waits until the disk has the file's bytes, and its name. After a failure the tier is stuck. The system may have
 * dropped what it could not write, and its next answer would be that all is well. */
gm_status gm__disk_sync(gm__disk_tier *tier, gm_error *err);

#endif
