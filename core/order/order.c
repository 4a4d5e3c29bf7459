#include "core/order/order.h"

#include "core/base/cancel.h"
#include "core/discovery/answer.h"
#include "core/order/slot.h"

/* Invariants. The device has a clock, `order_clock`. It moves on by one whenever a thread is about to ask a stream how
 * far it is. A last use remembers the time of the free, and a bit for each stream whose work may still use the memory.
 * A slot remembers up to which time its stream has done its work.
 *
 * An engine submits work on a block before it frees the block, and the free reads the clock. The clock moves on before
 * a point is recorded. So one point settles all blocks with an older time, however many there are. A free costs no
 * point, and it writes nothing that threads share. gm records a point only when another order wants the block; on an
 * unordered stream that may be the stream itself.
 *
 * Bits survive a reuse on the same stream. Example: a request takes a block while older work of its stream is pending,
 * and the host frees the block. Whoever takes the block next must still wait for that work.
 *
 * On a lost device nothing runs: its points have passed. */

static const uint64_t order_crowd = UINT64_C(1) << GM__ORDER_CROWD;

void gm__order_init(gm__order *order, gm_device *device, const gm__order_lock *lock) {
  order->device = device;
  order->lock = *lock;
  gm__map_init(&order->crowd.numbers, gm__context_services(device->ctx));
}

/* Moves the clock on. Frees from now on have a later time than the one returned. */
static uint64_t order_tick(const gm__order *order) { return atomic_fetch_add(&order->device->order_clock, 1); }

static int order_add(gm__order *order, gm_stream *stream) {
  if (gm__order_is_full(order)) return GM__ORDER_HOST;
  int slot = gm__order_lowest(~order->used);
  order->used |= gm__order_bit(slot);
  order->slots[slot] = (gm__order_slot){.stream = stream, .passed = order_tick(order)};
  return slot;
}

int gm__order_find(const gm__order *order, const gm_stream *stream) {
  for (uint64_t left = order->used & ~order_crowd; left; left &= left - 1) {
    int slot = gm__order_lowest(left);
    if (order->slots[slot].stream == stream) return slot;
  }
  return GM__ORDER_HOST;
}

int gm__order_member(const gm__order *order, const gm_stream *stream) {
  uint64_t number;
  if (!order->crowd.count || !gm__map_find(&order->crowd.numbers, (uintptr_t)stream, &number)) return GM__ORDER_HOST;
  return GM__ORDER_SLOTS + (int)number;
}

int gm__order_slot_of(gm__order *order, gm_stream *stream) {
  if (!stream) return GM__ORDER_HOST;
  int slot = gm__order_find(order, stream);
  if (slot != GM__ORDER_HOST || gm__order_member(order, stream) != GM__ORDER_HOST)
    return slot; /* a member stays in the crowd */
  return order_add(order, stream);
}

static gm_status order_record(const gm__order *order, const gm__order_slot *slot, gm_backend_point *out,
                              gm_error *err) {
  GM__UNCANCELLED();
  return gm__submitting(order->device)->point_record(order->device->handle, slot->stream->handle, out, err);
}

static bool order_passed(const gm__order *order, const gm_backend_point *point) {
  GM__UNCANCELLED();
  bool done = false;
  gm_status status = order->device->ops->point_done(order->device->handle, point, &done, NULL);
  gm__answer_mend_bool(&done);
  return status == GM_ERR_DEVICE_LOST || (status == GM_OK && done);
}

static void order_count_given(gm__order *order, int number, bool more) {
  const uint32_t count = order->slots[number].given += more ? 1 : UINT32_MAX; /* one less */
  order->given = (order->given & ~gm__order_bit(number)) | (count ? gm__order_bit(number) : 0);
}

static void order_keep_given(gm__order *order, gm__last_use *use, int slot) {
  use->given = GM__FREED_KEPT;
  use->streams |= gm__order_bit(slot);
  order->slots[slot].last_given = use->freed_at;
  order_count_given(order, slot, true);
}

/* Memory that still names the stream was freed in its order then. Parts that were cut off it were freed at that time,
 * too, so they need no count of their own. */
static void order_lose_given(gm__order *order, const gm__last_use *use) {
  gm__order_slot *slot = &order->slots[use->point_slot];
  const bool named = use->streams & gm__order_bit(use->point_slot);
  order_count_given(order, use->point_slot, false);
  if (named && slot->last_free < use->freed_at) slot->last_free = use->freed_at;
}

