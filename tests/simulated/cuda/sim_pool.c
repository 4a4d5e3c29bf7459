#include "tests/simulated/cuda/sim_pool.h"

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_device.h"
#include "tests/simulated/cuda/sim_slab.h"
#include "tests/simulated/cuda/sim_stream.h"

struct CUmemPoolHandle_st {
  int device;
  bool is_default, closing;
  uint64_t most; /* 0: no bound */
  uint64_t threshold, reserved, reserved_high, used, used_high;
  uint64_t readers; /* devices that were given access */
  int reuse[4];     /* by attribute */
};

static sim_slab pool_slab = {.item_bytes = sizeof(struct CUmemPoolHandle_st)};
static CUmemoryPool pool_defaults[SIM_MAX_DEVICES];
static CUmemoryPool pool_current[SIM_MAX_DEVICES];

static CUmemoryPool pool_create(int device) {
  CUmemoryPool pool = sim_slab_take(&pool_slab);
  if (pool) *pool = (struct CUmemPoolHandle_st){.device = device, .reuse = {0, 1, 1, 1}};
  return pool;
}

static CUmemoryPool pool_default(int device) {
  if (!pool_defaults[device]) {
    pool_defaults[device] = pool_create(device);
    if (pool_defaults[device]) pool_defaults[device]->is_default = true;
  }
  return pool_defaults[device];
}

static bool pool_is_live(CUmemoryPool pool) { return sim_slab_is_live(&pool_slab, pool) && !pool->closing; }

int sim_pool_count(void) {
  int at = 0, count = 0;
  for (CUmemoryPool pool; (pool = sim_slab_next(&pool_slab, &at));) count += !pool->is_default;
  return count;
}

/* A range of this pool that satisfies `fits`, from `at` on; NULL: none. */
static sim_range *pool_next(CUmemoryPool pool, uint64_t *at) {
  for (sim_range *range; (range = sim_range_after(*at));) {
    *at = range->at + range->bytes;
    if (range->kind == SIM_POOLED && range->pool == pool) return range;
  }
  return NULL;
}

static void pool_drop(CUmemoryPool pool, sim_range *range) {
  pool->reserved -= range->bytes;
  sim_range_destroy(range);
}

static void pool_trim(CUmemoryPool pool, uint64_t keep) {
  uint64_t at = 0;
  for (sim_range *range; pool->reserved > keep && (range = pool_next(pool, &at));)
    if (range->freed && range->free_done) pool_drop(pool, range);
}

/* A destroyed pool goes when its last memory was given back. */
static void pool_free_if_over(CUmemoryPool pool) {
  if (!pool->closing) return;
  pool_trim(pool, 0);
  if (!pool->reserved) sim_slab_give(&pool_slab, pool);
}

void sim_pool_synchronized(int device) {
  int at = 0;
  for (CUmemoryPool pool; (pool = sim_slab_next(&pool_slab, &at));) {
    if (pool->device != device) continue;
    if (pool->reserved > pool->threshold) pool_trim(pool, pool->threshold);
    pool_free_if_over(pool);
  }
}

static bool pool_fits(const sim_range *range, const sim_queue *queue, uint64_t bytes) {
  if (!range->freed || range->bytes < bytes || range->bytes / 2 > bytes) return false;
  if (range->freed_on == queue->id) return true;
  return range->free_done && range->pool->reuse[CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC];
}

static sim_range *pool_reuse(CUmemoryPool pool, const sim_queue *queue, uint64_t bytes) {
  sim_range *best = NULL;
  uint64_t at = 0;
  for (sim_range *range; (range = pool_next(pool, &at));)
    if (pool_fits(range, queue, bytes) && (!best || range->bytes < best->bytes)) best = range;
  return best;
}

