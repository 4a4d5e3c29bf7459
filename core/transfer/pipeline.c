#include "core/transfer/pipeline.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/device/stream.h"
#include "core/pool/pool.h"
#include "core/transfer/shares.h"

/* --- making one --- */

static gm_status pipeline_check_pools(const gm_pipeline_params *params, const gm_device *device, const char *op,
                                      gm_error *err) {
  if (!params->in_pool) return gm__bad_argument(err, op, "`in_pool` is NULL");
  if (!gm__pool_lives(params->in_pool)) return gm__bad_argument(err, op, "`in_pool` is destroyed");
  if (params->out_pool && !gm__pool_lives(params->out_pool))
    return gm__bad_argument(err, op, "`out_pool` is destroyed");
  if (params->in_pool->device != device || (params->out_pool && params->out_pool->device != device)) {
    return gm__bad_argument(err, op, "a pool is of another device");
  }
  return GM_OK;
}

static gm_status pipeline_check_numbers(const gm_pipeline_params *params, const char *op, gm_error *err) {
  if (!params->item_bytes) return gm__bad_argument(err, op, "`item_bytes` is 0");
  if (params->item_bytes > SIZE_MAX / 2 || params->out_bytes > SIZE_MAX / 2) {
    return gm__bad_argument(err, op, "a piece is larger than the host's memory can be");
  }
  if (params->depth > GM__PIPELINE_MOST_LANES) {
    return gm__bad_argument(err, op, "`depth` is %" PRIu32 ", the most are %d", params->depth, GM__PIPELINE_MOST_LANES);
  }
  if (!params->step) return gm__bad_argument(err, op, "`step` is NULL");
  if (params->read_bytes > SIZE_MAX / 2 || params->write_bytes > SIZE_MAX / 2) {
    return gm__bad_argument(err, op, "a piece beside a codec is larger than the host's memory can be");
  }
  if (params->out_bytes && !params->sink && !params->to.file) {
    return gm__bad_argument(err, op, "`out_bytes` needs a `sink`, or a file in `to`");
  }
  if (params->request.bytes || params->request.stream) {
    return gm__bad_argument(err, op, "`bytes` and `stream` of the request must be 0");
  }
  return GM_OK;
}

static gm_status pipeline_check(gm_device *device, gm_pipeline_params *params, const char *op, gm_error *err) {
  gm_status status = gm__device_check(device, op, err);
  if (status == GM_OK) status = pipeline_check_numbers(params, op, err);
  if (status == GM_OK) status = gm__pipeline_check_codecs(params, op, err);
  if (status == GM_OK) status = gm__pipeline_check_files(params, op, err);
  if (status == GM_OK) status = pipeline_check_pools(params, device, op, err);
  if (status == GM_OK && params->stream) status = gm__stream_check(params->stream, op, err);
  if (status == GM_OK && params->stream && gm_stream_device(params->stream) != device) {
    return gm__bad_argument(err, op, "`stream` is of another device");
  }
  return status;
}

static gm_status pipeline_open_streams(gm_pipeline *pipeline, gm_error *err) {
  gm_stream *given = pipeline->params.stream;
  pipeline->up = pipeline->step = pipeline->down = given;
  if (!gm__device_makes_streams(pipeline->device)) {
    if (given) return GM_OK;
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_pipeline_create",
                    "gm may make no stream on this device: give it `stream`");
  }
  pipeline->up = pipeline->down = NULL;
  gm_status status = gm_stream_create(pipeline->device, &pipeline->up, err);
  if (status == GM_OK) status = gm_stream_create(pipeline->device, &pipeline->down, err);
  if (status == GM_OK && !given) status = gm_stream_create(pipeline->device, &pipeline->step, err);
  pipeline->own_step = !given && pipeline->step;
  return status;
}

/* Slots hold a piece of input or of output. Half of them are for pieces on their way up, half for those on their way
 * down. */
static gm_status pipeline_make_ring(gm_pipeline *pipeline, gm_error *err) {
  const gm_pipeline_params *params = &pipeline->params;
  const uint64_t slot_bytes = gm__max(gm__pipeline_up_bytes(params), params->out_bytes);
  const uint32_t depth = pipeline->chooses ? GM__PIPELINE_FIRST_LANES + 1 : params->depth;
  const uint32_t slots = params->out_bytes ? 2 * depth : depth + 1;
  const gm_status status = gm__ring_create(pipeline->device, slots, slot_bytes, &pipeline->ring, err);
  pipeline->user.all = true;
  if (status == GM_OK) gm__ring_join(pipeline->ring, &pipeline->user);
  return status;
}

