#include "core/pool/order.h"

#include <inttypes.h>

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

static uint64_t order_bit(int slot) { return UINT64_C(1) << slot; }

static int order_lowest(uint64_t mask) { return __builtin_ctzll(mask); }

void gm__order_init(gm__order *order, gm_device *device) { order->device = device; }

/* Later frees are told apart from all before by the answer. */
static uint64_t order_tick(const gm__order *order) { return atomic_fetch_add(&order->device->order_clock, 1); }

static int order_add(gm__order *order, gm_stream *stream) {
  if (order->used == UINT64_MAX) return GM__ORDER_HOST;
  int slot = order_lowest(~order->used);
  order->used |= order_bit(slot);
  order->slots[slot] = (gm__order_slot){.stream = stream, .passed = order_tick(order)};
  return slot;
}

int gm__order_find(const gm__order *order, const gm_stream *stream) {
  for (uint64_t left = order->used; left; left &= left - 1) {
    int slot = order_lowest(left);
    if (order->slots[slot].stream == stream) return slot;
  }
  return GM__ORDER_HOST;
}

int gm__order_slot_of(gm__order *order, gm_stream *stream) {
  if (!stream) return GM__ORDER_HOST;
  int slot = gm__order_find(order, stream);
  return slot == GM__ORDER_HOST ? order_add(order, stream) : slot;
}

static gm_status order_record(const gm__order *order, int slot, gm_backend_point *out, gm_error *err) {
  return order->device->ops->point_record(order->device->handle, order->slots[slot].stream->handle, out, err);
}

static void order_release(const gm__order *order, const gm_backend_point *point) {
  order->device->ops->point_release(order->device->handle, point, GM_CLOSE_NORMAL);
}

static bool order_passed(const gm__order *order, const gm_backend_point *point) {
  bool done = false;
  gm_status status = order->device->ops->point_done(order->device->handle, point, &done, NULL);
  return status == GM_ERR_DEVICE_LOST || (status == GM_OK && done);
}

void gm__order_drop_point(gm__order *order, gm__mark *mark) {
  if (!mark->has_point) return;
  order_release(order, &mark->point);
  mark->has_point = false;
}

void gm__order_note_free(gm__order *order, gm__mark *mark, int slot) {
  mark->streams = gm__order_settle(order, mark) | mark->users;
  mark->users = 0;
  gm__order_drop_point(order, mark);
  mark->freed_at = gm__order_now(order);
  if (slot != GM__ORDER_HOST) mark->streams |= order_bit(slot);
  for (uint64_t left = mark->streams; left; left &= left - 1) {
    order->slots[order_lowest(left)].last_free = mark->freed_at;
  }
}

uint64_t gm__order_settle(gm__order *order, gm__mark *mark) {
  for (uint64_t left = mark->streams; left; left &= left - 1) {
    int slot = order_lowest(left);
    if (mark->freed_at <= order->slots[slot].passed) mark->streams &= ~order_bit(slot);
  }
  if (mark->has_point && (mark->streams & order_bit(mark->point_slot)) && order_passed(order, &mark->point)) {
    mark->streams &= ~order_bit(mark->point_slot);
  }
  return mark->streams;
}

/* One point at a time: a stream that has not reached the last one has not reached a newer one either. */
static void order_refresh_slot(gm__order *order, int at) {
  gm__order_slot *slot = &order->slots[at];
  for (int turn = 0; turn < 2; turn++) {
    if (slot->passed >= slot->last_free) return;
    if (!slot->has_point) {
      slot->point_at = order_tick(order);
      if (order_record(order, at, &slot->point, NULL)) return;
      slot->has_point = true;
    }
    if (!order_passed(order, &slot->point)) return;
    order_release(order, &slot->point);
    slot->has_point = false;
    if (slot->passed < slot->point_at) slot->passed = slot->point_at;
  }
}

uint64_t gm__order_doubtful(const gm__order *order, uint64_t pending, int slot) {
  const bool knows = slot != GM__ORDER_HOST && order->slots[slot].stream->kind == GM_STREAM_FIFO;
  return knows ? pending & ~order_bit(slot) : pending;
}

