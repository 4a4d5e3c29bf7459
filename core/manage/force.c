#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/device/watch.h"
#include "core/heap/mapped.h"
#include "core/manage/lifecycle.h"
#include "core/order/order.h"
#include "core/pool/serve.h"
#include "core/staging/range_host.h"

/* The end of a pool whose blocks callers still hold. Its object stays, dead, until the context ends: so a name that
 * somebody keeps is answered. Objects above the pool (buffers, scopes, managed memory) find its context there. */

enum { FORCE_TRIES = 10 }; /* of a second each */

static const char force_op[] = "gm_pool_destroy_force";

/* ---- waiting ---- */

/* The open stream with the next higher number. The caller sees to it that no stream closes meanwhile. */
static gm_stream *force_next_stream(gm_device *device, uint64_t last) {
  gm_stream *next = NULL;
  gm__mutex_lock(&device->lock);
  for (gm_stream *stream = device->streams; stream; stream = stream->next) {
    if (stream->id > last && (!next || stream->id < next->id)) next = stream;
  }
  gm__mutex_unlock(&device->lock);
  return next;
}

/* Waits for the streams of the device. Returns the number of those that gm can neither ask nor wait for. */
static uint32_t force_settle(gm_device *device) {
  uint32_t unasked = 0;
  uint64_t last = 0;
  for (gm_stream *stream; (stream = force_next_stream(device, last));) {
    last = stream->id;
    if (gm__stream_captured(stream) || gm__order_drain(stream, force_op, NULL)) unasked++;
  }
  return unasked;
}

/* Ends the mappings that callers have not ended. Where the driver refuses, the memory goes all the same. */
static bool force_unmap(gm_pool *pool) {
  gm_memory memory;
  gm__mapped_place place = {0};
  bool any = false;
  for (gm__mapping *mapping; (mapping = gm__mapped_take(&pool->heap, &place, &memory)); any = true) {
    const gm__access access = {pool->device, memory, mapping->offset, mapping->bytes};
    if (mapping->pointer) gm__map_end(&access, mapping->mode, mapping->pointer, NULL, NULL);
    gm__release(gm__context_services(pool->ctx), mapping, sizeof *mapping);
  }
  return any;
}

/* ---- the report ---- */

/* Tells what callers still held, in `err`, which may be NULL, and in the log. */
static void force_tell(const gm_pool *pool, const gm_stats *stats, uint32_t unasked, gm_error *err) {
  gm_error mine = {.status = GM_OK};
  gm_error *told = err ? err : &mine;
  gm__fail(told, GM_OK, force_op,
           "%" PRIu64 " blocks of %" PRIu64 " bytes of pool \"%s\" were still out, and %u streams could not be asked",
           stats->active, stats->in_use_bytes, pool->heap.provider.name, unasked);
  if (stats->active) gm__log(gm__context_services(pool->ctx), GM_LOG_WARN, "%s: %s", force_op, told->message);
}

/* ---- the call ---- */

static gm_status force_stop_lending(gm_pool *pool, gm_error *err) {
  gm_status status = GM_ERR_BUSY;
  for (int i = 0; status && i < FORCE_TRIES; i++) status = gm__pool_stop_lending(pool, force_op, err);
  return status;
}

/* The name stays known, and nothing is behind it. */
static void force_bury(gm_pool *pool) {
  pool->generation = UINT64_MAX; /* no process has that: the fast path finds no arena */
  pool->device = NULL;
  pool->guard = NULL;
  pool->heap.observers = (gm__observers){.track_turns = 0};
  gm__object_keep(pool->ctx, &pool->head);
}

gm_status gm_pool_destroy_force(gm_pool *pool, gm_error *err) {
  GM__UNCANCELLED();
  gm_stats stats = {.struct_size = sizeof stats};
  if (!pool) return GM_OK;
  if (!gm__pool_lives(pool)) return gm__bad_argument(err, force_op, "`pool` is destroyed");
  if (gm__pool_forked(pool)) return gm_pool_destroy(pool, err);
  const gm_status status = force_stop_lending(pool, err);
  if (status) return status;
  gm__futures_end(pool);
  gm__watches_forget(pool->ctx, pool);
  gm__recorder *recorder = pool->heap.observers.recorder;
  if (gm__recorder_writes(recorder)) recorder->save(pool);
  uint32_t unasked = force_settle(pool->device);
  if (force_unmap(pool)) unasked = force_settle(pool->device);
  if (pool->buffers.forget) pool->buffers.forget(pool);
  gm__pool_live(pool);
  stats = gm__heap_stats(&pool->heap);
  force_tell(pool, &stats, unasked, err);
  gm__pool_end(pool, false);
  force_bury(pool);
  return GM_OK;
}
