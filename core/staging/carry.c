#include "core/staging/carry.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/saturate.h"
#include "core/staging/staging.h"

/* The host waits for the end of each read, because a device cannot wait for another API's work. A slot is given back
 * when its piece has arrived, or the device is lost and nothing moves any more. */

enum { CARRY_PIECES = 4, CARRY_PARTS = 16, CARRY_LEAST = 256 << 10 };

typedef struct carry_piece {
  gm__ring_slot *slot;
  uint64_t at, bytes;
  bool written;   /* `point` is of its write, else of its read */
  gm_point point; /* zero: it has passed */
} carry_piece;

typedef struct carry_work {
  gm__carry *carry;
  gm__ring *ring;
  gm__ring_user user;
  uint64_t piece; /* bytes */
  carry_piece pieces[CARRY_PIECES];
  uint32_t oldest, count; /* pieces that hold a slot */
} carry_work;

static bool carry_helps_nobody(gm__ring_user *user, uint64_t deadline) {
  (void)user, (void)deadline;
  return false; /* its own thread gives its slots back, without a call of the program */
}

static carry_piece *carry_piece_at(carry_work *w, uint32_t index) {
  return &w->pieces[(w->oldest + index) % CARRY_PIECES];
}

/* The ring, and the bytes of a piece. 0: all is left to the caller. */
static gm_status carry_open(carry_work *w, gm_error *err) {
  gm__carry *carry = w->carry;
  gm__ring_info info;
  gm_status status = gm__staging_open(carry->lender, &w->ring, err);
  if (status) return status; /* without a ring */
  w->user.help = carry_helps_nobody;
  gm__ring_join(w->ring, &w->user);
  status = gm__ring_grow(w->ring, 1, err);
  gm__ring_figures(w->ring, &info);
  carry->pinned = info.pinned > 0;
  if (status || !(carry->pinned || carry->patient)) return status;
  w->piece = gm__min(info.slot_bytes, gm__max(gm__round_up(carry->bytes / CARRY_PARTS, 4096), CARRY_LEAST));
  carry->staged_bytes = gm__min(gm__round_up(carry->bytes, w->piece), CARRY_PIECES * w->piece);
  return GM_OK;
}

/* Waits for what was submitted last of the piece. */
static gm_status carry_wait(const carry_work *w, carry_piece *piece, gm_error *err) {
  const gm__carry_end *end = piece->written ? &w->carry->to : &w->carry->from;
  if (!end->range) return GM_OK;
  const gm_status status = gm_point_wait(end->range->device, &piece->point, GM__NEVER, err);
  if (status) gm__access_rest(end->stream);
  gm_point_release(end->range->device, &piece->point);
  return status;
}

/* Between a slot and one end. */
static gm_status carry_copy(const carry_work *w, carry_piece *piece, gm_error *err) {
  const bool up = piece->written;
  const gm__carry_end *end = up ? &w->carry->to : &w->carry->from;
  unsigned char *slot = piece->slot->host;
  if (!end->range) {
    unsigned char *host = end->host + piece->at;
    memcpy(up ? host : slot, up ? slot : host, (size_t)piece->bytes);
    return GM_OK;
  }
  gm__access part = *end->range;
  part.offset += piece->at;
  part.bytes = piece->bytes;
  const gm__transfer what = {.kind = up ? GM__TRANSFER_WRITE : GM__TRANSFER_READ, .src = slot, .dst = slot};
  gm__traffic_count(part.device, up ? GM__TRAFFIC_UP : GM__TRAFFIC_DOWN, part.bytes, part.bytes);
  return gm__range_move(&part, &what, end->stream, end->stream ? &piece->point : NULL, w->carry->op, err);
}

/* The piece is read: it goes on to the other end. */
static gm_status carry_forward(carry_work *w, carry_piece *piece, gm_error *err) {
  if (piece->written) return GM_OK;
  const gm_status status = carry_wait(w, piece, err);
  if (status) return status;
  piece->written = true;
  return carry_copy(w, piece, err);
}

