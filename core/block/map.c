#include <inttypes.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/block/access.h"
#include "core/device/memory_answer.h"
#include "core/heap/live.h"
#include "core/staging/range_host.h"
#include "gm/copy.h"

/* Host mappings. The block's cold record lists those that their callers have not ended. So unmap knows what to flush,
 * and gm_free refuses a mapped block. A record without a pointer is being made or ended by one thread. No other thread
 * finds it. It is in the list, so the block stays. */

static const gm_services *map_services(const gm_pool *pool) { return gm__context_services(pool->device->ctx); }

static gm_status map_check(const gm__access *access, uint32_t mode, const gm_stream *stream, void *const *out,
                           gm_error *err) {
  const char *op = "gm_block_map";
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  if (access->bytes == 0) return gm__bad_argument(err, op, "`bytes` is 0");
  const uint32_t uses = mode & (GM_MAP_READ | GM_MAP_WRITE | GM_MAP_DISCARD);
  if (!uses || mode & ~(uses | GM_MAP_NO_WAIT)) {
    return gm__bad_argument(err, op, "`mode` must be of gm_map_mode, is %u", mode);
  }
  if (mode & GM_MAP_NO_WAIT && stream) {
    return gm__bad_argument(err, op, "GM_MAP_NO_WAIT uses no stream: `stream` must be NULL");
  }
  return gm__host_access_check(access, op, err);
}

/* ---- the list of a block ---- */

/* Enters a record without a pointer. */
static gm_status map_enter(gm_pool *pool, const gm_block *block, gm__mapping *mapping, gm_error *err) {
  gm__live live;
  if (!gm__live_open(&pool->heap, block, &live)) return gm__bad_argument(err, "gm_block_map", "`block` is gone");
  const bool has = gm__live_make_cold(&live);
  if (has) {
    mapping->next = live.cold->mappings;
    live.cold->mappings = mapping;
  }
  gm__live_close(&live);
  return has ? GM_OK : gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_block_map", "no host memory for the record");
}

/* The block is live: a record in its list keeps it. */
static void map_set_pointer(gm_pool *pool, const gm_block *block, gm__mapping *mapping, void *pointer) {
  gm__live live;
  if (!gm__live_open(&pool->heap, block, &live)) return;
  mapping->pointer = pointer;
  gm__live_close(&live);
}

static void map_remove(gm_pool *pool, const gm_block *block, gm__mapping *mapping) {
  gm__live live;
  if (!gm__live_open(&pool->heap, block, &live)) return;
  gm__mapping **link = &live.cold->mappings;
  while (*link && *link != mapping) link = &(*link)->next;
  if (*link) *link = mapping->next;
  gm__live_close(&live);
  gm__release(map_services(pool), mapping, sizeof *mapping);
}

/* The newest mapping of the block at the address becomes this thread's alone; NULL: there is none. */
static gm__mapping *map_take(gm_pool *pool, const gm_block *block, const void *pointer) {
  gm__live live;
  if (!pointer || !gm__live_open(&pool->heap, block, &live)) return NULL;
  gm__mapping *mapping = live.cold ? live.cold->mappings : NULL;
  while (mapping && mapping->pointer != pointer) mapping = mapping->next;
  if (mapping) mapping->pointer = NULL;
  gm__live_close(&live);
  return mapping;
}

/* ---- map ---- */

static gm_status map_make(gm_pool *pool, const gm_block *block, const gm__access *access, uint32_t mode,
                          gm__mapping **out, gm_error *err) {
  gm__mapping *mapping = gm__alloc(map_services(pool), sizeof *mapping);
  if (!mapping) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_block_map", "no host memory for the record");
  mapping->offset = access->offset;
  mapping->bytes = access->bytes;
  mapping->mode = mode;
  const gm_status status = map_enter(pool, block, mapping, err);
  if (status) {
    gm__release(map_services(pool), mapping, sizeof *mapping);
  } else {
    *out = mapping;
  }
  return status;
}

gm_status gm_block_map(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, uint32_t mode,
                       gm_stream *stream, void **out, gm_error *err) {
  GM__UNCANCELLED();
  gm__access access;
  gm__mapping *mapping = NULL;
  gm_status status = gm__access_open(pool, block, offset, bytes, "gm_block_map", &access, err);
  if (!status) status = map_check(&access, mode, stream, out, err);
  if (!status) status = map_make(pool, block, &access, mode, &mapping, err);
  if (status) return status;
  void *pointer = NULL;
  status = gm__map_begin(&access, mode, stream, &pointer, err);
  if (status) {
    map_remove(pool, block, mapping);
    return status;
  }
  map_set_pointer(pool, block, mapping, pointer);
  *out = pointer;
  return GM_OK;
}

/* ---- unmap ---- */

gm_status gm_block_unmap(gm_pool *pool, const gm_block *block, void *pointer, gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  gm__access access;
  gm_status status = gm__access_open(pool, block, 0, 0, "gm_block_unmap", &access, err);
  if (status) return status;
  gm__mapping *mapping = map_take(pool, block, pointer);
  if (!mapping) return gm__bad_argument(err, "gm_block_unmap", "`pointer` is no mapping of `block`");
  access.offset = mapping->offset;
  access.bytes = mapping->bytes;
  status = gm__map_end(&access, mapping->mode, pointer, stream, err);
  if (!status || status == GM_ERR_DEVICE_LOST) {
    map_remove(pool, block, mapping);
  } else {
    map_set_pointer(pool, block, mapping, pointer);
  }
  return status;
}
