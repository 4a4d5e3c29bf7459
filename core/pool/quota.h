/* Quotas of tags, for the calls that hand out and take back. */
#ifndef GM_CORE_POOL_QUOTA_H
#define GM_CORE_POOL_QUOTA_H

#include "core/pool/request.h"
#include "gm/quota.h"

typedef struct gm__quotas gm__quotas;

/* Count the request as its tag's, before memory is looked for, and note that in it; OVER_LIMIT: the tag's quota has no
 * room. Without quotas GM_OK. */
gm_status gm__quota_claim(gm_pool *pool, gm__want *want, gm_error *err);

/* A claimed request got nothing. What it got and gives back takes the claim with it. */
void gm__quota_unclaim(gm_pool *pool, const gm__want *want);

/* Would a claim be refused? */
gm_status gm__quota_check(gm_pool *pool, const gm__want *want, gm_error *err);

/* A block is handed out for the request, and counted unless that was claimed; a block is its owner's no more. `quotas`
 * are those of its arena, or of the pool, where there are any. Inside the lock of the block. */
void gm__quota_enter(gm__quotas *quotas, const gm__want *want);
void gm__quota_leave(gm__quotas *quotas, uint32_t tag, uint64_t bytes);

void gm__quotas_end(gm_pool *pool, bool forked);

#endif
