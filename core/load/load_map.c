/* Blocks that are parts of their mapped files. Invariant: a mapping ends after the blocks in it. */
#include "core/base/error.h"
#include "core/load/load_job.h"
#include "core/model/model_memory.h"
#include "gm/native_cpu.h"
#include "gm/native_opencl.h"

enum { MAP_ALIGN = 8 };

static bool map_is_buffer(const gm_device_info *info) { return info->api == GM_API_OPENCL; }

/* Why the device does not take host memory as it is; NULL: it does. */
static const char *map_device_refuses(const gm_device_info *info) {
  if (info->api == GM_API_CPU) return NULL;
  if (!map_is_buffer(info) || !info->unified) return "the device has memory of its own";
  return info->capabilities & GM_CAP_ADDRESS ? "kernels take addresses, and a mapped file is a buffer" : NULL;
}

/* Why a tensor cannot lie in its file; NULL: it can. */
static const char *map_refuses(const gm__load_job *job, uint64_t index, const gm__read_range *range) {
  const gm_load_place *place = gm__load_place_of(job->places, index);
  const gm_device_info *info = gm_device_get_info(gm_pool_device(place->pool));
  const char *refusal = map_device_refuses(info);
  uint64_t align = place->request.align ? place->request.align : MAP_ALIGN;
  if (map_is_buffer(info) && align < info->alignment) align = info->alignment;
  if (job->loaded->there) return "a load with `keep` reads its tensors";
  if (refusal) return refusal;
  if (range->run) return "parts of tensors that lie in several places of the file are read";
  return range->at % align ? "some tensors begin at no multiple of their alignment" : NULL;
}

/* The mapping of a shard's file; the first call makes it. */
static gm_status map_of(gm__load_job *job, uint32_t shard, const gm_file *file, unsigned char **out, gm_error *err) {
  gm_loaded_model *loaded = job->loaded;
  void *maps = loaded->maps;
  gm_status status = GM_OK;
  if (!maps) status = gm__model_alloc(&loaded->services, job->model->shard_count, sizeof *loaded->maps, &maps, err);
  if (status != GM_OK) return status;
  loaded->maps = maps;
  loaded->map_count = job->model->shard_count;
  gm__load_map *map = &loaded->maps[shard];
  map->file.bytes = file->input.bytes;
  if (!map->at) status = gm__input_file_map_own(&file->input, file->path, &map->at, err);
  *out = map->at;
  return status;
}

static gm_status map_wrap(gm__load_job *job, uint64_t index, unsigned char *at, uint64_t bytes, gm_error *err) {
  gm_pool *pool = gm__load_place_of(job->places, index)->pool;
  gm_cpu_memory memory = {.head = {sizeof memory, GM_API_CPU}, .pointer = at, .bytes = bytes};
  gm_opencl_memory buffer = {.head = {sizeof buffer, GM_API_OPENCL}, .mapped = at, .bytes = bytes};
  const bool is_buffer = map_is_buffer(gm_device_get_info(gm_pool_device(pool)));
  return gm_block_wrap(pool, is_buffer ? &buffer.head : &memory.head, &job->loaded->blocks[index], err);
}

/* A driver may refuse a buffer that it would have made in its own memory. Then the tensor is read. */
static bool map_may_read(const gm__load_job *job, uint64_t index, gm_status status) {
  const gm_device_info *info = gm_device_get_info(gm_pool_device(gm__load_place_of(job->places, index)->pool));
  return map_is_buffer(info) && status != GM_OK && status != GM_ERR_DEVICE_LOST;
}

gm_status gm__load_map_tensor(gm__load_job *job, uint64_t index, const gm__read_range *range, unsigned char **out_host,
                              gm_error *err) {
  const uint32_t shard = job->model->tensors[index]->shard;
  const char *refusal = map_refuses(job, index, range);
  unsigned char *at = NULL;
  gm_file *file = NULL;
  *out_host = NULL;
  if (refusal) {
    job->unmapped = refusal;
    return GM_OK;
  }
  gm_status status = gm__load_files_get(&job->files, shard, &file, err);
  if (status == GM_OK) status = map_of(job, shard, file, &at, err);
  if (status == GM_OK) status = gm__input_file_touch(&file->input, file->path, at, range->at, range->bytes, err);
  if (status != GM_OK) return status;
  gm_error why = {.status = GM_OK};
  status = map_wrap(job, index, at + range->at, range->bytes, &why);
  if (map_may_read(job, index, status)) {
    job->unmapped = "the driver takes no buffer over a mapped file";
    return GM_OK;
  }
  if (status != GM_OK && err) *err = why;
  if (status != GM_OK) return status;
  job->mapped[index] = true;
  job->result.mapped_bytes += range->bytes;
  *out_host = at + range->at;
  return GM_OK;
}
