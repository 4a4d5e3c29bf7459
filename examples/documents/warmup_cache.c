/* warmup_cache, and allocate_transformer_tensors: the common sizes of a step are there before the first step. */
#include "example.h"
#include "gm/warm_up.h"

enum { BATCH = 2, SEQUENCE = 128, HIDDEN = 256, BLOCKS = 25 };

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "null", NULL);
  const gm_warm_up sizes[] = {
      {BATCH * SEQUENCE * HIDDEN * sizeof(float), 10},    /* attention weights */
      {BATCH * SEQUENCE * HIDDEN * 4 * sizeof(float), 5}, /* feed-forward */
      {BATCH * SEQUENCE * SEQUENCE * sizeof(float), 10},  /* attention scores */
  };
  gm_warm_up_result had = {.struct_size = sizeof had};
  DO(gm_pool_warm_up(e.pool, sizes, 3, NULL, &had, &err));
  CLAIM(had.blocks == BLOCKS && had.failed_bytes == 0);

  const uint64_t calls = example_stats(e.pool).driver_allocs;
  gm_block blocks[BLOCKS];
  int count = 0;
  for (int i = 0; i < 3; i++) {
    for (uint64_t n = 0; n < sizes[i].count; n++) blocks[count++] = example_alloc(e.pool, sizes[i].bytes, NULL);
  }
  CLAIM(example_stats(e.pool).driver_allocs == calls);
  while (count > 0) gm_free(e.pool, &blocks[--count], NULL);
  puts("a warm pool served 25 tensors without a call of the driver");
  return example_close(e);
}
