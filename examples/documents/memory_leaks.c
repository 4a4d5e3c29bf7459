/* Memory leaks: many more allocations than frees, and a list of who holds them. Marks tell a leak from weights. */
#include "example.h"
#include "gm/tracker.h"

int main(int argc, char **argv) {
  const gm_pool_params params = {.struct_size = sizeof params, .track = true};
  const example e = example_open(argc > 1 ? argv[1] : "null", &params);
  gm_tracker *tracker = gm_pool_tracker(e.pool);
  const gm_block weights = example_alloc(e.pool, 1 << 20, NULL);
  const uint64_t since = gm_tracker_mark(tracker); /* the model is loaded */
  static gm_block leaked[1200];
  for (int i = 0; i < 1200; i++) leaked[i] = example_alloc(e.pool, 1024, NULL);
  const uint64_t step = gm_tracker_mark(tracker);

  const gm_stats stats = example_stats(e.pool);
  CLAIM(stats.allocs > stats.frees + 1000);                              /* "Potential memory leak detected" */
  CLAIM(gm_tracker_find_between(tracker, since, step, NULL, 0) == 1200); /* without the weights */
  const size_t length = gm_tracker_report(tracker, NULL, 0);             /* dump_allocation_trace() */
  char *report = malloc(length + 1);
  CLAIM(report);
  gm_tracker_report(tracker, report, length + 1);
  CLAIM(strlen(report) == length && length > 0);
  printf("%.200s...\n", report);
  free(report);
  for (int i = 0; i < 1200; i++) gm_free(e.pool, &leaked[i], NULL);
  gm_free(e.pool, &weights, NULL);
  return example_close(e);
}
