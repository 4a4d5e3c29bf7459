/* The unused memory of an arena that would serve a request that was refused: a look only. */
#ifndef GM_CORE_ARENA_SURVEY_H
#define GM_CORE_ARENA_SURVEY_H

#include "core/arena/arena.h"
#include "core/order/late.h"

enum { GM__SURVEY_PARTS = 64 }; /* the most pieces that a request is thought to be asked in */

typedef struct gm__survey {
  const gm__want *want;
  gm__memory_kind kind;
  uint64_t
      part[GM__SURVEY_PARTS + 1]; /* by n: what the pool takes for the n-th part of the request; 0: not looked at */
  uint64_t found[GM__SURVEY_PARTS + 1]; /* by n: how many of these find room */
  uint64_t largest;                     /* the largest piece that the request may use */
  bool waits;                           /* some of the pieces need a wait */
  bool serves, serves_later;            /* a piece serves; it will once all streams have done their work */
  uint64_t idle, idle_later;            /* what a trim gives back, in the same two ways */
  gm__late late;                        /* the streams in the way */
} gm__survey;

/* A piece of unused memory that the request may use, of so many bytes from an aligned address on. */
void gm__survey_add_piece(gm__survey *survey, uint64_t bytes, uint64_t part_most);

/* How many such parts an arena can have of so many bytes of new memory. */
uint64_t gm__survey_new_parts(const gm__provider *provider, uint64_t part, uint64_t room);

/* Adds what the arena has. Its quick lists become free chunks. It walks over the free chunks (free_walk.h), and leaves
 * the lock now and then. REQUIRES: arena lock. */
void gm__survey_add_arena(gm__survey *survey, gm__arena *arena);

#endif