static CUresult pool_grow(CUmemoryPool pool, uint64_t bytes, sim_range **out) {
  if (pool->most && (bytes > pool->most || pool->reserved > pool->most - bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = sim_range_create(SIM_POOLED, bytes, pool->device, NULL, out);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    pool_trim(pool, 0);
    result = sim_range_create(SIM_POOLED, bytes, pool->device, NULL, out);
  }
  if (result) return result;
  (*out)->pool = pool;
  pool->reserved += bytes;
  if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
  return CUDA_SUCCESS;
}

static CUresult pool_alloc(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream) {
  sim_queue *queue = NULL;
  if (!out || !bytes) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = sim_stream_queue(stream, &queue);
  if (result) return result;
  if (!pool) pool = pool_current[queue->device] ? pool_current[queue->device] : pool_default(queue->device);
  if (!pool_is_live(pool)) return CUDA_ERROR_INVALID_VALUE;
  if (queue->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (bytes > (uint64_t)1 << 44) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t rounded = (bytes + 511) / 512 * 512;
  sim_range *range = pool_reuse(pool, queue, rounded);
  result = range ? CUDA_SUCCESS : pool_grow(pool, rounded, &range);
  if (result) return result;
  range->freed = range->free_done = false;
  pool->used += range->bytes;
  if (pool->used > pool->used_high) pool->used_high = pool->used;
  *out = sim_script_now.hostile_null ? 0 : range->at;
  return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemAllocAsync);
  if (result) return result;
  return sim_leave(pool_alloc(out, bytes, NULL, stream));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemAllocFromPoolAsync);
  if (result) return result;
  return sim_leave(pool ? pool_alloc(out, bytes, pool, stream) : CUDA_ERROR_INVALID_VALUE);
}

typedef struct pool_free_op {
  sim_op op;
  uint64_t at, id, frees;
} pool_free_op;

static void pool_settle_free(sim_op *op, CUresult result) {
  (void)result;
  const pool_free_op *given = (pool_free_op *)op;
  sim_range *range = sim_range_find(given->at);
  if (!range || range->id != given->id) return;
  sim_phys_poison(range->phys, 0xdd);
  if (range->freed && range->frees == given->frees) range->free_done = true;
  pool_free_if_over(range->pool);
}

CUresult sim_pool_give_back(sim_range *range) {
  range->freed = range->free_done = true;
  range->freed_on = 0;
  range->pool->used -= range->bytes;
  sim_phys_poison(range->phys, 0xdd);
  sim_pool_synchronized(range->device);
  return CUDA_SUCCESS;
}

