/* The hybrid strategy of allocate_memory: small blocks come from quick lists by exact size, large ones by best fit. */
#include "example.h"

static gm_stats again_and_again(gm_pool *pool, uint64_t bytes) {
  const gm_stats before = example_stats(pool);
  for (int i = 0; i < 10; i++) {
    const gm_block block = example_alloc(pool, bytes, NULL);
    gm_free(pool, &block, NULL);
  }
  gm_stats after = example_stats(pool);
  after.local_cache_hits -= before.local_cache_hits;
  after.global_cache_hits -= before.global_cache_hits;
  return after;
}

int main(int argc, char **argv) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_AUTO}; /* the default */
  const example e = example_open(argc > 1 ? argv[1] : "null", &params);
  const gm_stats small = again_and_again(e.pool, 4096), large = again_and_again(e.pool, 64 << 20);
  CLAIM(small.local_cache_hits >= 9);
  CLAIM(large.local_cache_hits == 0 && large.global_cache_hits >= 9);
  puts("4 KiB came from a quick list, 64 MiB from free chunks");
  return example_close(e);
}
