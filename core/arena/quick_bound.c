#include "core/arena/quick_bound.h"

#include "core/base/saturate.h"

static uint64_t quick_bound_share(const gm__quick_bound *bound) {
  const uint32_t caches = atomic_load(&bound->caches);
  const uint64_t all = atomic_load(&bound->most_of_pool), share = caches ? all / caches : all;
  return gm__min(gm__min(atomic_load(&bound->most_of_stream), share), UINT32_MAX);
}

/* Every change of the members ends with this. The last of several threads has seen all changes. */
static void quick_bound_publish(gm__quick_bound *bound) {
  uint64_t share;
  do {
    share = quick_bound_share(bound);
    atomic_store(&bound->blocks, (uint32_t)share);
  } while (share != quick_bound_share(bound));
}

void gm__quick_bound_set(gm__quick_bound *bound, uint64_t most_of_stream, uint64_t most_of_pool) {
  atomic_store(&bound->most_of_stream, most_of_stream);
  atomic_store(&bound->most_of_pool, most_of_pool);
  quick_bound_publish(bound);
}

void gm__quick_bound_add_cache(gm__quick_bound *bound) {
  atomic_fetch_add(&bound->caches, 1);
  quick_bound_publish(bound);
}
