/* Quotas bound how many bytes a tag may hold in a pool. The bytes that callers asked for and hold count. A pool without
 * quotas pays nothing. From its first quota on, its allocations and frees no longer take the fast path. Every call is
 * thread-safe. */
#ifndef GM_QUOTA_H
#define GM_QUOTA_H

#include "gm/pool.h"

GM_BEGIN_DECLS

#define GM_NO_QUOTA UINT64_MAX

enum { GM_QUOTA_TAGS = 256 }; /* lower tags can have a quota; tag 0 stands for blocks without a tag */

typedef enum gm_quota_flags {
  GM_QUOTA_BORROW = 1 /* the tag may also use what quotas of equal or lower priority leave unused */
} gm_quota_flags;

typedef struct gm_quota {
  uint32_t struct_size; /* set by the caller: sizeof(gm_quota) */
  uint32_t flags;
  int32_t priority;
  uint64_t bytes;      /* GM_NO_QUOTA: the tag has no quota */
  uint64_t used_bytes; /* held by the tag's blocks */
} gm_quota;

/* Sets the quota of a tag. GM_NO_QUOTA removes it. From now on a request that would raise the tag above `bytes` answers
 * OVER_LIMIT. That is exact, whatever other threads do. Blocks that the tag holds stay.
 *
 * With GM_QUOTA_BORROW a tag may exceed its quota while all tags of equal or lower priority together stay within the
 * sum of theirs. A tag whose share was borrowed is refused until it is returned. Only a priority above every borrower's
 * is guaranteed.
 *
 * The first quota of a pool may come at any time; gm then visits each live block. It visits a thousand at a time, and
 * all driver allocations at once. A request under way at that moment is counted, but not refused.
 *
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, FORKED. NOT_SUPPORTED: the tag is GM_QUOTA_TAGS or above. */
GM_API gm_status gm_pool_set_quota(gm_pool *pool, uint32_t tag, uint64_t bytes, uint32_t flags, int32_t priority,
                                   gm_error *err);

/* Returns the quota of a tag, and the bytes that the tag holds. Before the first quota of the pool these bytes are 0.
 * Errors: INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_pool_quota(gm_pool *pool, uint32_t tag, gm_quota *out, gm_error *err);

GM_END_DECLS

#endif
