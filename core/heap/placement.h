/* Where a heap's blocks lie: in arenas (best fit, fixed sizes), or each in a driver allocation of its own (buckets).
 * The heap itself has the order of attempts, zeroing, counting and undoing (heap_alloc.c). */
#ifndef GM_CORE_HEAP_PLACEMENT_H
#define GM_CORE_HEAP_PLACEMENT_H

#include "core/arena/arena.h"
#include "core/heap/heap.h"

/* A request on its way through a placement. */
typedef struct gm__attempt {
  gm__heap *heap;
  const gm__want *want;
  gm__memory_kind kind; /* best fit: the kind that the request needs */
  gm__arena *arena;     /* best fit: the arena of the request */
  gm__grant *grant;     /* the memory that it gets; `done`: handed out already */
  gm_acquire answer;    /* what gm_alloc answers */
  gm_block *block;      /* filled in if the grant is done */
} gm__attempt;

typedef struct gm__placement {
  /* Finds where the request belongs. Any status but GM_OK ends the attempt. */
  gm_status (*begin)(gm__attempt *attempt, gm_error *err);
  /* Takes pooled memory that serves at once, or after a wait of the request's own stream. */
  bool (*pooled)(gm__attempt *attempt);
  /* Takes over pooled memory of another thread. */
  bool (*moved)(gm__attempt *attempt);
  /* Takes new memory from the provider. */
  gm_status (*fresh)(gm__attempt *attempt, gm_error *err);
  /* Takes pooled memory wherever it is, with a wait for other streams. */
  bool (*anywhere)(gm__attempt *attempt);
} gm__placement;

extern const gm__placement gm__best_fit_placement, gm__bucket_placement, gm__fixed_placement;

#endif
