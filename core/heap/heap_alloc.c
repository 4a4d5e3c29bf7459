#include "core/arena/arena_alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/shadow.h"
#include "core/heap/eviction.h"
#include "core/heap/headroom.h"
#include "core/heap/heap_track.h"
#include "core/heap/placement.h"

/* A request is tried in this order:
 * 1. pooled memory that its stream may use at once, or after a wait of its own
 * 2. pooled memory of another thread
 * 3. new memory
 * 4. pooled memory that another stream still uses, because a wait is better than a failure
 * 5. new memory again, after a trim
 * 6. all of this again, after evictors freed memory
 * A lost device ends the request at 3: no wait makes its memory usable. After every other failure 4 follows.
 * So gm makes no stream depend on another one while there is memory. It waits for no work; a trim gives streams a
 * moment to say that they are done. */

static gm_status heap_pools_none(const gm__want *want, gm_error *err) {
  gm__ladder_blame(want->ladder, GM_CAUSE_POOLED_ONLY);
  return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, "gm_alloc",
                  "no memory that the pool keeps serves%s, and GM_POOLED_ONLY allows no other",
                  gm__want_is_dedicated(want) ? " (GM_DEDICATED: one of exactly that size)" : "");
}

/* The rungs before and behind the driver, counted and timed. */
static bool heap_search(gm__attempt *attempt, gm_rung rung, bool (*search)(gm__attempt *attempt)) {
  const uint64_t began = gm__now_ns();
  const bool found = search(attempt);
  gm__ladder_step(attempt->want->ladder, rung, began, 0);
  return found;
}

static gm_status heap_fresh(gm__attempt *attempt, const gm__placement *place, gm_error *err) {
  const uint64_t began = gm__now_ns();
  const gm_status status = place->fresh(attempt, err);
  gm__ladder_step(attempt->want->ladder, GM_RUNG_DRIVER, began, 0);
  return status;
}

/* The way for memory that the pool does not have at once. */
static gm_status heap_try_new(gm__attempt *attempt, const gm__placement *place, gm_error *err) {
  GM__UNCANCELLED();
  const gm__want *want = attempt->want;
  if (want->flags & GM_POOLED_ONLY) return place->anywhere(attempt) ? GM_OK : heap_pools_none(want, err);
  if (!attempt->heap->provider.captures && gm__order_is_captured(want->stream, err)) return GM_ERR_BUSY;
  gm__ladder_blame(want->ladder, GM_CAUSE_NONE); /* that of an earlier try is over */
  gm_status status = gm__headroom_check(attempt->heap, want, err);
  if (status) return status;
  if (heap_search(attempt, GM_RUNG_MOVE, place->moved)) return GM_OK;
  status = heap_fresh(attempt, place, err);
  if (status == GM_OK || status == GM_ERR_DEVICE_LOST) return status;
  if (heap_search(attempt, GM_RUNG_BUSY, place->anywhere)) return GM_OK;
  if (!gm__is_shortage(status)) return status;
  return gm__headroom_make(attempt->heap, want, status) ? heap_fresh(attempt, place, err) : status;
}

static gm_status heap_try(gm__attempt *attempt, gm_error *err) {
  const gm__want *want = attempt->want;
  const gm__placement *place = gm__want_is_dedicated(want) ? &gm__bucket_placement : attempt->heap->placement;
  gm_status status = gm__pages_check_awake(&attempt->heap->provider, want, err);
  if (!status) status = place->begin(attempt, err);
  if (status) return status;
  return place->pooled(attempt) ? GM_OK : heap_try_new(attempt, place, err);
}

/* Evictors are the host program's. */
static bool heap_evict(gm__eviction *eviction, gm__attempt *attempt, gm_status status) {
  GM__UNCANCELLED();
  return gm__eviction_round(eviction, attempt->heap, attempt->want, status);
}

static gm_status heap_attempt(gm__attempt *attempt, gm_error *err) {
  gm__eviction eviction = {.began = false};
  gm_status status;
  do {
    status = heap_try(attempt, err);
  } while (gm__is_shortage(status) && heap_evict(&eviction, attempt, status));
  if (eviction.began) gm__eviction_end(&eviction);
  return status;
}

gm_acquire gm__refusal_answer(gm_status status) {
  if (status == GM_ERR_OVER_LIMIT) return GM_ACQUIRE_OVER_LIMIT;
  const bool passing = status == GM_ERR_OUT_OF_HOST_MEMORY || status == GM_ERR_BUSY || status == GM_ERR_TIMEOUT;
  return gm__is_shortage(status) || passing ? GM_ACQUIRE_EXHAUSTED : GM_ACQUIRE_FAILED;
}

