/* The points at which steps end. REQUIRES everywhere: the set's lock. */
#ifndef GM_CORE_PAGES_PAGE_SETTLE_H
#define GM_CORE_PAGES_PAGE_SETTLE_H

#include "core/pages/pages_state.h"

/* Ends the steps whose points have passed, the oldest first. It releases the lock while it asks a device, so owners may
 * be closed meanwhile. */
void gm__pages_settle(gm_pages *set);

/* Does so where `count` pages cannot be taken beside the reserve. */
static inline void gm__pages_settle_for(gm_pages *set, uint32_t count) {
  if (set->order.awaited && (uint64_t)count + set->reserve > set->order.available) gm__pages_settle(set);
}

/* Ends a step at a point, which the set has from then on. False: the step is not open, and the point is the caller's.
 */
bool gm__page_step_end_at(gm_pages *set, uint64_t step, gm_device *device, gm_point point);

/* Begins the step of a copy on a stream (0: none); 0: the oldest open step is too old. Where the newest step was such a
 * copy it goes on, so that many copies in one step of the program are one. *out_old is then its point, which the caller
 * releases without the lock; else it is zero. */
uint64_t gm__page_copy_begin(gm_pages *set, uint64_t stream, gm_point *out_old);

#endif