void gm__order_refresh(gm__order *order, uint64_t mask) {
  for (uint64_t left = mask & order->used; left; left &= left - 1) order_refresh_slot(order, order_lowest(left));
}

bool gm__order_is_done(const gm__order *order) {
  for (uint64_t left = order->used; left; left &= left - 1) {
    const gm__order_slot *slot = &order->slots[order_lowest(left)];
    if (slot->passed < slot->last_free) return false;
  }
  return true;
}

void gm__order_flush(const gm__order *order) {
  const gm_device *device = order->device;
  for (uint64_t left = order->used; left; left &= left - 1) {
    const gm__order_slot *slot = &order->slots[order_lowest(left)];
    if (slot->passed < slot->last_free) device->ops->stream_flush(device->handle, slot->stream->handle, NULL);
  }
}

void gm__order_note_synced(gm__order *order, const gm_stream *stream, uint64_t clock) {
  int slot = gm__order_find(order, stream);
  if (slot != GM__ORDER_HOST && order->slots[slot].passed < clock) order->slots[slot].passed = clock;
}

gm__order_verdict gm__order_judge(const gm__order *order, const gm__mark *mark, int slot, bool insert) {
  uint64_t pending = mark->streams;
  if (!pending) return GM__ORDER_READY;
  if (slot == GM__ORDER_HOST) return GM__ORDER_BUSY;
  gm_stream_kind kind = order->slots[slot].stream->kind;
  uint64_t others = pending & ~order_bit(slot);
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
  const bool gets_one = stream && slot == GM__ORDER_HOST && order->used != UINT64_MAX;
  if (!gets_one || !mark->streams) return gm__order_judge(order, mark, slot, insert);
  const bool one_wait = !(mark->streams & (mark->streams - 1));
  return insert || one_wait ? GM__ORDER_OTHERS_WAIT : GM__ORDER_BUSY;
}

/* Make the stream of `slot` wait for the work on a block of that mark that was submitted to the stream of `other`: by
 * the point that is under way there, if it comes after that. */
static gm_status order_wait_on(const gm__order *order, const gm__mark *mark, int slot, int other, gm_error *err) {
  const gm_device *device = order->device;
  const gm__order_slot *from = &order->slots[other];
  const bool covered = from->has_point && mark->freed_at <= from->point_at;
  gm_backend_point point = from->point;
  gm_status status = covered ? GM_OK : order_record(order, other, &point, err);
  if (status) return status;
  status = device->ops->point_wait_on(device->handle, order->slots[slot].stream->handle, &point, err);
  if (!covered) order_release(order, &point);
  return status;
}

static gm_status order_insert_own(const gm__order *order, const gm__mark *mark, int slot, gm_error *err) {
  const gm_device *device = order->device;
  const gm_stream *stream = order->slots[slot].stream;
  if (stream->kind == GM_STREAM_FIFO) return GM_OK;
  if (stream->kind == GM_STREAM_FIFO_IF_BARRIER)
    return device->ops->stream_barrier(device->handle, stream->handle, err);
  if (!mark->has_point || mark->point_slot != slot) return order_wait_on(order, mark, slot, slot, err);
  return device->ops->point_wait_on(device->handle, stream->handle, &mark->point, err);
}

gm_status gm__order_insert(gm__order *order, gm__mark *mark, int slot, gm_error *err) {
  for (uint64_t left = mark->streams; left; left &= left - 1) {
    int other = order_lowest(left);
    gm_status status =
        other == slot ? order_insert_own(order, mark, slot, err) : order_wait_on(order, mark, slot, other, err);
    if (status) return status;
  }
  gm__order_drop_point(order, mark);
  mark->streams = order_bit(slot);
  mark->freed_at = gm__order_now(order);
  order->slots[slot].last_free = mark->freed_at;
  return GM_OK;
}

gm_status gm__order_attach_point(gm__order *order, gm__mark *mark, int slot, gm_error *err) {
  uint64_t others = mark->streams & ~order_bit(slot);
  int from = others ? order_lowest(others) : slot;
  if (mark->has_point && mark->point_slot == from) return GM_OK;
  gm__order_drop_point(order, mark);
  gm_status status = order_record(order, from, &mark->point, err);
  if (status) return status;
  mark->has_point = true;
  mark->point_slot = (uint8_t)from;
  return GM_OK;
}

