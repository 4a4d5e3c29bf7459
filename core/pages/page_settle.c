#include "core/pages/page_settle.h"

#include "core/device/point.h"
#include "core/pages/page_order.h"

/* Invariant: a step with an end in `ends` is open. Its end goes away in steps_look alone. One thread at a time runs
 * that, so a point is not released while another thread asks about it. */

/* Ends the oldest step, if its point has passed. A lost device runs nothing any more. */
static bool steps_look(gm_pages *set) {
  gm__page_order *order = &set->order;
  const uint64_t step = order->passed_below;
  gm__page_end *place = &order->ends[step % GM_PAGE_STEPS_MOST], end = *place;
  if (!end.device) return false;
  gm__mutex_unlock(&set->lock);
  bool done = false;
  if (gm_point_done(end.device, &end.point, &done, NULL) == GM_ERR_DEVICE_LOST) done = true;
  if (done) gm_point_release(end.device, &end.point);
  gm__mutex_lock(&set->lock);
  if (!done) return false;
  *place = (gm__page_end){.device = NULL};
  order->awaited--;
  return gm__page_step_end(set, step);
}

void gm__pages_settle(gm_pages *set) {
  gm__page_order *order = &set->order;
  if (!order->awaited || order->looking) return;
  order->looking = true;
  while (steps_look(set)) continue;
  order->looking = false;
}

bool gm__page_step_end_at(gm_pages *set, uint64_t step, gm_device *device, gm_point point) {
  gm__page_order *order = &set->order;
  gm__page_end *end = &order->ends[step % GM_PAGE_STEPS_MOST];
  if (end->device) return false;
  if (!point.stream) return gm__page_step_end(set, step);
  if (!gm__page_step_is_open(set, step)) return false;
  *end = (gm__page_end){device, point};
  order->awaited++;
  return true;
}

/* Opens the newest step again, if it was a copy and can be. */
static bool step_again(gm__page_order *order, uint64_t stream, gm_point *out_old) {
  const uint64_t at = (order->next_step - 1) % GM_PAGE_STEPS_MOST;
  gm__page_end *end = &order->ends[at];
  if (order->next_step == order->passed_below || !order->of_copy[at]) return false;
  if (order->ended[at]) {
    order->ended[at] = false;
    order->open_steps++;
    return true;
  }
  if (!end->device || end->point.stream != stream || order->looking) return false;
  *out_old = end->point;
  *end = (gm__page_end){.device = NULL};
  order->awaited--;
  return true;
}

uint64_t gm__page_copy_begin(gm_pages *set, uint64_t stream, gm_point *out_old) {
  gm__page_order *order = &set->order;
  *out_old = (gm_point){0, 0, 0};
  if (step_again(order, stream, out_old)) return order->next_step - 1;
  const uint64_t step = gm__page_step_begin(set);
  if (step) order->of_copy[step % GM_PAGE_STEPS_MOST] = true;
  return step;
}
