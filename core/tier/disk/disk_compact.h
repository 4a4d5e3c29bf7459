/* A smaller file in the place of one that has much dead in it. */
#ifndef GM_CORE_TIER_DISK_COMPACT_H
#define GM_CORE_TIER_DISK_COMPACT_H

#include "core/tier/disk/disk_tier.h"

/* Writes a file of the newest records, and puts it in the place of the tier's file. REQUIRES: writer's lock. */
gm_status gm__disk_compact(gm__disk_tier *tier, gm_error *err);

#endif
