/* Ways to place units, from which GM_PLAN_BEST takes the best. Each gives up as soon as it cannot become smaller than
 * what there is. Pure but for host memory. */
#ifndef GM_CORE_ALGO_PLAN_TRIES_H
#define GM_CORE_ALGO_PLAN_TRIES_H

#include "core/algo/plan_units.h"

/* The best plan so far. */
typedef struct gm__plan_found {
  uint64_t *offsets; /* by unit */
  uint64_t peak;     /* 2^63 + 1: there is none yet */
} gm__plan_found;

/* What tries may cost in all, counted in pairs of units that live at once. */
typedef struct gm__plan_budget {
  uint64_t steps;
} gm__plan_budget;

/* The largest first, each in the smallest gap that is free all through its life; then by bytes times life, and by life;
 * then again with what did not fit put first, while the budget lasts or until `bound` is reached.
 * GM_ERR_OUT_OF_HOST_MEMORY. */
gm_status gm__plan_try_greedy(gm__plan_units *units, uint64_t bound, gm__plan_budget *budget, gm__plan_found *found);

/* From the bottom up: at the lowest place, of all that fit below the neighbours, the one that lives longest, or (not
 * `by_life`) the largest. GM_ERR_OUT_OF_HOST_MEMORY. */
gm_status gm__plan_try_skyline(const gm__plan_units *units, bool by_life, gm__plan_found *found);

/* True when units that fill `offset` and `bytes` end below `peak`. */
static inline bool gm__plan_below(uint64_t offset, uint64_t bytes, uint64_t peak) {
  return offset < peak && bytes < peak - offset;
}

#endif
