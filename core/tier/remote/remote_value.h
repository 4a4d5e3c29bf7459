/* Values into a remote tier, and out of it: the functions of its table. */
#ifndef GM_CORE_TIER_REMOTE_VALUE_H
#define GM_CORE_TIER_REMOTE_VALUE_H

#include "core/tier/remote/remote_manifest.h"
#include "core/tier/remote/remote_tier.h"

gm_status gm__remote_put(void *own, const void *key, size_t key_bytes, const gm_tier_part *parts, size_t count,
                         gm_error *err);
gm_status gm__remote_value_open(void *own, const void *key, size_t key_bytes, void **out_value, uint64_t *out_bytes,
                                gm_error *err);
gm_status gm__remote_value_read(void *own, void *value, uint64_t offset, void *dst, uint64_t bytes, gm_error *err);
void gm__remote_value_close(void *own, void *value);
gm_status gm__remote_remove(void *own, const void *key, size_t key_bytes, gm_error *err);

/* Visits the values whose keys begin with a prefix. */
gm_status gm__remote_list(void *own, const void *prefix, size_t prefix_bytes, gm_tier_visit visit, void *user,
                          gm_error *err);

#endif
