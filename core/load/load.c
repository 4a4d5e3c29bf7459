/* From files into blocks. Invariants: a load either succeeds with a block for every chosen tensor that has bytes, or
 * fails with every block back in its pool. Host memory for data is one buffer of at most chunk_bytes, whatever the
 * model's size. The checksum of a tensor is chained over the same chunks when loading and when reading back. */
#include "gm/load.h"

#include "core/base/cancel.h"
#include "core/base/checksum.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/load/load_places.h"
#include "core/load/load_source.h"
#include "core/load/loaded_model.h"
#include "core/manage/explain.h"
#include "core/model/contents.h"
#include "core/model/model_memory.h"
#include "gm/copy.h"
#include "gm/spans.h"

enum { LOAD_CHUNK_DEFAULT = 16 << 20, LOAD_CHUNK_LEAST = 4096 };

static const char load_op[] = "gm_model_load";

typedef struct load_job {
  const gm_model *model;
  gm_load_params params;
  gm__load_places places;
  gm_loaded_model *loaded;
  uint64_t *checksums; /* by tensor; NULL without verify */
  gm__load_source source;
  gm_load_progress progress;
  gm_load_result result;
} load_job;

/* Where one tensor goes. */
typedef struct load_target {
  const gm__tensor *tensor;
  uint64_t index;
  gm_pool *pool;
  const gm_request *request; /* but for `bytes` */
  unsigned char *host;       /* NULL: by gm_block_write */
} load_target;

/* ---- failing ---- */

static gm_status load_report(load_job *job, const gm__tensor *tensor, gm_error *err) {
  job->progress.tensor = tensor->name.text;
  if (!job->params.progress || job->params.progress(job->params.user, &job->progress)) return GM_OK;
  return gm__fail(err, GM_ERR_CANCELLED, 0, load_op, "cancelled by the caller, after %llu of %llu bytes %s",
                  (unsigned long long)job->progress.done_bytes, (unsigned long long)job->progress.total_bytes,
                  job->progress.verifying ? "verified" : "loaded");
}

/* ---- a block for a tensor ---- */

static uint64_t load_driver_allocs(gm_pool *pool) {
  gm_stats stats = {.struct_size = sizeof stats};
  return gm_pool_stats(pool, &stats) == GM_OK ? stats.driver_allocs : 0;
}

static gm_status load_allocate(load_job *job, const load_target *target, gm_error *err) {
  gm_request request = *target->request;
  gm_block block = {0};
  request.bytes = target->tensor->bytes;
  request.flags |= GM_INSERT_WAIT;
  const uint64_t before = load_driver_allocs(target->pool);
  gm_acquire acquire = gm_alloc(target->pool, &request, &block);
  if (!gm_acquired(acquire)) return gm__explain_refusal(target->pool, &request, acquire, "gm_alloc", err);
  job->result.driver_allocs += load_driver_allocs(target->pool) - before;
  job->loaded->blocks[target->index] = block;
  return GM_OK;
}

/* Look at a block's memory. The host can write it straight when it has an address, needs no flush, and no earlier
 * work of a stream may still use it. */
static gm_status load_inspect_span(load_job *job, load_target *target, const gm_block_span *span, uint64_t bytes,
                                   gm_error *err) {
  gm_memory memory = {0};
  gm_memory_type type = {.struct_size = sizeof type};
  uint64_t offset = 0;
  gm_status status = gm_block_memory(target->pool, &span->block, &memory, &offset);
  if (status != GM_OK) return gm__fail(err, status, 0, "gm_block_memory", "%s", gm_status_text(status));
  status = gm_device_memory_type(gm_pool_device(target->pool), memory.type, &type, err);
  if (status != GM_OK) return status;
  if (!(type.flags & GM_MEMORY_DEVICE_LOCAL)) job->result.fallback_bytes += bytes;
  bool straight = memory.host && (type.flags & GM_MEMORY_HOST_COHERENT) && !target->request->stream &&
                  job->result.path == GM_LOAD_PATH_READ;
  target->host = straight ? (unsigned char *)memory.host + offset : NULL;
  return GM_OK;
}

/* Several memories are written to as one block. */
static gm_status load_inspect(load_job *job, load_target *target, gm_error *err) {
  gm_block_span spans[GM_BLOCK_SPANS_MOST];
  uint32_t count = 0;
  gm_status status =
      gm_block_spans(target->pool, &job->loaded->blocks[target->index], 0, GM_BLOCK_SPANS_MOST, spans, &count, err);
  for (uint32_t i = 0; i < count && status == GM_OK; i++) {
    const bool last = i + 1 == count;
    const uint64_t bytes = last ? target->tensor->bytes - spans[i].offset : spans[i].bytes;
    status = load_inspect_span(job, target, &spans[i], bytes, err);
  }
  if (count > 1) target->host = NULL;
  return status;
}

