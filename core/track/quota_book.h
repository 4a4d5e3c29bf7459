/* The quotas of a pool's tags: what each tag holds, and may hold. Thread-safe; the lock is the innermost. */
#ifndef GM_CORE_TRACK_QUOTA_BOOK_H
#define GM_CORE_TRACK_QUOTA_BOOK_H

#include "gm/context.h"
#include "gm/quota.h"

typedef struct gm__quotas gm__quotas;

/* NULL without host memory. Nobody is refused before gm__quotas_complete says that all blocks which are out are
 * counted. */
gm__quotas *gm__quotas_new(gm_context *ctx);
void gm__quotas_complete(gm__quotas *quotas);
bool gm__quotas_are_complete(const gm__quotas *quotas); /* false for NULL */
void gm__quotas_release(gm__quotas *quotas, bool forked);

/* Counts `bytes` as the tag's before memory is looked for. OVER_LIMIT: the quota of the tag has no room. The second
 * function only asks. REQUIRES: the quotas are complete. */
gm_status gm__quota_take(gm__quotas *quotas, uint32_t tag, uint64_t bytes, gm_error *err);
gm_status gm__quota_check(gm__quotas *quotas, uint32_t tag, uint64_t bytes, gm_error *err);

/* The bytes by which the tag's quota is to rise so that `bytes` more fit. 0: they fit. */
uint64_t gm__quota_lack(gm__quotas *quotas, uint32_t tag, uint64_t bytes);

/* Counts bytes that a tag has got, or has no more. Nothing is refused. */
void gm__quota_enter(gm__quotas *quotas, uint32_t tag, uint64_t bytes);
void gm__quota_leave(gm__quotas *quotas, uint32_t tag, uint64_t bytes);

/* The work of gm_pool_set_quota and gm_pool_quota. `out->struct_size` stays. */
void gm__quota_set(gm__quotas *quotas, uint32_t tag, uint64_t bytes, uint32_t flags, int32_t priority);
void gm__quota_get(gm__quotas *quotas, uint32_t tag, gm_quota *out);

#endif
