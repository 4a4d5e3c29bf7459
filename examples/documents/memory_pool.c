/* GpuMemoryPool of small, medium and large buffers, by a warm pool of buckets: acquire and release ask the driver
 * nothing. Pools of three fixed sizes are not in gm yet: a block here is its own size, not that of its sort. */
#include "example.h"
#include "gm/warm_up.h"

enum { MB = 1 << 20 };

int main(int argc, char **argv) {
  static const gm_warm_up sorts[] = {{1 * MB, 8}, {16 * MB, 4}, {256 * MB, 2}};
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BUCKET};
  const example e = example_open(argc > 1 ? argv[1] : "null", &params);
  DO(gm_pool_warm_up(e.pool, sorts, 3, NULL, NULL, &err));
  const uint64_t calls = example_stats(e.pool).driver_allocs;
  CLAIM(calls == 14);
  for (int round = 0; round < 100; round++) {
    const gm_block small = example_alloc(e.pool, 1000 * 1000, NULL), medium = example_alloc(e.pool, 12 * MB, NULL);
    const gm_block large = example_alloc(e.pool, 200 * MB, NULL); /* acquire */
    gm_free(e.pool, &small, NULL);                                /* release: back to the pool */
    gm_free(e.pool, &medium, NULL);
    gm_free(e.pool, &large, NULL);
  }
  CLAIM(example_stats(e.pool).driver_allocs == calls);
  puts("300 buffers, none from the driver");
  return example_close(e);
}
