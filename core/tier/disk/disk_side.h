/* The side file of a disk tier: where a new file is written before it gets the tier's name. Its name has the number of
 * the file, which is made by chance. So nobody foresees it, and a file that has it was made by gm for this tier. */
#ifndef GM_CORE_TIER_DISK_SIDE_H
#define GM_CORE_TIER_DISK_SIDE_H

#include "core/tier/disk/disk_tier.h"

/* The name of the side file of that number. */
void gm__disk_side_name(const gm__disk_tier *tier, uint64_t store, char out[GM__DATA_NAME_SIZE]);

/* Removes the side files of the tier that a process left which ended before. */
void gm__disk_side_tidy(const gm__disk_tier *tier);

#endif
