/* MemoryStats: in use, pooled, peak, hits, misses, CPU fallbacks and active buffers, as numbers and as text. */
#include "example.h"

int main(int argc, char **argv) {
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 4 << 20};
  const example e = example_open(argc > 1 ? argv[1] : "cpu", &params);
  const gm_buffer_params one = {.struct_size = sizeof one, .request = {.bytes = 3 << 20}, .fallback = GM_FALLBACK_HOST};
  gm_buffer *buffers[2];
  for (int i = 0; i < 2; i++) DO(gm_buffer_create(e.pool, &one, &buffers[i], &err));
  gm_stats stats = example_stats(e.pool);
  CLAIM(stats.in_use_bytes == 3 << 20 && stats.active == 1 && stats.fallbacks == 1); /* the second fell back */
  for (int i = 0; i < 2; i++) gm_buffer_release(buffers[i], NULL);
  stats = example_stats(e.pool);
  CLAIM(stats.reserved_bytes == stats.in_use_bytes + stats.pooled_bytes); /* total_allocated_bytes */
  CLAIM(stats.peak_in_use_bytes == 3 << 20 && stats.misses == 1);
  char text[2048]; /* test_memory_stats_display */
  CLAIM(gm_stats_format(&stats, text, sizeof text) < sizeof text);
  CLAIM(strstr(text, "fallbacks 1\n"));
  printf("%s", text);
  return example_close(e);
}
