/* A KV cache of cells, one token each, as llama.cpp's unified cache has them. A cell knows its position and the
 * sequences that see it. A fork and a removal look at every cell. */
#ifndef GM_BENCH_PAGES_CELLS_H
#define GM_BENCH_PAGES_CELLS_H

#include <stdbool.h>
#include <stdint.h>

enum { CELLS_SEQUENCES = 256 };

typedef struct cell {
  uint64_t sequences[CELLS_SEQUENCES / 64];
} cell;

typedef struct cells {
  uint32_t count, head;
  int32_t *positions; /* -1: the cell is empty */
  cell *cells;
} cells;

bool cells_open(cells *c, uint32_t count);
void cells_close(cells *c);

/* Gives a sequence `tokens` cells, first fit from the last place. False: there are not so many. */
bool cells_take(cells *c, uint32_t sequence, uint32_t tokens);
void cells_fork(cells *c, uint32_t from, uint32_t to);
void cells_remove(cells *c, uint32_t sequence);

#endif
