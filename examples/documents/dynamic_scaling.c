/* adaptive_memory_management: above 0.8 clean up and join, below 0.3 let the caches grow. A pool also does so itself,
 * by the keys scaling.low, scaling.high and scaling.factor. */
#include "example.h"
#include "gm/cleanup.h"
#include "gm/pressure.h"

enum { MIB = 1 << 20 };

static double adapt(gm_pool *pool) {
  gm_pressure pressure = {.struct_size = sizeof pressure};
  DO(gm_pool_pressure(pool, &pressure, &err));
  if (pressure.ratio > 0.8) {
    DO(gm_pool_cleanup(pool, 0.9, false, NULL, &err));                  /* cleanup_cache(threshold=0.9) */
    DO(gm_pool_configure(pool, "aggressive_coalescing", "true", &err)); /* enable_aggressive_coalescing() */
  } else if (pressure.ratio < 0.3) {
    DO(gm_pool_configure(pool, "cache.stream_local", "150", &err)); /* expand_cache_size(factor=1.5) of 100 */
  }
  return pressure.ratio;
}

/* How many of 150 blocks, freed and asked for again, come from the cache of the stream. */
static uint64_t cached(gm_pool *pool) {
  static gm_block blocks[150];
  for (int i = 0; i < 150; i++) blocks[i] = example_alloc(pool, 1024, NULL);
  const uint64_t before = example_stats(pool).local_cache_hits;
  for (int i = 0; i < 150; i++) gm_free(pool, &blocks[i], NULL);
  for (int i = 0; i < 150; i++) blocks[i] = example_alloc(pool, 1024, NULL);
  const uint64_t hits = example_stats(pool).local_cache_hits - before;
  for (int i = 0; i < 150; i++) gm_free(pool, &blocks[i], NULL);
  return hits;
}

int main(int argc, char **argv) {
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 100 * MIB, .no_vmm = true};
  const example e = example_open(argc > 1 ? argv[1] : "null", &params);
  DO(gm_pool_configure(e.pool, "scaling.factor", "1", &err)); /* here the program does it, and not gm */
  CLAIM(cached(e.pool) == 100);
  CLAIM(adapt(e.pool) == 0); /* low */
  CLAIM(cached(e.pool) == 150);
  gm_pool_coalesce(e.pool, true);

  const gm_block most = example_alloc(e.pool, 81 * MIB, NULL), idle = example_alloc(e.pool, 12 * MIB, NULL);
  gm_free(e.pool, &idle, NULL);
  CLAIM(example_stats(e.pool).reserved_bytes > 90 * MIB);
  CLAIM(adapt(e.pool) > 0.8); /* high */
  CLAIM(example_stats(e.pool).reserved_bytes <= 90 * MIB);
  gm_free(e.pool, &most, NULL);
  CLAIM(cached(e.pool) == 0); /* blocks join from now on, until the key is false */
  puts("the cache grew while there was room, and memory went back under pressure");
  return example_close(e);
}
