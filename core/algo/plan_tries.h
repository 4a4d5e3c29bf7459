/* Ways to place units. GM_PLAN_BEST takes the best of them. Each gives up as soon as it cannot become smaller than
 * the best so far. Pure but for host memory. */
#ifndef GM_CORE_ALGO_PLAN_TRIES_H
#define GM_CORE_ALGO_PLAN_TRIES_H

#include "core/algo/plan_units.h"

/* The best plan so far. */
typedef struct gm__plan_found {
  uint64_t *offsets; /* by unit */
  uint64_t peak;     /* 2^63 + 1: there is none yet */
} gm__plan_found;

/* The cost that tries may have in all, counted in pairs of units that live at once. */
typedef struct gm__plan_budget {
  uint64_t steps;
} gm__plan_budget;

/* Place the units in each order: each in the smallest gap that is free all through its life. Try again with units
 * that did not fit put first, while the budget lasts or until `bound` is reached. GM_ERR_OUT_OF_HOST_MEMORY. */
gm_status gm__plan_try_greedy(gm__plan_units *units, uint64_t bound, gm__plan_budget *budget, gm__plan_found *found);

/* Place the units from the bottom up. At a place lower than those beside it goes the first unit of the order that
 * lives within it. GM_ERR_OUT_OF_HOST_MEMORY. */
gm_status gm__plan_try_skyline(const gm__plan_units *units, gm__plan_order order, gm__plan_found *found);

#endif
