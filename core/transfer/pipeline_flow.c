#include <inttypes.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/manage/explain.h"
#include "core/transfer/pipeline.h"
#include "gm/copy.h"
#include "gm/transfer.h"

static const char *const flow_stages[] = {"",      "read",     "up",        "step",    "down",
                                          "write", "in_codec", "out_codec", "prefetch"};

static double flow_seconds(uint64_t since) { return (double)(gm__now_ns() - since) / 1e9; }

/* --- lanes --- */

static gm_status flow_alloc(gm_pipeline *pipeline, gm_pool *pool, uint64_t bytes, gm_block *out, gm_error *err) {
  gm_request request = pipeline->params.request;
  request.bytes = bytes;
  request.flags |= GM_INSERT_WAIT;
  const gm_acquire answer = gm_alloc(pool, &request, out);
  if (answer == GM_ACQUIRE_OK || answer == GM_ACQUIRE_FRESH) return GM_OK;
  return gm__explain_refusal(pool, &request, answer, "gm_pipeline_create", err);
}

/* The new lane is the one that was used longest ago: it has no point. */
gm_status gm__pipeline_add_lane(gm_pipeline *pipeline, gm_error *err) {
  const gm_pipeline_params *params = &pipeline->params;
  gm__pipeline_lane lane = {.in = {0}};
  gm_status status = flow_alloc(pipeline, params->in_pool, params->item_bytes, &lane.in, err);
  const bool in = status == GM_OK;
  if (in && params->expand) {
    status = flow_alloc(pipeline, params->in_pool, gm__pipeline_up_bytes(params), &lane.half, err);
  }
  const bool half = status == GM_OK && params->expand;
  if (status == GM_OK && params->out_bytes) {
    status = flow_alloc(pipeline, params->out_pool, params->out_bytes, &lane.out, err);
  }
  if (status != GM_OK && half) gm_free(params->in_pool, &lane.half, NULL);
  if (status != GM_OK && in) gm_free(params->in_pool, &lane.in, NULL);
  if (status != GM_OK) return status;
  for (uint32_t i = pipeline->lanes; i > pipeline->next_lane; i--) pipeline->lane[i] = pipeline->lane[i - 1];
  pipeline->lane[pipeline->next_lane] = lane;
  pipeline->stats.depth = ++pipeline->lanes;
  return GM_OK;
}

/* The device was idle although a piece waited: one more lane, if there is memory for it. */
static void flow_deepen(gm_pipeline *pipeline) {
  const uint32_t last = (pipeline->next_lane + pipeline->lanes - 1) % pipeline->lanes;
  bool idle = false;
  if (!pipeline->chooses || pipeline->lanes == GM__PIPELINE_OWN_MOST_LANES || pipeline->sent < pipeline->lanes) return;
  if (gm_point_done(pipeline->device, &pipeline->lane[last].stepped, &idle, NULL) != GM_OK || !idle) return;
  (void)gm__pipeline_add_lane(pipeline, NULL);
}

/* --- failures --- */

gm_status gm__pipeline_fail(gm_pipeline *pipeline, gm_pipeline_stage stage, uint64_t item, gm_status status,
                            gm_error *err) {
  if (pipeline->failure.status != GM_OK) return status;
  const char *reason = err && err->status == status ? err->message : "";
  gm__fail_native(&pipeline->failure, status, err && err->status == status ? err->native_code : 0, "gm_pipeline",
                  "piece %" PRIu64 ", stage %s%s%s", item,
                  stage == GM_STAGE_NONE ? "between pieces" : flow_stages[stage], *reason ? ": " : "", reason);
  pipeline->stats.status = status;
  pipeline->stats.failed = stage;
  pipeline->stats.failed_item = item;
  const bool on_its_way_out = stage == GM_STAGE_DOWN || stage == GM_STAGE_OUT_CODEC || stage == GM_STAGE_WRITE;
  if (!on_its_way_out) (void)gm__pipeline_drain(pipeline, NULL);
  if (err) *err = pipeline->failure;
  return status;
}

