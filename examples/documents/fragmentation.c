/* High fragmentation: above 0.3 free memory is to be joined. Holes between blocks join only when blocks move, so
 * here they are buffers that gm may move. */
#include "gm/fragmentation.h"
#include "example.h"
#include "gm/cleanup.h"
#include "gm/relocation.h"

enum { BUFFERS = 96 };

static gm_fragmentation look(gm_pool *pool) {
  gm_fragmentation out = {.struct_size = sizeof out};
  DO(gm_pool_fragmentation(pool, &out, &err));
  return out;
}

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "cpu", NULL);
  const gm_buffer_params one = {.struct_size = sizeof one, .request = {.bytes = 256 << 10, .flags = GM_RELOCATABLE}};
  gm_buffer *buffers[BUFFERS];
  CLAIM(look(e.pool).ratio == 0);
  for (int i = 0; i < BUFFERS; i++) DO(gm_buffer_create(e.pool, &one, &buffers[i], &err));
  for (int i = 0; i < BUFFERS; i++) {
    if (i % 5) gm_buffer_release(buffers[i], NULL); /* four of five go */
  }
  const gm_fragmentation before = look(e.pool);
  CLAIM(before.ratio > 0.3);
  gm_pool_coalesce(e.pool, true); /* enable_aggressive_coalescing(): it joins neighbours, and blocks stay between */
  CLAIM(look(e.pool).ratio > 0.3);
  DO(gm_pool_compact(e.pool, NULL, NULL, &err));
  const gm_fragmentation after = look(e.pool);
  CLAIM(after.ratio == 0 && after.reserved_bytes < before.reserved_bytes);
  printf("fragmentation was %.2f, and is %.2f\n", before.ratio, after.ratio);
  for (int i = 0; i < BUFFERS; i += 5) gm_buffer_release(buffers[i], NULL);
  return example_close(e);
}
