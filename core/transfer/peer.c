#include "core/transfer/peer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/sized.h"
#include "core/staging/carry.h"
#include "gm/copy.h"
#include "gm/native_cuda.h"
#include "gm/native_hip.h"
#include "gm/size.h"

/* One function chooses the route of a copy, peer_choose. A copy that is not direct has a reason there, which the
 * result, the log and gm_peer_get_info repeat. */

static gm_status peer_check(const gm_device *device, const gm_device *other, const char *op, gm_error *err) {
  gm_status status = gm__device_check(device, op, err);
  return status ? status : gm__device_check(other, op, err);
}

static void peer_say(char why[GM_PEER_WHY_SIZE], const char *text) { snprintf(why, GM_PEER_WHY_SIZE, "%s", text); }

static const char peer_no_path[] = "the driver has no direct path between the two devices";
static const char peer_brings_nothing[] = "the driver's copies between the two devices succeed and bring nothing";

static gm_peer_link peer_link(const gm_device *device, const gm_device *other, const gm_peer_info *info) {
  if (device == other || memcmp(device->info.uuid, other->info.uuid, sizeof device->info.uuid) == 0) {
    return GM_PEER_LINK_SAME;
  }
  if (!info->direct || device->info.api != GM_API_CUDA) return GM_PEER_LINK_UNKNOWN;
  return info->atomics ? GM_PEER_LINK_NVLINK : GM_PEER_LINK_PCIE;
}

/* Reads the path between two devices. *out_knows: the driver knows of peers, so gm can ask it for copies. */
static gm_status peer_read_path(gm_device *device, gm_device *other, gm_peer_path *out, bool *out_knows,
                                gm_error *err) {
  gm_error reason = {.status = GM_OK};
  gm_peer_info info = {.direct = true, .atomics = true, .rank = -1};
  gm_status status = device == other ? GM_OK : gm__peer_ask(device, other, &info, &reason);
  *out = (gm_peer_path){.struct_size = sizeof *out, .rank = -1};
  *out_knows = status == GM_OK;
  if (status == GM_ERR_NOT_SUPPORTED) {
    peer_say(out->why, reason.message);
    return GM_OK;
  }
  if (status) {
    if (err) *err = reason;
    return status;
  }
  out->direct = info.direct;
  out->atomics = info.atomics;
  out->rank = info.rank;
  out->link = peer_link(device, other, &info);
  if (!info.direct) snprintf(out->why, sizeof out->why, "%s%s%s", peer_no_path, info.why[0] ? ": " : "", info.why);
  return GM_OK;
}

gm_status gm_peer_get_info(gm_device *device, gm_device *other, gm_peer_path *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_peer_get_info";
  gm_status status = peer_check(device, other, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  gm_peer_path path;
  bool knows;
  status = peer_read_path(device, other, &path, &knows, err);
  if (status) return status;
  const gm__peer_way *way = device == other ? NULL : gm__peer_way_to(device, other);
  path.enabled = device == other || (way && atomic_load(&way->open));
  if (way && atomic_load(&way->proof) == GM__PEER_BROKEN) {
    path.direct = false;
    peer_say(path.why, peer_brings_nothing);
  }
  gm__sized_out(out, &path, sizeof path);
  return GM_OK;
}

static gm_status peer_no_memory(const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory to remember the pair of devices");
}

gm_status gm_peer_enable(gm_device *device, gm_device *other, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_peer_enable";
  gm_peer_path path;
  bool knows;
  gm_status status = peer_check(device, other, op, err);
  if (status || device == other) return status;
  status = peer_read_path(device, other, &path, &knows, err);
  if (status) return status;
  if (!path.direct) return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "%s", path.why);
  gm__peer_way *way = gm__peer_way_to(device, other);
  return way ? gm__peer_open(way, other, err) : peer_no_memory(op, err);
}

gm_status gm_peer_disable(gm_device *device, gm_device *other, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_peer_disable";
  gm_status status = peer_check(device, other, op, err);
  if (status || !gm__peer_is_kin(device, other) || device == other) return status;
  gm__peer_way *way = gm__peer_way_to(device, other);
  return way ? gm__peer_shut(way, other, err) : peer_no_memory(op, err);
}

/* Makes a point of one device one of another device whose driver can wait for the same event. NOT_SUPPORTED: it
 * cannot. */
static gm_status peer_lend_point(gm_device *to, gm_device *of, const gm_point *point, gm_backend_point *out,
                                 gm_error *err) {
  union {
    gm_native_point head;
    gm_cuda_point cuda;
    gm_hip_point hip;
  } native = {.cuda = {.event = 0}};
  const gm_api api = to->info.api;
  if (!gm__peer_is_kin(to, of) || (api != GM_API_CUDA && api != GM_API_HIP)) return GM_ERR_NOT_SUPPORTED;
  if (api == GM_API_HIP) native.hip = (gm_hip_point){.event = 0};
  native.head.struct_size = api == GM_API_CUDA ? sizeof native.cuda : sizeof native.hip;
  native.head.api = api;
  gm_status status = gm_point_native(of, point, &native.head, err);
  if (status) return status;
  *out = (gm_backend_point){0, 0};
  const uintptr_t event = api == GM_API_CUDA ? native.cuda.event : native.hip.event;
  return event ? to->ops->point_import(to->handle, &native.head, out, err) : GM_OK;
}

