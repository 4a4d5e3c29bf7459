/* The pieces of the memory that the heap's blocks are cut from, piece by piece. */
#ifndef GM_CORE_HEAP_PIECES_H
#define GM_CORE_HEAP_PIECES_H

#include "core/heap/heap.h"

/* Memory that blocks are cut from: a segment, or a range of addresses. */
typedef struct gm__piece_place {
  uint64_t memory; /* gm_block.memory of the blocks there */
  uint64_t address, bytes;
  uint64_t align; /* an address of that alignment, or of a lower one, lies at such an offset, too */
  uint32_t group; /* a block of one place may lie as well in another one of its group */
  uint32_t edge;  /* what gm__target.left is for its first byte */
  bool paged;     /* its memory comes in pages, which go back one by one */
} gm__piece_place;

/* The place with the next higher `memory`. False: there is none. REQUIRES: no lock of a rank from ARENA on. */
bool gm__pieces_next_place(gm__heap *heap, uint64_t memory, gm__piece_place *out);

/* Makes holes of what streams have passed: of all that is free, or of a piece of each arena. REQUIRES: no lock of a
 * rank from ARENA on. */
void gm__pieces_settle(gm__heap *heap, bool all);

/* Gives gm__target.left for the byte behind a block. */
uint32_t gm__pieces_chunk(const gm_block *block);

typedef struct gm__piece {
  uint64_t address, bytes;
  uint32_t chunk; /* what gm__target.left is for the byte behind it */
  bool hole;      /* nobody has it, and no stream may still use it */
  bool live;      /* a block */
} gm__piece;

/* How far a walk through a place has come. */
typedef struct gm__piece_walk {
  uint64_t memory, address; /* of the next piece */
  uint32_t chunk;           /* the next piece; 0: the walk begins */
  bool ended;               /* there are no more */
} gm__piece_walk;

/* A walk through that place, or the rest of it from a live block on. */
gm__piece_walk gm__pieces_walk(uint64_t memory, const gm_block *from);

/* Reads the next pieces by address, `most` of them or all that are left. Other threads may use the heap between two
 * calls. False: the next piece is no more, and the walk is over. REQUIRES: no lock of a rank from ARENA on. */
bool gm__pieces_read(gm__heap *heap, gm__piece_walk *walk, gm__piece *out, size_t most, size_t *out_count);

#endif
