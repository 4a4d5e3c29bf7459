/* A lane: the free memory of an arena that one stream (or the host, or several streams) freed last, as holes in bins
 * and as quick lists of exact sizes in front of them. Externally synchronised (the arena's lock). */
#ifndef GM_CORE_POOL_LANE_H
#define GM_CORE_POOL_LANE_H

#include "core/algo/heap.h"
#include "core/pool/order.h"

enum {
  GM__LANE_IDLE = GM__ORDER_SLOTS, /* no stream is known to use it; lower ones: that of the slot */
  GM__LANE_MIXED,                  /* several */
  GM__LANES,
  GM__QUICK_BITS = 9,
  GM__QUICK_LISTS = 1 << GM__QUICK_BITS
};

/* Spans of one size, newest first, linked by `next`. Empty: both are 0. */
typedef struct gm__quick {
  uint32_t granules, head;
} gm__quick;

typedef struct gm__lane {
  gm__heap heap;
  uint8_t number;
  bool ordered; /* its stream runs in order by itself: what was freed there may be used there at once */
  uint32_t quick_count;
  uint32_t hand;                  /* the list that lost a span last when all were full */
  uint32_t live_role, quick_role; /* gm__span.role of what its stream holds, and of what is in its quick lists */
  _Atomic uint64_t *hits;         /* where requests of its stream are counted that are served from it */
  uint64_t *last_free;            /* when its stream freed something last */
  uint64_t settled;               /* its stream had passed that time when its holes were looked at last */
  gm__quick quick[GM__QUICK_LISTS];
} gm__lane;

static inline uint32_t gm__lane_role(uint8_t lane, gm__span_state state) {
  const gm__span span = {.bin = lane, .lane = lane, .state = (uint8_t)state};
  return span.role;
}

/* Sizes that are multiples of a large power of two are spread, too. */
static inline gm__quick *gm__quick_of(gm__lane *lane, uint32_t granules) {
  return &lane->quick[granules * UINT32_C(0x9e3779b1) >> (32 - GM__QUICK_BITS)];
}

/* The newest span of a list that is not empty. */
static inline uint32_t gm__quick_pop(gm__lane *lane, gm__quick *quick, const gm__spans *spans) {
  const uint32_t number = quick->head, next = gm__span_at(spans, number)->next;
  quick->head = next;
  if (!next) quick->granules = 0;
  lane->quick_count--;
  return number;
}

/* A span of that size (> 0); 0: none. */
static inline uint32_t gm__quick_take(gm__lane *lane, const gm__spans *spans, uint64_t granules) {
  gm__quick *quick = gm__quick_of(lane, (uint32_t)granules);
  return quick->granules == granules ? gm__quick_pop(lane, quick, spans) : 0;
}

/* False: the list is another size's, or the lane has `most` in its lists already. */
static inline bool gm__quick_put(gm__lane *lane, gm__span *span, uint32_t number, uint32_t most) {
  gm__quick *quick = gm__quick_of(lane, span->granules);
  const bool own = (quick->granules == 0) | (quick->granules == span->granules); /* one branch: hard to foretell */
  if (lane->quick_count >= most || !own) return false;
  span->role = lane->quick_role;
  span->next = quick->head;
  quick->granules = span->granules;
  quick->head = number;
  lane->quick_count++;
  return true;
}

#endif
