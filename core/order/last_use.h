/* The last use of a piece of memory: which streams may still work on it, and since when. Plain data. */
#ifndef GM_CORE_ORDER_LAST_USE_H
#define GM_CORE_ORDER_LAST_USE_H

#include <stdbool.h>

#include "gm/backend.h"

/* gm_free_at gives a live block the point for its next free (NEXT). The free keeps that point (KEPT). */
typedef enum gm__freed { GM__FREED_NOT, GM__FREED_NEXT, GM__FREED_KEPT } gm__freed;

typedef struct gm__last_use {
  uint64_t streams;       /* bits of slots (order.h) whose streams may still use it, by work from before `freed_at` */
  uint64_t users;         /* while it is live: bits of slots whose streams gm_use_on named */
  uint64_t freed_at;      /* the device's clock when the memory was freed last */
  gm_backend_point point; /* owned; a point of the stream in slot `point_slot`; only when has_point */
  uint8_t point_slot;
  bool has_point;
  uint8_t given; /* gm__freed: whether the engine gave `point`; then it says nothing of other memory */
} gm__last_use;

#endif