/* --- down and out --- */

static gm_status flow_put(gm_pipeline *pipeline, uint64_t index, const void *host, uint64_t bytes, gm_error *err) {
  const gm_pipeline_params *params = &pipeline->params;
  if (params->to.file) return gm__pipeline_write_file(pipeline, host, bytes, err);
  const gm_status status = params->sink(params->user, host, bytes, index);
  return status == GM_OK ? GM_OK : gm__fail(err, status, "sink", "the sink refused it");
}

static gm_status flow_write(gm_pipeline *pipeline, const gm__pipeline_piece *piece, gm_pipeline_stage *stage,
                            gm_error *err) {
  const void *host = piece->slot ? piece->slot->host : NULL;
  uint64_t bytes = piece->bytes;
  *stage = GM_STAGE_OUT_CODEC;
  gm_status status = gm__pipeline_code_out(pipeline, &host, &bytes, err);
  if (status != GM_OK) return status;
  *stage = GM_STAGE_WRITE;
  const uint64_t since = gm__now_ns();
  status = flow_put(pipeline, piece->index, host, bytes, err);
  pipeline->stats.write += flow_seconds(since);
  if (status != GM_OK) return status;
  pipeline->stats.items++;
  pipeline->stats.down_bytes += piece->bytes;
  pipeline->stats.written_bytes += bytes;
  return GM_OK;
}

/* The oldest piece leaves the pipeline. */
static void flow_drop(gm_pipeline *pipeline) {
  gm__pipeline_piece *piece = &pipeline->piece[pipeline->oldest];
  gm_point_release(pipeline->device, &piece->came);
  if (piece->slot) gm__ring_give(pipeline->ring, piece->slot, NULL);
  pipeline->oldest = (pipeline->oldest + 1) % GM__PIPELINE_MOST_LANES;
  pipeline->flying--;
}

static gm_status flow_wait(gm_pipeline *pipeline, const gm_point *point, uint64_t timeout_ns, gm_error *err) {
  const uint64_t since = gm__now_ns();
  const gm_status status = gm_point_wait(pipeline->device, point, timeout_ns, err);
  pipeline->stats.stalled += flow_seconds(since);
  return status;
}

/* The oldest piece comes down and is written. TIMEOUT: it is still on its way. */
static gm_status flow_land(gm_pipeline *pipeline, uint64_t timeout_ns, gm_error *err) {
  const gm__pipeline_piece *piece = &pipeline->piece[pipeline->oldest];
  const uint64_t index = piece->index;
  gm_status status = flow_wait(pipeline, &piece->came, timeout_ns, err);
  if (status == GM_ERR_TIMEOUT) return status;
  gm_pipeline_stage stage = GM_STAGE_DOWN;
  if (status == GM_OK) status = flow_write(pipeline, piece, &stage, err);
  flow_drop(pipeline);
  return status == GM_OK ? GM_OK : gm__pipeline_fail(pipeline, stage, index, status, err);
}

static gm_status flow_late(gm_pipeline *pipeline, gm_error *err) {
  return gm__pipeline_fail(pipeline, GM_STAGE_DOWN, pipeline->piece[pipeline->oldest].index, GM_ERR_TIMEOUT, err);
}

/* Writes all that came down so far. */
static gm_status flow_land_ready(gm_pipeline *pipeline, gm_error *err) {
  gm_status status = GM_OK;
  while (pipeline->flying && status == GM_OK) {
    status = flow_land(pipeline, 0, err);
    if (status == GM_ERR_TIMEOUT) return GM_OK;
  }
  return status;
}

/* Without output a piece is done when its step is. */
static gm_status flow_steps_end(gm_pipeline *pipeline, gm_error *err) {
  for (uint32_t i = 0; i < pipeline->lanes; i++) {
    const gm_point *stepped = &pipeline->lane[(pipeline->next_lane + i) % pipeline->lanes].stepped;
    const gm_status status = flow_wait(pipeline, stepped, pipeline->params.timeout_ns, err);
    if (status != GM_OK) return gm__pipeline_fail(pipeline, GM_STAGE_STEP, pipeline->sent, status, err);
  }
  return GM_OK;
}

