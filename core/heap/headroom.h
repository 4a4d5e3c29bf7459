/* Headroom: whether a pool's cap and the device's figures leave room for a request, and what the pool gives back for
 * one. */
#ifndef GM_CORE_HEAP_HEADROOM_H
#define GM_CORE_HEAP_HEADROOM_H

#include "core/heap/heap.h"

/* Answers OVER_LIMIT if the request does not fit even when this pool and the device's other pools give back all that
 * they keep. Then there is no use in trying, and no kept memory need go. The call reads the device's figures only
 * before it refuses. */
gm_status gm__headroom_check(gm__heap *heap, const gm__want *want, gm_error *err);

/* The bytes that a request lacks that was refused with `status`, even if all pools gave back what is idle. */
typedef struct gm__shortfall {
  uint64_t bytes; /* 0: by the figures it lacks none, so memory is in pieces, or the driver counts otherwise */
  bool of_cap;    /* the pool's own cap refuses: no memory of other pools helps */
} gm__shortfall;

/* True if the request waits for its own pool alone: the quota of its tag, or the cap, refused it. */
bool gm__headroom_is_of_pool(const gm__heap *heap, const gm__want *want);

gm__shortfall gm__headroom_shortfall(gm__heap *heap, const gm__want *want, gm_status status);

/* Gives memory back for a request that was refused with `status`. The pool gives back what its cap lacks, or all when
 * the device is full. Other pools of the device give back what is still missing. Returns false if nothing was given
 * back. REQUIRES: no lock. */
bool gm__headroom_make(gm__heap *heap, const gm__want *want, gm_status status);

#endif
