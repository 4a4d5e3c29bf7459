/* Performance issues: a low hit rate asks for a warm-up, which the pattern of a recording names.
 *
 *   performance_issues BACKEND FOLDER */
#include "example.h"
#include "gm/advice.h"
#include "gm/cleanup.h"
#include "gm/record.h"

int main(int argc, char **argv) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BUCKET};
  const example e = example_open(argc > 1 ? argv[1] : "null", &params);
  char path[1024];
  snprintf(path, sizeof path, "%s/document_performance_issues.gmtrace", argc > 2 ? argv[2] : ".");
  DO(gm_pool_record_begin(e.pool, path, &err));
  gm_block blocks[8];
  for (int i = 0; i < 8; i++) blocks[i] = example_alloc(e.pool, UINT64_C(1) << (12 + i), NULL);
  for (int i = 0; i < 8; i++) gm_free(e.pool, &blocks[i], NULL);
  DO(gm_pool_record_end(e.pool, NULL, &err));

  const gm_stats stats = example_stats(e.pool);
  gm_trace_profile profile = {.struct_size = sizeof profile}; /* analyze_allocation_patterns() */
  gm_advice advice[4];
  CLAIM(gm_stats_hit_rate(&stats) < 0.5);
  DO(gm_trace_profile_read(NULL, path, &profile, &err));
  CLAIM(profile.allocs == 8 && profile.distinct_sizes == 8);
  CLAIM(gm_advise(&stats, &profile, advice, 4) >= 1 && advice[0].kind == GM_ADVICE_WARM_UP);
  printf("%s\n%s\n", advice[0].why, advice[0].setting);
  CLAIM(strncmp(advice[0].setting, "warmup = ", 9) == 0);
  gm_pool_coalesce(e.pool, true); /* enable_aggressive_coalescing() */
  CLAIM(example_stats(e.pool).pooled_bytes == 0);
  CLAIM(remove(path) == 0);
  return example_close(e);
}
