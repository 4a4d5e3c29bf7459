/* The holes of a pool: what its statistics and gm_explain tell of fragmentation. */
#ifndef GM_CORE_MANAGE_FRAGMENTATION_H
#define GM_CORE_MANAGE_FRAGMENTATION_H

#include "core/arena/holes.h"
#include "core/pool/pool.h"

/* Looks at all free memory of the pool, and asks its streams how far they are, without new points. */
gm__holes gm__pool_holes(gm_pool *pool);

/* The share of the holes' bytes that are scattered. */
double gm__holes_ratio(const gm__holes *holes);

/* The statistics of the pool. Holes are looked for where that disturbs no thread. */
gm_stats gm__pool_stats(gm_pool *pool);

#endif
