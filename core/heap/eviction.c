#include "core/heap/eviction.h"

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/heap/headroom.h"

/* Invariant: no more than three rounds. The first asks for what the figures say is missing. Memory in pieces, or a
 * driver that counts otherwise, may need more. So the second asks for the size of the request, and the third for all. A
 * pool at its own cap has no third, because evictors that name no pool would give up the memory of others for it. */

static bool eviction_may_help(const gm__heap *heap, const gm__want *want, gm_status status) {
  const bool of_device = status == GM_ERR_OVER_LIMIT || status == GM_ERR_OUT_OF_DEVICE_MEMORY;
  if (!of_device || want->managed || want->beside_device || want->patient || want->flags & GM_POOLED_ONLY) return false;
  const uint64_t total = heap->device->info.total_bytes;
  return want->exact <= gm__claim_cap(&heap->provider.claim) &&
         (heap->provider.has_upstream || !total || want->exact <= total);
}

/* False: no evictor may be asked. */
static bool eviction_begin(gm__eviction *eviction, gm__heap *heap, const gm__want *want, gm_status status) {
  gm_error unused;
  *eviction = (gm__eviction){.heap = heap};
  eviction->began = eviction_may_help(heap, want, status) && !gm__order_is_captured(want->stream, &unused) &&
                    gm__evict_run_begin(&eviction->run, heap->device);
  return eviction->began;
}

void gm__eviction_end(gm__eviction *eviction) { gm__evict_run_end(&eviction->run); }

/* Asks one after the other until `bytes` are free. */
static bool eviction_ask(gm__eviction *eviction, const gm__want *want, uint64_t bytes) {
  gm__provider *provider = &eviction->heap->provider;
  const uint64_t began = gm__now_ns();
  uint64_t all = 0;
  gm_evictor *each = NULL;
  while (all < bytes && (each = gm__evict_run_next(&eviction->run, each))) {
    gm__profiler_push(provider->profiler, "eviction", gm__evictor_name(each), bytes - all);
    const uint64_t freed = gm__evictor_ask(each, bytes - all);
    gm__profiler_pop(provider->profiler);
    all = gm__add_sat(all, freed);
    gm__stats_count(&provider->stats.evictions, freed > 0);
    gm__stats_count(&provider->stats.evicted_bytes, freed);
  }
  gm__evict_run_stop(&eviction->run, each);
  gm__ladder_step(want->ladder, GM_RUNG_EVICTORS, began, all);
  return all > 0;
}

/* True: the heap has more. Memory that an evictor freed into a guarded pool comes this way. */
static bool eviction_reap(gm__eviction *eviction) {
  gm__heap *heap = eviction->heap;
  if (eviction->reaped || !heap->reap) return false;
  eviction->reaped = true;
  return heap->reap(heap->guard);
}

bool gm__eviction_round(gm__eviction *eviction, gm__heap *heap, const gm__want *want, gm_status status) {
  if (!eviction->began && !eviction_begin(eviction, heap, want, status)) return false;
  const uint64_t least = eviction->least;
  if (eviction_reap(eviction)) return true;
  const gm__shortfall lacks = gm__headroom_shortfall(heap, want, status);
  const uint64_t bytes = gm__max(least, lacks.bytes ? lacks.bytes : want->exact);
  if (eviction->done || (least == UINT64_MAX && lacks.of_cap)) return false;
  gm__evict_run_for(&eviction->run, lacks.of_cap ? heap->arenas.owner : NULL);
  if (lacks.bytes > gm__evict_run_evictable(&eviction->run)) return false;
  eviction->reaped = false;
  eviction->done = least == UINT64_MAX;
  eviction->least = bytes < want->exact ? want->exact : UINT64_MAX;
  return eviction_ask(eviction, want, bytes);
}
