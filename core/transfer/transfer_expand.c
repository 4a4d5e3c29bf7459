/* Copies whose floats the device makes whole. Those of 16 bits cross the link into memory of the device beside the
 * slot, and a kernel takes them from there to the block. Where no kernel does, the host makes them whole in the slot.
 */
#include <string.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/device/device_alloc.h"
#include "core/staging/codec.h"
#include "core/staging/staging.h"
#include "core/transfer/expand.h"
#include "core/transfer/transfer.h"

/* Invariants. In a slot the floats of 16 bits lie behind the room of those of 32 bits. The part of the device's memory
 * that belongs to a slot is used by who has the slot, and until the slot's point has passed. */

static const char expand_op[] = "gm_transfer";

gm_status gm__transfer_plan_expand(const gm__transfer_copy *copy, const gm_copy *asked, const char *op, gm_error *err) {
  gm_dtype type;
  if (!asked->expand) return GM_OK;
  if (!gm__expand_type(asked->codec, &type)) {
    return gm__bad_argument(err, op, "`expand` needs a `codec` of gm_codec_find: \"bf16\" or \"fp16\"");
  }
  if (copy->way != GM__TRANSFER_UP) return gm__bad_argument(err, op, "`expand` is for a copy from the host");
  return asked->to.offset % 4 ? gm__bad_argument(err, op, "with `expand` the block's offset is a multiple of 4")
                              : GM_OK;
}

uint64_t gm__transfer_expand_most(const gm__ring_slot *slot) {
  return gm__min(slot->bytes / 6 * 4, (uint64_t)2 * GM__TRANSFER_ROOM);
}

/* --- on the host --- */

/* Floats of 16 bits, as they cross the link. */
static gm_status expand_halves(const gm__transfer_copy *copy, uint64_t at, uint64_t bytes, unsigned char *halves,
                               gm_error *err) {
  const bool encodes = copy->codec->way == GM_CODEC_ENCODE;
  const gm__codec_turn turn = {copy->codec->codec, GM_CODEC_ENCODE, expand_op, "host memory", at};
  uint64_t made = 0;
  if (encodes) {
    return gm__codec_turn_run(&turn, gm__transfer_host(copy, at), bytes, halves, bytes / 2, &made, NULL, err);
  }
  memcpy(halves, gm__transfer_host(copy, at / 2), (size_t)bytes / 2);
  return GM_OK;
}

gm_status gm__transfer_expand_fill(const gm__transfer_copy *copy, uint64_t at, uint64_t bytes, unsigned char *slot,
                                   gm_error *err) {
  const gm__codec_turn turn = {copy->codec->codec, GM_CODEC_DECODE, expand_op, "host memory", at / 2};
  uint64_t made = 0;
  const gm_status status = expand_halves(copy, at, bytes, slot + bytes, err);
  if (status) return status;
  return gm__codec_turn_run(&turn, slot + bytes, bytes / 2, slot, bytes, &made, NULL, err);
}

/* --- on the device --- */

static gm_status expand_submit(const gm_transfer *t, const gm__transfer_copy *copy, const gm__access *to,
                               const gm_memory *from, uint64_t from_at, uint64_t count, gm_point *point,
                               gm_error *err) {
  const gm_device *device = t->device;
  gm_dtype type = GM_DTYPE_BF16;
  gm_backend_point end = {0, 0};
  gm__expand_type(copy->codec->codec, &type);
  const gm_status status = gm__submitting(device)->expand(device->handle, t->stream->handle, &to->memory, to->offset,
                                                          from, from_at, count, type, &end, err);
  if (status) return status;
  gm_point_release(t->device, point);
  *point = (gm_point){t->stream->id, end.handle, end.value};
  return GM_OK;
}

/* The device's memory, made when a copy first wants it. A backend without a kernel refuses even no numbers. */
static void expand_make_beside(const gm_transfer *t, const gm__transfer_copy *copy, const gm__access *to) {
  gm__ring_info info;
  gm_memory memory = {.handle = 0};
  gm_point none = {0};
  gm__ring_figures(t->ring, &info);
  const gm__device_request request = {.bytes = (uint64_t)info.most * GM__TRANSFER_ROOM};
  const gm_status status = expand_submit(t, copy, to, &to->memory, to->offset, 0, &none, NULL);
  gm_point_release(t->device, &none);
  if (status == GM_ERR_NOT_SUPPORTED) gm__staging_set_beside(t->device, GM__BESIDE_EXPAND, 0, &memory);
  if (status || gm__device_alloc(t->device, &request, &memory, NULL) != GM_OK) return;
  gm__staging_set_beside(t->device, GM__BESIDE_EXPAND, UINT64_MAX, &memory);
}

/* The memory beside a slot. False: there is none. */
static bool expand_beside(const gm_transfer *t, const gm__transfer_copy *copy, const gm__ring_slot *slot,
                          const gm__access *to, gm__access *out) {
  uint64_t most = 0;
  *out = (gm__access){.device = t->device,
                      .offset = (uint64_t)gm__ring_number(t->ring, slot) * GM__TRANSFER_ROOM,
                      .bytes = to->bytes / 2};
  if (!gm__staging_beside(t->device, GM__BESIDE_EXPAND, &most, &out->memory)) {
    expand_make_beside(t, copy, to);
    gm__staging_beside(t->device, GM__BESIDE_EXPAND, &most, &out->memory);
  }
  return most && out->offset + GM__TRANSFER_ROOM <= out->memory.bytes;
}

static gm_status expand_up(const gm_transfer *t, const gm__transfer_copy *copy, const gm__access *to,
                           const gm__access *beside, const unsigned char *halves, gm_point *point, gm_error *err) {
  gm_status status = gm__access_write(beside, halves, t->stream, point, expand_op, err);
  if (!status && t->stream->kind != GM_STREAM_FIFO) status = gm_stream_barrier(t->stream, err);
  return status ? status : expand_submit(t, copy, to, &beside->memory, beside->offset, to->bytes / 4, point, err);
}

gm_status gm__transfer_expand(const gm_transfer *t, const gm__transfer_copy *copy, uint64_t at, uint64_t bytes,
                              const gm__ring_slot *slot, gm_point *point, gm_error *err) {
  gm__access to, beside;
  unsigned char *halves = slot->host + bytes;
  gm_status status = gm__transfer_open(t, copy, at, bytes, &to, err);
  if (status) return status;
  if (!expand_beside(t, copy, slot, &to, &beside)) return GM_ERR_NOT_SUPPORTED;
  status = expand_halves(copy, at, bytes, halves, err);
  if (!status) status = expand_up(t, copy, &to, &beside, halves, point, err);
  if (status && status != GM_ERR_NOT_SUPPORTED) gm__access_rest(t->stream);
  return status;
}
