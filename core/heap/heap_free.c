#include "core/arena/arena_alloc.h"
#include "core/heap/live.h"

gm_status gm__heap_free(gm__heap *heap, const gm_block *block, gm_stream *stream) {
  uint64_t track_id = 0;
  if (block->number & GM__ARENA_BLOCK) return gm__arena_free(&heap->arenas, block, stream);
  const gm_status status = gm__dedicated_free(&heap->dedicated, block, stream, &track_id);
  if (track_id) gm_tracker_untrack(heap->observers.tracker, track_id);
  return status;
}

gm_status gm__heap_free_at(gm__heap *heap, uint64_t address, uint64_t bytes, gm_stream *stream) {
  uint64_t track_id = 0;
  gm__arena *arena = heap->strategy == GM_STRATEGY_BEST_FIT ? gm__live_arena_at(heap, address) : NULL;
  if (arena) return gm__arena_free_at(arena, address, bytes, stream);
  const gm_status status = gm__dedicated_free_at(&heap->dedicated, address, bytes, stream, &track_id);
  if (track_id) gm_tracker_untrack(heap->observers.tracker, track_id);
  return status;
}

void gm__heap_quarantine(gm__heap *heap, const gm_block *block) {
  if (block->number & GM__ARENA_BLOCK) {
    gm__arena_alloc_quarantine(&heap->arenas, block);
  } else {
    gm__dedicated_quarantine(&heap->dedicated, block);
  }
}