gm_acquire gm__heap_refuse(gm__heap *heap, const gm__want *want, gm__refusal *why) {
  const gm_acquire answer = gm__refusal_answer(why->status);
  why->failure.status = why->status;
  gm__provider_note_failure(&heap->provider, want, &why->failure);
  if (want->flags & GM_POOLED_ONLY && gm__is_shortage(why->status)) return GM_ACQUIRE_EXHAUSTED; /* not counted */
  if (answer == GM_ACQUIRE_OVER_LIMIT) gm__stats_count(&heap->provider.stats.over_limit, 1);
  if (answer == GM_ACQUIRE_EXHAUSTED) gm__stats_count(&heap->provider.stats.failures, 1);
  return answer;
}

/* ---- the grant in hand ---- */

static gm_status heap_zero(gm__heap *heap, const gm__want *want, const gm__grant *grant, gm_error *err) {
  gm_device *device = heap->device;
  gm_stream *stream = want->stream;
  gm_backend_point point;
  if (!stream) return gm__device_zero(device, &grant->memory, grant->offset, grant->bytes, err);
  const gm_status status = gm__submitting(device)->fill(device->handle, stream->handle, &grant->memory, grant->offset,
                                                        grant->bytes, "", 1, &point, err);
  if (status) return status;
  device->ops->point_release(device->handle, &point, GM_CLOSE_NORMAL);
  if (stream->kind == GM_STREAM_FIFO) return GM_OK;
  /* the caller's work follows the fill */
  return gm__submitting(device)->stream_barrier(device->handle, stream->handle, err);
}

/* The last steps with memory in hand before its caller gets it. It is mapped as a whole, for later blocks, too. */
static gm_status heap_prepare(gm__heap *heap, const gm__want *want, const gm__grant *grant, gm_error *err) {
  const bool clears = want->flags & GM_ZERO && !grant->zeroed, maps = want->flags & GM_MAPPED && !grant->mapped;
  gm_status status = GM_OK;
  void *host;
  if (!maps && !clears) return GM_OK;
  GM__UNCANCELLED();
  if (maps) status = gm__device_map_for_life(heap->device, &grant->memory, 0, grant->memory.bytes, &host, err);
  return !status && clears ? heap_zero(heap, want, grant, err) : status;
}

void gm__heap_hand_out(gm__heap *heap, const gm__want *want, const gm__grant *grant, bool fresh, gm_block *out) {
  if (!grant->allocation) {
    gm__arena_alloc_hand_out(grant, want, fresh, out);
    return;
  }
  gm__dedicated_hand_out(&heap->dedicated, want, grant, fresh, out);
  if (gm__observers_track(&heap->observers)) gm__track_enter(heap, out);
}

void gm__heap_undo(gm__heap *heap, const gm__want *want, const gm__grant *grant) {
  if (grant->allocation) {
    gm__dedicated_undo(&heap->dedicated, grant, want->stream);
  } else {
    gm__arena_alloc_undo(grant, want->stream);
  }
}

gm_acquire gm__heap_grant(gm__heap *heap, const gm__want *want, gm__grant *grant, gm_block *out, gm__refusal *why) {
  gm__attempt attempt = {.heap = heap, .want = want, .grant = grant, .answer = GM_ACQUIRE_OK, .block = out};
  *grant = (gm__grant){.allocation = NULL};
  if (want->flags & GM_ZERO && gm__order_is_captured(want->stream, &why->failure)) {
    why->status = GM_ERR_BUSY;
  } else {
    why->status = heap_attempt(&attempt, &why->failure);
  }
  if (why->status) return gm__refusal_answer(why->status);
  if (grant->done) return attempt.answer;
  if (heap->guarded && grant->memory.host) {
    gm__shadow_open((unsigned char *)grant->memory.host + grant->offset, grant->bytes);
  }
  const gm_status prepared = heap_prepare(heap, want, grant, &why->failure);
  if (prepared) {
    gm__heap_undo(heap, want, grant);
    why->failure.status = prepared;
    gm__provider_note_failure(&heap->provider, want, &why->failure);
    return GM_ACQUIRE_FAILED;
  }
  return attempt.answer;
}

gm_acquire gm__heap_alloc(gm__heap *heap, const gm__want *want, gm_block *out, gm__refusal *why) {
  gm__grant grant;
  const gm_acquire answer = gm__heap_grant(heap, want, &grant, out, why);
  if (answer <= GM_ACQUIRE_NEEDS_BARRIER && !grant.done) {
    gm__heap_hand_out(heap, want, &grant, answer == GM_ACQUIRE_FRESH, out);
  }
  if (answer == GM_ACQUIRE_FRESH) gm__keep_tend(heap);
  gm__keep_hold(heap, want->stream, false);
  return answer;
}
