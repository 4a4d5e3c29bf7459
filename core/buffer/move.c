#include "core/buffer/move.h"

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/buffer/hold.h"

/* Invariant: the bytes leave a place only after another one has them all. */

void gm__buffer_note_place(gm_buffer *buffer) {
  const bool away = !gm__place_is_wanted(buffer, &buffer->at);
  gm__stats *stats = &buffer->pool->heap.provider.stats;
  if (away && !buffer->fell_back) gm__stats_count(&stats->fallback_bytes, buffer->bytes);
  if (!away && buffer->fell_back) gm__stats_uncount(&stats->fallback_bytes, buffer->bytes);
  buffer->fell_back = away;
}

gm_status gm__buffer_move_in(gm_buffer *buffer, gm__place *to, gm_stream *stream, const char *op, gm_error *err) {
  gm_status status = gm__place_copy(buffer, to, stream, op, err);
  if (!status) {
    status = gm__place_leave(buffer, &buffer->at, stream);
    if (status) gm__fail(err, status, op, "the pool keeps the buffer's block: it is mapped, or its stream captured");
  }
  if (status) {
    gm__place_undo(buffer, to, stream);
    return status;
  }
  gm__buffer_put(buffer, to);
  buffer->asleep = buffer->shown = false;
  gm__buffer_forget_uses(buffer); /* the copy came after them, and has ended */
  gm__buffer_note_place(buffer);
  return GM_OK;
}

gm_status gm__buffer_go(gm_buffer *buffer, gm_location where, gm_stream *stream, const char *op, gm_error *err) {
  gm__place to;
  gm_status status = gm__place_take(buffer, where, stream, op, &to, err);
  return status ? status : gm__buffer_move_in(buffer, &to, stream, op, err);
}

/* ---- the API ---- */

/* The wish of a caller. */
typedef struct move_wish {
  gm_location where;
  bool back; /* only a buffer that fell back goes */
} move_wish;

/* Seizes the buffer. *goes: it is not where it is wanted. */
static gm_status move_begin(gm_buffer *buffer, const move_wish *wish, gm_stream *stream, const char *op, bool *goes,
                            gm_error *err) {
  const gm_status status = gm__buffer_seize(buffer, stream, op, err);
  *goes = !status && (wish->back ? buffer->fell_back : buffer->at.location != wish->where);
  return status;
}

/* Settles a buffer that is where the caller wants it, and notes whether that is away from the device. */
static gm_status move_end(gm_buffer *buffer, const move_wish *wish) {
  buffer->parked = buffer->fell_back && wish->where != GM_LOCATION_DEVICE;
  gm__buffer_settle(buffer);
  return GM_OK;
}

/* Moves a buffer that this thread has not seized. The new place is taken while the buffer is not seized. So an evictor
 * that is asked for room may use the buffer. */
static gm_status move_to(gm_buffer *buffer, const move_wish *wish, gm_stream *stream, const char *op, gm_error *err) {
  gm__place to;
  bool goes;
  gm_status status = move_begin(buffer, wish, stream, op, &goes, err);
  if (status) return status;
  if (!goes) return move_end(buffer, wish);
  gm__buffer_settle(buffer);
  status = gm__place_take(buffer, wish->where, stream, op, &to, err);
  if (status) return status;
  status = move_begin(buffer, wish, stream, op, &goes, err);
  if (!goes) gm__place_undo(buffer, &to, stream);
  if (status) return status;
  if (goes) status = gm__buffer_move_in(buffer, &to, stream, op, err); /* else another thread has moved it meanwhile */
  if (!status) return move_end(buffer, wish);
  gm__buffer_settle(buffer);
  return status;
}

gm_status gm_buffer_move(gm_buffer *buffer, gm_location where, gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_buffer_move";
  const gm_status status = gm__buffer_check(buffer, op, err);
  if (status) return status;
  if ((unsigned)where > GM_LOCATION_HOST) {
    return gm__bad_argument(err, op, "`where` is %u, none of gm_location", (unsigned)where);
  }
  return move_to(buffer, &(move_wish){.where = where}, stream, op, err);
}

gm_status gm_buffer_promote(gm_buffer *buffer, gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_buffer_promote";
  const gm_status status = gm__buffer_check(buffer, op, err);
  return status ? status : move_to(buffer, &(move_wish){GM_LOCATION_DEVICE, true}, stream, op, err);
}
