/* What is on the disk for good. */
#ifndef GM_CORE_TIER_DISK_FLUSH_H
#define GM_CORE_TIER_DISK_FLUSH_H

#include "core/tier/disk/disk_tier.h"

gm_status gm__disk_flush(void *own, gm_error *err);

/* What is due after a value was put or removed. Where each one is on the disk at once, gm notes that, so that what
 * fails its checksum later is damage and no torn write. And a tier that nobody flushes is compacted here. What fails is
 * tried again. REQUIRES: writer's lock. */
void gm__disk_flush_after(gm__disk_tier *tier);

#endif
