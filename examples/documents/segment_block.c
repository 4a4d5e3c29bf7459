/* Segment and Block: blocks are parts of one zeroed segment. Free neighbours are joined, and one is split again. */
#include "example.h"
#include "gm/cleanup.h"
#include "gm/config.h"

enum { MIB = 1 << 20 };

int main(int argc, char **argv) {
  example e = example_start(argc > 1 ? argv[1] : "cpu");
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true}; /* segments, not mapped pages */
  DO(gm_config_set(e.ctx, "segment_size", "16M", &err));
  DO(gm_config_set(e.ctx, "zero_segments", "true", &err)); /* off by default: docs/faq.md says why */
  DO(gm_pool_create(e.device, &params, &e.pool, &err));
  const gm_block a = example_alloc(e.pool, MIB, NULL), b = example_alloc(e.pool, MIB, NULL);
  CLAIM(a.memory == b.memory && a.address != b.address);
  CLAIM(example_stats(e.pool).driver_allocs == 1 && example_stats(e.pool).reserved_bytes == 16 * MIB);

  static unsigned char bytes[MIB], zeros[MIB];
  memset(bytes, 1, sizeof bytes);
  DO(gm_block_read(e.pool, &a, 0, bytes, MIB, NULL, NULL, &err));
  CLAIM(memcmp(bytes, zeros, MIB) == 0);

  gm_free(e.pool, &a, NULL);
  gm_free(e.pool, &b, NULL);
  gm_pool_coalesce(e.pool, false);                            /* also what waits in quick lists */
  const gm_block all = example_alloc(e.pool, 16 * MIB, NULL); /* one chunk again */
  CLAIM(all.memory == a.memory && example_stats(e.pool).driver_allocs == 1);
  gm_free(e.pool, &all, NULL);
  puts("two blocks of one segment became one, with one allocation at the driver");
  return example_close(e);
}
