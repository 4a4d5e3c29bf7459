#include "core/pool/order.h"

#include "core/device/answer.h"

/* Invariants. The device has a clock that moves on by one whenever a stream is about to be asked how far it is
 * (`order_clock`); a block remembers the time of its free and a bit for each stream whose work may still use it, and a
 * stream (slot) remembers up to which time its work is done. The work on a block is submitted before its free reads the
 * clock, the clock moves on before the point is recorded: so a point settles every block with an older time, however
 * many there are, and a free costs no point and writes nothing that is shared. Points are taken only when another order
 * wants a block, which on an unordered stream the stream itself is.
 *
 * Bits survive a reuse in the same stream: a block that was taken on a stream while older work there was pending, and
 * is then freed by the host, must still wait for that work. A lost device has nothing running: its points have passed.
 */

static const uint64_t order_crowd = UINT64_C(1) << GM__ORDER_CROWD;

void gm__order_init(gm__order *order, gm_device *device, const gm__order_lock *lock) {
  order->device = device;
  order->lock = *lock;
  gm__map_init(&order->crowd.numbers, gm__context_services(device->ctx));
}

/* Later frees are told apart from all before by the answer. */
static uint64_t order_tick(const gm__order *order) { return atomic_fetch_add(&order->device->order_clock, 1); }

static int order_add(gm__order *order, gm_stream *stream) {
  if (gm__order_is_full(order)) return GM__ORDER_HOST;
  int slot = gm__order_lowest(~order->used);
  order->used |= gm__order_bit(slot);
  order->slots[slot] = (gm__order_slot){.stream = stream, .passed = order_tick(order)};
  return slot;
}

int gm__order_find(const gm__order *order, const gm_stream *stream) {
  for (uint64_t left = order->used; left; left &= left - 1) {
    int slot = gm__order_lowest(left);
    if (order->slots[slot].stream == stream) return slot;
  }
  return GM__ORDER_HOST;
}

int gm__order_slot_of(gm__order *order, gm_stream *stream) {
  if (!stream) return GM__ORDER_HOST;
  int slot = gm__order_find(order, stream);
  if (slot != GM__ORDER_HOST || gm__order_member(order, stream) != GM__ORDER_HOST) return slot; /* it stays there */
  return order_add(order, stream);
}

static gm_status order_record(const gm__order *order, const gm__order_slot *slot, gm_backend_point *out,
                              gm_error *err) {
  return gm__submitting(order->device)->point_record(order->device->handle, slot->stream->handle, out, err);
}

static void order_release(const gm__order *order, const gm_backend_point *point) {
  order->device->ops->point_release(order->device->handle, point, GM_CLOSE_NORMAL);
}

static bool order_passed(const gm__order *order, const gm_backend_point *point) {
  bool done = false;
  gm_status status = order->device->ops->point_done(order->device->handle, point, &done, NULL);
  gm__answer_mend_bool(&done);
  return status == GM_ERR_DEVICE_LOST || (status == GM_OK && done);
}

void gm__order_drop_point(gm__order *order, gm__mark *mark) {
  if (!mark->has_point) return;
  order_release(order, &mark->point);
  mark->has_point = false;
  mark->given = GM__GIVEN_NOT;
}

/* A given point stays with what it was given for: it says nothing of older work of its stream. */
static bool order_keeps_point(const gm__mark *mark, int slot) {
  const bool next = mark->has_point && mark->given == GM__GIVEN_NEXT;
  return next && mark->point_slot == slot && !(mark->streams & gm__order_bit(slot));
}

void gm__order_note_free(gm__order *order, gm__mark *mark, int slot) {
  const bool crowded = (mark->users & order_crowd) != 0;
  mark->streams = gm__order_settle(order, mark) | mark->users;
  mark->users = 0;
  if (order_keeps_point(mark, slot)) {
    mark->given = GM__GIVEN_KEPT;
    order->given |= gm__order_bit(slot);
  } else {
    gm__order_drop_point(order, mark);
  }
  mark->freed_at = gm__order_now(order);
  if (slot != GM__ORDER_HOST) mark->streams |= gm__order_bit(gm__order_place(slot));
  for (uint64_t left = mark->streams; left; left &= left - 1) {
    order->slots[gm__order_lowest(left)].last_free = mark->freed_at;
  }
  if (slot >= GM__ORDER_SLOTS) order->crowd.members[slot - GM__ORDER_SLOTS]->last_free = mark->freed_at;
  for (uint32_t i = 0; crowded && i < order->crowd.count; i++) { /* any of those may be the one that used it */
    gm__order_slot *member = order->crowd.members[i];
    if (member->last_use) member->last_free = mark->freed_at;
  }
}

