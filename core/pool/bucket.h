/* Power-of-two buckets: pooled blocks by size class, each an allocation of its own. Externally synchronised. */
#ifndef GM_CORE_POOL_BUCKET_H
#define GM_CORE_POOL_BUCKET_H

#include "core/pool/node.h"
#include "core/pool/order.h"

enum { GM__BUCKETS = 65, GM__BUCKET_OTHERS = GM__ORDER_SLOTS };

typedef struct gm__buckets {
  gm__node_list classes[GM__BUCKETS];   /* newest first */
  gm__node_list ages;                   /* all of them, newest first */
  uint32_t served[GM__BUCKETS];         /* requests that the class served since it was looked at last */
  uint32_t idle;                        /* blocks that no stream is known to use: the pool's cache */
  uint32_t busy[GM__BUCKET_OTHERS + 1]; /* others, by the slot of the stream that freed them: the streams' caches */
  uint32_t most;                        /* blocks kept in one bucket; more only while streams still use them */
} gm__buckets;

/* What the pool takes for `bytes`: the power of two above; `bytes` itself when that would be more than `largest` (the
 * driver's largest allocation; 0: no bound known). */
uint64_t gm__bucket_round(uint64_t bytes, uint64_t largest);

/* In and out; a block comes in as one that the stream in the slot (GM__ORDER_HOST: another) may still use. */
void gm__bucket_put(gm__buckets *buckets, gm__node *node, int slot);
void gm__bucket_remove(gm__buckets *buckets, gm__node *node);

/* No stream uses it any more. */
void gm__bucket_settle(gm__buckets *buckets, gm__node *node);

/* The stream goes, and its slot: what it may still use counts elsewhere. */
void gm__bucket_forget(gm__buckets *buckets, gm__node *node, int slot);

#endif
