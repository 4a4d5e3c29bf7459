/* From a model into a file. Invariants: every tensor of the model is in the file. A file of the model is read only
 * where it is the one whose header was read. The host never touches a mapped file: one that shrinks is an error. */
#include "core/load/load_files.h"
#include "core/load/loaded_model.h"
#include "core/load/save_values.h"

#include <stdio.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/device/device.h"
#include "core/model/contents.h"
#include "core/model/model_memory.h"
#include "gm/copy.h"
#include "gm/save.h"

enum { SAVE_CHUNK_MOST = 1 << 30, SAVE_PAGE = GM__DATA_FILE_DIRECT };

static const char save_op[] = "gm_model_save";

typedef struct save_job {
  const gm_model *model;
  const gm_loaded_model *loaded; /* NULL: all from the model's files */
  const gm__save_format *format;
  gm_save_params params;
  gm__save_values values;
  gm__file_tensor *rows;
  gm__load_files files;
  gm__load_files mapped; /* those of which bytes are written from where they are */
  gm_file *file;         /* of the tensor at work, where its bytes come from there */
  gm_save_progress progress;
  gm__save_figures figures;
  const gm__tensor *tensor; /* at work */
  uint64_t index;           /* of it */
  uint64_t lent;            /* its first bytes, which the sink has already */
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
    gm__fail(&inner, GM_ERR_NOT_SUPPORTED, save_op, "it %s", why);
    status = gm__load_fail(job->model, job->model->tensors[i], &inner, err);
  }
  return status;
}

/* ---- their bytes ---- */

static gm_status save_report(save_job *job, gm_error *err) {
  job->progress.tensor = job->tensor->name.text;
  if (!job->params.progress || job->params.progress(job->params.user, &job->progress)) return GM_OK;
  return gm__fail(err, GM_ERR_CANCELLED, save_op, "cancelled by the caller, after %llu of %llu bytes",
                  (unsigned long long)job->progress.done_bytes, (unsigned long long)job->progress.total_bytes);
}

/* NULL: the tensor has none. */
static const gm_block *save_block(const save_job *job) {
  return job->loaded && job->loaded->blocks[job->index].bytes ? &job->loaded->blocks[job->index] : NULL;
}

/* The address of a block's bytes where the host can read them straight. NULL: it cannot. */
static const unsigned char *save_host(gm_pool *pool, const gm_block *block) {
  gm_memory memory = {0};
  gm_memory_type type = {.struct_size = sizeof type};
  uint64_t offset = 0;
  if (gm_block_memory(pool, block, &memory, &offset) || !memory.host) return NULL;
  if (gm_device_memory_type(gm_pool_device(pool), memory.type, &type, NULL)) return NULL;
  return type.flags & GM_MEMORY_HOST_COHERENT ? (const unsigned char *)memory.host + offset : NULL;
}

static gm_status save_done(save_job *job, uint64_t bytes, gm_error *err) {
  job->progress.done_bytes += bytes;
  return save_report(job, err);
}

/* From a block to the host. The disk writes what came before meanwhile. */
static gm_status save_read_block(gm_pool *pool, const gm_block *block, uint64_t at, void *to, uint64_t bytes,
                                 gm_error *err) {
  gm_device *device = gm_pool_device(pool);
  gm__traffic_begin(device, gm__now_ns());
  const gm_status status = gm_block_read(pool, block, at, to, bytes, NULL, NULL, err);
  gm__traffic_count(device, GM__TRAFFIC_DOWN, bytes, bytes);
  gm__traffic_end(device, gm__now_ns());
  return status;
}

static gm_status save_read(void *user, uint64_t at, void *to, uint64_t bytes, gm_error *err) {
  save_job *job = user;
  at += job->lent;
  const uint64_t from = gm__model_file_offset(job->model, job->tensor) + at;
  const gm_block *block = save_block(job);
  gm_status status = block ? save_read_block(job->loaded->pools[job->index], block, at, to, bytes, err)
                           : gm_file_read(job->file, from, to, bytes, err);
  return status ? status : save_done(job, bytes, err);
}

/* The next pages of a block that go at once: parts of one size, of which none is small. */
static uint64_t save_part(uint64_t left, uint64_t most) {
  const uint64_t parts = left / most + (left % most != 0);
  return parts > 1 ? gm__round_up(left / parts, SAVE_PAGE) : left / SAVE_PAGE * SAVE_PAGE;
}