void gm__order_drop_point(gm__order *order, gm__last_use *use) {
  if (!use->has_point) return;
  if (use->given == GM__FREED_KEPT) order_lose_given(order, use);
  gm__order_release(order, &use->point);
  use->has_point = false;
  use->given = GM__FREED_NOT;
}

/* A free keeps the engine's point for this block only: it says nothing of older work of its stream. */
static bool order_keeps_point(const gm__last_use *use, int slot) {
  const bool next = use->has_point && use->given == GM__FREED_NEXT;
  return next && use->point_slot == slot && !(use->streams & gm__order_bit(slot));
}

void gm__order_note_free(gm__order *order, gm__last_use *use, int slot) {
  const bool crowded = (use->users & order_crowd) != 0;
  use->streams = (gm__order_settle(order, use) | use->users) & ~order->ended;
  use->users = 0;
  const bool keeps = order_keeps_point(use, slot);
  if (!keeps) gm__order_drop_point(order, use);
  use->freed_at = gm__order_now(order);
  if (slot != GM__ORDER_HOST && !keeps) use->streams |= gm__order_bit(gm__order_place(slot));
  for (uint64_t left = use->streams; left; left &= left - 1) {
    order->slots[gm__order_lowest(left)].last_free = use->freed_at;
  }
  if (keeps) order_keep_given(order, use, slot);
  if (slot >= GM__ORDER_SLOTS) order->crowd.members[slot - GM__ORDER_SLOTS]->last_free = use->freed_at;
  for (uint32_t i = 0; crowded && i < order->crowd.count; i++) { /* which member used the block is not known */
    gm__order_slot *member = order->crowd.members[i];
    if (member->last_use) member->last_free = use->freed_at;
  }
}

/* The point tells how far a stream is that may still use the memory. A point for the next free says nothing of that. */
static bool order_settles(const gm__last_use *use) {
  return use->has_point && use->given != GM__FREED_NEXT && use->streams & gm__order_bit(use->point_slot);
}

uint64_t gm__order_settle(gm__order *order, gm__last_use *use) {
  for (uint64_t left = use->streams; left; left &= left - 1) {
    int slot = gm__order_lowest(left);
    if (use->freed_at <= order->slots[slot].passed) use->streams &= ~gm__order_bit(slot);
  }
  if (order_settles(use) && order_passed(order, &use->point)) {
    use->streams &= ~gm__order_bit(use->point_slot);
  }
  return use->streams;
}

/* ---- outside the lock ---- */

static void order_pin(gm__order *order, uint64_t mask, uint32_t pins) {
  for (uint64_t left = mask; left; left &= left - 1) order->slots[gm__order_lowest(left)].pins += pins;
}

/* Leaves the lock for a call that may submit: an engine's hook in the driver may wait for a thread that waits for this
 * lock. */
static void order_step_out(gm__order *order, uint64_t mask) {
  order_pin(order, mask, 1);
  order->lock.leave(order->lock.user);
}

static void order_step_in(gm__order *order, uint64_t mask) {
  order->lock.take(order->lock.user);
  order_pin(order, mask, UINT32_MAX); /* one less */
}

void gm__order_step_from(gm__order *order, gm__order_slot *slot) {
  slot->pins++;
  order->lock.leave(order->lock.user);
}

void gm__order_step_to(gm__order *order, gm__order_slot *slot) {
  order->lock.take(order->lock.user);
  slot->pins--;
}

bool gm__order_is_pinned(const gm__order *order, int slot) { return order->slots[slot].pins > 0; }

/* ---- how far streams are ---- */

/* The slot takes the point, or releases it when it has one. */
static void order_keep(const gm__order *order, gm__order_slot *slot, const gm_backend_point *point, uint64_t point_at) {
  slot->asked = false;
  if (slot->has_point) {
    gm__order_release(order, point);
    return;
  }
  slot->point = *point;
  slot->point_at = point_at;
  slot->point_of = 0;
  slot->has_point = true;
}

