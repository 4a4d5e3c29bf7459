/* How far a disk tier's file reaches at least. REQUIRES, for each function: the writer's lock. */
#ifndef GM_CORE_TIER_DISK_SEAL_H
#define GM_CORE_TIER_DISK_SEAL_H

#include "core/tier/disk/disk_tier.h"

/* Notes in a file that it has records up to `end`. They are on the disk, or the file has not got its name yet. */
gm_status gm__disk_seal_put(gm__disk_tier *tier, const gm__disk_file *file, uint64_t end, gm_error *err);

/* Reads how far the tier's file must reach. *out_end is 0 where no seal says so. */
gm_status gm__disk_seal_find(gm__disk_tier *tier, uint64_t *out_end, gm_error *err);

#endif
