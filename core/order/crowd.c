#include "core/base/alloc.h"
#include "core/order/slot.h"

/* The crowd. A member's record is like a slot, but all members share one bit in a last use. The crowd has passed a time
 * when every member that had work at that time has passed it. A member without work holds nobody back. order.c asks and
 * drains members as it does slots. */

static const gm_services *crowd_services(const gm__order *order) { return gm__context_services(order->device->ctx); }

static bool crowd_reserve(gm__order *order) {
  gm__crowd *crowd = &order->crowd;
  if (crowd->count < crowd->capacity) return true;
  const uint32_t more = crowd->capacity ? crowd->capacity * 2 : 16;
  gm__order_slot **members = gm__alloc_array(crowd_services(order), more, sizeof *members);
  if (!members) return false;
  for (uint32_t i = 0; i < crowd->count; i++) members[i] = crowd->members[i];
  gm__release(crowd_services(order), crowd->members, crowd->capacity * sizeof *members);
  crowd->members = members;
  crowd->capacity = more;
  return true;
}

static int crowd_add(gm__order *order, gm_stream *stream) {
  gm__crowd *crowd = &order->crowd;
  gm__order_slot *member = crowd_reserve(order) ? gm__alloc(crowd_services(order), sizeof *member) : NULL;
  if (!member) return GM__ORDER_HOST;
  if (gm__map_insert(&crowd->numbers, (uintptr_t)stream, crowd->count)) {
    gm__release(crowd_services(order), member, sizeof *member);
    return GM__ORDER_HOST;
  }
  *member = (gm__order_slot){.stream = stream, .passed = atomic_fetch_add(&order->device->order_clock, 1)};
  crowd->members[crowd->count] = member;
  order->used |= gm__order_bit(GM__ORDER_CROWD);
  return GM__ORDER_SLOTS + (int)crowd->count++;
}

int gm__order_free_slot(gm__order *order, gm_stream *stream) {
  int slot = gm__order_member(order, stream);
  if (slot == GM__ORDER_HOST) slot = gm__order_slot_of(order, stream);
  return slot == GM__ORDER_HOST && stream ? crowd_add(order, stream) : slot;
}

/* The last member takes the number of the one that leaves. */
static void crowd_remove(gm__order *order, uint32_t number) {
  gm__crowd *crowd = &order->crowd;
  gm__order_slot *member = crowd->members[number], *last = crowd->members[--crowd->count];
  crowd->members[number] = last;
  gm__map_remove(&crowd->numbers, (uintptr_t)member->stream, NULL);
  if (last != member)
    gm__map_insert(&crowd->numbers, (uintptr_t)last->stream, number); /* cannot fail: the key is there */
  gm__order_clear_slot(order, member, GM_CLOSE_NORMAL);
  gm__release(crowd_services(order), member, sizeof *member);
}

bool gm__order_leave_crowd(gm__order *order, const gm_stream *stream) {
  const int slot = gm__order_member(order, stream);
  if (slot == GM__ORDER_HOST) return true;
  const uint32_t number = (uint32_t)(slot - GM__ORDER_SLOTS);
  if (order->crowd.members[number]->pins) return false;
  crowd_remove(order, number);
  gm__order_update_crowd(order);
  if (!order->crowd.count) order->used &= ~gm__order_bit(GM__ORDER_CROWD);
  return true;
}

static void order_clear_crowd(gm__order *order, gm_close_mode mode) {
  gm__crowd *crowd = &order->crowd;
  for (uint32_t i = 0; i < crowd->count; i++) {
    gm__order_clear_slot(order, crowd->members[i], mode);
    gm__release(crowd_services(order), crowd->members[i], sizeof *crowd->members[i]);
  }
  gm__release(crowd_services(order), crowd->members, crowd->capacity * sizeof *crowd->members);
  gm__map_clear(&crowd->numbers);
  crowd->members = NULL;
  crowd->count = crowd->capacity = 0;
}

void gm__order_clear(gm__order *order, gm_close_mode mode) {
  for (uint64_t left = order->used; left; left &= left - 1) {
    gm__order_clear_slot(order, &order->slots[gm__order_lowest(left)], mode);
  }
  order->used = 0;
  order_clear_crowd(order, mode);
}
