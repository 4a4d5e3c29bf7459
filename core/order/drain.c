#include <inttypes.h>

#include "core/base/cancel.h"
#include "core/order/slot.h"

/* Waiting for streams. A stream that gm can neither ask nor wait for counts as running. */

static const uint64_t crowd_bit = UINT64_C(1) << GM__ORDER_CROWD;

static gm_status drain_by_point(const gm_device *device, const gm_stream *stream, gm_error *err) {
  gm_backend_point point;
  gm_status status = gm__submitting(device)->point_record(device->handle, stream->handle, &point, err);
  if (status) return status;
  status = gm__submitting(device)->point_wait(device->handle, &point, UINT64_MAX, err);
  device->ops->point_release(device->handle, &point, GM_CLOSE_NORMAL);
  return status;
}

gm_status gm__order_drain(gm_stream *stream, const char *op, gm_error *err) {
  GM__UNCANCELLED();
  const gm_device *device = stream->device;
  gm_error why = {.status = GM_OK};
  gm_status status = drain_by_point(device, stream, &why);
  if (status && status != GM_ERR_DEVICE_LOST) {
    status = gm__submitting(device)->stream_sync(device->handle, stream->handle, &why);
  }
  if (!status || status == GM_ERR_DEVICE_LOST) return GM_OK;
  return gm__fail_native(err, GM_ERR_BUSY, why.native_code, op,
                         "work of stream %" PRIu64
                         " may still run, and gm can neither record a point nor wait there: say "
                         "gm_stream_passed when it is done (%s)",
                         stream->id, why.message);
}

/* Waits for the slot's stream. Afterwards the stream has passed the time at which the wait began. */
static gm_status drain_slot(gm__order *order, gm__order_slot *slot, const char *op, gm_error *err) {
  const uint64_t now = atomic_fetch_add(&order->device->order_clock, 1);
  gm__order_step_from(order, slot);
  const gm_status status = gm__order_drain(slot->stream, op, err);
  gm__order_step_to(order, slot);
  if (!status && slot->passed < now) slot->passed = now;
  return status;
}

static gm_status drain_check_captured(const gm_stream *stream, const char *op, gm_error *err) {
  if (!gm__stream_captured(stream)) return GM_OK;
  return gm__fail(err, GM_ERR_BUSY, op,
                  "stream %" PRIu64 " may still use what is freed, and is being captured: end the capture first",
                  stream->id);
}

/* True when the member's stream may have work on memory that was freed, or that gm_use_on named, up to that time. */
static bool drain_is_due(const gm__order_slot *member, uint64_t until) {
  const uint64_t last = member->last_free > member->last_use ? member->last_free : member->last_use;
  return member->passed < (last < until ? last : until);
}

/* Waits for every member that may have used freed memory: which one did is not known. Each wait steps out of the lock,
 * and then a member that leaves gives its number to the last one. So the search starts again. */
static gm_status drain_crowd(gm__order *order, const char *op, gm_error *err) {
  const uint64_t until = gm__order_now(order);
  gm_status status = GM_OK;
  for (uint32_t i = 0; i < order->crowd.count && !status;) {
    gm__order_slot *member = order->crowd.members[i++];
    if (!drain_is_due(member, until)) continue;
    status = drain_check_captured(member->stream, op, err);
    if (!status) status = drain_slot(order, member, op, err);
    i = 0;
  }
  return status;
}

gm_status gm__order_drain_slots(gm__order *order, uint64_t mask, const char *op, gm_error *err) {
  gm_status status = GM_OK;
  for (uint64_t left = mask & ~crowd_bit; left && !status; left &= left - 1) {
    status = drain_check_captured(order->slots[gm__order_lowest(left)].stream, op, err);
  }
  for (uint64_t left = mask & ~crowd_bit; left && !status; left &= left - 1) {
    if (!(order->used & left & -left)) continue;
    status = drain_slot(order, &order->slots[gm__order_lowest(left)], op, err);
  }
  return !status && mask & crowd_bit ? drain_crowd(order, op, err) : status;
}

gm_status gm__order_drain_all(gm__order *order, const char *op, gm_error *err) {
  uint64_t busy = 0;
  for (uint64_t left = order->used; left; left &= left - 1) {
    if (gm__order_is_behind(&order->slots[gm__order_lowest(left)])) busy |= gm__order_bit(gm__order_lowest(left));
  }
  return gm__order_drain_slots(order, busy, op, err);
}