uint64_t gm__order_settle(gm__order *order, gm__mark *mark) {
  for (uint64_t left = mark->streams; left; left &= left - 1) {
    int slot = gm__order_lowest(left);
    if (mark->freed_at <= order->slots[slot].passed) mark->streams &= ~gm__order_bit(slot);
  }
  if (mark->has_point && (mark->streams & gm__order_bit(mark->point_slot)) && order_passed(order, &mark->point)) {
    mark->streams &= ~gm__order_bit(mark->point_slot);
  }
  return mark->streams;
}

/* ---- outside the lock ---- */

static void order_pin(gm__order *order, uint64_t mask, uint32_t pins) {
  for (uint64_t left = mask; left; left &= left - 1) order->slots[gm__order_lowest(left)].pins += pins;
}

/* For a call that may submit: an engine's hook may wait there for who waits for this lock. */
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

/* The point is the slot's, if it has none. */
static void order_keep(const gm__order *order, gm__order_slot *slot, const gm_backend_point *point, uint64_t point_at) {
  slot->asked = false;
  if (slot->has_point) {
    order_release(order, point);
    return;
  }
  slot->point = *point;
  slot->point_at = point_at;
  slot->point_of = 0;
  slot->has_point = true;
}

/* One thread at a time: what others need is under way. */
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

/* What the engine said last comes next. */
static void order_take_later(gm__order_slot *slot) {
  if (slot->has_point || slot->asked || !slot->later.there) return;
  slot->point = slot->later.point;
  slot->point_at = slot->later.at;
  slot->point_of = slot->later.of;
  slot->has_point = true;
  slot->later.there = false;
}

/* Has the stream reached its point? */
static bool order_look_slot(const gm__order *order, gm__order_slot *slot) {
  order_take_later(slot);
  if (!slot->has_point || !order_passed(order, &slot->point)) return false;
  order_release(order, &slot->point);
  slot->has_point = false;
  if (slot->passed < slot->point_at) slot->passed = slot->point_at;
  return true;
}

/* One point at a time: a stream that has not reached the last one has not reached a newer one either. */
static void order_refresh_slot(gm__order *order, gm__order_slot *slot) {
  for (int turn = 0; turn < 3 && gm__order_is_behind(slot); turn++) {
    order_take_later(slot);
    if (!slot->has_point) order_ask(order, slot);
    if (!order_look_slot(order, slot)) return;
  }
}

/* With a tick: what is freed later than this is later for those that are done, too. */
void gm__order_update_crowd(gm__order *order) {
  gm__order_slot *crowd = &order->slots[GM__ORDER_CROWD];
  uint64_t passed = order_tick(order);
  for (uint32_t i = 0; i < order->crowd.count; i++) {
    const gm__order_slot *member = order->crowd.members[i];
    if (gm__order_is_behind(member) && member->passed < passed) passed = member->passed;
  }
  if (crowd->passed < passed) crowd->passed = passed;
}

/* For each slot of the mask, and for each of the crowd where it is among them. */
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

bool gm__order_is_done(const gm__order *order) {
  for (uint64_t left = order->used; left; left &= left - 1) {
    if (gm__order_is_behind(&order->slots[gm__order_lowest(left)])) return false;
  }
  return true;
}

static void order_flush_slot(gm__order *order, gm__order_slot *slot) {
  const gm_device *device = order->device;
  if (!gm__order_is_behind(slot)) return;
  gm__order_step_from(order, slot);
  gm__submitting(device)->stream_flush(device->handle, slot->stream->handle, NULL);
  gm__order_step_to(order, slot);
}

void gm__order_flush(gm__order *order) { order_each(order, order->used, order_flush_slot); }

gm__order_verdict gm__order_judge(const gm__order *order, const gm__mark *mark, int slot, bool insert) {
  uint64_t pending = mark->streams;
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

gm__order_verdict gm__order_forecast(const gm__order *order, const gm__mark *mark, const gm_stream *stream,
                                     bool insert) {
  const int slot = gm__order_find(order, stream);
  const bool gets_one = stream && slot == GM__ORDER_HOST && !gm__order_is_full(order);
  if (!gets_one || !mark->streams || mark->streams & order_crowd) return gm__order_judge(order, mark, slot, insert);
  const bool one_wait = !(mark->streams & (mark->streams - 1));
  return insert || one_wait ? GM__ORDER_OTHERS_WAIT : GM__ORDER_BUSY;
}

/* ---- waits ---- */

/* The streams whose slots a call on the mark works on. */
static uint64_t order_involved(const gm__mark *mark, int slot) {
  return mark->streams | gm__order_bit(slot) | (mark->has_point ? gm__order_bit(mark->point_slot) : 0);
}

/* Make the stream of `slot` wait for the work on a block of that mark that was submitted to the stream of `other`: by
 * the point that is under way there, if it comes after that. Nobody gives that back meanwhile. */
static gm_status order_wait_on(gm__order *order, const gm__mark *mark, int slot, int other, gm_error *err) {
  const gm_device *device = order->device;
  gm__order_slot *from = &order->slots[other];
  const uint64_t involved = order_involved(mark, slot) | gm__order_bit(other), point_at = from->point_at;
  const bool covered = from->has_point && !from->point_of && mark->freed_at <= point_at;
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
    order_release(order, &point);
  }
  return status;
}

