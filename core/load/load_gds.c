#include "core/load/load_gds.h"

#include <stdio.h>

#include "core/base/error.h"
#include "core/device/device.h"
#include "core/load/load_job.h"
#include "core/model/model_memory.h"

static const char gds_op[] = "gds";

/* ---- one read, on a worker's thread ---- */

typedef struct gds_piece {
  gm__gds *gds;
  uint64_t at, address, bytes;
} gds_piece;

static gm_status gds_read_piece(void *user, gm_error *err) {
  const gds_piece *piece = user;
  return gm__gds_read(piece->gds, piece->at, (uintptr_t)piece->address, piece->bytes, err);
}

/* The first failure says why. Nobody reads that before all workers have ended. */
static void gds_give_up(gm__load_gds *all, const gm_error *err) {
  if (!atomic_exchange(&all->failed, true)) snprintf(all->why, sizeof all->why, "%s", err->message);
}

static uint64_t gds_read_middle(void *user, const gm__read_range *range, uint64_t from, uint64_t bytes,
                                uint64_t *out_front) {
  const gm__load_gds_file *file = user;
  const gm_device *device = ((const gm__load_lane *)range->room->user)->device;
  gm_error err = {.status = GM_OK};
  uint64_t front = 0, middle = 0;
  *out_front = 0;
  gm__gds_middle(range->at + from, range->address + from, bytes, &front, &middle);
  if (!middle || atomic_load(&file->all->failed)) return 0;
  gds_piece piece = {file->gds, range->at + from + front, range->address + from + front, middle};
  if (device->ops->device_call(device->handle, gds_read_piece, &piece, &err) != GM_OK) {
    gds_give_up(file->all, &err);
    return 0;
  }
  *out_front = front;
  return middle;
}

/* ---- which ranges ---- */

uint32_t gm__load_gds_align(const gm__read_range *range, uint32_t asked) {
  const bool fits = range->bytes >= GM__LOAD_LARGE && !range->run && range->at % GM__GDS_ALIGN == 0;
  return fits && asked < GM__GDS_ALIGN ? GM__GDS_ALIGN : asked;
}

/* Why a range cannot go this way, whatever cuFile can; NULL: it can. */
static const char *gds_refuses(const gm__load_job *job, uint64_t index) {
  const gm__read_range *range = &job->ranges[index];
  if (range->bytes < GM__LOAD_LARGE) return "tensors below 1 MiB go another way";
  if (range->run) return "parts of tensors that lie in several places of the file go another way";
  if (gm__load_place_of(job->places, index)->request.stream) return "earlier work of a stream may use the memory";
  if (!range->room || !range->address) return "the memory is not one piece of the card's own";
  if (range->at % GM__GDS_ALIGN != range->address % GM__GDS_ALIGN) {
    return "some tensors do not begin at a page of their file; files that gm saves as GGUF do";
  }
  if (job->sums && !gm__load_sums_have(&job->file_sums, index, range)) {
    return "without a checksum file, verifying compares what went through the host";
  }
  return NULL;
}

static gm_status gds_open(gm__load_job *job, gm_device *device, uint32_t shard, gm_error *err) {
  const gm__shard *known = &job->model->shards[shard];
  gm__load_gds_file *file = &job->gds.each[shard];
  if (file->gds) return GM_OK;
  if (file->tried) return gm__fail(err, GM_ERR_NOT_SUPPORTED, gds_op, "cuFile could not open it");
  file->tried = true;
  const gm_status status = gm__gds_open(device->ctx, known->path, &file->gds, err);
  if (status != GM_OK || gm__gds_is(file->gds, &known->file)) return status;
  gm__gds_close(file->gds);
  file->gds = NULL;
  return gm__fail(err, GM_ERR_IO, gds_op, "%.150s: was replaced since it was opened", known->path);
}

static gm_status gds_check(gm__load_job *job, uint64_t index, gm_error *err) {
  gm_device *device = gm_pool_device(job->loaded->pools[index]);
  if (device->info.api != GM_API_CUDA) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, gds_op, "GPUDirect Storage reads into CUDA devices, this one is of %s",
                    gm_api_name(device->info.api));
  }
  const char *refusal = gds_refuses(job, index);
  if (refusal) return gm__fail(err, GM_ERR_NOT_SUPPORTED, gds_op, "%s", refusal);
  return gds_open(job, device, job->model->tensors[index]->shard, err);
}

void gm__load_gds_aim(gm__load_job *job) {
  gm__load_gds *gds = &job->gds;
  for (uint64_t i = 0; i < job->model->tensor_count && gds->each; i++) {
    gm_error why = {.status = GM_OK};
    if (!job->ranges[i].bytes) continue;
    if (gds_check(job, i, &why) == GM_OK) {
      job->ranges[i].far = &gds->each[job->model->tensors[i]->shard].far;
    } else if (!gds->why[0]) {
      snprintf(gds->why, sizeof gds->why, "%s", why.message);
    }
  }
}

/* ---- begin and end ---- */

gm_status gm__load_gds_make(gm__load_gds *gds, const gm_model *model, gm_error *err) {
  void *each = NULL;
  gds->model = model;
  const gm_status status = gm__model_alloc(&model->services, model->shard_count, sizeof *gds->each, &each, err);
  gds->each = each;
  for (uint32_t i = 0; i < model->shard_count && each; i++) {
    gds->each[i] = (gm__load_gds_file){.all = gds, .far = {.read = gds_read_middle, .user = &gds->each[i]}};
  }
  return status;
}

void gm__load_gds_end(gm__load_gds *gds) {
  if (!gds->each) return;
  for (uint32_t i = 0; i < gds->model->shard_count; i++) gm__gds_close(gds->each[i].gds);
  gm__model_release(&gds->model->services, gds->each, gds->model->shard_count, sizeof *gds->each);
  gds->each = NULL;
}

uint64_t gm__load_gds_host_bytes(const gm__load_gds *gds) {
  return gds->each ? gds->model->shard_count * sizeof *gds->each : 0;
}
