/* Calls of a page set about steps. */
#include <inttypes.h>

#include "core/base/cancel.h"
#include "core/device/device.h"
#include "core/device/point.h"
#include "core/pages/page_settle.h"
#include "core/pages/pages.h"

gm_status gm_pages_step_begin(gm_pages *pages, uint64_t *out, gm_error *err) {
  static const char op[] = "gm_pages_step_begin";
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  const gm_status status = gm__pages_enter(pages, op, err);
  if (status) return status;
  *out = gm__page_step_begin(pages);
  if (!*out) {
    gm__pages_settle(pages);
    *out = gm__page_step_begin(pages);
  }
  const uint64_t oldest = pages->order.passed_below;
  if (*out) return gm__pages_leave(pages, GM_OK);
  return gm__pages_leave(pages, gm__fail(err, GM_ERR_OVER_LIMIT, op, "step %" PRIu64 ", %d steps ago, is still open",
                                         oldest, GM_PAGE_STEPS_MOST));
}

static gm_status step_not_open(gm_pages *set, uint64_t step, const char *op, gm_error *err) {
  return gm__pages_leave(set, gm__bad_argument(err, op, "step %" PRIu64 " is not open", step));
}

/* Neither has it an end, nor is it a copy of gm's. */
static bool step_is_callers(const gm_pages *set, uint64_t step) {
  const gm__page_order *order = &set->order;
  return !order->ends[step % GM_PAGE_STEPS_MOST].device && !order->of_copy[step % GM_PAGE_STEPS_MOST];
}

gm_status gm_pages_step_end(gm_pages *pages, uint64_t step, gm_error *err) {
  static const char op[] = "gm_pages_step_end";
  const gm_status status = gm__pages_enter(pages, op, err);
  if (status) return status;
  if (!step_is_callers(pages, step) || !gm__page_step_end(pages, step)) return step_not_open(pages, step, op, err);
  return gm__pages_leave(pages, GM_OK);
}

gm_status gm_pages_step_end_at(gm_pages *pages, uint64_t step, gm_device *device, const gm_point *point,
                               gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pages_step_end_at";
  gm_status status = gm__pages_check(pages, op, err);
  if (status) return status;
  if (!device || !gm__object_is(&device->head, GM__KIND_DEVICE) || device->ctx != pages->ctx)
    return gm__bad_argument(err, op, "`device` is none of the set's context");
  gm_point own = {0, 0, 0};
  if (point) status = gm__point_check(device, point, op, err);
  if (!status) status = gm__error_of(op, gm__point_keep(device, point, &own, err), err);
  if (status) return status;
  gm__mutex_lock(&pages->lock);
  if (step_is_callers(pages, step) && gm__page_step_end_at(pages, step, device, own))
    return gm__pages_leave(pages, GM_OK);
  status = step_not_open(pages, step, op, err);
  gm_point_release(device, &own);
  return status;
}
