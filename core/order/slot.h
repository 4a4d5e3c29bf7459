/* Inside of an order's slots, for the files of this floor. REQUIRES: the order's lock. */
#ifndef GM_CORE_ORDER_SLOT_H
#define GM_CORE_ORDER_SLOT_H

#include "core/base/cancel.h"
#include "core/order/order.h"

/* The record of the stream, in a slot or in the crowd; NULL: there is none. */
gm__order_slot *gm__order_named(gm__order *order, const gm_stream *stream);

/* True when work of the stream may still use freed memory. */
static inline bool gm__order_is_behind(const gm__order_slot *slot) {
  return slot->passed < slot->last_free || (slot->given && slot->passed < slot->last_given);
}

/* Leaves the lock for a call that may submit to the slot's stream, and takes it again. The stream stays meanwhile. */
void gm__order_step_from(gm__order *order, gm__order_slot *slot);
void gm__order_step_to(gm__order *order, gm__order_slot *slot);

/* Reads from its members how far the crowd is. */
void gm__order_update_crowd(gm__order *order);

static inline void gm__order_release(const gm__order *order, const gm_backend_point *point) {
  GM__UNCANCELLED();
  order->device->ops->point_release(order->device->handle, point, GM_CLOSE_NORMAL);
}

void gm__order_clear_slot(const gm__order *order, gm__order_slot *slot, gm_close_mode mode);

#endif
