/* Files of a disk tier: made, opened, given the tier's name, given up. */
#ifndef GM_CORE_TIER_DISK_FILE_H
#define GM_CORE_TIER_DISK_FILE_H

#include "core/tier/disk/disk_tier.h"

/* Makes a side file with no record, locked. The caller gives it the tier's name, or discards it. */
gm_status gm__disk_file_make(gm__disk_tier *tier, gm__disk_file **out, gm_error *err);

/* Gives a side file the tier's name, which `old` has; NULL: no file has it. `old` stays open. After a failure the names
 * are as they were. BUSY: another process made the tier's file meanwhile. */
gm_status gm__disk_file_give(gm__disk_tier *tier, gm__disk_file *file, const gm__disk_file *old, gm_error *err);

/* Removes a side file, and ends its use. */
void gm__disk_file_discard(gm__disk_tier *tier, gm__disk_file *file);

/* Opens the tier's file, and makes it where there is none and the tier may write. */
gm_status gm__disk_file_open(gm__disk_tier *tier, gm__disk_file **out, gm_error *err);

/* Ends one use of a file; the last one closes it. NULL is allowed. */
void gm__disk_file_drop(const gm__disk_tier *tier, gm__disk_file *file);

#endif
