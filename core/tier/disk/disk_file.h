/* Files of a disk tier: made, opened, given up. */
#ifndef GM_CORE_TIER_DISK_FILE_H
#define GM_CORE_TIER_DISK_FILE_H

#include "core/tier/disk/disk_tier.h"

/* Makes a file with no record at `fresh_path`, locked. The caller drops *out. */
gm_status gm__disk_file_make(gm__disk_tier *tier, gm__disk_file **out, gm_error *err);

/* Opens the tier's file, and makes it where there is none and the tier may write. */
gm_status gm__disk_file_open(gm__disk_tier *tier, gm__disk_file **out, gm_error *err);

/* Ends one use of a file; the last one closes it. NULL is allowed. */
void gm__disk_file_drop(const gm__disk_tier *tier, gm__disk_file *file);

#endif