/* Records a point for the slot. One thread at a time does so: what others need is under way. */
static void order_ask(gm__order *order, gm__order_slot *slot) {
  if (slot->asked) return;
  gm_backend_point point;
  const uint64_t now = order_tick(order);
  slot->asked = true;
  gm__order_step_from(order, slot);
  const gm_status status = order_record(order, slot, &point, NULL);
  gm__order_step_to(order, slot);
  slot->asked = false;
  if (!status) order_keep(order, slot, &point, now);
}

/* The engine's newest word becomes the slot's point when that is free. */
static void order_take_later(gm__order_slot *slot) {
  if (slot->has_point || slot->asked || !slot->later.there) return;
  slot->point = slot->later.point;
  slot->point_at = slot->later.at;
  slot->point_of = slot->later.of;
  slot->has_point = true;
  slot->later.there = false;
}

/* True when the stream has reached its point. */
static bool order_look_slot(const gm__order *order, gm__order_slot *slot) {
  order_take_later(slot);
  if (!slot->has_point || !order_passed(order, &slot->point)) return false;
  gm__order_release(order, &slot->point);
  slot->has_point = false;
  if (slot->passed < slot->point_at) slot->passed = slot->point_at;
  return true;
}

/* Looks at one point at a time: a stream that has not reached an old point has not reached a newer one. */
static void order_refresh_slot(gm__order *order, gm__order_slot *slot) {
  for (int turn = 0; turn < 3 && gm__order_is_behind(slot); turn++) {
    order_take_later(slot);
    if (!slot->has_point) order_ask(order, slot);
    if (!order_look_slot(order, slot)) return;
  }
}

/* The tick separates frees before it from later ones: members without work have passed all before. */
void gm__order_update_crowd(gm__order *order) {
  gm__order_slot *crowd = &order->slots[GM__ORDER_CROWD];
  uint64_t passed = order_tick(order);
  for (uint32_t i = 0; i < order->crowd.count; i++) {
    const gm__order_slot *member = order->crowd.members[i];
    if (gm__order_is_behind(member) && member->passed < passed) passed = member->passed;
  }
  if (crowd->passed < passed) crowd->passed = passed;
}

/* Visits each slot of the mask, and each member of the crowd if the mask has the crowd's bit. */
static void order_each(gm__order *order, uint64_t mask, void (*visit)(gm__order *order, gm__order_slot *slot)) {
  for (uint64_t left = mask & order->used & ~order_crowd; left; left &= left - 1) {
    visit(order, &order->slots[gm__order_lowest(left)]);
  }
  if (!(mask & order->used & order_crowd)) return;
  for (uint32_t i = 0; i < order->crowd.count; i++) visit(order, order->crowd.members[i]);
  gm__order_update_crowd(order);
}

static void order_look_behind(gm__order *order, gm__order_slot *slot) {
  if (gm__order_is_behind(slot)) order_look_slot(order, slot);
}

void gm__order_look(gm__order *order, uint64_t mask) {
  order_each(order, mask, order_look_behind);
  for (uint64_t left = mask & order->used; left; left &= left - 1) {
    const gm__order_slot *slot = &order->slots[gm__order_lowest(left)];
    if (gm__order_is_behind(slot) && !slot->has_point) order->owed |= gm__order_bit(gm__order_lowest(left));
  }
}

void gm__order_settle_up(gm__order *order, const gm_stream *stream) {
  const uint64_t owed = order->owed;
  if (!owed || gm__stream_captured(stream)) return;
  order->owed = 0;
  gm__order_refresh(order, owed);
}

uint64_t gm__order_doubtful(const gm__order *order, uint64_t pending, int slot) {
  const bool knows = slot != GM__ORDER_HOST && order->slots[slot].stream->kind == GM_STREAM_FIFO;
  return knows ? pending & ~gm__order_bit(slot) : pending;
}

void gm__order_refresh(gm__order *order, uint64_t mask) { order_each(order, mask, order_refresh_slot); }

bool gm__order_has_passed(const gm__order *order, uint64_t time) {
  for (uint64_t left = order->used; left; left &= left - 1) {
    const gm__order_slot *slot = &order->slots[gm__order_lowest(left)];
    if (gm__order_is_behind(slot) && slot->passed < time) return false;
  }
  return true;
}

static void order_flush_slot(gm__order *order, gm__order_slot *slot) {
  GM__UNCANCELLED();
  const gm_device *device = order->device;
  if (!gm__order_is_behind(slot)) return;
  gm__order_step_from(order, slot);
  gm__submitting(device)->stream_flush(device->handle, slot->stream->handle, NULL);
  gm__order_step_to(order, slot);
}

