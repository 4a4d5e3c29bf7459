/* GenericMemoryPool: try_get, return_buffer, record_allocation and hit_rate, with power-of-two buckets. */
#include "example.h"

int main(int argc, char **argv) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BUCKET};
  const example e = example_open(argc > 1 ? argv[1] : "null", &params);
  const gm_request try_get = {.bytes = 700 * 1000, .flags = GM_POOLED_ONLY}, fresh = {.bytes = 700 * 1000};
  gm_block buffer;
  CLAIM(gm_alloc(e.pool, &try_get, &buffer) == GM_ACQUIRE_EXHAUSTED); /* None: nothing is pooled */
  CLAIM(gm_acquired(gm_alloc(e.pool, &fresh, &buffer)));
  CLAIM(buffer.bytes == 1 << 20 && buffer.bytes == gm_round_up_power_of_2(fresh.bytes));
  DO(gm_free(e.pool, &buffer, NULL));                      /* return_buffer */
  CLAIM(gm_acquired(gm_alloc(e.pool, &try_get, &buffer))); /* Some: reused from the pool */
  DO(gm_free(e.pool, &buffer, NULL));
  gm_stats stats = example_stats(e.pool);
  CLAIM(gm_stats_hit_rate(&stats) == 0.5 && stats.failures == 0);

  DO(gm_pool_record_allocation(e.pool, 1 << 20, &err)); /* memory that the program has beside the pool */
  CLAIM(example_stats(e.pool).in_use_bytes == 1 << 20);
  DO(gm_pool_record_allocation(e.pool, -(1 << 20), &err));
  printf("hit rate: %.1f%%\n", 100 * gm_stats_hit_rate(&stats));
  return example_close(e);
}
