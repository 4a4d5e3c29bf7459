/* From files into blocks. Invariants: a load either succeeds with a block for every chosen tensor that has bytes, or
 * fails with every block back in its pool. Host memory for data is at most chunk_bytes for each device, whatever the
 * model's size. */
#include "gm/load.h"

#include <stdio.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/load/load_job.h"
#include "core/model/model_memory.h"

enum { LOAD_CHUNK_DEFAULT = 16 << 20, LOAD_CHUNK_LEAST = GM__INPUT_BLOCK, LOAD_ALONE = 1 << 20 };

static const char load_op[] = "gm_model_load";

/* ---- the steps ---- */

/* Runs a step, and tells how long it took. */
static gm_status load_timed(gm__load_job *job, gm_status (*step)(gm__load_job *, gm_error *), double *out_seconds,
                            gm_error *err) {
  const uint64_t start = gm__now_ns();
  const gm_status status = step(job, err);
  *out_seconds = (double)(gm__now_ns() - start) / 1e9;
  return status;
}

static gm_status load_fill(gm__load_job *job, gm_error *err) {
  gm_status status = gm__load_blocks(job, err);
  const bool compares = job->params.verify && !job->resumes; /* what had arrived before was not summed */
  if (status == GM_OK && compares) status = gm__load_sums_make(&job->file_sums, &job->files, err);
  if (status == GM_OK) gm__load_gds_aim(job);
  return status == GM_OK ? gm__load_read(job, err) : status;
}

static gm_status load_all(gm__load_job *job, gm_error *err) {
  gm_status status = load_timed(job, load_fill, &job->result.seconds, err);
  if (status != GM_OK || !job->params.verify) return status;
  return load_timed(job, gm__load_verify, &job->result.verify_seconds, err);
}

/* ---- the call ---- */

/* Lets a failure name the call that the program made. */
static gm_status load_name(gm_status status, const char *op, gm_error *err) {
  const bool inner = status != GM_OK && err && strcmp(err->op, load_op) == 0;
  if (inner) snprintf(err->op, sizeof err->op, "%s", op);
  return gm__model_name_call(status, op, err);
}

