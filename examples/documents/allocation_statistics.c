/* AllocationStatistics: counts, peak, hits, misses and efficiency_score. */
#include "example.h"

enum { MIB = 1 << 20 };

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "null", NULL);
  gm_stats stats = example_stats(e.pool);
  CLAIM(stats.allocs == 0 && gm_stats_hit_rate(&stats) == 1.0); /* efficiency_score of nothing */
  for (int i = 0; i < 4; i++) {
    const gm_block block = example_alloc(e.pool, MIB, NULL);
    gm_free(e.pool, &block, NULL);
  }
  stats = example_stats(e.pool);
  CLAIM(stats.allocs == 4 && stats.frees == 4);      /* total_allocations, total_freed */
  CLAIM(stats.peak_in_use_bytes == MIB);             /* peak_memory_usage */
  CLAIM(stats.stream_hits + stats.global_hits == 3); /* cache_hits */
  CLAIM(stats.misses == 1);                          /* cache_misses */
  CLAIM(gm_stats_hit_rate(&stats) == 0.75);          /* cache_hits / total_allocations */
  printf("hit rate %.2f%%\n", 100 * gm_stats_hit_rate(&stats));
  return example_close(e);
}