/* Where the page cache has a tensor of a file. NULL: there is more to do than to write it, or it has to be read. */
static const unsigned char *save_cached(save_job *job, const gm__save_sink *sink) {
  const uint64_t at = gm__model_file_offset(job->model, job->tensor), bytes = job->tensor->bytes;
  gm_file *mapped = NULL;
  if (sink->has_sums || sink->has_crc || !gm__save_sink_may_lend(sink, bytes)) return NULL;
  if (gm__file_way(job->file, at, bytes) != GM_WAY_CACHE) return NULL;
  if (gm__load_files_get(&job->mapped, job->tensor->shard, &mapped, NULL) || !mapped->mapping) return NULL;
  return (const unsigned char *)mapped->mapping + at;
}

/* The tensor's first bytes, up to a page of the file, where the others then lie at a page of memory, too. */
static gm_status save_lead(save_job *job, gm__save_sink *sink, const unsigned char *host, gm_error *err) {
  const uint64_t lead = gm__round_up(sink->at, SAVE_PAGE) - sink->at;
  if (!lead || lead >= job->tensor->bytes || ((uintptr_t)host + lead) % SAVE_PAGE) return GM_OK;
  const gm_status status = gm__save_sink_fill(sink, lead, save_read, job, err);
  job->lent = lead;
  return status;
}

/* The whole pages of a tensor at `host`, from where they are. job->lent tells how many bytes the sink has then. */
static gm_status save_lend(save_job *job, gm__save_sink *sink, const unsigned char *host, gm_error *err) {
  gm_status status = host ? save_lead(job, sink, host, err) : GM_OK;
  while (host && !status) {
    const uint64_t bytes = save_part(job->tensor->bytes - job->lent, sink->piece_bytes);
    if (!gm__save_sink_lends(sink, host + job->lent, bytes)) break;
    status = gm__save_sink_lend(sink, host + job->lent, bytes, err);
    job->lent += bytes;
    if (!status) status = save_done(job, bytes, err);
  }
  return status;
}

static gm_status save_tensor(save_job *job, gm__save_sink *sink, gm_error *err) {
  const gm_block *block = save_block(job);
  gm_status status = save_report(job, err);
  if (!status && job->tensor->bytes && !block) {
    status = gm__load_files_get(&job->files, job->tensor->shard, &job->file, err);
  }
  if (status || !job->tensor->bytes) return status;
  const unsigned char *host = block ? save_host(job->loaded->pools[job->index], block) : save_cached(job, sink);
  status = save_lend(job, sink, host, err);
  return status ? status : gm__save_sink_fill(sink, job->tensor->bytes - job->lent, save_read, job, err);
}

/* Whether the mapped files are what they were. */
static gm_status save_stands(void *user, gm_error *err) {
  const save_job *job = user;
  gm_status status = GM_OK;
  for (uint32_t i = 0; i < job->model->shard_count && !status; i++) {
    const gm_file *file = job->mapped.each[i];
    if (file) status = gm__input_file_check_unchanged(&file->input, file->path, err);
  }
  return status;
}

static gm_status save_data(void *user, size_t row, gm__save_sink *sink, gm_error *err) {
  save_job *job = user;
  gm_error inner = {0};
  job->index = job->rows[row].number;
  job->tensor = job->model->tensors[job->index];
  job->lent = 0;
  return save_tensor(job, sink, &inner) ? gm__load_fail(job->model, job->tensor, &inner, err) : GM_OK;
}

/* ---- the call ---- */

