/* The index of a disk tier, read from its file. */
#ifndef GM_CORE_TIER_DISK_SCAN_H
#define GM_CORE_TIER_DISK_SCAN_H

#include "core/tier/disk/disk_tier.h"

/* Fills the index, and finds where the next record goes. REQUIRES: nobody else knows the tier. */
gm_status gm__disk_scan(gm__disk_tier *tier, gm_error *err);

#endif
