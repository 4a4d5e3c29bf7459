/* Bytes from files into blocks. Parts arrive in the order in which the disk brings them. Bytes that the host writes
 * straight are in their place then. The rest is copied from a slot, while further pieces are read. */
#include <string.h>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/load/load_job.h"
#include "core/model/model_memory.h"

enum { READ_PATIENCE_NS = 20000000 };

/* On the thread that read the piece: its bytes are still in the processor's cache. */
static void read_seen(void *user, const gm__read *read, const gm__read_piece *piece) {
  gm__load_job *job = user;
  for (uint64_t i = 0; i < piece->count; i++) {
    const gm__read_part part = gm__read_part_of(read, piece, i);
    const gm__read_range *range = &job->ranges[part.range];
    const unsigned char *data = gm__read_part_data(read, piece, i);
    if (!gm__load_sums_have(&job->file_sums, part.range, range)) {
      atomic_fetch_add(&job->sums[part.range], gm__checksum(data, part.bytes, part.from));
    } else if (range->to) { /* else when it is read back */
      gm__load_sums_add(&job->file_sums, part.range, range, part.from, data, part.bytes);
    }
  }
}

/* Copies the bytes [from, until) of a part to their place. */
static gm_status read_copy(gm__load_job *job, const gm__read_part *part, const unsigned char *data, uint64_t from,
                           uint64_t until, gm_point *point, gm_error *err) {
  const gm__load_target target = {.pool = job->loaded->pools[part->range],
                                  .block = &job->loaded->blocks[part->range],
                                  .at = gm__load_block_at(job, part->range, part->from + from),
                                  .bytes = until - from};
  if (from == until) return GM_OK;
  return gm__load_lane_write(gm__load_lane_at(job, part->range), &target, data + from, point, err);
}

/* One part has arrived, and some of it may be in its place. `point`: of the copy out of a slot; NULL: copies wait. */
static gm_status read_deliver(gm__load_job *job, const gm__read *read, const gm__read_piece *piece, uint64_t index,
                              gm_point *point, gm_error *err) {
  const gm__read_part part = gm__read_part_of(read, piece, index);
  const uint64_t tail = piece->far_front + piece->far_bytes;
  if (job->ranges[part.range].to) return GM_OK;
  const unsigned char *data = gm__read_part_data(read, piece, index);
  const gm_status status = read_copy(job, &part, data, 0, piece->far_front, point, err);
  return status == GM_OK ? read_copy(job, &part, data, tail, part.bytes, point, err) : status;
}

/* Whether that was the last part of its tensor. */
static void read_arrive(gm__load_job *job, const gm__read_part *part) {
  const gm__read_range *range = &job->ranges[part->range];
  if (!job->left || (job->left[part->range] -= part->bytes) || !job->params.arrived) return;
  const gm_load_arrival arrival = {.index = part->range,
                                   .pool = job->loaded->pools[part->range],
                                   .block = job->loaded->blocks[part->range],
                                   .stream = range->to ? NULL : gm__load_lane_at(job, part->range)->stream};
  job->params.arrived(job->params.user, &arrival);
}

/* Tells about all parts of a piece. After a cancel nobody is asked any more. */
static gm_status read_tell(gm__load_job *job, const gm__read *read, const gm__read_piece *piece, gm_error *err) {
  gm_status status = GM_OK;
  for (uint64_t i = 0; i < piece->count; i++) {
    gm_error inner = {0};
    const gm__read_part part = gm__read_part_of(read, piece, i);
    job->progress.done_bytes += part.bytes;
    read_arrive(job, &part);
    if (status == GM_OK && (status = gm__load_report(job, part.range, &inner)) != GM_OK) {
      gm__load_fail(job->model, job->model->tensors[part.range], &inner, err);
    }
  }
  return status;
}

/* All parts of a piece. Its slot goes back to the ring. A piece whose copies failed is never done. */
static gm_status read_finish(gm__load_job *job, gm__read *read, gm__read_piece *piece, gm_error *err) {
  gm__ring_slot *slot = piece->memory.token;
  const uint64_t first = gm__read_part_of(read, piece, 0).range;
  gm_point point = {0};
  gm_status status = GM_OK;
  for (uint64_t i = 0; i < piece->count && status == GM_OK; i++) {
    gm_error inner = {0};
    status = read_deliver(job, read, piece, i, slot ? &point : NULL, &inner);
    const gm__tensor *tensor = job->model->tensors[gm__read_part_of(read, piece, i).range];
    if (status != GM_OK) gm__load_fail(job->model, tensor, &inner, err);
  }
  if (slot) gm__ring_give(gm__load_lane_at(job, first)->ring, slot, &point);
  if (status != GM_OK) return status;
  status = read_tell(job, read, piece, err);
  gm__read_done(read, piece);
  return status;
}

