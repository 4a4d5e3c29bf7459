/* From a model into a file. Invariants: every tensor of the model is in the file. A file of the model is read only
 * where it is the one whose header was read. */
#include "core/load/load_files.h"
#include "core/load/loaded_model.h"
#include "core/load/save_values.h"

#include <string.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/model/contents.h"
#include "core/model/model_memory.h"
#include "gm/copy.h"
#include "gm/save.h"

static const char save_op[] = "gm_model_save";

typedef struct save_job {
  const gm_model *model;
  const gm_loaded_model *loaded; /* NULL: all from the model's files */
  const gm__save_format *format;
  gm_save_params params;
  gm__save_values values;
  gm__file_tensor *rows;
  gm__load_files files;
  gm_file *file; /* of the tensor at work, where its bytes come from there */
  gm_save_progress progress;
  const gm__tensor *tensor; /* at work */
  uint64_t index;           /* of it */
} save_job;

/* ---- which tensors ---- */

static gm__file_tensor save_row(const gm_model *model, uint64_t index) {
  const gm__tensor *tensor = model->tensors[index];
  const gm__contents *contents = &model->shards[tensor->shard].contents;
  gm__file_tensor row = {
      .name = tensor->name.text, .number = index, .dtype = tensor->dtype, .rank = tensor->rank, .bytes = tensor->bytes};
  if (row.rank) memcpy(row.shape, contents->dims + tensor->shape_at, row.rank * sizeof *row.shape);
  return row;
}

static gm_status save_describe(save_job *job, gm_error *err) {
  void *rows = NULL;
  const uint64_t count = job->model->tensor_count;
  gm_status status = gm__model_alloc(&job->model->services, count, sizeof *job->rows, &rows, err);
  job->rows = rows;
  for (uint64_t i = 0; i < count && !status; i++) {
    gm_error inner = {0};
    job->rows[i] = save_row(job->model, i);
    const char *why = job->format->refuses(&job->rows[i]);
    if (!why) continue;
    gm__fail(&inner, GM_ERR_NOT_SUPPORTED, 0, save_op, "it %s", why);
    status = gm__load_fail(job->model, job->model->tensors[i], &inner, err);
  }
  return status;
}

/* ---- their bytes ---- */

static gm_status save_report(save_job *job, gm_error *err) {
  job->progress.tensor = job->tensor->name.text;
  if (!job->params.progress || job->params.progress(job->params.user, &job->progress)) return GM_OK;
  return gm__fail(err, GM_ERR_CANCELLED, 0, save_op, "cancelled by the caller, after %llu of %llu bytes",
                  (unsigned long long)job->progress.done_bytes, (unsigned long long)job->progress.total_bytes);
}

static bool save_has_block(const save_job *job) { return job->loaded && job->loaded->blocks[job->index].bytes; }

static gm_status save_read(void *user, uint64_t at, void *to, uint64_t bytes, gm_error *err) {
  save_job *job = user;
  const uint64_t from = gm__model_file_offset(job->model, job->tensor) + at;
  gm_status status = save_has_block(job)
                         ? gm_block_read(job->loaded->pools[job->index], &job->loaded->blocks[job->index], at, to,
                                         bytes, NULL, NULL, err)
                         : gm_file_read(job->file, from, to, bytes, err);
  job->progress.done_bytes += bytes;
  return status ? status : save_report(job, err);
}

static gm_status save_tensor(save_job *job, gm__save_sink *sink, gm_error *err) {
  gm_status status = save_report(job, err);
  if (!status && job->tensor->bytes && !save_has_block(job)) {
    status = gm__load_files_get(&job->files, job->tensor->shard, &job->file, err);
  }
  return status ? status : gm__save_sink_fill(sink, job->tensor->bytes, save_read, job, err);
}

static gm_status save_data(void *user, size_t row, gm__save_sink *sink, gm_error *err) {
  save_job *job = user;
  gm_error inner = {0};
  job->index = job->rows[row].number;
  job->tensor = job->model->tensors[job->index];
  return save_tensor(job, sink, &inner) ? gm__load_fail(job->model, job->tensor, &inner, err) : GM_OK;
}

/* ---- the call ---- */

static gm_status save_check_loaded(const gm_model *model, const gm_loaded_model *loaded, gm_error *err) {
  bool same = !loaded || loaded->count == model->tensor_count;
  for (uint64_t i = 0; loaded && same && i < loaded->count; i++) {
    same = !loaded->blocks[i].bytes || loaded->blocks[i].bytes >= model->tensors[i]->bytes;
  }
  return same ? GM_OK : gm__bad_argument(err, save_op, "`loaded` is of another model");
}

static gm_status save_check(const gm_model *model, const gm_loaded_model *loaded, const char *path, gm_error *err) {
  if (!model) return gm__bad_argument(err, save_op, "`model` is NULL");
  if (model->header_only) return gm__bad_argument(err, save_op, "`model` is from gm_model_open_header: it has no data");
  if (!path || !*path) return gm__bad_argument(err, save_op, "`path` is %s", path ? "empty" : "NULL");
  return save_check_loaded(model, loaded, err);
}

static gm_status save_do(save_job *job, const char *path, gm_error *err) {
  const gm_model *model = job->model;
  job->progress.total_bytes = model->bytes;
  gm_status status = gm__load_files_make(&job->files, model, GM_WAY_AUTO, err);
  if (!status) status = save_describe(job, err);
  if (!status) status = gm__save_values_make(&job->values, model, job->format, err);
  const gm__save_source source = {.table = {.services = &model->services,
                                            .op = save_op,
                                            .tensors = job->rows,
                                            .count = model->tensor_count,
                                            .values = job->values.values,
                                            .value_count = (size_t)job->values.count},
                                  .data = save_data,
                                  .user = job};
  if (!status) status = gm__save_whole(&source, job->format, path, err);
  gm__load_files_end(&job->files);
  gm__save_values_end(&job->values, &model->services);
  gm__model_release(&model->services, job->rows, model->tensor_count, sizeof *job->rows);
  return status;
}

gm_status gm_model_save(const gm_model *model, const gm_loaded_model *loaded, const char *path,
                        const gm_save_params *params, gm_save_result *out_result, gm_error *err) {
  GM__UNCANCELLED();
  save_job job = {.model = model, .loaded = loaded};
  const uint64_t start = gm__now_ns();
  gm_status status = save_check(model, loaded, path, err);
  if (!status && out_result) status = gm__sized_check(out_result, sizeof *out_result, save_op, "out_result", err);
  if (!status && params) status = gm__sized_in(&job.params, sizeof job.params, params, save_op, "params", err);
  if (status) return status;
  job.format = gm__save_format_of(path);
  status = save_do(&job, path, err);
  if (status || !out_result) return gm__model_name_call(status, save_op, err);
  const gm_save_result result = {.struct_size = sizeof result,
                                 .tensors = model->tensor_count,
                                 .bytes = model->bytes,
                                 .values = job.values.count,
                                 .values_left_out = job.values.left_out,
                                 .seconds = (double)(gm__now_ns() - start) / 1e9};
  gm__sized_out(out_result, &result, sizeof result);
  return GM_OK;
}
