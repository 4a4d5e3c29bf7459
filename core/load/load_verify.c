/* Verification. Where a file has a checksum file, what arrived in memory of the host was summed for it already. Other
 * memory that the host can read is summed in place, by several threads. The rest is read back through a
 * slot. Invariant: a part's checksum is taken off its tensor's sum once, so the sum is 0 where all bytes are as they
 * arrived.
 */
#include <string.h>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/thread.h"
#include "core/load/load_job.h"
#include "gm/copy.h"

typedef struct verify_work {
  gm__load_job *job;
  gm__mutex lock; /* guards the members below */
  uint64_t tensor, from;
  uint64_t done_bytes;
  bool stop;
} verify_work;

typedef struct verify_part {
  uint64_t tensor, from, bytes;
} verify_part;

/* Whether a tensor is compared with its file's checksum file. */
static bool verify_by_file(const gm__load_job *job, uint64_t index) {
  return gm__load_sums_have(&job->file_sums, index, &job->ranges[index]);
}

/* Whether a tensor in memory of the host is summed now: what nobody summed when it arrived. The bytes of a mapped file
 * are compared with its checksum file alone. */
static bool verify_looks(const gm__load_job *job, uint64_t index) {
  return verify_by_file(job, index) == gm__load_is_mapped(job, index);
}

/* The next part of a tensor in place. False: there is none. */
static bool verify_next(verify_work *work, verify_part *out) {
  const gm__load_job *job = work->job;
  gm__mutex_lock(&work->lock);
  while (work->tensor < job->model->tensor_count) {
    const gm__read_range *range = &job->ranges[work->tensor];
    if (range->to && work->from < range->bytes && verify_looks(job, work->tensor)) break;
    work->tensor++;
    work->from = 0;
  }
  const bool found = work->tensor < job->model->tensor_count && !work->stop;
  if (found) {
    *out = (verify_part){work->tensor, work->from, gm__load_part_bytes(job, work->tensor, work->from)};
    work->from += out->bytes;
  }
  gm__mutex_unlock(&work->lock);
  return found;
}

static void verify_take_off(gm__load_job *job, const verify_part *part, const void *data) {
  atomic_fetch_sub(&job->sums[part->tensor], gm__checksum(data, part->bytes, part->from));
}

static void verify_take(gm__load_job *job, const verify_part *part, const unsigned char *data) {
  if (!verify_by_file(job, part->tensor)) {
    verify_take_off(job, part, data);
    return;
  }
  gm__load_sums_add(&job->file_sums, part->tensor, &job->ranges[part->tensor], part->from, data, part->bytes);
}

/* One part in place. False: there was none. */
static bool verify_one(verify_work *work, verify_part *part) {
  if (!verify_next(work, part)) return false;
  verify_take(work->job, part, work->job->ranges[part->tensor].to + part->from);
  gm__mutex_lock(&work->lock);
  work->done_bytes += part->bytes;
  gm__mutex_unlock(&work->lock);
  return true;
}

static void verify_run(void *arg) {
  verify_part part;
  while (verify_one(arg, &part)) {}
}

static void verify_stop(verify_work *work) {
  gm__mutex_lock(&work->lock);
  work->stop = true;
  gm__mutex_unlock(&work->lock);
}

static gm_status verify_report(verify_work *work, uint64_t tensor, gm_error *err) {
  gm__load_job *job = work->job;
  gm_error inner = {0};
  gm__mutex_lock(&work->lock);
  job->progress.done_bytes = work->done_bytes;
  gm__mutex_unlock(&work->lock);
  const gm_status status = gm__load_report(job, tensor, &inner);
  return status == GM_OK ? GM_OK : gm__load_fail(job->model, job->model->tensors[tensor], &inner, err);
}

static gm_status verify_in_place(verify_work *work, gm_error *err) {
  gm__thread threads[GM__READ_WORKERS];
  verify_part part = {0};
  uint32_t started = 0;
  gm_status status = GM_OK;
  while (started + 1 < work->job->workers && started < GM__READ_WORKERS) {
    if (gm__thread_create(&threads[started], "gm-verify", verify_run, work, NULL) != GM_OK) break;
    started++;
  }
  while (status == GM_OK && verify_one(work, &part)) status = verify_report(work, part.tensor, err);
  if (status != GM_OK) verify_stop(work);
  for (uint32_t i = 0; i < started; i++) gm__thread_join(&threads[i]);
  return status == GM_OK && started ? verify_report(work, part.tensor, err) : status;
}

