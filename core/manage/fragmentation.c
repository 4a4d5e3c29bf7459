#include "core/manage/fragmentation.h"

#include "core/arena/free_chunks.h"
#include "core/arena/quick_flush.h"
#include "core/arena/reclaim.h"
#include "core/arena/settle.h"
#include "core/base/cancel.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/manage/lifecycle.h"
#include "core/provider/walk.h"
#include "gm/fragmentation.h"

/* Holes are what the arenas say (core/arena/holes.h). Kept dedicated blocks and cached handles are idle. */

/* A kept block is whole, so it is no hole. */
static void fragmentation_add_dedicated(gm_pool *pool, gm__holes *holes) {
  uint32_t cursor = 0;
  gm__mutex_lock(&pool->heap.provider.lock);
  for (gm__allocation *allocation; (allocation = gm__provider_walk(&pool->heap.provider, &cursor));) {
    if (allocation->state != GM__ALLOCATION_POOLED) continue;
    holes->idle += allocation->bytes;
    holes->largest_free = gm__max(holes->largest_free, allocation->bytes);
  }
  gm__mutex_unlock(&pool->heap.provider.lock);
}

gm__holes gm__pool_holes(gm_pool *pool) {
  gm__holes holes = {.idle = gm__pages_idle_bytes(&pool->heap.provider)};
  fragmentation_add_dedicated(pool, &holes);
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&pool->heap.arenas, arena));) {
    gm__free_chunks_flush(arena);
    gm__settle_all(arena);
    gm__arena_publish(arena);
    gm__holes_add_arena(&holes, arena);
  }
  return holes;
}

double gm__holes_ratio(const gm__holes *holes) {
  return holes->bytes ? (double)holes->scattered / (double)holes->bytes : 0;
}

/* Statistics are read often, so they count no holes. */
gm_stats gm__pool_stats(gm_pool *pool) {
  gm_stats stats = gm__heap_stats(&pool->heap);
  const bool has_holes = !pool->heap.arenas.whole;
  if (has_holes && !atomic_load(&pool->looked)) {
    stats.hole_bytes = stats.scattered_bytes = stats.largest_hole_bytes = GM_UNKNOWN_BYTES;
  }
  return stats;
}

gm_status gm_pool_fragmentation(gm_pool *pool, gm_fragmentation *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_fragmentation";
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  const gm__holes holes = gm__pool_holes(pool);
  atomic_store(&pool->looked, true);
  const gm_fragmentation told = {.struct_size = sizeof told,
                                 .ratio = gm__holes_ratio(&holes),
                                 .holes = holes.count,
                                 .hole_bytes = holes.bytes,
                                 .largest_hole_bytes = holes.largest,
                                 .scattered_bytes = holes.scattered,
                                 .idle_bytes = holes.idle,
                                 .reserved_bytes = gm__heap_stats(&pool->heap).reserved_bytes};
  gm__sized_out(out, &told, sizeof told);
  return GM_OK;
}