gm_status gm__pipeline_drain(gm_pipeline *pipeline, gm_error *err) {
  while (pipeline->flying) {
    const gm_status status = flow_land(pipeline, pipeline->params.timeout_ns, err);
    if (status == GM_ERR_TIMEOUT) return flow_late(pipeline, err);
    if (status != GM_OK) return status;
  }
  return pipeline->params.out_bytes ? GM_OK : flow_steps_end(pipeline, err);
}

/* --- slots --- */

/* Whether all slots are in the hands of pieces: then the next one comes when the oldest piece has been written. */
static bool flow_holds_all(gm_pipeline *pipeline) {
  gm__ring_info info;
  gm__ring_figures(pipeline->ring, &info);
  return info.made && info.taken == info.made;
}

/* A slot, or TIMEOUT. */
static gm_status flow_slot(gm_pipeline *pipeline, uint64_t deadline, gm__ring_slot **out, gm_error *err) {
  gm_status status = gm__ring_take_as(pipeline->ring, &pipeline->user, 0, out, err);
  for (uint64_t left = 1; status == GM_ERR_TIMEOUT && left;) {
    const uint64_t since = gm__now_ns();
    left = gm__deadline_left(deadline);
    if (pipeline->flying && flow_holds_all(pipeline)) {
      status = flow_land(pipeline, left, err);
      if (status == GM_OK) status = gm__ring_take_as(pipeline->ring, &pipeline->user, 0, out, err);
    } else {
      status = gm__ring_take_as(pipeline->ring, &pipeline->user, left, out, err);
      pipeline->stats.stalled += flow_seconds(since);
    }
  }
  return status;
}

gm_status gm__pipeline_take(gm_pipeline *pipeline, uint64_t timeout_ns, gm__ring_slot **out, gm_error *err) {
  const uint64_t deadline = gm__deadline_after(timeout_ns);
  const double stalled = pipeline->stats.stalled;
  gm_status status = flow_land_ready(pipeline, err);
  *out = NULL;
  if (status != GM_OK) return status;
  if (pipeline->flying == pipeline->lanes) status = flow_land(pipeline, timeout_ns, err);
  if (status == GM_OK) status = flow_slot(pipeline, deadline, out, err);
  if (status == GM_OK && pipeline->stats.stalled > stalled) flow_deepen(pipeline);
  if (status == GM_OK || status == GM_ERR_TIMEOUT || pipeline->failure.status != GM_OK) return status;
  return gm__pipeline_fail(pipeline, GM_STAGE_READ, pipeline->sent, status, err);
}

/* --- up, step, down --- */

/* Later work of the stage comes after the point. */
static gm_status flow_after(gm_pipeline *pipeline, gm_stream *stream, const gm_point *point, gm_error *err) {
  if (!point->stream) return GM_OK;
  return stream ? gm_stream_wait(stream, point, err)
                : gm_point_wait(pipeline->device, point, pipeline->params.timeout_ns, err);
}

static gm_status flow_mark(gm_stream *stream, gm_point *out, gm_error *err) {
  return stream ? gm_stream_record(stream, out, err) : GM_OK;
}

/* Managed memory that the step needs comes before the piece, in the same order. */
static gm_status flow_prefetch(gm_pipeline *pipeline, gm_error *err) {
  gm_managed_range range = {NULL, 0, 0};
  gm_point point = {0};
  if (!pipeline->params.needs) return GM_OK;
  gm_status status = pipeline->params.needs(pipeline->params.user, pipeline->sent, &range);
  if (status != GM_OK) return gm__fail(err, status, "needs", "the program failed");
  if (!range.managed || !range.bytes) return GM_OK;
  status = gm_managed_prefetch(range.managed, GM_MANAGED_ON_DEVICE, range.offset, range.bytes, pipeline->up,
                               pipeline->up ? &point : NULL, err);
  if (status != GM_OK) return status;
  gm_point_release(pipeline->device, &point);
  pipeline->stats.prefetched_bytes += range.bytes;
  return GM_OK;
}

