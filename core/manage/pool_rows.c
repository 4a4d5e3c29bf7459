/* Invariants. Everything is copied under the lock of the context: there a listed pool and its device live. Host memory
 * is taken under it, too. */
#include "core/manage/pool_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/manage/fragmentation.h"
#include "core/manage/lifecycle.h"

/* Makes room for so many rows of `size` bytes. `rows_at` is a T **. */
static bool rows_grow(const gm__pool_rows *rows, void *rows_at, size_t *room, size_t need, size_t size) {
  if (need <= *room) return true;
  const size_t grown = need > *room * 2 ? need : *room * 2;
  if (!gm__grow(rows->services, rows_at, *room * size, grown * size)) return false;
  *room = grown;
  return true;
}

static uint64_t rows_count(const _Atomic uint64_t *count) { return atomic_load_explicit(count, memory_order_relaxed); }

static void rows_fill_device(gm__device_row *row, const gm_device *device) {
  const gm_device_info *info = &device->info;
  const gm__traffic *traffic = &device->traffic;
  *row = (gm__device_row){.id = device->id,
                          .memory_bytes = info->total_bytes ? info->total_bytes : GM_UNKNOWN_BYTES,
                          .up_bytes = rows_count(&traffic->bytes[GM__TRAFFIC_UP]),
                          .down_bytes = rows_count(&traffic->bytes[GM__TRAFFIC_DOWN]),
                          .up_copies = rows_count(&traffic->copies[GM__TRAFFIC_UP]),
                          .down_copies = rows_count(&traffic->copies[GM__TRAFFIC_DOWN]),
                          .useful_bytes = rows_count(&traffic->useful_bytes)};
  snprintf(row->device, sizeof row->device, "%.15s:%" PRIu32, info->backend, info->index);
  snprintf(row->name, sizeof row->name, "%s", info->name);
  snprintf(row->driver, sizeof row->driver, "%s", info->driver);
}

/* Pools of a device mostly come one after the other. */
static const gm__device_row *rows_device(gm__pool_rows *rows, const gm_device *device) {
  for (size_t i = rows->device_count; i-- > 0;) {
    if (rows->devices[i].id == device->id) return &rows->devices[i];
  }
  if (!rows_grow(rows, &rows->devices, &rows->device_room, rows->device_count + 1, sizeof *rows->devices)) return NULL;
  gm__device_row *row = &rows->devices[rows->device_count++];
  rows_fill_device(row, device);
  return row;
}

/* A tag that is new between the two calls waits for the next look. */
static bool rows_tags(gm__pool_rows *rows, gm_tracker *tracker, gm__pool_row *pool) {
  const size_t before = rows->tag_count, count = gm_tracker_by_tag(tracker, NULL, 0);
  if (!rows_grow(rows, &rows->tags, &rows->tag_room, before + count, sizeof *rows->tags)) return false;
  const size_t got = gm_tracker_by_tag(tracker, rows->tags + before, count);
  pool->first_tag = before;
  pool->tag_count = got < count ? got : count;
  rows->tag_count += pool->tag_count;
  return true;
}

static bool rows_pool(gm__pool_rows *rows, gm_pool *pool) {
  const gm__device_row *device = rows_device(rows, pool->device);
  if (!device) return false;
  if (!rows_grow(rows, &rows->pools, &rows->pool_room, rows->pool_count + 1, sizeof *rows->pools)) return false;
  gm__pool_row *row = &rows->pools[rows->pool_count++];
  *row = (gm__pool_row){.id = pool->heap.id, .stats = gm__pool_stats(pool)};
  memcpy(row->device, device->device, sizeof row->device);
  snprintf(row->name, sizeof row->name, "%s", pool->heap.provider.name);
  return !gm__observers_track(&pool->heap.observers) || rows_tags(rows, pool->heap.observers.tracker, row);
}

gm_status gm__pool_rows_read(gm_context *ctx, gm__pool_rows *out) {
  *out = (gm__pool_rows){.services = gm__context_services(ctx)};
  uint32_t looks = 0;
  bool enough = true;
  gm__mutex_lock(&ctx->lock);
  for (gm_pool *pool = NULL; enough && (pool = gm__pools_walk(ctx, pool, &looks));) enough = rows_pool(out, pool);
  gm__mutex_unlock(&ctx->lock);
  return enough ? GM_OK : GM_ERR_OUT_OF_HOST_MEMORY;
}

void gm__pool_rows_clear(gm__pool_rows *rows) {
  gm__release(rows->services, rows->devices, rows->device_room * sizeof *rows->devices);
  gm__release(rows->services, rows->pools, rows->pool_room * sizeof *rows->pools);
  gm__release(rows->services, rows->tags, rows->tag_room * sizeof *rows->tags);
}
