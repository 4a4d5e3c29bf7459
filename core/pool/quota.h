/* Quotas of tags, for the calls that hand out blocks. */
#ifndef GM_CORE_POOL_QUOTA_H
#define GM_CORE_POOL_QUOTA_H

#include "core/pool/pool.h"

/* Counts the request against its tag's quota before memory is looked for, and notes that in `want`. OVER_LIMIT: it does
 * not fit the quota. Without quotas GM_OK. */
gm_status gm__pool_take_quota(gm_pool *pool, gm__want *want, gm_error *err);

/* Takes back the count of a request that got no block. A block takes its own count back when it is freed. */
void gm__pool_return_quota(gm_pool *pool, const gm__want *want);

/* Would the quota refuse the request? */
gm_status gm__pool_check_quota(gm_pool *pool, const gm__want *want);

#endif