/* The next piece, or a moment without one. *out_more false: all have arrived. */
static gm_status read_step(gm__load_job *job, gm__read *read, uint64_t *tensor, bool *out_more, gm_error *err) {
  gm__read_piece *piece = NULL;
  gm_error inner = {0};
  gm_status status = gm__read_next(read, READ_PATIENCE_NS, &piece, &inner);
  *out_more = piece || status != GM_OK;
  if (piece) {
    *tensor = gm__read_part_of(read, piece, 0).range;
    return read_finish(job, read, piece, err);
  }
  if (status == GM_ERR_TIMEOUT) status = gm__load_report(job, *tensor, &inner);
  if (status == GM_OK) return status;
  if (inner.status != GM_ERR_CANCELLED) *tensor = gm__read_failed_range(read);
  return gm__load_fail(job->model, job->model->tensors[*tensor], &inner, err);
}

/* Tells about tensors that lie in their mapped files. */
static gm_status read_tell_mapped(gm__load_job *job, gm_error *err) {
  gm_status status = GM_OK;
  for (uint64_t i = 0; i < job->model->tensor_count && status == GM_OK; i++) {
    gm_error inner = {0};
    const gm__read_part part = {.range = i, .bytes = job->ranges[i].bytes};
    if (!gm__load_is_mapped(job, i)) continue;
    job->progress.done_bytes += part.bytes;
    read_arrive(job, &part);
    status = gm__load_report(job, i, &inner);
    if (status != GM_OK) gm__load_fail(job->model, job->model->tensors[i], &inner, err);
  }
  return status;
}

/* Starts to read all but them. */
static gm_status read_start(gm__load_job *job, gm__read **out, gm_error *err) {
  const uint64_t count = job->model->tensor_count;
  const gm__read_params params = {.services = &job->model->services,
                                  .piece_bytes = job->piece_bytes,
                                  .workers = job->workers,
                                  .seen = job->sums ? read_seen : NULL,
                                  .user = job};
  void *room = NULL;
  if (!job->mapped) return gm__read_start(job->ranges, count, &params, out, err);
  gm_status status = gm__model_alloc(params.services, count, sizeof *job->ranges, &room, err);
  gm__read_range *ranges = room;
  for (uint64_t i = 0; i < count && status == GM_OK; i++) {
    if (!job->mapped[i]) ranges[i] = job->ranges[i]; /* else 0 bytes */
  }
  if (status == GM_OK) status = gm__read_start(ranges, count, &params, out, err);
  gm__model_release(params.services, ranges, count, sizeof *ranges);
  return status;
}

static void read_path(gm__load_job *job, const gm__read_figures *figures) {
  gm_load_result *result = &job->result;
  result->direct_bytes = figures->direct_bytes;
  result->gds_bytes = figures->far_bytes;
  result->path = GM_LOAD_PATH_READ;
  if (job->params.path == GM_LOAD_PATH_MMAP) result->path = GM_LOAD_PATH_MMAP;
  if (figures->direct_bytes > figures->cached_bytes) result->path = GM_LOAD_PATH_DIRECT;
  if (result->mapped_bytes > figures->direct_bytes + figures->cached_bytes) result->path = GM_LOAD_PATH_IN_PLACE;
  if (figures->far_bytes > figures->direct_bytes + figures->cached_bytes) result->path = GM_LOAD_PATH_GDS;
  job->read_bytes = figures->host_bytes;
}

/* Notes what has arrived, where the copies of it have ended well. */
static void read_keep(gm__load_job *job, gm__read *read) {
  gm_loaded_model *loaded = job->loaded;
  gm__read_stop(read);
  if (!job->left || gm__load_lanes_sync(&job->lanes, NULL) != GM_OK) return;
  memset(job->left, 0, loaded->count * sizeof *job->left);
  gm__read_reached(read, job->left);
  loaded->left = job->places->bytes;
  for (uint64_t i = 0; i < loaded->count; i++) loaded->left -= loaded->there[i] += job->left[i];
  job->kept = true;
}

gm_status gm__load_read(gm__load_job *job, gm_error *err) {
  gm__read *read = NULL;
  gm__read_figures figures;
  gm_status status = read_start(job, &read, err);
  uint64_t tensor = 0;
  while (tensor + 1 < job->model->tensor_count && !job->ranges[tensor].bytes) tensor++;
  for (uint64_t i = 0; i < job->model->tensor_count && job->left; i++) job->left[i] = job->ranges[i].bytes;
  if (status == GM_OK) status = read_tell_mapped(job, err);
  for (bool more = true; status == GM_OK && more;) status = read_step(job, read, &tensor, &more, err);
  if (status != GM_OK && read && job->loaded->there) read_keep(job, read);
  if (read) {
    gm__read_get_figures(read, &figures);
    read_path(job, &figures);
    gm__read_end(read);
  }
  return status == GM_OK ? gm__load_lanes_sync(&job->lanes, err) : status;
}
