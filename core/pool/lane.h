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

/* Spans of one size, newest first, linked by `next`. An empty list (`head` 0) may become that of any size. */
typedef struct gm__quick {
  uint32_t granules, head;
} gm__quick;

typedef struct gm__lane {
  gm__heap heap;
  uint8_t number;
  bool ordered; /* its stream runs in order by itself: what was freed there may be used there at once */
  uint32_t quick_count;
  uint32_t hand; /* the list that lost a span last when all were full */
  /* gm__span.role of what its stream has out of this lane, out of the idle one, and of what is in its quick lists; part
   * of the first, and of its holes (no span's in the lane of several: not all wait for the same ones). */
  uint32_t live_role, idle_role, quick_role;
  uint16_t live_part, hole_part;
  _Atomic uint64_t *hits; /* where requests of its stream are counted that are served from it */
  uint64_t *last_free;    /* when its stream freed something last */
  uint64_t settled;       /* its stream had passed that time when its holes were looked at last */
  gm__quick quick[GM__QUICK_LISTS];
} gm__lane;

static inline uint16_t gm__lane_part(uint8_t lane, gm__span_state state) {
  const gm__span span = {.lane = lane, .state = (uint8_t)state};
  return span.part;
}

/* Of a live span `asked` is the lane of the stream that asked for it. */
static inline uint32_t gm__lane_role(uint8_t asked, uint8_t lane, gm__span_state state) {
  const gm__span span = {.bin = asked, .lane = lane, .state = (uint8_t)state};
  return span.role;
}

/* A live span with nothing rare to it, that no other stream than the lane's may still use. */
static inline bool gm__lane_owns(const gm__lane *lane, const gm__span *span) {
  const bool idle = span->part == gm__lane_part(GM__LANE_IDLE, GM__SPAN_LIVE);
  return (span->part == lane->live_part) | idle; /* one branch: hard to foretell */
}

/* Sizes that are multiples of a large power of two are spread, too. */
static inline gm__quick *gm__quick_of(gm__lane *lane, uint32_t granules) {
  return &lane->quick[granules * UINT32_C(0x9e3779b1) >> (32 - GM__QUICK_BITS)];
}

static inline bool gm__quick_has(const gm__quick *quick, uint64_t granules) {
  return quick->granules == granules && quick->head;
}

/* The newest span of a list that is not empty. */
static inline uint32_t gm__quick_pop(gm__lane *lane, gm__quick *quick, const gm__spans *spans) {
  const uint32_t number = quick->head;
  quick->head = gm__span_at(spans, number)->next;
  lane->quick_count--;
  return number;
}

/* A span of that size (> 0); 0: none. */
static inline uint32_t gm__quick_take(gm__lane *lane, const gm__spans *spans, uint64_t granules) {
  gm__quick *quick = gm__quick_of(lane, (uint32_t)granules);
  return gm__quick_has(quick, granules) ? gm__quick_pop(lane, quick, spans) : 0;
}

/* False: the list is another size's, or the lane has `most` in its lists already. */
static inline bool gm__quick_put(gm__lane *lane, gm__span *span, uint32_t number, uint32_t granules, uint32_t most) {
  gm__quick *quick = gm__quick_of(lane, granules);
  const uint32_t head = quick->head;
  const bool own = !head | (quick->granules == granules); /* one branch: hard to foretell */
  if (lane->quick_count >= most || !own) return false;
  span->role = lane->quick_role;
  span->next = head;
  quick->granules = granules;
  quick->head = number;
  lane->quick_count++;
  return true;
}

#endif