static gm_status pipeline_end_ring(gm_pipeline *pipeline, gm_error *err) {
  if (pipeline->ring && !gm__context_forked(pipeline->device->ctx)) gm__ring_leave(pipeline->ring, &pipeline->user);
  const gm_status status = gm__ring_destroy(pipeline->ring, err);
  if (status != GM_OK) gm__ring_join(pipeline->ring, &pipeline->user);
  return status;
}

static gm_status pipeline_fill(gm_pipeline *pipeline, gm_error *err) {
  const uint32_t lanes = pipeline->chooses ? GM__PIPELINE_FIRST_LANES : pipeline->params.depth;
  gm_status status = pipeline_open_streams(pipeline, err);
  if (status == GM_OK) status = pipeline_make_ring(pipeline, err);
  if (status == GM_OK) status = gm__pipeline_make_room(pipeline, err);
  for (uint32_t i = 0; i < lanes && status == GM_OK; i++) status = gm__pipeline_add_lane(pipeline, err);
  return status;
}

gm_status gm_pipeline_create(gm_device *device, const gm_pipeline_params *params, gm_pipeline **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pipeline_create";
  gm_pipeline_params mine;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  *out = NULL;
  gm_status status = gm__sized_in(&mine, sizeof mine, params, op, "params", err);
  if (status == GM_OK) status = pipeline_check(device, &mine, op, err);
  if (status != GM_OK) return status;
  gm_pipeline *pipeline = gm__object_new(device->ctx, GM__KIND_PIPELINE, sizeof *pipeline);
  if (!pipeline) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for the pipeline");
  if (!mine.out_pool) mine.out_pool = mine.in_pool;
  if (!mine.timeout_ns) mine.timeout_ns = GM__NEVER;
  pipeline->device = device;
  pipeline->params = mine;
  pipeline->chooses = !mine.depth;
  pipeline->reads = mine.source || mine.from.file;
  pipeline->stats.struct_size = sizeof pipeline->stats;
  status = pipeline_fill(pipeline, err);
  if (status != GM_OK) {
    (void)gm_pipeline_destroy(pipeline, NULL);
    return status;
  }
  *out = pipeline;
  return GM_OK;
}

/* --- its calls --- */

static bool pipeline_is(const gm_pipeline *pipeline) {
  return pipeline && gm__object_is(&pipeline->head, GM__KIND_PIPELINE);
}

static gm_status pipeline_check_call(gm_pipeline *pipeline, const char *op, gm_error *err) {
  if (!pipeline_is(pipeline)) {
    return gm__bad_argument(err, op, pipeline ? "`pipeline` is destroyed" : "`pipeline` is NULL");
  }
  if (pipeline->failure.status == GM_OK) return gm__device_check(pipeline->device, op, err);
  if (err) *err = pipeline->failure;
  return pipeline->failure.status;
}

/* Cancelled: what is on the device is written, and nothing more is sent. */
static gm_status pipeline_go_on(gm_pipeline *pipeline, gm_error *err) {
  if (!atomic_load(&pipeline->cancelled)) return GM_OK;
  gm__fail(err, GM_ERR_CANCELLED, "gm_pipeline", "cancelled");
  return gm__pipeline_fail(pipeline, GM_STAGE_NONE, pipeline->sent, GM_ERR_CANCELLED, err);
}

static gm_status pipeline_slot(gm_pipeline *pipeline, gm__ring_slot **out, gm_error *err) {
  const gm_status status = gm__pipeline_take(pipeline, pipeline->params.timeout_ns, out, err);
  if (status != GM_ERR_TIMEOUT) return status;
  return gm__pipeline_fail(pipeline, GM_STAGE_STEP, pipeline->sent, status, err);
}

/* How many bytes the source, or its file, gave; 0 at the end. */
static gm_status pipeline_ask_source(gm_pipeline *pipeline, void *host, uint64_t *out_bytes, gm_error *err) {
  const gm_pipeline_params *params = &pipeline->params;
  *out_bytes = 0;
  if (params->from.file) return gm__pipeline_read_file(pipeline, host, out_bytes, err);
  const gm_status status = params->source(params->user, host, params->read_bytes, out_bytes);
  if (status != GM_OK) return gm__fail(err, status, "source", "the source failed");
  if (*out_bytes <= params->read_bytes) return GM_OK;
  return gm__bad_argument(err, "source", "it gave %" PRIu64 " bytes, more than %" PRIu64, *out_bytes,
                          params->read_bytes);
}