/* ---- what the host does not read straight ---- */

static gm_status verify_look(void *user, uint64_t index, uint64_t from, void *to, uint64_t bytes, gm_error *err) {
  const gm__load_job *job = user;
  const unsigned char *place = job->ranges[index].to;
  if (!place) {
    return gm_block_read(job->loaded->pools[index], &job->loaded->blocks[index], gm__load_block_at(job, index, from),
                         to, bytes, gm__load_lane_at(job, index)->stream, NULL, err);
  }
  memcpy(to, place + from, (size_t)bytes);
  return GM_OK;
}

static gm_status verify_read_back(verify_work *work, uint64_t index, const gm__read_memory *memory, gm_error *err) {
  gm__load_job *job = work->job;
  verify_part part = {.tensor = index};
  for (; part.from < job->ranges[index].bytes; part.from += part.bytes) {
    gm_error inner = {0};
    part.bytes = gm__load_part_bytes(job, index, part.from);
    gm_status status = verify_look(job, index, part.from, memory->host, part.bytes, &inner);
    if (status != GM_OK) return gm__load_fail(job->model, job->model->tensors[index], &inner, err);
    verify_take(job, &part, memory->host);
    work->done_bytes += part.bytes;
    status = verify_report(work, index, err);
    if (status != GM_OK) return status;
  }
  return GM_OK;
}

static gm_status verify_through_slot(verify_work *work, uint64_t index, gm_error *err) {
  const gm__load_lane *lane = gm__load_lane_at(work->job, index);
  gm__ring_slot *slot = NULL;
  gm_status status = gm__ring_take(lane->ring, UINT64_MAX, &slot, err);
  if (status != GM_OK) return status;
  const gm__read_memory memory = {.host = slot->host, .token = slot};
  status = verify_read_back(work, index, &memory, err);
  gm__ring_give(lane->ring, slot, NULL);
  return status;
}

/* ---- all of them ---- */

static gm_status verify_begin(verify_work *work, gm_error *err) {
  gm__load_job *job = work->job;
  gm_status status = GM_OK;
  for (uint64_t i = 0; i < job->model->tensor_count && status == GM_OK; i++) {
    if (!gm__load_place_of(job->places, i)->pool) continue;
    if (verify_by_file(job, i)) job->result.summed_bytes += job->ranges[i].bytes;
    if (!verify_looks(job, i) && job->ranges[i].to) work->done_bytes += job->ranges[i].bytes;
    status = verify_report(work, i, err);
  }
  return status;
}

static gm_status verify_sums(const gm__load_job *job, gm_error *err) {
  for (uint64_t i = 0; i < job->model->tensor_count; i++) {
    gm_error inner = {0};
    if (!job->ranges[i].bytes || atomic_load(&job->sums[i]) == 0) continue;
    gm__fail(&inner, GM_ERR_IO, "gm_model_load", "read back, it differs from what was loaded");
    return gm__load_fail(job->model, job->model->tensors[i], &inner, err);
  }
  return GM_OK;
}

gm_status gm__load_verify(gm__load_job *job, gm_error *err) {
  verify_work work = {.job = job};
  job->progress.verifying = true;
  gm__mutex_init(&work.lock, GM__RANK_LEAF);
  gm_status status = verify_begin(&work, err);
  if (status == GM_OK) status = verify_in_place(&work, err);
  for (uint64_t i = 0; i < job->model->tensor_count && status == GM_OK; i++) {
    if (job->ranges[i].bytes && !job->ranges[i].to) status = verify_through_slot(&work, i, err);
  }
  gm__mutex_destroy(&work.lock);
  if (status == GM_OK) status = verify_sums(job, err);
  if (status == GM_OK && job->file_sums.each) {
    status = gm__load_sums_finish(&job->file_sums, job->ranges, verify_look, job, &job->result.summed_files, err);
  }
  job->result.verified = status == GM_OK;
  return status;
}
