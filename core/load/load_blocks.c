/* Blocks for tensors, and where their bytes go. */
#include "core/base/error.h"
#include "core/load/load_job.h"
#include "core/manage/explain.h"
#include "gm/spans.h"

enum { BLOCK_SECTOR = 512 };

/* One tensor's place. */
typedef struct block_target {
  const gm__tensor *tensor;
  uint64_t index;
  gm_pool *pool;
  const gm_request *request; /* but for `bytes` */
  gm__read_range range;      /* of the file */
  unsigned char *host;       /* NULL: by a lane */
  uint64_t address;          /* of the device; 0: there is none, or not one for all */
} block_target;

static uint64_t block_driver_allocs(gm_pool *pool) {
  gm_stats stats = {.struct_size = sizeof stats};
  return gm_pool_stats(pool, &stats) == GM_OK ? stats.driver_allocs : 0;
}

/* A large tensor that begins at a page or a sector of its file gets a block at one. So it is read straight into its
 * place past the page cache. That is for memory of the host. */
static uint32_t block_align(const gm__load_job *job, const block_target *target) {
  const gm_device_info *info = gm_device_get_info(gm_pool_device(target->pool));
  const bool cached = job->files.way == GM_WAY_CACHE || job->files.way == GM_WAY_MAP;
  const gm__read_range *range = &target->range;
  const uint32_t asked = target->request->align;
  uint32_t align = GM__INPUT_BLOCK;
  if (job->gds.each && info->api == GM_API_CUDA) return gm__load_gds_align(range, asked);
  if (cached || info->type != GM_DEVICE_TYPE_CPU || range->bytes < GM__LOAD_LARGE || range->run) return asked;
  while (range->at % align) align /= 2;
  return align >= BLOCK_SECTOR && asked < align ? align : asked;
}

static gm_status block_allocate(gm__load_job *job, const block_target *target, gm_error *err) {
  gm_request request = *target->request;
  gm_block block = {0};
  request.bytes = target->range.bytes;
  request.align = block_align(job, target);
  request.flags |= GM_INSERT_WAIT;
  const uint64_t before = block_driver_allocs(target->pool);
  gm_acquire acquire = gm_alloc(target->pool, &request, &block);
  if (!gm_acquired(acquire)) return gm__explain_refusal(target->pool, &request, acquire, "gm_alloc", err);
  job->result.driver_allocs += block_driver_allocs(target->pool) - before;
  job->loaded->blocks[target->index] = block;
  return GM_OK;
}

/* Look at a block's memory. The host can write it straight when it has an address, needs no flush, and no earlier
 * work of a stream may still use it. */
static gm_status block_inspect_span(gm__load_job *job, block_target *target, const gm_block_span *span, uint64_t bytes,
                                    gm_error *err) {
  gm_memory memory = {0};
  gm_memory_type type = {.struct_size = sizeof type};
  uint64_t offset = 0;
  gm_status status = gm_block_memory(target->pool, &span->block, &memory, &offset);
  if (status != GM_OK) return gm__fail(err, status, "gm_block_memory", "%s", gm_status_text(status));
  status = gm_device_memory_type(gm_pool_device(target->pool), memory.type, &type, err);
  if (status != GM_OK) return status;
  if (!(type.flags & GM_MEMORY_DEVICE_LOCAL)) job->result.fallback_bytes += bytes;
  const bool straight = memory.host && (type.flags & GM_MEMORY_HOST_COHERENT) && !target->request->stream;
  target->host = straight ? (unsigned char *)memory.host + offset : NULL;
  target->address = memory.address && !memory.host ? memory.address + offset : 0;
  return GM_OK;
}

/* Several memories are written to as one block. */
static gm_status block_inspect(gm__load_job *job, block_target *target, gm_error *err) {
  gm_block_span spans[GM_BLOCK_SPANS_MOST];
  uint32_t count = 0;
  gm_status status =
      gm_block_spans(target->pool, &job->loaded->blocks[target->index], 0, GM_BLOCK_SPANS_MOST, spans, &count, err);
  for (uint32_t i = 0; i < count && status == GM_OK; i++) {
    const bool last = i + 1 == count;
    const uint64_t bytes = last ? target->range.bytes - spans[i].offset : spans[i].bytes;
    status = block_inspect_span(job, target, &spans[i], bytes, err);
  }
  if (count > 1) {
    target->host = NULL;
    target->address = 0;
  }
  return status;
}

/* Without its first bytes, which have arrived before. */
static void block_cut(gm__read_range *range, uint64_t bytes) {
  range->at = gm__read_range_at(range, bytes);
  if (range->address) range->address += bytes;
  range->bytes -= bytes;
  if (range->to) range->to += bytes;
}

static gm_status block_range(gm__load_job *job, const block_target *target, gm_error *err) {
  gm__read_range *range = &job->ranges[target->index];
  gm_file *file = NULL;
  gm__load_lane *lane = NULL;
  gm_status status = gm__load_files_get(&job->files, target->tensor->shard, &file, err);
  if (status == GM_OK && !target->host) {
    status = gm__load_lane_of(&job->lanes, gm_pool_device(target->pool), target->request->stream, &lane, err);
  }
  if (status != GM_OK) return status;
  *range = target->range;
  range->file = file;
  range->order = target->tensor->shard;
  range->to = target->host;
  range->room = lane ? &lane->room : NULL;
  range->address = target->address;
  block_cut(range, gm__load_block_at(job, target->index, 0));
  return GM_OK;
}

static gm_status block_make(gm__load_job *job, block_target *target, gm_error *err) {
  gm_file *file = NULL;
  gm_status status = gm__load_report(job, target->index, err);
  gm__load_place_range(job->places, job->model, target->index, &target->range);
  if (status != GM_OK || target->range.bytes == 0) return status;
  status = gm__load_files_get(&job->files, target->tensor->shard, &file, err);
  if (status == GM_OK && job->mapped) {
    status = gm__load_map_tensor(job, target->index, &target->range, &target->host, err);
    if (status != GM_OK || target->host) return status == GM_OK ? block_range(job, target, err) : status;
  }
  if (status == GM_OK && !job->resumes) status = block_allocate(job, target, err);
  if (status == GM_OK) status = block_inspect(job, target, err);
  return status == GM_OK ? block_range(job, target, err) : status;
}

gm_status gm__load_blocks(gm__load_job *job, gm_error *err) {
  for (uint64_t i = 0; i < job->model->tensor_count; i++) {
    const gm_load_place *place = gm__load_place_of(job->places, i);
    if (!place->pool) continue;
    block_target target = {
        .tensor = job->model->tensors[i], .index = i, .pool = place->pool, .request = &place->request};
    gm_error inner = {0};
    job->loaded->pools[i] = place->pool;
    if (block_make(job, &target, &inner) != GM_OK) return gm__load_fail(job->model, target.tensor, &inner, err);
  }
  return GM_OK;
}