void gm__order_flush(gm__order *order) { order_each(order, order->used, order_flush_slot); }

gm__order_verdict gm__order_judge(const gm__order *order, const gm__last_use *use, int slot, bool insert) {
  uint64_t pending = use->streams;
  if (!pending) return GM__ORDER_READY;
  if (slot == GM__ORDER_HOST || pending & order_crowd) return GM__ORDER_BUSY;
  gm_stream_kind kind = order->slots[slot].stream->kind;
  uint64_t others = pending & ~gm__order_bit(slot);
  bool own = pending != others;
  if (!others) {
    if (kind == GM_STREAM_FIFO) return GM__ORDER_READY;
    return kind == GM_STREAM_FIFO_IF_BARRIER ? GM__ORDER_BARRIER : GM__ORDER_OWN_WAIT;
  }
  bool one_wait = !(others & (others - 1)) && (!own || kind == GM_STREAM_FIFO);
  return insert || one_wait ? GM__ORDER_OTHERS_WAIT : GM__ORDER_BUSY;
}

/* ---- waits ---- */

/* The slots of all streams that a call on this last use works on. */
static uint64_t order_involved(const gm__last_use *use, int slot) {
  return use->streams | gm__order_bit(slot) | (use->has_point ? gm__order_bit(use->point_slot) : 0);
}

/* Makes the stream of `slot` wait for work of the stream of `other` on the block. The point that is under way there
 * serves if it comes after that work; nobody releases it meanwhile. */
static gm_status order_wait_on(gm__order *order, const gm__last_use *use, int slot, int other, gm_error *err) {
  const gm_device *device = order->device;
  gm__order_slot *from = &order->slots[other];
  const uint64_t involved = order_involved(use, slot) | gm__order_bit(other), point_at = from->point_at;
  const bool covered = from->has_point && !from->point_of && use->freed_at <= point_at;
  gm_backend_point point = from->point;
  if (covered) from->has_point = false;
  if (covered) from->asked = true;
  order_step_out(order, involved);
  gm_status status = covered ? GM_OK : order_record(order, from, &point, err);
  const bool owns = status == GM_OK;
  if (owns)
    status = gm__submitting(device)->point_wait_on(device->handle, order->slots[slot].stream->handle, &point, err);
  order_step_in(order, involved);
  if (covered) {
    order_keep(order, from, &point, point_at);
  } else if (owns) {
    gm__order_release(order, &point);
  }
  return status;
}

static gm_status order_insert_own(gm__order *order, const gm__last_use *use, int slot, gm_error *err) {
  const gm_device *device = order->device;
  const gm_stream *stream = order->slots[slot].stream;
  const uint64_t involved = order_involved(use, slot);
  const bool has_point = use->has_point && use->point_slot == slot;
  if (stream->kind == GM_STREAM_FIFO) return GM_OK;
  if (stream->kind == GM_STREAM_UNORDERED && !has_point) return order_wait_on(order, use, slot, slot, err);
  order_step_out(order, involved);
  const gm_status status =
      stream->kind == GM_STREAM_FIFO_IF_BARRIER
          ? gm__submitting(device)->stream_barrier(device->handle, stream->handle, err)
          : gm__submitting(device)->point_wait_on(device->handle, stream->handle, &use->point, err);
  order_step_in(order, involved);
  return status;
}

gm_status gm__order_insert(gm__order *order, gm__last_use *use, int slot, gm_error *err) {
  GM__UNCANCELLED();
  if (use->streams & order_crowd) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_alloc", "the work of too many streams would have to be waited for");
  }
  for (uint64_t left = use->streams; left; left &= left - 1) {
    int other = gm__order_lowest(left);
    if (!(use->streams & gm__order_bit(other))) continue; /* it is done meanwhile */
    gm_status status =
        other == slot ? order_insert_own(order, use, slot, err) : order_wait_on(order, use, slot, other, err);
    if (status) return status;
  }
  gm__order_drop_point(order, use);
  use->streams = gm__order_bit(slot);
  use->freed_at = gm__order_now(order);
  order->slots[slot].last_free = use->freed_at;
  return GM_OK;
}

