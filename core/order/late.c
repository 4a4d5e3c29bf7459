#include "core/order/late.h"

#include "core/order/slot.h"

/* Invariant: a request that lacked memory has asked all streams before it was refused. So a stream without a point is
 * one that gm can ask nothing. During a capture gm asks nothing either, and does so after it. */

static void late_note(gm__late *late, uint64_t unsettled, uint64_t working) {
  if (unsettled && late->unsettled && late->unsettled != unsettled) late->several = true;
  if (unsettled) late->unsettled = unsettled;
  if (working) late->working = working;
}

static void late_add_slot(const gm__order_slot *slot, uint64_t freed_at, bool has_point, gm__late *late) {
  if (freed_at <= slot->passed) return;
  const bool comes =
      has_point || slot->has_point || slot->later.there || slot->asked || gm__stream_captured(slot->stream);
  late_note(late, comes ? 0 : slot->stream->id, comes ? slot->stream->id : 0);
}

void gm__late_add(const gm__order *order, const gm__last_use *use, gm__late *late) {
  const uint64_t crowd = gm__order_bit(GM__ORDER_CROWD);
  for (uint64_t left = use->streams & order->used & ~crowd; left; left &= left - 1) {
    const int slot = gm__order_lowest(left);
    late_add_slot(&order->slots[slot], use->freed_at, use->has_point && use->point_slot == slot, late);
  }
  for (uint32_t i = 0; use->streams & crowd && i < order->crowd.count; i++) {
    if (gm__order_is_behind(order->crowd.members[i]))
      late_add_slot(order->crowd.members[i], use->freed_at, false, late);
  }
}

bool gm__late_lets(const gm__order *order, const gm__last_use *use, int slot, bool insert, gm__late *late) {
  const gm__order_verdict verdict = gm__order_judge(order, use, slot, insert);
  gm__late found = {0};
  if (verdict == GM__ORDER_READY) return true;
  gm__late_add(order, use, &found);
  if (verdict != GM__ORDER_BUSY && !found.unsettled) return true; /* a wait needs a point of each stream */
  late_note(late, found.unsettled, found.working);
  late->several |= found.several;
  return false;
}
