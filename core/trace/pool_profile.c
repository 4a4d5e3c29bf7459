#include "gm/profile.h"

#include <stdlib.h>

#include "core/arena/arena.h"
#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/manage/record.h"
#include "core/trace/live_profile.h"

/* A profile is a recording whose chunks go to sums, not to a file. Invariant: who holds the gate finds the recorder as
 * it is. A pool that is not profiled is so for the time of one look: then its events are the blocks that live. */

static const gm_services *profile_services(const gm_pool *pool) { return gm__context_services(pool->device->ctx); }

static gm_status profile_start(gm_pool *pool, gm_error *err) {
  gm__recorder *recorder = NULL;
  const gm_status status = gm__live_profile_open(profile_services(pool), &recorder, err);
  if (!status) gm__record_start(pool, recorder);
  return status;
}

static void profile_stop(gm_pool *pool) { gm__recorder_close(gm__record_stop(pool), false); }

/* ---- looking ---- */

static gm_status profile_add_all(gm_pool *pool, gm__profile_sum *sum) {
  gm__recorder *recorder = pool->heap.observers.recorder;
  gm__mutex_lock(&pool->heap.provider.lock);
  gm_status status = gm__live_profile_add(recorder, recorder->buffers[GM__RECORD_DEDICATED], sum);
  gm__mutex_unlock(&pool->heap.provider.lock);
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&pool->heap.arenas, arena));) {
    if (!status) status = gm__live_profile_add(recorder, arena->events, sum);
  }
  return status;
}

static gm_status profile_sum(gm_pool *pool, const char *op, gm__profile_sum *sum, gm_error *err) {
  gm_trace_profile *out = &sum->figures;
  gm_status status = profile_add_all(pool, sum);
  if (status) return gm__fail(err, status, op, "no host memory for the sizes of pool \"%s\"", pool->heap.provider.name);
  if (gm__recorder_has_failed(pool->heap.observers.recorder, err)) return GM_ERR_OUT_OF_HOST_MEMORY;
  out->distinct_sizes = sum->allocs.count;
  out->repeats = out->allocs - out->distinct_sizes;
  out->streams = out->allocs ? sum->streams.count + 1 : 0;
  return GM_OK;
}

/* Fills *sum, which the caller ends. REQUIRES: gate. */
static gm_status profile_look(gm_pool *pool, const char *op, gm__profile_sum *sum, gm_error *err) {
  const gm__recorder *recorder = pool->heap.observers.recorder;
  if (recorder && recorder->sink) return profile_sum(pool, op, sum, err);
  gm_status status = gm__record_check_idle(pool, op, err);
  if (!status) status = profile_start(pool, err);
  if (status) return status;
  status = profile_sum(pool, op, sum, err);
  profile_stop(pool);
  return status;
}

/* Looks now. The caller ends *sum, also after a failure. */
static gm_status profile_take(gm_pool *pool, const char *op, gm__profile_sum *sum, gm_error *err) {
  gm__profile_sum_begin(sum, profile_services(pool));
  gm__mutex_lock(&pool->gate);
  const gm_status status = profile_look(pool, op, sum, err);
  gm__mutex_unlock(&pool->gate);
  return status;
}

gm_status gm_pool_profile_read(gm_pool *pool, gm_trace_profile *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_profile_read";
  gm__profile_sum sum;
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  status = profile_take(pool, op, &sum, err);
  if (!status) gm__sized_out(out, &sum.figures, sizeof sum.figures);
  gm__profile_sum_end(&sum);
  return status;
}

/* ---- sizes ---- */

static int profile_by_use(const void *one, const void *other) {
  const gm_size_use *a = one, *b = other;
  if (a->allocs != b->allocs) return a->allocs < b->allocs ? 1 : -1;
  return a->bytes < b->bytes ? 1 : -1;
}

/* Writes the first of the sizes in their order. */
static gm_status profile_list(const gm__profile_sum *sum, const gm_services *services, gm_size_use *out,
                              size_t capacity) {
  gm_size_use *all = gm__alloc_array(services, sum->allocs.count, sizeof *all);
  size_t count = 0, cursor = 0;
  uint64_t bytes, allocs;
  if (!all) return GM_ERR_OUT_OF_HOST_MEMORY;
  while (gm__map_next(&sum->allocs, &cursor, &bytes, &allocs)) {
    all[count] = (gm_size_use){.bytes = bytes, .allocs = allocs};
    gm__map_find(&sum->live, bytes, &all[count++].live);
  }
  qsort(all, count, sizeof *all, profile_by_use);
  for (size_t i = 0; i < count && i < capacity; i++) out[i] = all[i];
  gm__release(services, all, sum->allocs.count * sizeof *all);
  return GM_OK;
}

gm_status gm_pool_profile_sizes(gm_pool *pool, gm_size_use *out, size_t capacity, size_t *out_count, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_profile_sizes";
  gm__profile_sum sum;
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status && (!out_count || (!out && capacity)))
    status = gm__bad_argument(err, op, "`%s` is NULL", out_count ? "out" : "out_count");
  if (status) return status;
  status = profile_take(pool, op, &sum, err);
  if (!status && capacity && sum.allocs.count && profile_list(&sum, profile_services(pool), out, capacity))
    status = gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory to sort the sizes");
  if (!status) *out_count = sum.allocs.count;
  gm__profile_sum_end(&sum);
  return status;
}

/* ---- beginning and end ---- */

gm_status gm_pool_profile_begin(gm_pool *pool, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_profile_begin";
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  gm__mutex_lock(&pool->gate);
  status = gm__record_check_idle(pool, op, err);
  if (!status) status = profile_start(pool, err);
  gm__mutex_unlock(&pool->gate);
  return status;
}

gm_status gm_pool_profile_end(gm_pool *pool, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_profile_end";
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  gm__mutex_lock(&pool->gate);
  const gm__recorder *recorder = pool->heap.observers.recorder;
  const bool profiled = recorder && recorder->sink;
  if (profiled) profile_stop(pool);
  gm__mutex_unlock(&pool->gate);
  if (profiled) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_FOUND, op, "pool \"%s\" is not being profiled", pool->heap.provider.name);
}
