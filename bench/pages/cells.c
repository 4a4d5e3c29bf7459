#include "cells.h"

#include <stdlib.h>
#include <string.h>

bool cells_open(cells *c, uint32_t count) {
  *c = (cells){.count = count};
  c->positions = malloc(count * sizeof *c->positions);
  c->cells = calloc(count, sizeof *c->cells);
  if (c->positions) memset(c->positions, 0xff, count * sizeof *c->positions);
  return c->positions && c->cells;
}

void cells_close(cells *c) {
  free(c->positions);
  free(c->cells);
}

static bool cell_has(const cell *one, uint32_t sequence) { return one->sequences[sequence / 64] >> sequence % 64 & 1; }

bool cells_take(cells *c, uint32_t sequence, uint32_t tokens) {
  uint32_t got = 0;
  for (uint32_t looked = 0; looked < c->count && got < tokens; looked++) {
    const uint32_t at = c->head;
    c->head = at + 1 == c->count ? 0 : at + 1;
    if (c->positions[at] >= 0) continue;
    c->positions[at] = (int32_t)got++;
    c->cells[at].sequences[sequence / 64] |= UINT64_C(1) << sequence % 64;
  }
  return got == tokens;
}

void cells_fork(cells *c, uint32_t from, uint32_t to) {
  for (uint32_t i = 0; i < c->count; i++) {
    if (c->positions[i] >= 0 && cell_has(&c->cells[i], from)) c->cells[i].sequences[to / 64] |= UINT64_C(1) << to % 64;
  }
}

void cells_remove(cells *c, uint32_t sequence) {
  for (uint32_t i = 0; i < c->count; i++) {
    if (c->positions[i] < 0 || !cell_has(&c->cells[i], sequence)) continue;
    uint64_t left = 0;
    c->cells[i].sequences[sequence / 64] &= ~(UINT64_C(1) << sequence % 64);
    for (uint32_t word = 0; word < CELLS_SEQUENCES / 64; word++) left |= c->cells[i].sequences[word];
    if (!left) c->positions[i] = -1;
  }
}