static CUresult pool_free(CUdeviceptr address, CUstream stream) {
  sim_queue *queue = NULL;
  CUresult result = sim_stream_queue(stream, &queue);
  if (result) return result;
  sim_range *range = sim_range_find(address);
  if (!range || range->at != address || range->kind != SIM_POOLED || range->freed) return CUDA_ERROR_INVALID_VALUE;
  if (queue->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  pool_free_op *given = sim_op_create(sizeof *given);
  if (!given) return CUDA_ERROR_OUT_OF_MEMORY;
  *given = (pool_free_op){.op = given->op, .at = range->at, .id = range->id, .frees = ++range->frees};
  given->op.settle = pool_settle_free;
  range->freed = true;
  range->freed_on = queue->id;
  range->pool->used -= range->bytes;
  return sim_queue_add(queue, &given->op);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  CUresult result = sim_enter(sim_id_cuMemFreeAsync);
  if (result) return result;
  return sim_leave(pool_free(address, stream));
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device) {
  CUresult result = sim_enter(sim_id_cuDeviceGetDefaultMemPool);
  if (result) return result;
  if (!out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if (!sim_device_exists(device)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  *out = pool_default(device);
  return sim_leave(*out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device) {
  CUresult result = sim_enter(sim_id_cuDeviceGetMemPool);
  if (result) return result;
  if (!out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if (!sim_device_exists(device)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  *out = pool_current[device] ? pool_current[device] : pool_default(device);
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  CUresult result = sim_enter(sim_id_cuDeviceSetMemPool);
  if (result) return result;
  if (!sim_device_exists(device)) return sim_leave(CUDA_ERROR_INVALID_DEVICE);
  if (!pool_is_live(pool) || pool->device != device) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  pool_current[device] = pool;
  return sim_leave(CUDA_SUCCESS);
}

static CUresult pool_make(CUmemoryPool *out, const CUmemPoolProps *props) {
  if (!out || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_device_exists(props->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  for (size_t i = 0; i < sizeof props->reserved; i++)
    if (props->reserved[i]) return CUDA_ERROR_INVALID_VALUE;
  CUmemoryPool pool = pool_create(props->location.id);
  if (!pool) return CUDA_ERROR_OUT_OF_MEMORY;
  pool->most = props->maxSize;
  *out = pool;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props) {
  CUresult result = sim_enter(sim_id_cuMemPoolCreate);
  if (result) return result;
  return sim_leave(pool_make(out, props));
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  CUresult result = sim_enter(sim_id_cuMemPoolDestroy);
  if (result) return result;
  if (!pool_is_live(pool) || pool->is_default) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if (pool_current[pool->device] == pool) pool_current[pool->device] = NULL;
  pool->closing = true;
  pool_free_if_over(pool);
  return sim_leave(CUDA_SUCCESS);
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  CUresult result = sim_enter(sim_id_cuMemPoolTrimTo);
  if (result) return result;
  if (!pool_is_live(pool)) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  pool_trim(pool, keep);
  return sim_leave(CUDA_SUCCESS);
}

/* The 64-bit attributes; NULL: it is none of those. */
static uint64_t *pool_figure(CUmemoryPool pool, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return &pool->threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return &pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return &pool->used_high;
    default: return NULL;
  }
}

static bool pool_is_switch(CUmemPool_attribute attribute) {
  return attribute >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
         attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *out) {
  CUresult result = sim_enter(sim_id_cuMemPoolGetAttribute);
  if (result) return result;
  if (!pool_is_live(pool) || !out) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  const uint64_t *figure = pool_figure(pool, attribute);
  if (!figure && !pool_is_switch(attribute)) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  if (figure)
    *(uint64_t *)out = *figure;
  else
    *(int *)out = pool->reuse[attribute];
  return sim_leave(CUDA_SUCCESS);
}

/* A high mark can only be set to 0, which restarts it. */
static CUresult pool_set(CUmemoryPool pool, CUmemPool_attribute attribute, const void *value) {
  if (!pool_is_live(pool) || !value) return CUDA_ERROR_INVALID_VALUE;
  if (pool_is_switch(attribute)) {
    pool->reuse[attribute] = *(const int *)value;
    return CUDA_SUCCESS;
  }
  uint64_t number = *(const uint64_t *)value;
  if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) return pool->threshold = number, CUDA_SUCCESS;
  if (number) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) return pool->reserved_high = pool->reserved, CUDA_SUCCESS;
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) return pool->used_high = pool->used, CUDA_SUCCESS;
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  CUresult result = sim_enter(sim_id_cuMemPoolSetAttribute);
  if (result) return result;
  return sim_leave(pool_set(pool, attribute, value));
}

static CUresult pool_set_access(CUmemoryPool pool, const CUmemAccessDesc *list, size_t count) {
  if (!pool_is_live(pool) || !list) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    CUmemLocation place = list[i].location;
    if (place.type != CU_MEM_LOCATION_TYPE_DEVICE || !sim_device_exists(place.id)) return CUDA_ERROR_INVALID_DEVICE;
    bool own = place.id == pool->device;
    if (own && list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
    if (!own && !sim_device_reaches(place.id, pool->device)) return CUDA_ERROR_INVALID_DEVICE;
    uint64_t bit = (uint64_t)1 << place.id;
    pool->readers = list[i].flags ? pool->readers | bit : pool->readers & ~bit;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *list, size_t count) {
  CUresult result = sim_enter(sim_id_cuMemPoolSetAccess);
  if (result) return result;
  return sim_leave(pool_set_access(pool, list, count));
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *out, CUmemoryPool pool, CUmemLocation *place) {
  CUresult result = sim_enter(sim_id_cuMemPoolGetAccess);
  if (result) return result;
  if (!out || !pool_is_live(pool) || !place || !sim_device_exists(place->id))
    return sim_leave(CUDA_ERROR_INVALID_VALUE);
  bool may = place->id == pool->device || (pool->readers >> place->id & 1);
  *out = may ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return sim_leave(CUDA_SUCCESS);
}