gm_status gm_peer_wait(gm_stream *stream, gm_device *of, const gm_point *point, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_peer_wait";
  gm_backend_point lent = {0, 0};
  bool passed = false;
  gm_status status = gm__stream_check(stream, op, err);
  if (status) return status;
  gm_device *device = gm_stream_device(stream);
  if (device == of) return gm_stream_wait(stream, point, err);
  status = gm_point_done(of, point, &passed, err); /* this call checks both, too */
  if (status || passed) return status;
  if (peer_lend_point(device, of, point, &lent, NULL)) return gm_point_wait(of, point, UINT64_MAX, err);
  status = gm__submitting(device)->point_wait_on(device->handle, stream->handle, &lent, err);
  device->ops->point_release(device->handle, &lent, GM_CLOSE_NORMAL);
  return status;
}

typedef struct peer_job {
  gm_pool *dst_pool;
  gm__access dst, src;
  gm_stream *stream; /* of the receiving device; NULL: the call waits */
  gm_point *out;
  gm__peer_way *way;
  gm_peer_result result;
} peer_job;

static void peer_stage(peer_job *job, gm_peer_route route, const char *why) {
  job->result.route = route;
  peer_say(job->result.why, why);
}

/* Stages the copy where the driver's copies are proven to bring nothing, or cannot be tried now. */
static void peer_choose_proven(peer_job *job) {
  gm__peer_proof proof = GM__PEER_UNPROVEN;
  gm_error reason = {.status = GM_OK};
  const gm_status status = gm__peer_prove(job->way, job->src.device, &proof, &reason);
  if (status == GM_ERR_NOT_SUPPORTED) return; /* gm's own streams are forbidden: only the caller's is left */
  if (status) {
    char why[GM_PEER_WHY_SIZE];
    snprintf(why, sizeof why, "the driver's copies could not be tried: %.200s", reason.message);
    peer_stage(job, GM_PEER_STAGED_BY_GM, why);
  } else if (proof == GM__PEER_BROKEN) {
    peer_stage(job, GM_PEER_STAGED_BY_GM, peer_brings_nothing);
  }
}

/* Chooses inside a capture. It takes the driver's copy as it is; all else that a first copy does would break it. */
static gm_status peer_choose_captured(peer_job *job, const gm_peer_path *path, bool knows, gm_error *err) {
  if (!knows || atomic_load(&job->way->proof) == GM__PEER_BROKEN) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_block_copy_peer",
                    "the engine is capturing `stream`, and a copy that gm stages cannot be captured: %s",
                    knows ? peer_brings_nothing : path->why);
  }
  if (!path->direct) peer_stage(job, GM_PEER_STAGED_BY_DRIVER, path->why);
  if (path->direct && !atomic_load(&job->way->open)) {
    peer_stage(job, GM_PEER_STAGED_BY_DRIVER, "peer access is not enabled, and the engine is capturing `stream`");
  }
  return GM_OK;
}

static gm_status peer_choose(peer_job *job, gm_error *err) {
  gm_peer_path path;
  bool knows, barred = false;
  gm_error reason = {.status = GM_OK};
  gm_device *to = job->dst.device, *from = job->src.device;
  gm_status status = peer_read_path(to, from, &path, &knows, err);
  if (status) return status;
  if (gm__stream_captured(job->stream)) return peer_choose_captured(job, &path, knows, err);
  if (!knows) {
    peer_stage(job, GM_PEER_STAGED_BY_GM, path.why);
    return GM_OK;
  }
  if (!path.direct) {
    peer_stage(job, GM_PEER_STAGED_BY_DRIVER, path.why);
  } else if (gm__peer_open_for_copy(job->way, from, &barred, &reason)) {
    peer_stage(job, GM_PEER_STAGED_BY_DRIVER, reason.message);
  } else if (barred) {
    peer_stage(job, GM_PEER_STAGED_BY_DRIVER, "peer access was disabled with gm_peer_disable");
  }
  peer_choose_proven(job);
  return GM_OK;
}

static gm_status peer_by_driver(peer_job *job, const char *op, gm_error *err) {
  gm_stream *on = NULL;
  gm_backend_point point = {0, 0};
  const bool waits = !job->stream || !job->out;
  gm_device *to = job->dst.device;
  const gm_copy_item item = {&job->src.memory, job->src.offset, &job->dst.memory, job->dst.offset, job->dst.bytes};
  gm_status status = gm__access_stream(to, job->stream, op, &on, err);
  if (status) return status;
  status =
      gm__submitting(to)->peer_copy(to->handle, on->handle, job->src.device->handle, &item, waits ? NULL : &point, err);
  if (status == GM_OK && job->out) {
    *job->out = waits ? (gm_point){0, 0, 0} : (gm_point){on->id, point.handle, point.value};
  }
  return status;
}

