/* Codecs of a pipeline: between its source and a slot, and between a slot and its sink. */
#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/device/device.h"
#include "core/staging/codec.h"
#include "core/transfer/expand.h"
#include "core/transfer/pipeline.h"

/* --- what fits --- */

/* `plain` bytes that the codec encodes take at most *most. 0 there: that is the answer. */
static gm_status codec_check_room(const gm_codec *codec, const char *name, uint64_t plain, uint64_t *most,
                                  const char *room, const char *op, gm_error *err) {
  uint64_t takes;
  gm_error why = {.status = GM_OK};
  const gm_status status = gm_codec_most(codec, plain, &takes, &why);
  if (status != GM_OK) return gm__fail(err, status, op, "`%s`: %s", name, why.message);
  if (takes > SIZE_MAX / 2) return gm__fail(err, GM_ERR_OVER_LIMIT, op, "`%s` makes pieces too large", name);
  if (!*most) *most = takes;
  if (takes <= *most) return GM_OK;
  return gm__bad_argument(err, op,
                          "`%s` makes up to %" PRIu64 " bytes of %" PRIu64 ", more than `%s`, which is %" PRIu64, name,
                          takes, plain, room, *most);
}

bool gm__pipeline_codes_in(const gm_pipeline_params *params) {
  return params->in_codec && !(params->expand && params->in_way == GM_CODEC_DECODE);
}

uint64_t gm__pipeline_up_bytes(const gm_pipeline_params *params) {
  return params->expand ? params->item_bytes / 2 : params->item_bytes;
}

/* In `item_bytes` the floats are whole. */
static gm_status codec_check_expand(const gm_pipeline_params *params, const char *op, gm_error *err) {
  gm_dtype type;
  if (!gm__expand_type(params->in_codec, &type)) {
    return gm__bad_argument(err, op, "`expand` needs an `in_codec` of gm_codec_find: \"bf16\" or \"fp16\"");
  }
  if (params->item_bytes % 4) return gm__bad_argument(err, op, "with `expand` `item_bytes` is a multiple of 4");
  const uint64_t most = params->in_way == GM_CODEC_DECODE ? params->item_bytes / 2 : params->item_bytes;
  if (params->read_bytes <= most) return GM_OK;
  return gm__bad_argument(err, op, "`read_bytes` is %" PRIu64 ", of which `item_bytes` holds %" PRIu64,
                          params->read_bytes, most);
}

static gm_status codec_check_in(gm_pipeline_params *params, const char *op, gm_error *err) {
  if (!params->in_codec) {
    if (params->expand) return codec_check_expand(params, op, err);
    if (params->read_bytes) return gm__bad_argument(err, op, "`read_bytes` needs `in_codec`");
    params->read_bytes = params->item_bytes;
    return GM_OK;
  }
  if (!params->read_bytes) return gm__bad_argument(err, op, "`in_codec` needs `read_bytes`");
  gm_status status = gm__codec_check(params->in_codec, params->in_way, "in_codec", op, err);
  if (status == GM_OK && params->expand) status = codec_check_expand(params, op, err);
  if (status != GM_OK || params->in_way == GM_CODEC_DECODE) return status;
  uint64_t half = params->item_bytes / 2;
  return codec_check_room(params->in_codec, "in_codec", params->read_bytes,
                          params->expand ? &half : &params->item_bytes, "item_bytes", op, err);
}

static gm_status codec_check_out(gm_pipeline_params *params, const char *op, gm_error *err) {
  if (!params->out_codec) {
    if (params->write_bytes) return gm__bad_argument(err, op, "`write_bytes` needs `out_codec`");
    return GM_OK;
  }
  if (!params->out_bytes) return gm__bad_argument(err, op, "`out_codec` needs `out_bytes`");
  const gm_status status = gm__codec_check(params->out_codec, params->out_way, "out_codec", op, err);
  if (status != GM_OK) return status;
  if (params->out_way == GM_CODEC_ENCODE) {
    return codec_check_room(params->out_codec, "out_codec", params->out_bytes, &params->write_bytes, "write_bytes", op,
                            err);
  }
  return params->write_bytes ? GM_OK : gm__bad_argument(err, op, "an `out_codec` that decodes needs `write_bytes`");
}

