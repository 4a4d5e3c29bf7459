/* allocate_batch: all sizes or none, in one place. */
#include "example.h"
#include "gm/batch.h"

enum { COUNT = 4 };

int main(int argc, char **argv) {
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 64 << 20};
  const example e = example_open(argc > 1 ? argv[1] : "null", &params);
  gm_request sizes[COUNT] = {{.bytes = 1000}, {.bytes = 1100}, {.bytes = 1 << 20}, {.bytes = 1 << 20}};
  const gm_batch_params batch = {
      .struct_size = sizeof batch, .flags = GM_BATCH_GROUPED, .requests = sizes, .count = COUNT};
  gm_part parts[COUNT];
  size_t failed;
  DO(gm_alloc_batch(e.pool, &batch, parts, NULL, &err));
  for (int i = 1; i < COUNT; i++) CLAIM(parts[i].block.memory == parts[0].block.memory && parts[i].offset % 256 == 0);
  CLAIM(example_stats(e.pool).allocs == 1);
  DO(gm_free_batch(e.pool, parts, COUNT, NULL, &err));

  sizes[2].bytes = 1 << 30; /* more than the pool may have */
  const uint64_t before = example_stats(e.pool).in_use_bytes;
  CLAIM(gm_alloc_batch(e.pool, &batch, parts, &failed, &err) == GM_ERR_OVER_LIMIT);
  CLAIM(example_stats(e.pool).in_use_bytes == before);
  puts("four tensors in one block; or none");
  return example_close(e);
}
