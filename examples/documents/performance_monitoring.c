/* performance_context, as far as it goes today: two snapshots around the work. The peak is that of the pool's life, and
 * not of the work between. */
#include "example.h"

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "null", NULL);
  const gm_stats before = example_stats(e.pool);
  gm_block tensors[100];
  for (int i = 0; i < 100; i++) tensors[i] = example_alloc(e.pool, 1000 * 1000 * sizeof(float), NULL);
  const gm_stats after = example_stats(e.pool);
  CLAIM(after.allocs - before.allocs == 100);
  CLAIM(after.peak_requested_bytes == UINT64_C(400000000)); /* right, because nothing was higher before */
  printf("total allocations: %" PRIu64 "\npeak memory: %.2f GB\n", after.allocs - before.allocs,
         (double)after.peak_in_use_bytes / (1 << 30));
  for (int i = 0; i < 100; i++) gm_free(e.pool, &tensors[i], NULL);
  return example_close(e);
}