/* Has the source fill the slot, by way of the codec; 0 bytes at the end. */
static gm_status pipeline_read(gm_pipeline *pipeline, gm__ring_slot *slot, uint64_t *out_bytes, gm_error *err) {
  unsigned char *host = gm__pipeline_codes_in(&pipeline->params) ? pipeline->room : slot->host;
  gm_pipeline_stage stage = GM_STAGE_READ;
  const uint64_t since = gm__now_ns();
  gm_status status = pipeline_ask_source(pipeline, host, out_bytes, err);
  pipeline->stats.read += (double)(gm__now_ns() - since) / 1e9;
  if (status == GM_OK && *out_bytes) {
    stage = GM_STAGE_IN_CODEC;
    status = gm__pipeline_code_in(pipeline, host, *out_bytes, slot, out_bytes, err);
    if (status == GM_OK) return GM_OK;
  }
  gm__ring_give(pipeline->ring, slot, NULL);
  return status == GM_OK ? GM_OK : gm__pipeline_fail(pipeline, stage, pipeline->sent, status, err);
}

static gm_status pipeline_run(gm_pipeline *pipeline, gm_error *err) {
  if (!pipeline->reads) {
    return gm__bad_argument(err, "gm_pipeline_run", "there is no `source`, and no file in `from`");
  }
  for (;;) {
    gm__ring_slot *slot;
    uint64_t bytes;
    gm_status status = pipeline_go_on(pipeline, err);
    if (status == GM_OK) status = pipeline_slot(pipeline, &slot, err);
    if (status == GM_OK) status = pipeline_read(pipeline, slot, &bytes, err);
    if (status == GM_OK && !bytes) return gm__pipeline_drain(pipeline, err);
    if (status == GM_OK) status = gm__pipeline_send(pipeline, slot, bytes, err);
    if (status != GM_OK) return status;
  }
}

static void pipeline_moves(gm_pipeline *pipeline, bool moves, uint64_t now) {
  if (pipeline->moves == moves || gm__context_forked(pipeline->device->ctx)) return;
  pipeline->moves = moves;
  if (moves) pipeline->moves_ns = now;
  if (!moves) pipeline->moved_ns += now - pipeline->moves_ns;
  (moves ? gm__traffic_begin : gm__traffic_end)(pipeline->device, now);
}

static void pipeline_shares(gm_pipeline *pipeline, uint64_t now) {
  gm_pipeline_stats *stats = &pipeline->stats;
  const uint64_t ns = pipeline->moved_ns + (pipeline->moves ? now - pipeline->moves_ns : 0);
  const gm__shares shares = gm__shares_of(pipeline->device, stats->up_bytes, stats->down_bytes, (double)ns * 1e-9);
  stats->up_utilisation = shares.up_utilisation;
  stats->down_utilisation = shares.down_utilisation;
  stats->overlap = shares.overlap;
}

/* The end of a call that began at `since`. */
static gm_status pipeline_end(gm_pipeline *pipeline, uint64_t since, gm_status status, const gm_error *mine,
                              gm_pipeline_stats *out, gm_error *err) {
  gm__ring_info info;
  gm__ring_figures(pipeline->ring, &info);
  const uint64_t now = gm__now_ns();
  pipeline->stats.seconds += (double)(now - since) / 1e9;
  if (!pipeline->flying) pipeline_moves(pipeline, false, now);
  if (out && !gm__context_forked(pipeline->device->ctx)) pipeline_shares(pipeline, now);
  pipeline->stats.host_bytes = info.bytes + pipeline->room_bytes;
  memcpy(pipeline->stats.why, info.why, sizeof pipeline->stats.why);
  if (out) gm__sized_out(out, &pipeline->stats, sizeof pipeline->stats);
  if (status != GM_OK && err) *err = *mine;
  return status;
}

static gm_status pipeline_flush(gm_pipeline *pipeline, gm_error *err) {
  const gm_status status = gm__pipeline_drain(pipeline, err);
  return status == GM_OK ? pipeline_go_on(pipeline, err) : status;
}

/* `work` on a pipeline that is alive and has not failed; its figures come out in any case. */
static gm_status pipeline_call(gm_pipeline *pipeline, gm_status (*work)(gm_pipeline *pipeline, gm_error *err),
                               gm_pipeline_stats *out, const char *op, gm_error *err) {
  const uint64_t since = gm__now_ns();
  gm_error mine = {.status = GM_OK};
  gm_status status = out ? gm__sized_check(out, sizeof *out, op, "out", err) : GM_OK;
  if (status != GM_OK) return status;
  status = pipeline_check_call(pipeline, op, &mine);
  if (!pipeline_is(pipeline)) return gm__bad_argument(err, op, "%s", mine.message);
  if (status == GM_OK) pipeline_moves(pipeline, true, since);
  if (status == GM_OK) status = work(pipeline, &mine);
  return pipeline_end(pipeline, since, status, &mine, out, err);
}

