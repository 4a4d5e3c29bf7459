/* Values into a disk tier, and out of it. */
#ifndef GM_CORE_TIER_DISK_PUT_H
#define GM_CORE_TIER_DISK_PUT_H

#include "core/tier/disk/disk_tier.h"

gm_status gm__disk_put(void *own, const void *key, size_t key_bytes, const gm_tier_part *parts, size_t count,
                       gm_error *err);
gm_status gm__disk_remove(void *own, const void *key, size_t key_bytes, gm_error *err);

#endif
