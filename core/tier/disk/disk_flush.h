/* What is on the disk for good. */
#ifndef GM_CORE_TIER_DISK_FLUSH_H
#define GM_CORE_TIER_DISK_FLUSH_H

#include "core/tier/disk/disk_tier.h"

gm_status gm__disk_flush(void *own, gm_error *err);

/* As gm__disk_flush. REQUIRES: writer's lock. */
gm_status gm__disk_flush_now(gm__disk_tier *tier, gm_error *err);

#endif
