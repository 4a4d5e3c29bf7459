/* What a piece of memory remembers of its users: which streams may still work on it, since when, and what only few
 * pieces have. Plain data. */
#ifndef GM_CORE_POOL_MARK_H
#define GM_CORE_POOL_MARK_H

#include <stdbool.h>

#include "gm/backend.h"

/* gm_free_at gives a live block the point for its next free, which keeps it. */
typedef enum gm__given { GM__GIVEN_NOT, GM__GIVEN_NEXT, GM__GIVEN_KEPT } gm__given;

typedef struct gm__mark {
  uint64_t streams;       /* slots (bits) of streams whose work before `freed_at` may still use it: order.h */
  uint64_t users;         /* while live: slots of streams named by gm_use_on */
  uint64_t freed_at;      /* the device's clock at its last free */
  gm_backend_point point; /* owned; of the stream in slot point_slot; only when has_point */
  uint8_t point_slot;
  bool has_point;
  uint8_t given; /* gm__given: is `point` the engine's? Then it tells of no other memory */
} gm__mark;

/* The one mapping of a live block. */
typedef struct gm__mapping {
  void *pointer; /* NULL: not mapped */
  uint64_t offset, bytes;
  uint32_t mode;
} gm__mapping;

typedef struct gm__rare {
  gm__mark mark;
  gm__mapping mapping;
  uint64_t track_id;              /* of a driver allocation of its own; spans: arena->ledger */
  struct gm__guard_record *guard; /* while live: what is guarded of it; NULL: nothing */
  const struct gm__piece *piece;  /* while live: of a block of several memories (spanned.h); NULL: a block of its own */
} gm__rare;

#endif
