/* The cold record of a chunk or an allocation: what few of them have. */
#ifndef GM_CORE_PROVIDER_COLD_H
#define GM_CORE_PROVIDER_COLD_H

#include "core/order/last_use.h"
#include "gm/services.h"

/* A mapping of a live block that its caller has not ended. */
typedef struct gm__mapping {
  struct gm__mapping *next; /* of the same block, newest first */
  void *pointer;            /* NULL while a thread makes or ends it */
  uint64_t offset, bytes;   /* in the block's memory */
  uint32_t mode;
} gm__mapping;

/* A guard's word about a live block: the caller has `usable` bytes from `front` on. */
typedef struct gm__guarded {
  void *owner; /* the guard's record; NULL: no guard follows the block */
  uint64_t front, usable;
  bool withheld; /* the caller has freed it, and the guard holds it back */
} gm__guarded;

typedef struct gm__cold {
  gm__last_use use;
  gm__mapping *mappings; /* NULL: it is not mapped; owned */
  gm__guarded guard;
  uint64_t track_id;                /* of a dedicated block; the arena's ledger has a chunk's */
  const struct gm__span_part *part; /* while live: its part of a block of several memories; NULL: none */
} gm__cold;

/* Releases the mappings' records, when the pool ends. */
void gm__cold_clear(const gm_services *services, gm__cold *cold);

#endif
