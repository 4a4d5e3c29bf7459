/* Pages that nobody holds, in the order in which they are taken, and the steps that some of them wait for. Each call
 * takes O(1) steps. REQUIRES everywhere: the set's lock. */
#ifndef GM_CORE_PAGES_PAGE_ORDER_H
#define GM_CORE_PAGES_PAGE_ORDER_H

#include "core/pages/pages_state.h"

/* False: no host memory. gm__page_order_end gives back what there is. */
bool gm__page_order_begin(gm_pages *set);
void gm__page_order_end(gm_pages *set);

/* The last hold of a page is gone. `keyed` in its record says whether it is idle or free. */
void gm__page_retire(gm_pages *set, gm_page page);

/* An idle page gets a hold. */
void gm__page_lift(gm_pages *set, gm_page page);

/* The next page to take, which is in no list any more. It may have a key. REQUIRES: `available` is not 0. */
gm_page gm__page_next(gm_pages *set);

/* Can a further step begin? It cannot while the oldest open one is too old. */
static inline bool gm__page_step_has_room(const gm_pages *set) {
  return set->order.next_step - set->order.passed_below < GM_PAGE_STEPS_MOST;
}

/* 0: there is no room. */
uint64_t gm__page_step_begin(gm_pages *set);
bool gm__page_step_is_open(const gm_pages *set, uint64_t step);
/* False: it is not open. */
bool gm__page_step_end(gm_pages *set, uint64_t step);

/* Can the page lose its memory: nobody holds it, and no step may read it. */
bool gm__page_rests(const gm_pages *set, gm_page page);

/* Pages that got memory can be taken from now on, the first one first. */
void gm__page_order_add(gm_pages *set, gm_page first, uint32_t count);

/* Takes pages that rest out of the order: those of granules that are GOING. Takes time by the number of free pages. */
void gm__page_order_remove(gm_pages *set);

/* Idle pages. */
uint32_t gm__page_idle(const gm_pages *set);

/* Pages that wait for steps. */
uint32_t gm__page_waiting(const gm_pages *set);

#endif