/* ---- its bytes ---- */

static gm_status load_chunk(load_job *job, const load_target *target, uint64_t at, uint64_t bytes, gm_error *err) {
  uint64_t from = gm__model_file_offset(job->model, target->tensor) + at;
  const void *data = target->host ? target->host + at : NULL;
  gm_status status = target->host ? gm__load_source_read(&job->source, from, target->host + at, bytes, err)
                                  : gm__load_source_get(&job->source, from, bytes, &data, err);
  if (status != GM_OK) return status;
  if (job->checksums) job->checksums[target->index] = gm__checksum(data, bytes, job->checksums[target->index]);
  if (target->host) return GM_OK;
  return gm_block_write(target->pool, &job->loaded->blocks[target->index], at, data, bytes, target->request->stream,
                        NULL, err);
}

static gm_status verify_chunk(load_job *job, const load_target *target, uint64_t at, uint64_t bytes, uint64_t *sum,
                              gm_error *err) {
  unsigned char *buffer = NULL;
  gm_status status = gm__load_source_buffer(&job->source, &buffer, err);
  if (status != GM_OK) return status;
  status = gm_block_read(target->pool, &job->loaded->blocks[target->index], at, buffer, bytes, target->request->stream,
                         NULL, err);
  if (status == GM_OK) *sum = gm__checksum(buffer, bytes, *sum);
  return status;
}

/* All chunks of a tensor: loaded into it, or, with `sum`, read back from it. */
static gm_status load_chunks(load_job *job, const load_target *target, uint64_t *sum, gm_error *err) {
  uint64_t total = target->tensor->bytes;
  for (uint64_t at = 0, bytes; at < total; at += bytes) {
    bytes = total - at < job->params.chunk_bytes ? total - at : job->params.chunk_bytes;
    gm_status status = sum ? verify_chunk(job, target, at, bytes, sum, err) : load_chunk(job, target, at, bytes, err);
    if (status != GM_OK) return status;
    job->progress.done_bytes += bytes;
    status = load_report(job, target->tensor, err);
    if (status != GM_OK) return status;
  }
  return GM_OK;
}

static gm_status load_tensor(load_job *job, load_target *target, gm_error *err) {
  gm_status status = load_report(job, target->tensor, err);
  if (status != GM_OK || target->tensor->bytes == 0) return status;
  status = gm__load_source_open(&job->source, target->tensor->shard, err);
  if (status == GM_OK) status = load_allocate(job, target, err);
  if (status == GM_OK) status = load_inspect(job, target, err);
  return status == GM_OK ? load_chunks(job, target, NULL, err) : status;
}

static gm_status verify_tensor(load_job *job, load_target *target, gm_error *err) {
  uint64_t sum = 0;
  gm_status status = load_report(job, target->tensor, err);
  if (status == GM_OK) status = load_chunks(job, target, &sum, err);
  if (status != GM_OK || sum == job->checksums[target->index]) return status;
  return gm__fail(err, GM_ERR_IO, 0, load_op, "read back, its checksum is %016llx, it was loaded with %016llx",
                  (unsigned long long)sum, (unsigned long long)job->checksums[target->index]);
}

/* ---- all tensors ---- */

static gm_status load_each(load_job *job, gm_status (*step)(load_job *, load_target *, gm_error *), double *out_seconds,
                           gm_error *err) {
  uint64_t start = gm__now_ns();
  job->progress.done_bytes = 0;
  for (uint64_t i = 0; i < job->model->tensor_count; i++) {
    const gm_load_place *place = gm__load_place_of(&job->places, i);
    if (!place->pool) continue;
    load_target target = {
        .tensor = job->model->tensors[i], .index = i, .pool = place->pool, .request = &place->request};
    gm_error inner = {0};
    job->loaded->pools[i] = place->pool;
    gm_status status = step(job, &target, &inner);
    if (status != GM_OK) return gm__load_fail(job->model, target.tensor, &inner, err);
  }
  *out_seconds = (double)(gm__now_ns() - start) / 1e9;
  return GM_OK;
}

static gm_status load_verify(load_job *job, gm_error *err) {
  job->progress.verifying = true;
  gm_status status = load_each(job, verify_tensor, &job->result.verify_seconds, err);
  job->result.verified = status == GM_OK;
  return status;
}

static gm_status load_all(load_job *job, gm_error *err) {
  gm_status status = load_each(job, load_tensor, &job->result.seconds, err);
  if (status == GM_OK && job->params.verify) status = load_verify(job, err);
  return status;
}

/* ---- the call ---- */