static gm_status save_check_loaded(const gm_model *model, const gm_loaded_model *loaded, gm_error *err) {
  bool same = !loaded || loaded->count == model->tensor_count;
  if (loaded && loaded->unfinished) return gm__bad_argument(err, save_op, "`loaded` was not loaded to its end");
  if (loaded && loaded->slices) return gm__bad_argument(err, save_op, "`loaded` has slices of tensors");
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

/* A ring for the first device with memory that the host cannot read straight: its copies go there directly. NULL: there
 * is none such. */
static gm_status save_ring(const save_job *job, uint64_t piece_bytes, gm__ring **out, gm_error *err) {
  *out = NULL;
  for (uint64_t i = 0; job->loaded && i < job->loaded->count; i++) {
    gm_pool *pool = job->loaded->pools[i];
    if (!job->loaded->blocks[i].bytes || save_host(pool, &job->loaded->blocks[i])) continue;
    return gm__ring_create(gm_pool_device(pool), GM__SAVE_PIECES, piece_bytes, out, err);
  }
  return GM_OK;
}

static gm_status save_file(save_job *job, const char *path, gm_error *err) {
  const gm_model *model = job->model;
  const uint64_t piece_bytes = job->params.chunk_bytes ? job->params.chunk_bytes : GM__SAVE_PIECE_BYTES;
  gm__ring *ring = NULL;
  gm_status status = save_ring(job, piece_bytes, &ring, err);
  const gm__save_source source = {.table = {.services = &model->services,
                                            .op = save_op,
                                            .tensors = job->rows,
                                            .count = model->tensor_count,
                                            .values = job->values.values,
                                            .value_count = (size_t)job->values.count},
                                  .data = save_data,
                                  .stands = save_stands,
                                  .user = job,
                                  .piece_bytes = piece_bytes,
                                  .ring = ring,
                                  .sums = job->params.checksums};
  if (!status) status = gm__save_whole(&source, job->format, path, &job->figures, err);
  (void)gm__ring_destroy(ring, NULL); /* no copy is left, and all slots are back */
  return status;
}

static gm_status save_do(save_job *job, const char *path, gm_error *err) {
  const gm_model *model = job->model;
  job->progress.total_bytes = model->bytes;
  gm_status status = gm__load_files_make(&job->files, model, GM_WAY_AUTO, err);
  if (!status) status = gm__load_files_make(&job->mapped, model, GM_WAY_MAP, err);
  if (!status) status = save_describe(job, err);
  if (!status) status = gm__save_values_make(&job->values, model, job->format, err);
  if (!status) status = save_file(job, path, err);
  gm__load_files_end(&job->mapped);
  gm__load_files_end(&job->files);
  gm__save_values_end(&job->values, &model->services);
  gm__model_release(&model->services, job->rows, model->tensor_count, sizeof *job->rows);
  return status;
}

static void save_tell(const save_job *job, uint64_t start, gm_save_result *out) {
  gm_save_result result = {.struct_size = sizeof result,
                           .tensors = job->model->tensor_count,
                           .bytes = job->model->bytes,
                           .values = job->values.count,
                           .values_left_out = job->values.left_out,
                           .file_bytes = job->figures.file_bytes,
                           .direct_bytes = job->figures.writer.direct_bytes,
                           .peak_host_bytes = job->figures.writer.host_bytes,
                           .write_seconds = (double)job->figures.writer.write_ns / 1e9,
                           .seconds = (double)(gm__now_ns() - start) / 1e9};
  snprintf(result.why, sizeof result.why, "%s", job->figures.writer.why);
  gm__sized_out(out, &result, sizeof result);
}

static gm_status save_check_params(const gm_save_params *params, gm_error *err) {
  if (params->chunk_bytes % GM__DATA_FILE_DIRECT == 0 && params->chunk_bytes <= SAVE_CHUNK_MOST) return GM_OK;
  return gm__bad_argument(err, save_op, "`params->chunk_bytes` is %llu, must be a multiple of %d up to 1 GiB",
                          (unsigned long long)params->chunk_bytes, (int)GM__DATA_FILE_DIRECT);
}

gm_status gm_model_save(const gm_model *model, const gm_loaded_model *loaded, const char *path,
                        const gm_save_params *params, gm_save_result *out_result, gm_error *err) {
  GM__UNCANCELLED();
  save_job job = {.model = model, .loaded = loaded};
  const uint64_t start = gm__now_ns();
  gm_status status = save_check(model, loaded, path, err);
  if (!status && out_result) status = gm__sized_check(out_result, sizeof *out_result, save_op, "out_result", err);
  if (!status && params) status = gm__sized_in(&job.params, sizeof job.params, params, save_op, "params", err);
  if (!status) status = save_check_params(&job.params, err);
  if (status) return status;
  job.format = gm__save_format_of(path);
  status = save_do(&job, path, err);
  if (status == GM_OK && out_result) save_tell(&job, start, out_result);
  return gm__model_name_call(status, save_op, err);
}