static gm_status order_wait_for_point(const gm_device *device, const gm_stream *stream, gm_error *err) {
  gm_backend_point point;
  gm_status status = device->ops->point_record(device->handle, stream->handle, &point, err);
  if (status) return status;
  status = device->ops->point_wait(device->handle, &point, UINT64_MAX, err);
  device->ops->point_release(device->handle, &point, GM_CLOSE_NORMAL);
  return status;
}

gm_status gm__order_drain(gm_stream *stream, const char *op, gm_error *err) {
  const gm_device *device = stream->device;
  gm_error why = {.status = GM_OK};
  gm_status status = order_wait_for_point(device, stream, &why);
  if (status && status != GM_ERR_DEVICE_LOST) {
    status = device->ops->stream_sync(device->handle, stream->handle, &why);
  }
  if (!status || status == GM_ERR_DEVICE_LOST) return GM_OK;
  return gm__fail(err, GM_ERR_BUSY, why.native_code, op,
                  "work of stream %" PRIu64 " may still run, and gm can neither record a point nor wait there (%s)",
                  stream->id, why.message);
}

void gm__order_note_use(gm__order *order, gm__mark *mark, int slot) {
  mark->users |= order_bit(slot);
  order->slots[slot].last_use = gm__order_now(order);
}

bool gm__order_is_unsettled(gm__order *order, const gm_stream *stream) {
  const int at = gm__order_find(order, stream);
  if (at == GM__ORDER_HOST) return false;
  gm__order_slot *slot = &order->slots[at];
  if (slot->has_point && order_passed(order, &slot->point) && slot->passed < slot->point_at) {
    slot->passed = slot->point_at;
  }
  return slot->passed < slot->last_free || slot->passed < slot->last_use;
}

/* A stream of the slot may still use something that was freed. */
static bool order_is_busy(const gm__order *order, int slot) {
  return order->slots[slot].passed < order->slots[slot].last_free;
}

gm_status gm__order_drain_all(const gm__order *order, const char *op, gm_error *err) {
  for (uint64_t left = order->used; left; left &= left - 1) {
    const gm_stream *stream = order->slots[order_lowest(left)].stream;
    if (!order_is_busy(order, order_lowest(left)) || !gm__stream_captured(stream)) continue;
    return gm__fail(err, GM_ERR_BUSY, 0, op,
                    "blocks were freed on stream %" PRIu64 ", which is being captured: end the capture first",
                    stream->id);
  }
  for (uint64_t left = order->used; left; left &= left - 1) {
    const int slot = order_lowest(left);
    const gm_status status = order_is_busy(order, slot) ? gm__order_drain(order->slots[slot].stream, op, err) : GM_OK;
    if (status) return status;
  }
  return GM_OK;
}

void gm__order_forget_mark(gm__order *order, gm__mark *mark, int slot) {
  mark->streams &= ~order_bit(slot);
  mark->users &= ~order_bit(slot);
  if (mark->has_point && mark->point_slot == slot) gm__order_drop_point(order, mark);
}

void gm__order_forget(gm__order *order, int slot) {
  if (order->slots[slot].has_point) order_release(order, &order->slots[slot].point);
  order->slots[slot] = (gm__order_slot){0};
  order->used &= ~order_bit(slot);
}

void gm__order_clear_mark(const gm__order *order, gm__mark *mark, gm_close_mode mode) {
  if (mark->has_point) order->device->ops->point_release(order->device->handle, &mark->point, mode);
  mark->has_point = false;
}

void gm__order_clear(gm__order *order, gm_close_mode mode) {
  const gm_device *device = order->device;
  for (uint64_t left = order->used; left; left &= left - 1) {
    gm__order_slot *slot = &order->slots[order_lowest(left)];
    if (slot->has_point) device->ops->point_release(device->handle, &slot->point, mode);
    slot->has_point = false;
  }
  order->used = 0;
}
