#include "core/order/order_told.h"

#include "core/base/error.h"
#include "core/order/slot.h"

/* The engine's word about the work of its streams. It may speak often while older points have not passed. The oldest
 * point stays until it has passed, so that there is progress. The newest one waits behind it, so that the last word is
 * kept. */

static void told_advance(gm__order_slot *slot, uint64_t clock) {
  if (slot->passed < clock) slot->passed = clock;
}

gm_status gm__order_note_passed(gm__order *order, const gm_stream *stream, uint64_t clock, const gm_point *point,
                                gm_error *err) {
  const gm_device *device = order->device;
  gm__order_slot *slot = gm__order_named(order, stream);
  if (!slot) return GM_OK; /* no block was freed there */
  if (!point) {
    gm__order_note_synced(order, stream, clock);
    return GM_OK;
  }
  gm__order_told told = {.at = clock, .of = point->stream == stream->id ? 0 : point->stream, .there = true};
  const gm_backend_point theirs = {.handle = point->handle, .value = point->value};
  const gm_status status = device->ops->point_copy(device->handle, &theirs, &told.point, err);
  if (status) return status;
  if (slot->later.there) gm__order_release(order, &slot->later.point);
  slot->later = told;
  return GM_OK;
}

void gm__order_note_synced(gm__order *order, const gm_stream *stream, uint64_t clock) {
  gm__order_slot *slot = gm__order_named(order, stream);
  if (slot) told_advance(slot, clock);
  if (gm__order_member(order, stream) != GM__ORDER_HOST) gm__order_update_crowd(order);
}

static void told_forget(const gm__order *order, gm__order_slot *slot, uint64_t stream) {
  if (slot->has_point && slot->point_of == stream) {
    gm__order_release(order, &slot->point);
    slot->has_point = false;
    told_advance(slot, slot->point_at);
  }
  if (slot->later.there && slot->later.of == stream) {
    gm__order_release(order, &slot->later.point);
    slot->later.there = false;
    told_advance(slot, slot->later.at);
  }
}

void gm__order_forget_points(gm__order *order, const gm_stream *stream) {
  for (uint64_t left = order->used; left; left &= left - 1) {
    told_forget(order, &order->slots[__builtin_ctzll(left)], stream->id);
  }
  for (uint32_t i = 0; i < order->crowd.count; i++) told_forget(order, order->crowd.members[i], stream->id);
}

void gm__order_give_point(gm__order *order, gm__last_use *use, int slot, const gm_backend_point *point) {
  gm__order_settle(order, use); /* the last word on older work */
  gm__order_drop_point(order, use);
  use->point = *point;
  use->point_slot = (uint8_t)slot;
  use->has_point = true;
  use->given = GM__FREED_NEXT;
}
