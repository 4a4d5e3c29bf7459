/* Power-of-two buckets: pooled blocks by size class, each an allocation of its own. Externally synchronised. */
#ifndef GM_CORE_POOL_BUCKET_H
#define GM_CORE_POOL_BUCKET_H

#include "core/pool/node.h"

enum { GM__BUCKETS = 65 };

typedef struct gm__buckets {
  gm__node_list classes[GM__BUCKETS]; /* newest first */
  gm__node_list ages;                 /* all of them, newest first */
  uint32_t most;                      /* blocks kept in one bucket; more only while streams still use them */
} gm__buckets;

/* What the pool takes for `bytes`: the power of two above; `bytes` itself when that would be more than `largest` (the
 * driver's largest allocation; 0: no bound known). */
uint64_t gm__bucket_round(uint64_t bytes, uint64_t largest);

void gm__bucket_put(gm__buckets *buckets, gm__node *node);
void gm__bucket_remove(gm__buckets *buckets, gm__node *node);

#endif
