#include "core/transfer/peer.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/staging/staging.h"

/* The bytes go in pieces through slots of a ring. A piece is read from the sending device. As soon as it is there, it
 * is written to the receiving one, and meanwhile the next one is read. So both links work at a time. The host waits for
 * the end of each read, because a device cannot wait for another API's work. A slot is given back when its piece has
 * arrived, or the device is lost and nothing moves any more. */

enum { STAGING_PIECES = 4, STAGING_PARTS = 16, STAGING_LEAST = 256 << 10 };

typedef struct staging_piece {
  gm__ring_slot *slot;
  uint64_t at;
  bool written;   /* `point` is of its write, else of its read */
  gm_point point; /* zero: it has passed */
} staging_piece;

typedef struct staging {
  const gm__access *dst, *src;
  gm_stream *to, *from; /* NULL: calls wait */
  const char *op;
  gm_device *lender;
  gm__ring *ring;
  gm__ring_user user;
  uint64_t piece; /* bytes */
  staging_piece pieces[STAGING_PIECES];
  uint32_t oldest, count; /* pieces that hold a slot */
} staging;

static bool staging_helps_nobody(gm__ring_user *user, uint64_t deadline) {
  (void)user, (void)deadline;
  return false; /* its own thread gives its slots back, without a call of the program */
}

/* The ring of the device that is farther from the host. */
static gm_status staging_open(staging *s, gm_error *err) {
  gm__ring_info info;
  const bool sends = s->dst->device->info.unified && !s->src->device->info.unified;
  s->lender = sends ? s->src->device : s->dst->device;
  gm_status status = gm__staging_open(s->lender, &s->ring, err);
  if (status) return status; /* without a ring */
  s->user.help = staging_helps_nobody;
  gm__ring_join(s->ring, &s->user);
  status = gm__ring_grow(s->ring, 1, err);
  gm__ring_figures(s->ring, &info);
  if (status) return status;
  const uint64_t slot = info.bytes / info.made, part = gm__round_up(s->dst->bytes / STAGING_PARTS, 4096);
  s->piece = gm__min(slot, gm__max(part, STAGING_LEAST));
  return GM_OK;
}

static gm_device *staging_device_of(const staging *s, const staging_piece *piece) {
  return piece->written ? s->dst->device : s->src->device;
}

/* The oldest piece has arrived, or it never will. */
static gm_status staging_retire(staging *s, gm_error *err) {
  staging_piece *piece = &s->pieces[s->oldest];
  gm_device *device = staging_device_of(s, piece);
  const gm_status status = gm_point_wait(device, &piece->point, GM__NEVER, err);
  if (status) gm__access_rest(piece->written ? s->to : s->from);
  gm_point_release(device, &piece->point);
  gm__ring_give(s->ring, piece->slot, NULL);
  s->oldest = (s->oldest + 1) % STAGING_PIECES;
  s->count--;
  return status;
}

/* The piece is read: it goes on to the receiving device. */
static gm_status staging_forward(staging *s, staging_piece *piece, gm_error *err) {
  if (piece->written) return GM_OK;
  const gm_status status = gm_point_wait(s->src->device, &piece->point, GM__NEVER, err);
  if (status) return status;
  gm_point_release(s->src->device, &piece->point);
  piece->written = true;
  const gm__access to = {s->dst->device, s->dst->memory, s->dst->offset + piece->at,
                         gm__min(s->piece, s->dst->bytes - piece->at)};
  gm__traffic_count(to.device, GM__TRAFFIC_UP, to.bytes, to.bytes);
  return gm__access_write(&to, piece->slot->host, s->to, s->to ? &piece->point : NULL, s->op, err);
}

static gm_status staging_finish_oldest(staging *s, gm_error *err) {
  const gm_status status = staging_forward(s, &s->pieces[s->oldest], err);
  return status ? status : staging_retire(s, err);
}

