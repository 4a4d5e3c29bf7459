/* Reading values of a disk tier. */
#ifndef GM_CORE_TIER_DISK_GET_H
#define GM_CORE_TIER_DISK_GET_H

#include "core/tier/disk/disk_tier.h"

gm_status gm__disk_value_open(void *own, const void *key, size_t key_bytes, void **out_value, uint64_t *out_bytes,
                              gm_error *err);
gm_status gm__disk_value_read(void *own, void *value, uint64_t offset, void *dst, uint64_t bytes, gm_error *err);
void gm__disk_value_info(void *own, void *value, gm_tier_value_info *out);
void gm__disk_value_close(void *own, void *value);

#endif
