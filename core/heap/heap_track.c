#include "core/heap/heap_track.h"

#include "core/arena/observe.h"

/* Invariant: a tracked dedicated block has its id in its cold record. The tracker is told without any lock of the pool.
 * So the thread that told it looks again, under the provider lock, whether the pool is still tracked. `track_turns`
 * changes under that lock. */

uint64_t gm__tracked_id(const gm__live *live) {
  if (!live->arena) return live->cold ? live->cold->track_id : 0;
  const gm__ledger_record *record = gm__ledger_at(&live->arena->ledger, live->chunk);
  return record ? record->id : 0;
}

/* The block's allocation, if it is live and without an id, and the pool is tracked. NULL otherwise. REQUIRES: provider
 * lock. */
static gm__allocation *track_find(gm__heap *heap, const gm_block *block) {
  gm__allocation *allocation = gm__allocation_find(&heap->provider.allocations, block, false);
  return allocation && gm__allocation_is_out(allocation) && !allocation->cold.track_id &&
                 gm__observers_track(&heap->observers)
             ? allocation
             : NULL;
}

static gm_track_entry track_describe(const gm__heap *heap, const gm__allocation *allocation) {
  return (gm_track_entry){.address = allocation->address,
                          .bytes = allocation->requested,
                          .pool = heap->id,
                          .stream = allocation->asked_on,
                          .tag = allocation->tag,
                          .location = gm__heap_location(heap, &allocation->memory)};
}

bool gm__track_enter(gm__heap *heap, const gm_block *block) {
  gm_track_entry entry;
  gm__mutex_lock(&heap->provider.lock);
  const uint32_t turn = heap->observers.track_turns;
  gm__allocation *allocation = track_find(heap, block);
  if (allocation) entry = track_describe(heap, allocation);
  gm__mutex_unlock(&heap->provider.lock);
  if (!allocation) return true;
  const uint64_t id = gm_tracker_track(heap->observers.tracker, &entry);
  gm__mutex_lock(&heap->provider.lock);
  allocation = heap->observers.track_turns == turn ? track_find(heap, block)
                                                   : NULL; /* otherwise the id may be forgotten already */
  if (allocation) allocation->cold.track_id = id;
  gm__mutex_unlock(&heap->provider.lock);
  if (!allocation) gm_tracker_untrack(heap->observers.tracker, id);
  return id != 0;
}

uint64_t gm__track_leave(const gm__live *live, const gm_stream *stream) {
  if (live->arena) {
    if (live->arena->observed) gm__observe_leave(live->arena, live->chunk, stream);
    return 0;
  }
  const uint64_t id = gm__tracked_id(live);
  gm__dedicated_observe_leave(&live->heap->dedicated, live->allocation, stream);
  live->cold->track_id = 0;
  return id;
}