gm_status gm_pipeline_run(gm_pipeline *pipeline, gm_pipeline_stats *out, gm_error *err) {
  GM__UNCANCELLED();
  return pipeline_call(pipeline, pipeline_run, out, "gm_pipeline_run", err);
}

gm_status gm_pipeline_flush(gm_pipeline *pipeline, gm_pipeline_stats *out, gm_error *err) {
  GM__UNCANCELLED();
  return pipeline_call(pipeline, pipeline_flush, out, "gm_pipeline_flush", err);
}

static gm_status pipeline_push(gm_pipeline *pipeline, const void *host, uint64_t bytes, uint64_t timeout_ns,
                               gm_error *err) {
  gm__ring_slot *slot;
  gm_status status = pipeline_go_on(pipeline, err);
  if (status == GM_OK) status = gm__pipeline_take(pipeline, timeout_ns, &slot, err);
  if (status == GM_ERR_TIMEOUT && !timeout_ns) {
    return gm__fail(err, GM_ERR_BUSY, "gm_pipeline_push", "no slot is free");
  }
  if (status != GM_OK) return status;
  status = gm__pipeline_code_in(pipeline, host, bytes, slot, &bytes, err);
  if (status == GM_OK) return gm__pipeline_send(pipeline, slot, bytes, err);
  gm__ring_give(pipeline->ring, slot, NULL);
  return gm__pipeline_fail(pipeline, GM_STAGE_IN_CODEC, pipeline->sent, status, err);
}

gm_status gm_pipeline_push(gm_pipeline *pipeline, const void *host, uint64_t bytes, uint64_t timeout_ns,
                           gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pipeline_push";
  const uint64_t since = gm__now_ns();
  gm_error mine = {.status = GM_OK};
  gm_status status = pipeline_check_call(pipeline, op, &mine);
  if (!pipeline_is(pipeline)) return gm__bad_argument(err, op, "%s", mine.message);
  if (status == GM_OK && pipeline->reads) {
    status = gm__bad_argument(&mine, op, "the pipeline has a `source`, or a file in `from`");
  }
  if (status == GM_OK && (!host || !bytes || bytes > pipeline->params.read_bytes)) {
    status = gm__bad_argument(&mine, op, "a piece has 1 to %" PRIu64 " bytes", pipeline->params.read_bytes);
  }
  if (status == GM_OK) pipeline_moves(pipeline, true, since);
  if (status == GM_OK) status = pipeline_push(pipeline, host, bytes, timeout_ns, &mine);
  return pipeline_end(pipeline, since, status, &mine, NULL, err);
}

void gm_pipeline_cancel(gm_pipeline *pipeline) {
  if (pipeline_is(pipeline)) atomic_store(&pipeline->cancelled, true);
}

/* --- its end --- */

static void pipeline_free_lanes(gm_pipeline *pipeline) {
  for (uint32_t i = 0; i < pipeline->lanes; i++) {
    gm_free(pipeline->params.in_pool, &pipeline->lane[i].in, NULL);
    if (pipeline->params.expand) gm_free(pipeline->params.in_pool, &pipeline->lane[i].half, NULL);
    if (pipeline->params.out_bytes) gm_free(pipeline->params.out_pool, &pipeline->lane[i].out, NULL);
  }
  pipeline->lanes = 0;
}

static void pipeline_close_streams(gm_pipeline *pipeline) {
  if (pipeline->up != pipeline->params.stream) gm_stream_close(pipeline->up, NULL);
  if (pipeline->down != pipeline->params.stream) gm_stream_close(pipeline->down, NULL);
  if (pipeline->own_step) gm_stream_close(pipeline->step, NULL);
}

gm_status gm_pipeline_destroy(gm_pipeline *pipeline, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pipeline_destroy";
  if (!pipeline) return GM_OK;
  if (!pipeline_is(pipeline)) return gm__bad_argument(err, op, "`pipeline` is destroyed");
  gm_context *ctx = pipeline->device->ctx;
  gm_status status = gm__pipeline_rest(pipeline, err);
  if (status == GM_OK) status = pipeline_end_ring(pipeline, err);
  if (status != GM_OK) return status;
  pipeline_moves(pipeline, false, gm__now_ns());
  pipeline_free_lanes(pipeline);
  gm__pipeline_free_room(pipeline);
  pipeline_close_streams(pipeline);
  gm__object_end(ctx, &pipeline->head);
  return GM_OK;
}
