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
  GM__QUICK_LISTS = 256
};

/* Spans of one size, newest first, linked by `next`. The first size to come has the list until it is empty. */
typedef struct gm__quick {
  uint32_t head, granules;
} gm__quick;

typedef struct gm__lane {
  gm__heap heap;
  uint8_t number;
  bool ordered; /* its stream runs in order by itself: what was freed there may be used there at once */
  uint32_t quick_count;
  uint64_t settled; /* its stream had passed that time when its holes were looked at last */
  gm__quick quick[GM__QUICK_LISTS];
} gm__lane;

static inline uint32_t gm__quick_take(gm__lane *lane, const gm__spans *spans, uint32_t granules) {
  gm__quick *quick = &lane->quick[granules % GM__QUICK_LISTS];
  const uint32_t number = quick->head;
  if (!((quick->granules == granules) & (number != 0))) return 0; /* one branch: sizes are hard to foretell */
  quick->head = gm__span_at(spans, number)->next;
  lane->quick_count--;
  return number;
}

/* False: it is larger than `largest`, the list is another size's, or the lane has `most` in its lists already. */
static inline bool gm__quick_put(gm__lane *lane, gm__span *span, uint32_t number, uint32_t largest, uint32_t most) {
  gm__quick *quick = &lane->quick[span->granules % GM__QUICK_LISTS];
  const bool own = (quick->head == 0) | (quick->granules == span->granules);
  if (!(own & (span->granules <= largest) & (lane->quick_count < most))) return false; /* one branch, as above */
  span->state = GM__SPAN_QUICK;
  span->next = quick->head;
  quick->granules = span->granules;
  quick->head = number;
  lane->quick_count++;
  return true;
}

#endif
