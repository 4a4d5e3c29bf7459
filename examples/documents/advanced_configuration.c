/* Advanced configuration, and configure_memory_manager at run time: keys for pools that come, and for one that runs. */
#include "example.h"
#include "gm/cleanup.h"
#include "gm/config.h"

static const char *const configuration[][2] = {
    {"segment_size", "512M"},                  /* 512MB segments */
    {"cache.stream_local", "100"},             /* 100 blocks per stream */
    {"cache.global", "500"},                   /* 500 blocks global cache */
    {"warmup", "4096:50,65536:20,1048576:10"}, /* warmup_sizes */
    {"warmup_enabled", "true"},                /* enable_warmup */
    {"allocation_strategy", "best_fit"},
    {"coalescing_threshold", "0.1"},
};

int main(int argc, char **argv) {
  example e = example_start(argc > 1 ? argv[1] : "null");
  for (size_t i = 0; i < sizeof configuration / sizeof *configuration; i++) {
    DO(gm_config_set(e.ctx, configuration[i][0], configuration[i][1], &err));
  }
  DO(gm_pool_create(e.device, NULL, &e.pool, &err));
  const gm_stats warm = example_stats(e.pool);
  CLAIM(warm.reserved_bytes == UINT64_C(512) << 20); /* one segment, from the warm-up */
  const gm_block block = example_alloc(e.pool, 65536, NULL);
  CLAIM(example_stats(e.pool).driver_allocs == warm.driver_allocs);
  gm_free(e.pool, &block, NULL);

  DO(gm_pool_configure(e.pool, "cache.max_bytes", "0", &err)); /* of the pool that runs */
  CLAIM(example_stats(e.pool).reserved_bytes == 0);
  CLAIM(gm_pool_configure(e.pool, "cache.global", "1", &err) ==
        GM_ERR_NOT_SUPPORTED); /* of buckets alone: it says so */
  printf("%s\n", err.message);
  return example_close(e);
}