static gm_status load_check_path(gm_load_path path, gm_error *err) {
  switch (path) {
    case GM_LOAD_PATH_AUTO:
    case GM_LOAD_PATH_MMAP:
    case GM_LOAD_PATH_READ: return GM_OK;
    case GM_LOAD_PATH_DIRECT:
      return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, load_op,
                      "path direct (O_DIRECT) comes with a later version of gm; use read or mmap");
    case GM_LOAD_PATH_GDS:
      return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, load_op,
                      "path gds (GPUDirect Storage) comes with a later version of gm; use read or mmap");
  }
  return gm__bad_argument(err, load_op, "`params->path` is %d, no gm_load_path", (int)path);
}

static gm_status load_check_params(const gm_load_params *params, gm_error *err) {
  if (params->chunk_bytes != 0 && params->chunk_bytes < LOAD_CHUNK_LEAST) {
    return gm__bad_argument(err, load_op, "`params->chunk_bytes` is %llu, must be 0 or at least %d",
                            (unsigned long long)params->chunk_bytes, (int)LOAD_CHUNK_LEAST);
  }
  if (params->request.bytes != 0) {
    return gm__bad_argument(err, load_op, "`params->request.bytes` must be 0: the tensors say how many");
  }
  return load_check_path(params->path, err);
}

/* REQUIRES: job->places. */
static void load_init(load_job *job) {
  const gm__load_places *places = &job->places;
  const uint64_t chunk = job->params.chunk_bytes;
  bool mapped = job->params.path == GM_LOAD_PATH_MMAP;
  gm__load_source_init(&job->source, job->model, mapped, places->largest < chunk ? places->largest : chunk);
  job->progress.total_bytes = places->bytes;
  job->result = (gm_load_result){.struct_size = sizeof job->result,
                                 .path = mapped ? GM_LOAD_PATH_MMAP : GM_LOAD_PATH_READ,
                                 .tensors = places->tensors,
                                 .bytes = places->bytes,
                                 .left_out = places->count - places->tensors};
}

static gm_status load_run(load_job *job, gm_error *err) {
  const gm_services *services = &job->model->services;
  uint64_t count = job->model->tensor_count;
  void *checksums = NULL;
  gm_status status = gm__loaded_model_create(services, count, &job->loaded, err);
  if (status == GM_OK && job->params.verify) {
    status = gm__model_alloc(services, count, sizeof(uint64_t), &checksums, err);
  }
  job->checksums = checksums;
  if (status == GM_OK) status = load_all(job, err);
  job->result.peak_host_bytes = gm__loaded_model_host_bytes(count) + (checksums ? count * sizeof(uint64_t) : 0) +
                                gm__load_places_host_bytes(&job->places) + gm__load_source_host_bytes(&job->source);
  gm__load_source_close(&job->source);
  gm__model_release(services, checksums, count, sizeof(uint64_t));
  return status;
}

/* Loads, or leaves nothing behind. */
static gm_status load_do(load_job *job, gm_pool *pool, gm_error *err) {
  if (job->params.chunk_bytes == 0) job->params.chunk_bytes = LOAD_CHUNK_DEFAULT;
  gm_status status = gm__load_places_make(&job->places, job->model, pool, &job->params, err);
  if (status == GM_OK) {
    load_init(job);
    status = load_run(job, err);
  }
  if (status != GM_OK) gm__loaded_model_undo(job->loaded, &job->places);
  gm__load_places_end(&job->places, &job->model->services);
  return status;
}

gm_status gm_model_load(const gm_model *model, gm_pool *pool, const gm_load_params *params, gm_loaded_model **out,
                        gm_load_result *out_result, gm_error *err) {
  GM__UNCANCELLED();
  gm_load_params mine = {.struct_size = sizeof mine};
  if (!model) return gm__bad_argument(err, load_op, "`model` is NULL");
  if (!pool) return gm__bad_argument(err, load_op, "`pool` is NULL");
  if (model->header_only) return gm__bad_argument(err, load_op, "`model` is from gm_model_open_header: it has no data");
  if (!out) return gm__bad_argument(err, load_op, "`out` is NULL");
  gm_status status = GM_OK;
  if (out_result) status = gm__sized_check(out_result, sizeof *out_result, load_op, "out_result", err);
  if (status == GM_OK && params) status = gm__sized_in(&mine, sizeof mine, params, load_op, "params", err);
  if (status == GM_OK) status = load_check_params(&mine, err);
  if (status != GM_OK) return status;
  load_job job = {.model = model, .params = mine};
  status = load_do(&job, pool, err);
  if (status != GM_OK) return gm__model_name_call(status, load_op, err);
  *out = job.loaded;
  if (out_result) gm__sized_out(out_result, &job.result, sizeof job.result);
  return GM_OK;
}
