/* Transfer coalescing: one copy for all chunks, which the device then finds at their offsets. The program packs them by
 * hand: gm joins no copies yet. */
#include "example.h"

enum { CHUNKS = 100, FLOATS = 100 };

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "cpu", NULL);
  static float data[CHUNKS * FLOATS], chunk[FLOATS];
  for (int i = 0; i < CHUNKS * FLOATS; i++) data[i] = (float)i;
  const gm_block all = example_alloc(e.pool, sizeof data, NULL), work = example_alloc(e.pool, sizeof chunk, NULL);
  DO(gm_block_write(e.pool, &all, 0, data, sizeof data, NULL, NULL, &err)); /* 1 transfer instead of 100 */
  for (size_t i = 0; i < CHUNKS; i++) { /* process_chunk_kernel(i * 100, 100): here the device copies the chunk */
    DO(gm_block_copy(e.pool, &work, 0, e.pool, &all, i * sizeof chunk, sizeof chunk, NULL, NULL, &err));
    DO(gm_block_read(e.pool, &work, 0, chunk, sizeof chunk, NULL, NULL, &err));
    CLAIM(chunk[0] == (float)(i * FLOATS) && chunk[FLOATS - 1] == (float)(i * FLOATS + FLOATS - 1));
  }
  gm_free(e.pool, &all, NULL);
  gm_free(e.pool, &work, NULL);
  puts("100 chunks were found in one copy");
  return example_close(e);
}