/* The streams of both ends; NULL: calls wait. The receiving one's earlier work is done then. */
static gm_status peer_streams(const peer_job *job, gm_stream **to, gm_stream **from, const char *op, gm_error *err) {
  gm_status status = gm__access_stream(job->dst.device, job->stream, op, to, err);
  if (status == GM_OK && job->stream) status = gm__access_settle(job->stream, err);
  if (status || !gm__device_has_default_stream(job->src.device)) return status;
  return gm__access_stream(job->src.device, NULL, op, from, err);
}

/* Through the ring of the device that is farther from the host. */
static gm_status peer_by_gm(peer_job *job, const char *op, gm_error *err) {
  const bool sends = job->dst.device->info.unified && !job->src.device->info.unified;
  gm__carry carry = {.to.range = &job->dst,
                     .from.range = &job->src,
                     .bytes = job->dst.bytes,
                     .lender = sends ? job->src.device : job->dst.device,
                     .patient = true,
                     .op = op};
  gm_status status = peer_streams(job, &carry.to.stream, &carry.from.stream, op, err);
  if (status == GM_OK) status = gm__carry_run(&carry, err);
  job->result.staging_bytes = carry.staged_bytes;
  job->result.pinned = carry.pinned;
  if (status == GM_OK && job->out) *job->out = (gm_point){0, 0, 0};
  return status;
}

static void peer_report(const peer_job *job) {
  const gm_device_info *to = &job->dst.device->info, *from = &job->src.device->info;
  if (atomic_exchange(&job->way->reported, true)) return;
  gm__log(gm__context_services(job->dst.device->ctx), GM_LOG_WARN,
          "copies from %s device %u (%s) to %s device %u (%s) go through host memory, staged by %s: %s", from->backend,
          from->index, from->name, to->backend, to->index, to->name,
          job->result.route == GM_PEER_STAGED_BY_GM ? "gm" : "the driver", job->result.why);
}

static void peer_count(const peer_job *job) {
  gm__stats *stats = &job->dst_pool->heap.provider.stats;
  gm__stats_count(&stats->peer_copies, 1);
  if (job->result.route == GM_PEER_DIRECT) return;
  gm__stats_count(&stats->peer_staged_copies, 1);
  gm__stats_count(&stats->peer_staged_bytes, job->dst.bytes);
}

/* Waits for the work of a stream of the sending device. The rest is then done in host order. */
static gm_status peer_settle_sender(peer_job *job, gm_error *err) {
  if (!job->stream || job->stream->device != job->src.device) return GM_OK;
  const gm_status status = gm__access_settle(job->stream, err);
  job->stream = NULL;
  return status;
}

static gm_status peer_run(peer_job *job, const char *op, gm_error *err) {
  gm_status status = peer_settle_sender(job, err);
  if (status == GM_OK) status = peer_choose(job, err);
  if (status) return status;
  status = job->result.route == GM_PEER_STAGED_BY_GM ? peer_by_gm(job, op, err) : peer_by_driver(job, op, err);
  if (status) return status;
  peer_count(job);
  if (job->result.route != GM_PEER_DIRECT) peer_report(job);
  return GM_OK;
}

static gm_status peer_check_job(const peer_job *job, const gm_peer_result *result, const char *op, gm_error *err) {
  const gm_stream *stream = job->stream;
  if (stream && stream->device != job->dst.device && stream->device != job->src.device) {
    return gm__bad_argument(err, op, "`stream` belongs to neither of the two devices");
  }
  return result ? gm__sized_check(result, sizeof *result, op, "result", err) : GM_OK;
}

gm_status gm_block_copy_peer(gm_pool *dst_pool, const gm_block *dst, uint64_t dst_offset, gm_pool *src_pool,
                             const gm_block *src, uint64_t src_offset, uint64_t bytes, gm_stream *stream, gm_point *out,
                             gm_peer_result *result, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_block_copy_peer";
  peer_job job = {.dst_pool = dst_pool, .stream = stream, .out = out, .result = {.struct_size = sizeof job.result}};
  gm_status status = gm__access_open(dst_pool, dst, dst_offset, bytes, op, &job.dst, err);
  if (status == GM_OK) status = gm__access_open(src_pool, src, src_offset, bytes, op, &job.src, err);
  if (status == GM_OK) status = peer_check_job(&job, result, op, err);
  if (status) return status;
  if (job.dst.device == job.src.device) {
    status = gm_block_copy(dst_pool, dst, dst_offset, src_pool, src, src_offset, bytes, stream, out, err);
  } else {
    job.way = gm__peer_way_to(job.dst.device, job.src.device);
    status = job.way ? peer_run(&job, op, err) : peer_no_memory(op, err);
  }
  if (status == GM_OK && result) gm__sized_out(result, &job.result, sizeof job.result);
  return status;
}