static gm_status order_insert_own(gm__order *order, const gm__mark *mark, int slot, gm_error *err) {
  const gm_device *device = order->device;
  const gm_stream *stream = order->slots[slot].stream;
  const uint64_t involved = order_involved(mark, slot);
  const bool has_point = mark->has_point && mark->point_slot == slot;
  if (stream->kind == GM_STREAM_FIFO) return GM_OK;
  if (stream->kind == GM_STREAM_UNORDERED && !has_point) return order_wait_on(order, mark, slot, slot, err);
  order_step_out(order, involved);
  const gm_status status =
      stream->kind == GM_STREAM_FIFO_IF_BARRIER
          ? gm__submitting(device)->stream_barrier(device->handle, stream->handle, err)
          : gm__submitting(device)->point_wait_on(device->handle, stream->handle, &mark->point, err);
  order_step_in(order, involved);
  return status;
}

gm_status gm__order_insert(gm__order *order, gm__mark *mark, int slot, gm_error *err) {
  if (mark->streams & order_crowd) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "gm_alloc",
                    "the work of too many streams would have to be waited for");
  }
  for (uint64_t left = mark->streams; left; left &= left - 1) {
    int other = gm__order_lowest(left);
    if (!(mark->streams & gm__order_bit(other))) continue; /* done meanwhile */
    gm_status status =
        other == slot ? order_insert_own(order, mark, slot, err) : order_wait_on(order, mark, slot, other, err);
    if (status) return status;
  }
  gm__order_drop_point(order, mark);
  mark->streams = gm__order_bit(slot);
  mark->freed_at = gm__order_now(order);
  order->slots[slot].last_free = mark->freed_at;
  return GM_OK;
}

gm_status gm__order_attach_point(gm__order *order, gm__mark *mark, int slot, gm_error *err) {
  const uint64_t others = mark->streams & ~gm__order_bit(slot), involved = order_involved(mark, slot);
  const int from = others ? gm__order_lowest(others) : slot;
  gm_backend_point point;
  if (mark->has_point && mark->point_slot == from) return GM_OK;
  order_step_out(order, involved);
  const gm_status status = order_record(order, &order->slots[from], &point, err);
  order_step_in(order, involved);
  if (status) return status;
  gm__order_drop_point(order, mark);
  mark->point = point;
  mark->has_point = true;
  mark->point_slot = (uint8_t)from;
  return GM_OK;
}

/* Of a free, or its member's. */
static gm__order_slot *order_at(gm__order *order, int slot) {
  return slot < GM__ORDER_SLOTS ? &order->slots[slot] : order->crowd.members[slot - GM__ORDER_SLOTS];
}

void gm__order_note_use(gm__order *order, gm__mark *mark, int slot) {
  mark->users |= gm__order_bit(gm__order_place(slot));
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
  return slot->passed < slot->last_free || slot->passed < slot->last_use;
}

void gm__order_clear_slot(const gm__order *order, gm__order_slot *slot, gm_close_mode mode) {
  const gm_device *device = order->device;
  if (slot->has_point) device->ops->point_release(device->handle, &slot->point, mode);
  if (slot->later.there) device->ops->point_release(device->handle, &slot->later.point, mode);
  slot->has_point = slot->later.there = false;
}

void gm__order_forget_mark(gm__order *order, gm__mark *mark, int slot) {
  mark->streams &= ~gm__order_bit(slot);
  mark->users &= ~gm__order_bit(slot);
  if (mark->has_point && mark->point_slot == slot) gm__order_drop_point(order, mark);
}

void gm__order_forget(gm__order *order, int slot) {
  gm__order_clear_slot(order, &order->slots[slot], GM_CLOSE_NORMAL);
  order->slots[slot] = (gm__order_slot){0};
  order->used &= ~gm__order_bit(slot);
  order->given &= ~gm__order_bit(slot);
}

void gm__order_clear_mark(const gm__order *order, gm__mark *mark, gm_close_mode mode) {
  if (mark->has_point) order->device->ops->point_release(order->device->handle, &mark->point, mode);
  mark->has_point = false;
}

void gm__order_clear(gm__order *order, gm_close_mode mode) {
  for (uint64_t left = order->used; left; left &= left - 1) {
    gm__order_clear_slot(order, &order->slots[gm__order_lowest(left)], mode);
  }
  order->used = 0;
  gm__order_clear_crowd(order, mode);
}
