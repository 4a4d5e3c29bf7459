/* get_buffer and return_buffer: the older way still works, and is marked deprecated. */
#include "example.h"
#include "gm/pool_set.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

int main(int argc, char **argv) {
  example e = example_start(argc > 1 ? argv[1] : "null");
  gm_pool_set *pools;
  gm_block buffer;
  DO(gm_pool_set_create(&e.device, 1, NULL, &pools, &err));
  DO(gm_pool_set_get(pools, 0, 1024, GM_DTYPE_F32, &buffer, &err)); /* device, size, precision */
  CLAIM(buffer.bytes >= 4096);
  DO(gm_pool_set_return(pools, 0, &buffer, 1024, GM_DTYPE_F32, &err));
  CLAIM(example_stats(gm_pool_set_pool(pools, 0)).active == 0);
  DO(gm_pool_set_destroy(pools, &err));
  puts("the older way works");
  return example_close(e);
}