/* A slot. With as many pieces as may be under way, or as the ring has slots for, the oldest one is waited for. */
static gm_status staging_take(staging *s, gm__ring_slot **out, gm_error *err) {
  gm_status status = s->count == STAGING_PIECES ? staging_finish_oldest(s, err) : GM_OK;
  while (status == GM_OK) {
    const bool soon = s->count || gm__ring_help(s->ring, &s->user, GM__NEVER);
    status = gm__ring_take_as(s->ring, &s->user, soon ? 0 : GM__NEVER, out, err);
    if (status != GM_ERR_TIMEOUT) return status;
    status = s->count ? staging_finish_oldest(s, err) : GM_OK;
  }
  return status;
}

static gm_status staging_read(staging *s, uint64_t at, gm_error *err) {
  gm__ring_slot *slot = NULL;
  gm_status status = staging_take(s, &slot, err);
  if (status) return status;
  staging_piece *piece = &s->pieces[(s->oldest + s->count++) % STAGING_PIECES];
  *piece = (staging_piece){.slot = slot, .at = at};
  const gm__access from = {s->src->device, s->src->memory, s->src->offset + at, gm__min(s->piece, s->src->bytes - at)};
  gm__traffic_count(from.device, GM__TRAFFIC_DOWN, from.bytes, from.bytes);
  return gm__access_read(&from, slot->host, s->from, s->from ? &piece->point : NULL, s->op, err);
}

/* Each piece is read while the one before it is written. */
static gm_status staging_move(staging *s, gm_error *err) {
  gm_status status = GM_OK;
  for (uint64_t at = 0; at < s->dst->bytes && !status; at += s->piece) {
    status = staging_read(s, at, err);
    if (status || s->count < 2) continue;
    status = staging_forward(s, &s->pieces[(s->oldest + s->count - 2) % STAGING_PIECES], err);
  }
  if (!status && s->count) {
    status = staging_forward(s, &s->pieces[(s->oldest + s->count - 1) % STAGING_PIECES], err);
  }
  return status;
}

/* Nothing uses a slot any more when this returns. */
static gm_status staging_settle(staging *s, gm_error *err) {
  gm_status status = GM_OK;
  while (s->count) {
    const gm_status one = staging_retire(s, status ? NULL : err);
    if (!status) status = one;
  }
  gm__ring_leave(s->ring, &s->user);
  gm__staging_close(s->lender);
  return status;
}

/* The sending device's own order; NULL: its calls wait. */
static gm_status staging_sender(staging *s, gm_error *err) {
  if (!gm__device_has_default_stream(s->src->device)) return GM_OK;
  return gm__access_stream(s->src->device, NULL, s->op, &s->from, err);
}

static gm_status staging_run(const gm__access *dst, const gm__access *src, gm_stream *stream, gm__staged *out,
                             const char *op, gm_error *err) {
  staging s = {.dst = dst, .src = src, .op = op};
  gm__ring_info info;
  gm_status status = gm__access_stream(dst->device, stream, op, &s.to, err);
  if (status == GM_OK && stream) status = gm__access_settle(stream, err);
  if (status == GM_OK) status = staging_sender(&s, err);
  if (status == GM_OK) status = staging_open(&s, err);
  if (status == GM_OK) status = staging_move(&s, err);
  if (!s.ring) return status;
  const uint64_t pieces = (dst->bytes + s.piece - 1) / (s.piece ? s.piece : 1);
  gm__ring_figures(s.ring, &info);
  *out = (gm__staged){gm__min(pieces, STAGING_PIECES) * s.piece, info.pinned > 0};
  const gm_status settled = staging_settle(&s, status ? NULL : err);
  return status ? status : settled;
}

gm_status gm__staging_copy(const gm__access *dst, const gm__access *src, gm_stream *stream, gm__staged *out,
                           const char *op, gm_error *err) {
  const uint64_t begun = gm__now_ns();
  gm__traffic_begin(dst->device, begun);
  gm__traffic_begin(src->device, begun);
  const gm_status status = staging_run(dst, src, stream, out, op, err);
  const uint64_t ended = gm__now_ns();
  gm__traffic_end(dst->device, ended);
  gm__traffic_end(src->device, ended);
  return status;
}
