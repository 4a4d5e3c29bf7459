/* The records that are on the disk for good. */
#ifndef GM_CORE_TIER_DISK_FLUSH_H
#define GM_CORE_TIER_DISK_FLUSH_H

#include "core/tier/disk/disk_tier.h"

gm_status gm__disk_flush(void *own, gm_error *err);

/* Does what is due after a value was put or removed. Where each one is on the disk at once, gm notes that: a record
 * that fails its checksum later is damaged then, and not torn. A tier that nobody flushes is compacted here. A step
 * that fails is tried again. REQUIRES: writer's lock. */
void gm__disk_flush_after(gm__disk_tier *tier);

#endif
