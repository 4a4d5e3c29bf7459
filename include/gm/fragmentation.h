/* How much of a pool's free memory lies in pieces beside blocks. */
#ifndef GM_FRAGMENTATION_H
#define GM_FRAGMENTATION_H

#include <stdint.h>

#include "gm/pool.h"

GM_BEGIN_DECLS

/* A hole is free memory beside blocks that callers hold, in one piece. Only a request that fits uses it, and no trim
 * gives it back. Memory that streams may still use counts as free. A part of a pool is what serves a thread: its own
 * memory of each kind, with the pages of small blocks apart. A request looks for a hole in one part.
 *
 * Idle memory is no fragmentation: segments, pages and kept blocks that no caller holds a byte of. A trim gives them
 * back once streams are done with them. A pool of buckets has idle memory only. */
typedef struct gm_fragmentation {
  uint32_t struct_size;        /* set by the caller: sizeof(gm_fragmentation) */
  double ratio;                /* scattered_bytes / hole_bytes, from 0 to below 1; 0: there are no holes */
  uint64_t holes;              /* how many there are */
  uint64_t hole_bytes;         /* bytes of all of them */
  uint64_t largest_hole_bytes; /* bytes of the largest one */
  uint64_t scattered_bytes;    /* bytes of all but the largest of each part */
  uint64_t idle_bytes;
  uint64_t reserved_bytes; /* as in gm_stats: blocks, holes and idle memory */
} gm_fragmentation;

/* Tells the fragmentation of a pool as it is now. In a pool of one part `ratio` is 1 - largest hole / all holes, the
 * usual measure of external fragmentation. With several parts each part's ratio counts by its bytes.
 *
 * A high ratio of a few bytes is no harm: compare `scattered_bytes` with `reserved_bytes`. gm_advise does so, and names
 * the call that helps.
 *
 * The call walks the free pieces of the pool. Where they are more than a sixteenth of the pieces, it walks all blocks,
 * too, some 25 ns each. It holds no lock that a request takes for more than a thousand of them. Other threads may use
 * the pool in between, and then the figures are of several moments. So the call is for a monitor, not for each step of
 * work. gm_pool_stats has its last figures. Errors: INVALID_ARGUMENT: an argument is NULL, or gm does not know
 * struct_size. FORKED. Thread-safe. */
GM_API gm_status gm_pool_fragmentation(gm_pool *pool, gm_fragmentation *out, gm_error *err);

GM_END_DECLS

#endif