/* The oldest piece has arrived, or it never will. */
static gm_status carry_retire(carry_work *w, gm_error *err) {
  carry_piece *piece = carry_piece_at(w, 0);
  const gm_status status = carry_wait(w, piece, err);
  gm__ring_give(w->ring, piece->slot, NULL);
  w->oldest = (w->oldest + 1) % CARRY_PIECES;
  w->count--;
  return status;
}

static gm_status carry_finish_oldest(carry_work *w, gm_error *err) {
  const gm_status status = carry_forward(w, carry_piece_at(w, 0), err);
  return status ? status : carry_retire(w, err);
}

/* A slot. With as many pieces as may be under way, or as the ring has slots for, the oldest one is waited for. NULL:
 * the rest is left. */
static gm_status carry_take(carry_work *w, gm__ring_slot **out, gm_error *err) {
  const bool patient = w->carry->patient;
  gm_status status = w->count == CARRY_PIECES ? carry_finish_oldest(w, err) : GM_OK;
  *out = NULL;
  while (status == GM_OK) {
    const bool soon = w->count || !patient || gm__ring_help(w->ring, &w->user, GM__NEVER);
    status = gm__ring_take_as(w->ring, &w->user, soon ? 0 : GM__NEVER, out, patient ? err : NULL);
    if (status == GM_OK || (patient && status != GM_ERR_TIMEOUT)) return status;
    if (!w->count && !patient) return GM_OK;
    status = w->count ? carry_finish_oldest(w, err) : GM_OK;
  }
  return status;
}

/* Each piece is read while the one before it is written. Bytes that the host has are read at once. */
static gm_status carry_move(carry_work *w, gm_error *err) {
  gm__carry *carry = w->carry;
  const uint32_t late = carry->from.range ? 2 : 1;
  gm__ring_slot *slot = NULL;
  gm_status status = GM_OK;
  for (uint64_t size; carry->done < carry->bytes; carry->done += size) {
    status = carry_take(w, &slot, err);
    if (status || !slot) break;
    size = gm__min(w->piece, carry->bytes - carry->done);
    carry_piece *piece = carry_piece_at(w, w->count++);
    *piece = (carry_piece){.slot = slot, .at = carry->done, .bytes = size};
    status = carry_copy(w, piece, err);
    if (!status && w->count >= late) status = carry_forward(w, carry_piece_at(w, w->count - late), err);
    if (status) break;
  }
  return !status && w->count ? carry_forward(w, carry_piece_at(w, w->count - 1), err) : status;
}

/* Nothing uses a slot any more when this returns. */
static gm_status carry_settle(carry_work *w, gm_error *err) {
  gm_status status = GM_OK;
  while (w->count) {
    const gm_status one = carry_retire(w, status ? NULL : err);
    if (!status) status = one;
  }
  gm__ring_leave(w->ring, &w->user);
  gm__staging_close(w->carry->lender);
  return status;
}

/* Begins, or ends, the time in which the ends' devices have work. */
static void carry_mark(const gm__carry *carry, void (*mark)(gm_device *device, uint64_t now)) {
  const uint64_t now = gm__now_ns();
  if (carry->to.range) mark(carry->to.range->device, now);
  if (carry->from.range) mark(carry->from.range->device, now);
}

gm_status gm__carry_run(gm__carry *carry, gm_error *err) {
  carry_work work = {.carry = carry};
  carry->done = carry->staged_bytes = 0;
  carry->pinned = false;
  gm_status status = carry_open(&work, carry->patient ? err : NULL);
  if (!carry->patient) status = GM_OK;
  if (work.piece) carry_mark(carry, gm__traffic_begin);
  if (status == GM_OK && work.piece) status = carry_move(&work, err);
  const gm_status settled = work.ring ? carry_settle(&work, status ? NULL : err) : GM_OK;
  if (work.piece) carry_mark(carry, gm__traffic_end);
  return status ? status : settled;
}
