/* gm_block_expand: by a kernel of the device, else by the host. */
#include "core/transfer/expand.h"

#include <inttypes.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/block/span_copy.h"
#include "core/device/device.h"
#include "gm/transfer.h"

/* EXPAND_PIECE: numbers that a kernel takes at once. EXPAND_ROOM: numbers that the host has at a time. */
enum { EXPAND_PIECE = 16 << 20, EXPAND_ROOM = 64 << 10 };

static const char expand_op[] = "gm_block_expand";

bool gm__expand_type(const gm_codec *codec, gm_dtype *out) {
  const bool bf16 = codec && codec == gm_codec_find("bf16");
  *out = bf16 ? GM_DTYPE_BF16 : GM_DTYPE_F16;
  return bf16 || (codec && codec == gm_codec_find("fp16"));
}

typedef struct expansion {
  gm_pool *to_pool, *from_pool;
  const gm_block *to, *from;
  uint64_t to_offset, from_offset, count;
  const gm_codec *codec;
  gm_stream *stream;
} expansion;

static gm_status expand_check(const expansion *e, gm_error *err) {
  gm__span_copy to, from = {.left = 0};
  gm_dtype type;
  if (!gm__expand_type(e->codec, &type)) {
    return gm__bad_argument(err, expand_op, "`codec` is neither \"bf16\" nor \"fp16\" of gm_codec_find");
  }
  if (e->to_offset % 4 || e->from_offset % 2) {
    return gm__bad_argument(err, expand_op, "`dst_offset` must be a multiple of 4, and `src_offset` of 2");
  }
  if (e->count > UINT64_MAX / 4) return gm__bad_argument(err, expand_op, "`count` is %" PRIu64, e->count);
  gm_status status = gm__span_copy_open(e->to_pool, e->to, e->to_offset, 4 * e->count, expand_op, &to, err);
  if (!status) {
    status = gm__span_copy_open(e->from_pool, e->from, e->from_offset, 2 * e->count, expand_op, &from, err);
  }
  return status ? status : gm__span_copy_check(to, &from, err);
}

/* NOT_SUPPORTED: no kernel does it; nothing of it was submitted, or all that was has ended. */
static gm_status expand_on_device(const expansion *e, gm_point *out, gm_error *err) {
  gm__access to = {0}, from = {0};
  gm_stream *on = NULL;
  gm_backend_point point = {0};
  gm_status status = gm__access_open(e->to_pool, e->to, e->to_offset, 4 * e->count, expand_op, &to, err);
  if (!status) status = gm__access_open(e->from_pool, e->from, e->from_offset, 2 * e->count, expand_op, &from, err);
  if (!status) status = gm__access_stream(to.device, e->stream, expand_op, &on, err);
  gm_dtype type = GM_DTYPE_BF16;
  gm__expand_type(e->codec, &type);
  for (uint64_t at = 0, piece; at < e->count && !status; at += piece) {
    piece = gm__min(e->count - at, EXPAND_PIECE);
    gm_backend_point *end = e->stream && out && at + piece == e->count ? &point : NULL;
    status = gm__submitting(to.device)->expand(to.device->handle, on->handle, &to.memory, to.offset + 4 * at,
                                               &from.memory, from.offset + 2 * at, piece, type, end, err);
  }
  if (!status && out) *out = e->stream ? (gm_point){on->id, point.handle, point.value} : (gm_point){0};
  return status;
}

static gm_status expand_piece(const expansion *e, uint64_t at, uint64_t count, unsigned char *room, gm_error *err) {
  unsigned char *wide = room + (size_t)2 * EXPAND_ROOM;
  uint64_t bytes = 0;
  gm_status status =
      gm_block_read(e->from_pool, e->from, e->from_offset + 2 * at, room, 2 * count, e->stream, NULL, err);
  if (!status) status = gm_codec_decode(e->codec, room, 2 * count, wide, 4 * count, &bytes, err);
  return status ? status : gm_block_write(e->to_pool, e->to, e->to_offset + 4 * at, wide, bytes, e->stream, NULL, err);
}

static gm_status expand_by_host(const expansion *e, gm_error *err) {
  const gm_services *services = gm__context_services(e->to_pool->device->ctx);
  const size_t bytes = (size_t)6 * EXPAND_ROOM;
  unsigned char *room = gm__alloc_plain(services, bytes);
  gm_status status = GM_OK;
  if (!room) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, expand_op, "no host memory to expand numbers");
  for (uint64_t at = 0; at < e->count && !status; at += EXPAND_ROOM) {
    status = expand_piece(e, at, gm__min(e->count - at, EXPAND_ROOM), room, err);
  }
  gm__release(services, room, bytes);
  return status;
}

gm_status gm_block_expand(gm_pool *dst_pool, const gm_block *dst, uint64_t dst_offset, gm_pool *src_pool,
                          const gm_block *src, uint64_t src_offset, uint64_t count, const gm_codec *codec,
                          gm_stream *stream, gm_point *out, bool *out_by_host, gm_error *err) {
  GM__UNCANCELLED();
  const expansion e = {dst_pool, src_pool, dst, src, dst_offset, src_offset, count, codec, stream};
  gm_error why;
  gm__error_none(&why);
  gm_status status = expand_check(&e, err);
  if (status) return status;
  status = expand_on_device(&e, out, &why);
  const bool by_host = status == GM_ERR_NOT_SUPPORTED;
  if (status && !by_host && err) *err = why;
  if (by_host) status = expand_by_host(&e, err);
  if (status) return status;
  if (by_host && out) *out = (gm_point){0};
  if (out_by_host) *out_by_host = by_host;
  return GM_OK;
}