/* Floats that came up are made whole where the step is, so that the next ones come up meanwhile. */
static gm_status flow_expand(gm_pipeline *pipeline, const gm__pipeline_lane *lane, uint64_t bytes, gm_error *err) {
  const gm_pipeline_params *params = &pipeline->params;
  bool by_host = false;
  gm_point point = {0};
  if (!params->expand) return GM_OK;
  const gm_status status =
      gm_block_expand(params->in_pool, &lane->in, 0, params->in_pool, &lane->half, 0, bytes / 2, params->in_codec,
                      pipeline->step, pipeline->step ? &point : NULL, &by_host, err);
  if (status != GM_OK) return status;
  gm_point_release(pipeline->device, &point);
  *(by_host ? &pipeline->stats.host_expanded : &pipeline->stats.device_expanded) += 2 * bytes;
  return GM_OK;
}

/* The slot's bytes go into the lane once its last step has read the bytes before. */
static gm_status flow_up(gm_pipeline *pipeline, gm__pipeline_lane *lane, gm__ring_slot *slot, uint64_t bytes,
                         gm_error *err) {
  gm_point point = {0};
  gm_status status = flow_after(pipeline, pipeline->up, &lane->stepped, err);
  if (status == GM_OK) {
    const gm_block *to = pipeline->params.expand ? &lane->half : &lane->in;
    status = gm_block_write(pipeline->params.in_pool, to, 0, slot->host, bytes, pipeline->up,
                            pipeline->up ? &point : NULL, err);
  }
  if (status == GM_OK) {
    pipeline->stats.up_bytes += bytes;
    gm__traffic_count(pipeline->device, GM__TRAFFIC_UP, bytes, bytes);
  }
  if (status == GM_OK) status = flow_after(pipeline, pipeline->step, &point, err);
  gm__ring_give(pipeline->ring, slot, &point);
  return status == GM_OK ? flow_expand(pipeline, lane, bytes, err) : status;
}

static gm_status flow_check_step(gm_pipeline *pipeline, const gm_pipeline_item *item, gm_error *err) {
  if (item->out_bytes <= pipeline->params.out_bytes) return GM_OK;
  return gm__bad_argument(err, "step", "it raised `out_bytes` to %" PRIu64 ", above %" PRIu64, item->out_bytes,
                          pipeline->params.out_bytes);
}

static gm_status flow_step(gm_pipeline *pipeline, gm__pipeline_lane *lane, gm_pipeline_item *item, gm_error *err) {
  gm_status status = flow_after(pipeline, pipeline->step, &lane->came, err);
  if (status != GM_OK) return status;
  gm_point_release(pipeline->device, &lane->came);
  if (err) *err = (gm_error){.status = GM_OK};
  const uint64_t since = gm__now_ns();
  status = pipeline->params.step(pipeline->params.user, item, err);
  pipeline->stats.step += flow_seconds(since);
  gm_point_release(pipeline->device, &lane->stepped);
  lane->stepped = item->done;
  if (status == GM_OK) status = flow_check_step(pipeline, item, err);
  if (!item->done.stream) {
    const gm_status marked = flow_mark(pipeline->step, &lane->stepped, status == GM_OK ? err : NULL);
    if (status == GM_OK) status = marked;
  }
  return status;
}

