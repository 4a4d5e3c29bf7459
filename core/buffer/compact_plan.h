/* The plan of a compaction: which buffers go where. It is made on figures alone, before anything moves.
 *
 * First buffers slide to lower addresses within their place, until none has room below it. Then whole segments are
 * emptied, the emptiest first: all buffers of one find room in the others, the fullest first, or none of them moves.
 * Both repeat until nothing changes. So a second plan at once has no moves. */
#ifndef GM_CORE_BUFFER_COMPACT_PLAN_H
#define GM_CORE_BUFFER_COMPACT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/services.h"

/* A piece of a place that is no hole: a buffer, or anything else that stays. */
typedef struct gm__plan_piece {
  uint64_t address, bytes;
  uint64_t align;  /* its address is a multiple of that */
  uint64_t slack;  /* so many bytes an aligned start may cost */
  uint64_t to;     /* its address in the plan */
  uint64_t before; /* that before the last slide */
  uint32_t place, to_place;
  uint32_t chunk; /* the caller's */
  uint32_t rank;  /* its place's, while the plan is made */
  bool moves;     /* it may move */
} gm__plan_piece;

typedef struct gm__plan_place {
  uint64_t memory, address, bytes, align;
  uint32_t group;       /* pieces move between places of one group */
  uint32_t edge;        /* the caller's */
  uint32_t rank, first; /* first: of its pieces by their address in the plan */
  uint32_t count;       /* of those pieces */
  uint64_t used, largest_hole, largest_before;
  bool apart;       /* nothing comes into it, and it is not emptied */
  bool stays;       /* something in it cannot move */
  bool receives;    /* pieces of other places come */
  bool leaves;      /* all its pieces go */
  uint32_t leaving; /* so many pieces go to other places */
} gm__plan_place;

/* The room before each piece, and behind the last one of each place. */
typedef struct gm__plan_hole {
  uint64_t address, bytes;
  uint32_t place;
} gm__plan_hole;

/* Zeroed but for `services`, it is empty. Pieces come place by place, by address. After gm__plan_make they are in the
 * order of the moves: each one finds its room free once those before it have moved. */
typedef struct gm__plan {
  const gm_services *services;
  gm__plan_piece *pieces;
  gm__plan_place *places;
  size_t count, capacity, place_count, place_capacity;
  gm__plan_hole *holes; /* by rank, then by address */
  uint64_t *most;       /* a tree over the holes: the largest of each subtree */
  gm__plan_place **row; /* the places by rank */
  struct gm__plan_trial *trials;
  size_t width; /* of the tree: its leaves */
} gm__plan;

/* False without host memory. */
bool gm__plan_add_place(gm__plan *plan, const gm__plan_place *place);

/* Adds a piece to the place that was added last. One that stays and touches the piece before, which stays, too, becomes
 * part of that. */
bool gm__plan_add_piece(gm__plan *plan, const gm__plan_piece *piece);

/* Takes the last place back, with its pieces. */
void gm__plan_drop_place(gm__plan *plan);

/* Plans the moves. Segments are emptied until they have `goal` bytes. False without host memory. */
bool gm__plan_make(gm__plan *plan, uint64_t goal);

static inline bool gm__plan_is_move(const gm__plan_piece *piece) {
  return piece->to_place != piece->place || piece->to != piece->address;
}

void gm__plan_clear(gm__plan *plan);

#endif
