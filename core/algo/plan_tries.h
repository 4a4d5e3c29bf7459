/* Ways to place units, from which GM_PLAN_BEST takes the best. Each gives up as soon as it cannot become smaller than
 * what there is. Pure but for host memory. */
#ifndef GM_CORE_ALGO_PLAN_TRIES_H
#define GM_CORE_ALGO_PLAN_TRIES_H

#include "core/algo/plan_units.h"
#include "core/base/saturate.h"

/* What comes first: of the most bytes times life, of the most bytes, of the longest life. The first has made the
 * smallest plans of large sets. */
typedef enum gm__plan_order {
  GM__PLAN_BY_AREA = 0,
  GM__PLAN_BY_BYTES = 1,
  GM__PLAN_BY_LIFE = 2,
  GM__PLAN_ORDERS = 3
} gm__plan_order;

/* What has more of it comes earlier. */
static inline uint64_t gm__plan_value(const gm__plan_unit *unit, gm__plan_order order) {
  uint64_t life = (uint64_t)unit->last - unit->first + 1;
  switch (order) {
    case GM__PLAN_BY_AREA: return gm__mul_sat(unit->bytes, life);
    case GM__PLAN_BY_LIFE: return life << 7 | (64 - (uint64_t)__builtin_clzll(unit->bytes));
    default: return unit->bytes;
  }
}

/* The best plan so far. */
typedef struct gm__plan_found {
  uint64_t *offsets; /* by unit */
  uint64_t peak;     /* 2^63 + 1: there is none yet */
} gm__plan_found;

/* What tries may cost in all, counted in pairs of units that live at once. */
typedef struct gm__plan_budget {
  uint64_t steps;
} gm__plan_budget;

/* In each order, each in the smallest gap that is free all through its life; and again with what did not fit put first,
 * while the budget lasts or until `bound` is reached.
 * GM_ERR_OUT_OF_HOST_MEMORY. */
gm_status gm__plan_try_greedy(gm__plan_units *units, uint64_t bound, gm__plan_budget *budget, gm__plan_found *found);

/* From the bottom up: at a place lower than those beside it, the first of all that live within it, in this order.
 * GM_ERR_OUT_OF_HOST_MEMORY. */
gm_status gm__plan_try_skyline(const gm__plan_units *units, gm__plan_order order, gm__plan_found *found);

/* True when units that fill `offset` and `bytes` end below `peak`. */
static inline bool gm__plan_below(uint64_t offset, uint64_t bytes, uint64_t peak) {
  return offset < peak && bytes < peak - offset;
}

#endif
