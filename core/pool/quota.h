/* Quotas of tags, for the calls that hand out and take back. */
#ifndef GM_CORE_POOL_QUOTA_H
#define GM_CORE_POOL_QUOTA_H

#include "gm/quota.h"

typedef struct gm__quotas gm__quotas;

/* Count `bytes` as the tag's, before they are looked for; OVER_LIMIT: its quota has no room. Without quotas GM_OK. */
gm_status gm__quota_claim(gm_pool *pool, uint32_t tag, uint64_t bytes, gm_error *err);
void gm__quota_unclaim(gm_pool *pool, uint32_t tag, uint64_t bytes);

/* Would a claim be refused? */
gm_status gm__quota_check(gm_pool *pool, uint32_t tag, uint64_t bytes, gm_error *err);

void gm__quotas_end(gm_pool *pool, bool forked);

#endif