gm_status gm__order_attach_point(gm__order *order, gm__last_use *use, int slot, gm_error *err) {
  GM__UNCANCELLED();
  const uint64_t others = use->streams & ~gm__order_bit(slot), involved = order_involved(use, slot);
  const int from = others ? gm__order_lowest(others) : slot;
  gm_backend_point point;
  if (use->has_point && use->point_slot == from) return GM_OK;
  order_step_out(order, involved);
  const gm_status status = order_record(order, &order->slots[from], &point, err);
  order_step_in(order, involved);
  if (status) return status;
  gm__order_drop_point(order, use);
  use->point = point;
  use->has_point = true;
  use->point_slot = (uint8_t)from;
  return GM_OK;
}

/* The slot, or the member of the crowd, for a number of gm__order_free_slot. */
static gm__order_slot *order_at(gm__order *order, int slot) {
  return slot < GM__ORDER_SLOTS ? &order->slots[slot] : order->crowd.members[slot - GM__ORDER_SLOTS];
}

void gm__order_note_use(gm__order *order, gm__last_use *use, int slot) {
  use->users |= gm__order_bit(gm__order_place(slot));
  order_at(order, slot)->last_use = gm__order_now(order);
}

uint64_t gm__order_stream_id(const gm__order *order, int slot) {
  if (slot == GM__ORDER_HOST) return 0;
  return (slot < GM__ORDER_SLOTS ? &order->slots[slot] : order->crowd.members[slot - GM__ORDER_SLOTS])->stream->id;
}

bool gm__order_knows(const gm__order *order, const gm_stream *stream) {
  return gm__order_find(order, stream) != GM__ORDER_HOST || gm__order_member(order, stream) != GM__ORDER_HOST;
}

gm__order_slot *gm__order_named(gm__order *order, const gm_stream *stream) {
  int at = gm__order_find(order, stream);
  if (at == GM__ORDER_HOST) at = gm__order_member(order, stream);
  return at == GM__ORDER_HOST ? NULL : order_at(order, at);
}

bool gm__order_is_unsettled(gm__order *order, const gm_stream *stream) {
  gm__order_slot *slot = gm__order_named(order, stream);
  if (!slot) return false;
  while (order_look_slot(order, slot)) continue;
  return gm__order_is_behind(slot) || slot->passed < slot->last_use;
}

void gm__order_clear_slot(const gm__order *order, gm__order_slot *slot, gm_close_mode mode) {
  const gm_device *device = order->device;
  if (slot->has_point) device->ops->point_release(device->handle, &slot->point, mode);
  if (slot->later.there) device->ops->point_release(device->handle, &slot->later.point, mode);
  slot->has_point = slot->later.there = false;
}

void gm__order_end(gm__order *order, int slot) {
  order->slots[slot].passed = order_tick(order);
  order->ended |= gm__order_bit(slot);
}

void gm__order_resume(gm__order *order, const gm_stream *stream) {
  const int slot = gm__order_find(order, stream);
  if (slot != GM__ORDER_HOST) order->ended &= ~gm__order_bit(slot);
}

void gm__order_forget_use(gm__order *order, gm__last_use *use, int slot) {
  use->streams &= ~gm__order_bit(slot);
  use->users &= ~gm__order_bit(slot);
  if (use->has_point && use->point_slot == slot) gm__order_drop_point(order, use);
}

void gm__order_forget(gm__order *order, int slot) {
  gm__order_clear_slot(order, &order->slots[slot], GM_CLOSE_NORMAL);
  order->slots[slot] = (gm__order_slot){.passed = UINT64_MAX}; /* memory that still names it waits for nothing */
  order->used &= ~gm__order_bit(slot);
  order->given &= ~gm__order_bit(slot);
  order->ended &= ~gm__order_bit(slot);
}

void gm__order_clear_use(const gm__order *order, gm__last_use *use, gm_close_mode mode) {
  if (use->has_point) order->device->ops->point_release(order->device->handle, &use->point, mode);
  use->has_point = false;
}

bool gm__order_is_captured(const gm_stream *stream, gm_error *err) {
  if (!gm__stream_captured(stream)) return false;
  gm__fail(
      err, GM_ERR_BUSY, "gm_alloc",
      "the stream is being captured: until that ends only pooled memory serves, such as was freed on it, and none is "
      "zeroed");
  return true;
}
