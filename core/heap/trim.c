#include "core/arena/arena.h"
#include "core/arena/reclaim.h"
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/poll.h"
#include "core/heap/heap.h"
#include "core/provider/walk.h"

static const uint64_t trim_patience_ns = 1000000;

/* Asks the order's streams how far they are. Returns true if all are done. REQUIRES: the order's lock. */
static bool trim_ask(gm__order *order, bool flush) {
  gm__order_refresh(order, UINT64_MAX);
  if (flush) gm__order_flush(order);
  return gm__order_has_passed(order, UINT64_MAX);
}

static bool trim_ask_all(gm__heap *heap, bool flush) {
  gm__mutex_lock(&heap->provider.lock);
  bool done = trim_ask(&heap->dedicated.order, flush);
  gm__mutex_unlock(&heap->provider.lock);
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&heap->arenas, arena));) done &= trim_ask(&arena->order, flush);
  return done;
}

void gm__heap_await(gm__heap *heap) {
  bool flush = true;
  for (gm__poll poll = gm__poll_until(gm__deadline_after(trim_patience_ns));; flush = false) {
    if (trim_ask_all(heap, flush) || !gm__poll_again(&poll)) return;
  }
}

static uint64_t trim_pooled(void *heap) { return gm__heap_pooled(heap); }

void gm__heap_give_done(gm__heap *heap, uint64_t keep_bytes, bool submit) {
  GM__UNCANCELLED();
  gm__leaving leaving = {0};
  gm__mutex_lock(&heap->provider.lock);
  if (submit) {
    gm__order_refresh(&heap->dedicated.order, UINT64_MAX);
  } else {
    gm__order_look(&heap->dedicated.order, UINT64_MAX);
  }
  gm__mutex_unlock(&heap->provider.lock);
  gm__dedicated_trim(&heap->dedicated, trim_pooled, heap, keep_bytes, UINT64_MAX, &leaving);
  gm__reclaim_segments(&heap->arenas, &(gm__segment_choice){keep_bytes, UINT64_MAX, submit}, &leaving);
  gm__provider_return(&heap->provider, &leaving);
}

uint64_t gm__heap_trim(gm__heap *heap, uint64_t keep_bytes, uint64_t freed_by) {
  GM__UNCANCELLED();
  gm__leaving leaving = {0};
  if (heap->provider.captures) return 0; /* recordings name its memory */
  gm__profiler_push(heap->provider.profiler, "trim", heap->provider.name, keep_bytes);
  gm__heap_await(heap);
  gm__dedicated_trim(&heap->dedicated, trim_pooled, heap, keep_bytes, freed_by, &leaving);
  gm__reclaim_segments(&heap->arenas, &(gm__segment_choice){keep_bytes, freed_by, true}, &leaving);
  gm__provider_return(&heap->provider, &leaving);
  leaving.bytes += gm__reclaim_trim_pages(&heap->arenas, keep_bytes, freed_by);
  gm__profiler_pop(heap->provider.profiler);
  return leaving.bytes;
}

static void trim_settle_dedicated(gm__heap *heap) {
  uint32_t cursor = 0;
  gm__mutex_lock(&heap->provider.lock);
  for (gm__allocation *allocation; (allocation = gm__provider_walk(&heap->provider, &cursor));) {
    if (allocation->state == GM__ALLOCATION_POOLED) gm__dedicated_settle(&heap->dedicated, allocation);
  }
  gm__mutex_unlock(&heap->provider.lock);
}

uint64_t gm__heap_collect(gm__heap *heap) {
  gm__heap_trim(heap, UINT64_MAX, UINT64_MAX);
  trim_settle_dedicated(heap);
  return gm__heap_stats(heap).reclaimable_bytes;
}