gm_status gm__pipeline_check_codecs(gm_pipeline_params *params, const char *op, gm_error *err) {
  const gm_status status = codec_check_in(params, op, err);
  return status == GM_OK ? codec_check_out(params, op, err) : status;
}

/* --- the room beside the slots: one thread drives the pipeline, so both codecs share it --- */

gm_status gm__pipeline_make_room(gm_pipeline *pipeline, gm_error *err) {
  const gm_pipeline_params *params = &pipeline->params;
  const uint64_t in = gm__pipeline_codes_in(params) && pipeline->reads ? params->read_bytes : 0;
  const uint64_t bytes = in > params->write_bytes ? in : params->write_bytes;
  if (!bytes) return GM_OK;
  pipeline->room = gm__alloc(gm__context_services(pipeline->device->ctx), (size_t)bytes);
  if (!pipeline->room) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_pipeline_create",
                    "no host memory for the %" PRIu64 " bytes beside the codec", bytes);
  }
  pipeline->room_bytes = bytes;
  return GM_OK;
}

void gm__pipeline_free_room(gm_pipeline *pipeline) {
  if (!pipeline->room) return;
  gm__release(gm__context_services(pipeline->device->ctx), pipeline->room, (size_t)pipeline->room_bytes);
  pipeline->room = NULL;
}

/* --- on the way --- */

static const char codec_op[] = "gm_pipeline";

/* A piece as it is; it may lie in the slot already. */
static void code_copy(gm_pipeline *pipeline, const void *from, uint64_t bytes, gm__ring_slot *slot) {
  const uint64_t since = gm__now_ns();
  if (from == slot->host) return;
  memcpy(slot->host, from, (size_t)bytes);
  pipeline->stats.read += (double)(gm__now_ns() - since) / 1e9;
}

gm_status gm__pipeline_code_in(gm_pipeline *pipeline, const void *from, uint64_t bytes, gm__ring_slot *slot,
                               uint64_t *out_bytes, gm_error *err) {
  const gm_pipeline_params *params = &pipeline->params;
  const gm__codec_turn turn = {params->in_codec, params->in_way, codec_op, "source", pipeline->stats.read_bytes};
  pipeline->stats.read_bytes += bytes;
  *out_bytes = bytes;
  if (!gm__pipeline_codes_in(params)) {
    code_copy(pipeline, from, bytes, slot);
    if (!params->expand || bytes % 2 == 0) return GM_OK;
    return gm__fail(err, GM_ERR_FORMAT, codec_op,
                    "`%.64s`, from byte %" PRIu64 " of the source on: %" PRIu64 " bytes are no whole numbers",
                    turn.codec->name, turn.before, bytes);
  }
  const gm_status status = gm__codec_turn_run(&turn, from, bytes, slot->host, gm__pipeline_up_bytes(params), out_bytes,
                                              &pipeline->stats.in_codec, err);
  if (status != GM_OK || *out_bytes) return status;
  return gm__fail(err, GM_ERR_FORMAT, codec_op, "`%.64s`, from byte %" PRIu64 " of the source on: no bytes",
                  turn.codec->name, turn.before);
}

gm_status gm__pipeline_code_out(gm_pipeline *pipeline, const void **host, uint64_t *bytes, gm_error *err) {
  const gm_pipeline_params *params = &pipeline->params;
  const gm__codec_turn turn = {params->out_codec, params->out_way, codec_op, "output", pipeline->stats.down_bytes};
  if (!turn.codec || !*bytes) return GM_OK;
  const gm_status status = gm__codec_turn_run(&turn, *host, *bytes, pipeline->room, params->write_bytes, bytes,
                                              &pipeline->stats.out_codec, err);
  *host = pipeline->room;
  return status;
}