static gm_status flow_down(gm_pipeline *pipeline, gm__pipeline_lane *lane, const gm_pipeline_item *item,
                           gm_error *err) {
  gm__pipeline_piece piece = {.index = item->index, .bytes = item->out_bytes};
  gm_status status = GM_OK;
  if (piece.bytes) status = flow_slot(pipeline, gm__deadline_after(pipeline->params.timeout_ns), &piece.slot, err);
  if (piece.bytes && status == GM_OK) status = flow_after(pipeline, pipeline->down, &lane->stepped, err);
  if (piece.bytes && status == GM_OK) {
    status = gm_block_read(pipeline->params.out_pool, &lane->out, 0, piece.slot->host, piece.bytes, pipeline->down,
                           pipeline->down ? &piece.came : NULL, err);
  }
  if (piece.bytes && status == GM_OK) status = flow_mark(pipeline->down, &lane->came, err);
  if (status != GM_OK) {
    if (piece.slot) gm__ring_give(pipeline->ring, piece.slot, &piece.came);
    return status;
  }
  if (piece.bytes) gm__traffic_count(pipeline->device, GM__TRAFFIC_DOWN, piece.bytes, piece.bytes);
  pipeline->piece[(pipeline->oldest + pipeline->flying) % GM__PIPELINE_MOST_LANES] = piece;
  pipeline->flying++;
  return GM_OK;
}

static gm_status flow_pass(gm_pipeline *pipeline, gm__pipeline_lane *lane, gm__ring_slot *slot, uint64_t bytes,
                           gm_pipeline_stage *stage, gm_error *err) {
  gm_pipeline_item item = {.index = pipeline->sent,
                           .bytes = pipeline->params.expand ? 2 * bytes : bytes,
                           .out_bytes = pipeline->params.out_bytes,
                           .in = lane->in,
                           .out = lane->out,
                           .stream = pipeline->step};
  *stage = GM_STAGE_PREFETCH;
  gm_status status = flow_prefetch(pipeline, err);
  if (status != GM_OK) {
    gm__ring_give(pipeline->ring, slot, NULL);
    return status;
  }
  *stage = GM_STAGE_UP;
  status = flow_up(pipeline, lane, slot, bytes, err);
  if (status != GM_OK) return status;
  *stage = GM_STAGE_STEP;
  status = flow_step(pipeline, lane, &item, err);
  if (status != GM_OK) return status;
  *stage = GM_STAGE_DOWN;
  if (pipeline->params.out_bytes) return flow_down(pipeline, lane, &item, err);
  pipeline->stats.items++;
  return GM_OK;
}

gm_status gm__pipeline_send(gm_pipeline *pipeline, gm__ring_slot *slot, uint64_t bytes, gm_error *err) {
  gm_pipeline_stage stage;
  gm__pipeline_lane *lane = &pipeline->lane[pipeline->next_lane];
  const gm_status status = flow_pass(pipeline, lane, slot, bytes, &stage, err);
  if (status != GM_OK) return gm__pipeline_fail(pipeline, stage, pipeline->sent, status, err);
  pipeline->next_lane = (pipeline->next_lane + 1) % pipeline->lanes;
  pipeline->sent++;
  return GM_OK;
}

/* --- the end --- */

/* Nothing runs on a lost device, and in a forked child there is nothing to wait for. */
static bool flow_rests(gm_status status) {
  return status == GM_OK || status == GM_ERR_DEVICE_LOST || status == GM_ERR_FORKED;
}

static gm_status flow_rest_lane(gm_pipeline *pipeline, gm__pipeline_lane *lane, gm_error *err) {
  gm_status status = flow_wait(pipeline, &lane->stepped, pipeline->params.timeout_ns, err);
  if (flow_rests(status)) status = flow_wait(pipeline, &lane->came, pipeline->params.timeout_ns, err);
  if (!flow_rests(status)) return status;
  gm_point_release(pipeline->device, &lane->stepped);
  gm_point_release(pipeline->device, &lane->came);
  return GM_OK;
}

gm_status gm__pipeline_rest(gm_pipeline *pipeline, gm_error *err) {
  gm_status status = GM_OK;
  for (uint32_t i = 0; i < pipeline->lanes && status == GM_OK; i++) {
    status = flow_rest_lane(pipeline, &pipeline->lane[i], err);
  }
  while (pipeline->flying && status == GM_OK) {
    status = flow_wait(pipeline, &pipeline->piece[pipeline->oldest].came, pipeline->params.timeout_ns, err);
    if (flow_rests(status)) {
      flow_drop(pipeline);
      status = GM_OK;
    }
  }
  return status;
}
