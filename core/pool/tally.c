#include "core/pool/growth.h"
#include "core/pool/hole.h"

/* Figures of arenas: each is written by whoever is inside, with plain stores, and added up when somebody asks. */

static uint64_t tally_read(const _Atomic uint64_t *counter) {
  return atomic_load_explicit(counter, memory_order_relaxed);
}

void gm__arenas_add(const gm_pool *pool, gm_stats *out) {
  const gm__arena *arena;
  out->reclaimable_bytes += gm__pages_spare_bytes(pool);
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    const gm__tally *tally = &arena->tally;
    out->frees += tally_read(&tally->frees); /* first: whatever was given back is seen to have been handed out */
    atomic_thread_fence(memory_order_acquire);
    out->in_use_bytes += tally_read(&tally->in_use);
    out->requested_bytes += tally_read(&tally->requested);
    out->peak_in_use_bytes += tally_read(&tally->peak_in_use);
    out->peak_requested_bytes += tally_read(&tally->peak_requested);
    out->stream_hits += tally_read(&tally->stream_hits);
    out->global_hits += tally_read(&tally->global_hits);
    out->misses += tally_read(&tally->misses);
    out->global_cache_hits += tally_read(&tally->hole_hits);
    out->reclaimable_bytes += tally_read(&tally->reclaimable);
  }
}

void gm__arenas_look(gm_pool *pool) {
  gm__arena *arena;
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    const void *owner = atomic_load_explicit(&arena->lock.owner, memory_order_relaxed);
    if (owner && owner != gm__thread_self()) continue;
    gm__arena_lock(arena);
    gm__holes_flush(arena);
    gm__growth_publish(arena);
    gm__arena_unlock(arena);
  }
}
