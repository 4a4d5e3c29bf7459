/* How many blocks the quick lists of a pool keep. One bound is for each stream, another for all streams together, who
 * share it. Lock-free; every function is thread-safe. */
#ifndef GM_CORE_ARENA_QUICK_BOUND_H
#define GM_CORE_ARENA_QUICK_BOUND_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct gm__quick_bound {
  _Atomic uint32_t blocks; /* the most that a stream cache keeps; it follows from the members below */
  _Atomic uint32_t caches; /* stream caches of all arenas */
  _Atomic uint64_t most_of_stream, most_of_pool;
} gm__quick_bound;

/* The most blocks that a stream cache keeps in its quick lists. */
static inline uint32_t gm__quick_blocks(const gm__quick_bound *bound) {
  return atomic_load_explicit(&bound->blocks, memory_order_relaxed);
}

void gm__quick_bound_set(gm__quick_bound *bound, uint64_t most_of_stream, uint64_t most_of_pool);

/* One more stream cache shares the bound of the pool. */
void gm__quick_bound_add_cache(gm__quick_bound *bound);

#endif
