#include "core/buffer/move.h"

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
    if (status) gm__fail(err, status, 0, op, "the pool keeps the buffer's block: it is mapped, or its stream captured");
  }
  if (status) {
    gm__place_undo(buffer, to, stream);
    return status;
  }
  buffer->at = *to;
  buffer->asleep = false;
  gm__buffer_forget_uses(buffer); /* the copy came after them, and has ended */
  gm__buffer_note_place(buffer);
  return GM_OK;
}

gm_status gm__buffer_go(gm_buffer *buffer, gm_location where, gm_stream *stream, const char *op, gm_error *err) {
  gm__place to;
  gm_status status = gm__place_take(buffer, where, stream, op, &to, err);
  return status ? status : gm__buffer_move_in(buffer, &to, stream, op, err);
}

gm_status gm_buffer_move(gm_buffer *buffer, gm_location where, gm_stream *stream, gm_error *err) {
  static const char op[] = "gm_buffer_move";
  gm_status status = gm__buffer_check(buffer, op, err);
  if (status) return status;
  if ((unsigned)where > GM_LOCATION_HOST) {
    return gm__bad_argument(err, op, "`where` is %u, none of gm_location", (unsigned)where);
  }
  status = gm__buffer_seize(buffer, stream, op, err);
  if (status) return status;
  if (buffer->at.location != where) status = gm__buffer_go(buffer, where, stream, op, err);
  if (!status) buffer->parked = buffer->fell_back;
  gm__buffer_settle(buffer);
  return status;
}

gm_status gm_buffer_promote(gm_buffer *buffer, gm_stream *stream, gm_error *err) {
  static const char op[] = "gm_buffer_promote";
  gm_status status = gm__buffer_check(buffer, op, err);
  if (!status) status = gm__buffer_seize(buffer, stream, op, err);
  if (status) return status;
  if (buffer->fell_back) status = gm__buffer_go(buffer, GM_LOCATION_DEVICE, stream, op, err);
  gm__buffer_settle(buffer);
  return status;
}
