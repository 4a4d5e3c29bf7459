/* TwoLevelCache, and allocations from a cache instead of cuMemAlloc. A stream gets its own blocks back at once. A
 * block that its streams are done with serves all. */
#include "example.h"

enum { TIMES = 1000, MIB = 1 << 20 };

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "cpu", NULL);
  gm_stream *one, *two;
  DO(gm_stream_create(e.device, &one, &err));
  DO(gm_stream_create(e.device, &two, &err));
  for (int i = 0; i < TIMES; i++) {
    const gm_block block = example_alloc(e.pool, MIB, one);
    gm_free(e.pool, &block, one);
  }
  gm_stats stats = example_stats(e.pool);
  CLAIM(stats.misses == 1 && stats.stream_hits == TIMES - 1);
  CLAIM(stats.local_cache_hits == TIMES - 1); /* the stream's own level */

  DO(gm_stream_sync(one, &err)); /* its work is done: the block is everybody's */
  const gm_block block = example_alloc(e.pool, MIB, two);
  stats = example_stats(e.pool);
  CLAIM(stats.misses == 1 && stats.global_hits == 1 && stats.global_cache_hits == 1);
  gm_free(e.pool, &block, two);
  printf("%d allocations, 1 of them at the driver; hit rate %.1f%%\n", TIMES + 1, 100 * gm_stats_hit_rate(&stats));
  DO(gm_stream_close(one, &err));
  DO(gm_stream_close(two, &err));
  return example_close(e);
}
