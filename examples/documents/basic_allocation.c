/* Basic allocation: 1 MiB by pointer, freed into the cache, and statistics. */
#include "example.h"

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "cpu", NULL); /* get_memory_manager(): integrations/manager */
  void *pointer = gm_malloc(e.pool, 1024 * 1024, NULL);
  CLAIM(pointer);
  DO(gm_free_ptr(e.pool, pointer, 1024 * 1024, NULL)); /* to the cache */
  CLAIM(gm_malloc(e.pool, 1024 * 1024, NULL) == pointer);
  DO(gm_free_ptr(e.pool, pointer, 0, NULL)); /* the size need not be named */
  const gm_stats stats = example_stats(e.pool);
  printf("cache hit rate: %.2f%%\n", 100 * gm_stats_hit_rate(&stats));
  CLAIM(gm_stats_hit_rate(&stats) == 0.5);
  return example_close(e);
}
