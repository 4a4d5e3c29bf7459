/* Memory access patterns, bad_kernel and good_kernel: how many pieces of 32 bytes one warp of each touches. */
#include "example.h"

enum { WARP = 32, PIECE = 32, GRID = 64, BLOCK = 256 };

/* Returns how many pieces the addresses of a warp lie in. They rise, so a new piece differs from the one before. */
static int pieces(uint64_t data, uint64_t first, uint64_t step) {
  int count = 0;
  for (uint64_t thread = 0, last = UINT64_MAX; thread < WARP; thread++) {
    const uint64_t piece = (data + (first + thread * step) * sizeof(float)) / PIECE;
    count += piece != last;
    last = piece;
  }
  return count;
}

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "null", NULL);
  gm_block data;
  const gm_request request = {.bytes = GRID * BLOCK * sizeof(float), .align = 256};
  CLAIM(gm_acquired(gm_alloc(e.pool, &request, &data)));
  CLAIM(data.address % 256 == 0);
  for (uint64_t block = 0; block < GRID; block++) {
    const int bad = pieces(data.address, block, GRID);       /* data[blockIdx.x + threadIdx.x * gridDim.x] */
    const int good = pieces(data.address, block * BLOCK, 1); /* data[blockIdx.x * blockDim.x + threadIdx.x] */
    CLAIM(bad == WARP && good == WARP * sizeof(float) / PIECE);
  }
  CLAIM(pieces(data.address, 1, 1) == 5); /* not at a multiple of a piece: one more */
  gm_free(e.pool, &data, NULL);
  puts("a strided warp touches 32 pieces of memory, a coalesced one 4");
  return example_close(e);
}