static gm_status load_check_path(gm_load_path path, gm_error *err) {
  switch (path) {
    case GM_LOAD_PATH_AUTO:
    case GM_LOAD_PATH_MMAP:
    case GM_LOAD_PATH_READ:
    case GM_LOAD_PATH_DIRECT:
    case GM_LOAD_PATH_IN_PLACE:
    case GM_LOAD_PATH_GDS: return GM_OK;
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

static gm_way load_way(gm_load_path path) {
  switch (path) {
    case GM_LOAD_PATH_MMAP: return GM_WAY_MAP;
    case GM_LOAD_PATH_READ: return GM_WAY_CACHE;
    case GM_LOAD_PATH_DIRECT: return GM_WAY_DIRECT;
    case GM_LOAD_PATH_AUTO:
    case GM_LOAD_PATH_IN_PLACE:
    case GM_LOAD_PATH_GDS: break;
  }
  return GM_WAY_AUTO;
}

/* No more than slots: each reads into one. */
static uint32_t load_workers(const gm__load_job *job, uint64_t slots) {
  const uint64_t asked = job->params.threads ? job->params.threads : GM__READ_WORKERS;
  if (asked == 1 || (!job->params.threads && job->places->bytes <= LOAD_ALONE)) return 0;
  return (uint32_t)(asked < slots ? asked : slots);
}

/* A sixteenth of chunk_bytes is read at once, in whole blocks, and no more than there is. REQUIRES: job->places. */
static void load_init(gm__load_job *job) {
  const gm__load_places *places = job->places;
  const uint64_t chunk = job->params.chunk_bytes ? job->params.chunk_bytes : LOAD_CHUNK_DEFAULT;
  const uint64_t all = (places->bytes / GM__INPUT_BLOCK + 1) * GM__INPUT_BLOCK;
  uint64_t piece = chunk / GM__READ_FLIGHT / GM__INPUT_BLOCK * GM__INPUT_BLOCK;
  if (piece < GM__INPUT_BLOCK) piece = GM__INPUT_BLOCK;
  if (piece > GM__READ_PIECE) piece = GM__READ_PIECE;
  if (piece > all) piece = all;
  const uint64_t slots = chunk / piece < GM__READ_FLIGHT ? chunk / piece : GM__READ_FLIGHT;
  job->piece_bytes = piece;
  job->lanes = (gm__load_lanes){.services = &job->model->services, .slot_bytes = piece, .slots = (uint32_t)slots};
  job->workers = load_workers(job, slots);
  job->progress.total_bytes = job->resumes ? job->loaded->left : places->bytes;
  job->result = (gm_load_result){.struct_size = sizeof job->result,
                                 .tensors = places->tensors,
                                 .bytes = places->bytes,
                                 .left_out = places->count - places->tensors};
}

static gm_status load_open(gm__load_job *job, gm_error *err) {
  const gm_services *services = &job->model->services;
  const uint64_t count = job->model->tensor_count;
  void *ranges = NULL, *sums = NULL, *left = NULL, *mapped = NULL;
  gm_status status = GM_OK;
  if (job->loaded->there || job->params.arrived)
    status = gm__model_alloc(services, count, sizeof *job->left, &left, err);
  if (status == GM_OK) status = gm__load_files_make(&job->files, job->model, load_way(job->params.path), err);
  if (status == GM_OK) status = gm__model_alloc(services, count, sizeof *job->ranges, &ranges, err);
  if (status == GM_OK && job->params.verify) status = gm__model_alloc(services, count, sizeof *job->sums, &sums, err);
  if (status == GM_OK && job->params.path == GM_LOAD_PATH_GDS) status = gm__load_gds_make(&job->gds, job->model, err);
  const bool maps = job->params.path == GM_LOAD_PATH_IN_PLACE && !job->resumes;
  if (status == GM_OK && maps) status = gm__model_alloc(services, count, sizeof *job->mapped, &mapped, err);
  job->mapped = mapped;
  job->ranges = ranges;
  job->left = left;
  job->sums = sums;
  return status;
}

static uint64_t load_host_bytes(const gm__load_job *job) {
  const uint64_t count = job->model->tensor_count;
  return gm__loaded_model_host_bytes(count, job->loaded->there) + (job->left ? count * sizeof *job->left : 0) +
         (job->sums ? count * sizeof *job->sums : 0) + (job->mapped ? count * sizeof *job->mapped : 0) +
         count * sizeof *job->ranges + gm__load_places_host_bytes(job->places) +
         gm__load_files_host_bytes(&job->files) + gm__load_lanes_host_bytes(&job->lanes) +
         gm__load_sums_host_bytes(&job->file_sums) + gm__load_gds_host_bytes(&job->gds) + job->read_bytes;
}

/* Copies that still run end before their blocks and slots go. */
static void load_close(gm__load_job *job) {
  const gm_services *services = &job->model->services;
  gm__load_lanes_end(&job->lanes);
  gm__load_gds_end(&job->gds);
  gm__load_sums_end(&job->file_sums);
  gm__load_files_end(&job->files);
  gm__model_release(services, job->mapped, job->model->tensor_count, sizeof *job->mapped);
  gm__model_release(services, job->left, job->model->tensor_count, sizeof *job->left);
  gm__model_release(services, job->sums, job->model->tensor_count, sizeof *job->sums);
  gm__model_release(services, job->ranges, job->model->tensor_count, sizeof *job->ranges);
}

static gm_status load_run(gm__load_job *job, gm_error *err) {
  load_init(job);
  gm_status status = load_open(job, err);
  if (status == GM_OK) status = load_all(job, err);
  if (status == GM_OK) {
    job->result.peak_host_bytes = load_host_bytes(job);
    job->result.files = gm__load_files_open(&job->files);
    const char *why = job->unmapped ? job->unmapped : job->gds.why[0] ? job->gds.why : gm__load_files_why(&job->files);
    snprintf(job->result.why, sizeof job->result.why, "%s", why);
  }
  load_close(job);
  return status;
}

/* The places are the model's as long as it is not whole. */
static gm_status load_end(gm__load_job *job, gm_status status) {
  gm_loaded_model *loaded = job->loaded;
  loaded->unfinished = status != GM_OK && (job->kept || job->resumes);
  if (loaded->unfinished) {
    loaded->identity = gm__load_files_identity(job->model);
    return status;
  }
  loaded->left = 0;
  if (status != GM_OK) {
    gm__loaded_model_undo(loaded);
    job->loaded = NULL;
  } else {
    gm__load_places_end(&loaded->places, &loaded->services);
  }
  return status;
}

/* Loads, or leaves nothing behind, but for what it shall keep. */
static gm_status load_do(gm__load_job *job, gm_pool *pool, gm_error *err) {
  const gm_model *model = job->model;
  gm_status status =
      gm__loaded_model_create(&model->services, model->tensor_count, job->params.keep != 0, &job->loaded, err);
  if (status != GM_OK) return status;
  job->places = &job->loaded->places;
  status = gm__load_places_make(job->places, model, pool, &job->params, err);
  job->loaded->slices = job->places->slices;
  if (status == GM_OK) status = load_run(job, err);
  return load_end(job, status);
}

/* The parameters of a call, in `out`. */
static gm_status load_take_params(const gm_load_params *params, const gm_load_result *out_result, gm_load_params *out,
                                  gm_error *err) {
  gm_status status = GM_OK;
  if (out_result) status = gm__sized_check(out_result, sizeof *out_result, load_op, "out_result", err);
  if (status == GM_OK && params) status = gm__sized_in(out, sizeof *out, params, load_op, "params", err);
  return status == GM_OK ? load_check_params(out, err) : status;
}

static gm_status load_check_model(const gm_model *model, gm_error *err) {
  if (!model) return gm__bad_argument(err, load_op, "`model` is NULL");
  if (model->header_only) return gm__bad_argument(err, load_op, "`model` is from gm_model_open_header: it has no data");
  return GM_OK;
}

gm_status gm_model_load(const gm_model *model, gm_pool *pool, const gm_load_params *params, gm_loaded_model **out,
                        gm_load_result *out_result, gm_error *err) {
  GM__UNCANCELLED();
  gm__load_job job = {.model = model, .params = {.struct_size = sizeof job.params}};
  gm_status status = load_check_model(model, err);
  if (status != GM_OK) return status;
  if (!pool) return gm__bad_argument(err, load_op, "`pool` is NULL");
  if (!out) return gm__bad_argument(err, load_op, "`out` is NULL");
  status = load_take_params(params, out_result, &job.params, err);
  if (status != GM_OK) return status;
  status = load_do(&job, pool, err);
  if (job.loaded) *out = job.loaded;
  if (status != GM_OK) return load_name(status, load_op, err);
  if (out_result) gm__sized_out(out_result, &job.result, sizeof job.result);
  return GM_OK;
}

/* ---- the rest of one that failed ---- */

static gm_status load_check_rest(const gm_loaded_model *loaded, const gm_model *model, gm_error *err) {
  if (!loaded) return gm__bad_argument(err, load_op, "`loaded` is NULL");
  if (!loaded->unfinished) return gm__bad_argument(err, load_op, "`loaded` is whole");
  const gm_status status = load_check_model(model, err);
  if (status != GM_OK) return status;
  if (loaded->count != model->tensor_count) return gm__bad_argument(err, load_op, "`loaded` is of another model");
  if (gm__load_files_identity(model) == loaded->identity) return GM_OK;
  return gm__fail(err, GM_ERR_IO, load_op, "%.300s: is another file, or has changed since the load that failed",
                  model->shards[0].path);
}

static gm_status load_rest(gm__load_job *job, const gm_load_params *params, const gm_load_result *out_result,
                           gm_error *err) {
  gm_status status = load_check_rest(job->loaded, job->model, err);
  if (status == GM_OK) status = load_take_params(params, out_result, &job->params, err);
  if (status != GM_OK) return status;
  job->places = &job->loaded->places;
  return load_end(job, load_run(job, err));
}

gm_status gm_loaded_model_resume(gm_loaded_model *loaded, const gm_model *model, const gm_load_params *params,
                                 gm_load_result *out_result, gm_error *err) {
  GM__UNCANCELLED();
  gm__load_job job = {.model = model, .loaded = loaded, .resumes = true, .params = {.struct_size = sizeof job.params}};
  const gm_status status = load_rest(&job, params, out_result, err);
  if (status != GM_OK) return load_name(status, "gm_loaded_model_resume", err);
  if (out_result) gm__sized_out(out_result, &job.result, sizeof job.result);
  return GM_OK;
}
