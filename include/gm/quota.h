/* Quotas: how many bytes a tag may hold in a pool (F22). A pool without any pays nothing for them; with the first one
 * its allocations and frees take the longer way. What counts is what callers asked for and hold. Thread-safe. */
#ifndef GM_QUOTA_H
#define GM_QUOTA_H

#include "gm/pool.h"

GM_BEGIN_DECLS

#define GM_NO_QUOTA UINT64_MAX

enum { GM_QUOTA_TAGS = 256 }; /* tags below this can have one; 0 is what has no tag */

typedef enum gm_quota_flags {
  GM_QUOTA_BORROW = 1 /* beyond its own, what quotas of its and of lower priority leave unused */
} gm_quota_flags;

typedef struct gm_quota {
  uint32_t struct_size; /* set by the caller: sizeof(gm_quota) */
  uint32_t flags;
  int32_t priority;
  uint64_t bytes;      /* GM_NO_QUOTA: none is set */
  uint64_t used_bytes; /* held by the tag's blocks */
} gm_quota;

/* Requests with the tag that would make it hold more than `bytes` are OVER_LIMIT from now on, exactly, whatever other
 * threads do; what it holds already stays. GM_NO_QUOTA takes the quota away. A borrowing tag may exceed
 * its quota while all tags of equal or lower priority together stay within the sum of theirs. A tag whose share was
 * borrowed is refused until it is returned. Only a priority above every borrower's is guaranteed. The first quota
 * of a pool may come at any time, too: it looks at each block that is out; a request that is under way then is counted,
 * but not refused. INVALID_ARGUMENT; NOT_SUPPORTED: the tag is GM_QUOTA_TAGS or above; OUT_OF_HOST_MEMORY; FORKED. */
GM_API gm_status gm_pool_set_quota(gm_pool *pool, uint32_t tag, uint64_t bytes, uint32_t flags, int32_t priority,
                                   gm_error *err);

/* The quota of a tag, and what it holds (0 as long as the pool never had a quota). INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_pool_quota(gm_pool *pool, uint32_t tag, gm_quota *out, gm_error *err);

GM_END_DECLS

#endif
