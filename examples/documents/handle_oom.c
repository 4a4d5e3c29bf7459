/* handle_oom: clean up, join and collect, and ask again. gm does these three by itself before it refuses; the program
 * gives up what only it knows. */
#include "example.h"
#include "gm/cleanup.h"

enum { MIB = 1 << 20 };

static gm_status handle_oom(gm_pool *pool, gm_error *why) {
  gm_pool_coalesce(pool, true);                                               /* coalesce_free_blocks() */
  gm_pool_collect(pool);                                                      /* garbage_collect() */
  return gm_pool_cleanup(pool, GM_CLEANUP_THRESHOLD_CONFIG, true, NULL, why); /* cleanup_cache(force=True) */
}

int main(int argc, char **argv) {
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 64 * MIB};
  const example e = example_open(argc > 1 ? argv[1] : "null", &params);
  const gm_block prompts = example_alloc(e.pool, 40 * MIB, NULL); /* the program's own cache */
  const gm_request request = {.bytes = 40 * MIB, .flags = GM_INSERT_WAIT};
  gm_block block;
  CLAIM(gm_alloc(e.pool, &request, &block) == GM_ACQUIRE_OVER_LIMIT);
  gm_free(e.pool, &prompts, NULL);
  DO(handle_oom(e.pool, &err));
  CLAIM(example_stats(e.pool).reserved_bytes == 0);
  CLAIM(gm_acquired(gm_alloc(e.pool, &request, &block)));
  gm_free(e.pool, &block, NULL);
  puts("served after the clean-up");
  return example_close(e);
}
