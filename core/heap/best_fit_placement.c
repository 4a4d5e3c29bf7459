#include <inttypes.h>

#include "core/arena/arena_alloc.h"
#include "core/arena/reclaim.h"
#include "core/base/error.h"
#include "core/heap/headroom.h"
#include "core/heap/placement.h"

static gm_status best_fit_begin(gm__attempt *attempt, gm_error *err) {
  gm__heap *heap = attempt->heap;
  attempt->kind = gm__kind_of(&heap->provider.rules, attempt->want);
  if (attempt->want->exact / heap->provider.rules.granule > UINT32_MAX) {
    const gm_status status = gm__headroom_check(heap, attempt->want, err);
    if (status) return status;
    return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, "gm_alloc", "more than a segment of the pool can hold");
  }
  attempt->arena = gm__arena_for(&heap->arenas, attempt->want, &attempt->kind);
  return attempt->arena ? GM_OK : gm__arena_missing(&heap->arenas, err);
}

static bool best_fit_pooled(gm__attempt *attempt) {
  return gm__arena_alloc_pooled(attempt->arena, attempt->want, false, attempt->grant, &attempt->answer, attempt->block);
}

static bool best_fit_moved(gm__attempt *attempt) {
  return gm__reclaim_move(attempt->arena, attempt->want) && best_fit_pooled(attempt);
}

/* New memory goes to the request's arena. Where that kind is short and the request is content with another kind, an
 * arena beside it gets the memory. */
static gm_status best_fit_fresh(gm__attempt *attempt, gm_error *err) {
  gm__arena *arena = attempt->arena;
  if (gm__arena_is_full(arena)) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_alloc",
                    "a thread's part of the pool has no room for more than %" PRIu32 " blocks and free chunks",
                    arena->chunks.most);
  }
  gm_status status = gm__arena_alloc_fresh(arena, attempt->want, attempt->grant, &attempt->answer, err);
  if (!gm__is_shortage(status) || gm__kind_serves(&attempt->kind, &arena->kind)) return status;
  gm__arena *beside = gm__arena_beside(&attempt->heap->arenas, &attempt->kind);
  if (!beside || beside == arena) return status;
  return gm__arena_alloc_fresh(beside, attempt->want, attempt->grant, &attempt->answer, err);
}

/* Looks in all arenas whose memory serves the request. The request's own arena is among them: only some of its chunks
 * may be aligned as asked. */
static bool best_fit_anywhere(gm__attempt *attempt) {
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(&attempt->heap->arenas, i)); i++) {
    const bool serves = arena == attempt->arena || gm__kind_serves(&arena->kind, &attempt->kind);
    if (serves && gm__arena_alloc_pooled(arena, attempt->want, true, attempt->grant, &attempt->answer, attempt->block))
      return true;
  }
  return false;
}

const gm__placement gm__best_fit_placement = {best_fit_begin, best_fit_pooled, best_fit_moved, best_fit_fresh,
                                              best_fit_anywhere};
