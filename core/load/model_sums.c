/* The files of a model against their checksum files. */
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/load/load_files.h"
#include "core/load/sum_file.h"
#include "gm/save.h"

static const char sums_op[] = "gm_model_check_sums";

typedef struct sums_job {
  bool (*progress)(void *user, uint64_t done_bytes, uint64_t total_bytes);
  void *user;
  uint64_t done, total;
  gm_sums_result result;
} sums_job;

static gm_status sums_step(void *user, uint64_t bytes, gm_error *err) {
  sums_job *job = user;
  job->done += bytes;
  if (!job->progress || job->progress(job->user, job->done, job->total)) return GM_OK;
  return gm__fail(err, GM_ERR_CANCELLED, sums_op, "cancelled by the caller, after %llu of %llu bytes",
                  (unsigned long long)job->done, (unsigned long long)job->total);
}

static gm_status sums_file(sums_job *job, gm__load_files *files, uint32_t shard, gm_error *err) {
  bool found = false;
  gm_file *file = NULL;
  gm_status status = gm__load_files_get(files, shard, &file, err);
  if (status) return status;
  status = gm__sums_check(&files->model->services, &file->input, file->path, sums_step, job, &found, err);
  *(found ? &job->result.files : &job->result.files_without) += 1;
  return status;
}

gm_status gm_model_check_sums(const gm_model *model,
                              bool (*progress)(void *user, uint64_t done_bytes, uint64_t total_bytes), void *user,
                              gm_sums_result *out_result, gm_error *err) {
  GM__UNCANCELLED();
  sums_job job = {.progress = progress, .user = user, .result = {.struct_size = sizeof job.result}};
  const uint64_t start = gm__now_ns();
  gm__load_files files;
  if (!model) return gm__bad_argument(err, sums_op, "`model` is NULL");
  if (model->header_only) return gm__bad_argument(err, sums_op, "`model` is from gm_model_open_header: it has no data");
  gm_status status = out_result ? gm__sized_check(out_result, sizeof *out_result, sums_op, "out_result", err) : GM_OK;
  if (status) return status;
  status = gm__load_files_make(&files, model, GM_WAY_CACHE, err);
  for (uint32_t i = 0; i < model->shard_count; i++) job.total += model->shards[i].file.bytes;
  for (uint32_t i = 0; i < model->shard_count && !status; i++) status = sums_file(&job, &files, i, err);
  gm__load_files_end(&files);
  job.result.bytes = job.done;
  job.result.seconds = (double)(gm__now_ns() - start) / 1e9;
  if (!status && out_result) gm__sized_out(out_result, &job.result, sizeof job.result);
  return status;
}
