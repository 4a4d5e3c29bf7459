/* From an address to the span that begins there; and, once somebody asks for that, to the span that it lies in.
 * Externally synchronised (the arena's lock). */
#ifndef GM_CORE_POOL_LOOKUP_H
#define GM_CORE_POOL_LOOKUP_H

#include "core/algo/anchor.h"
#include "core/algo/span.h"

/* The same spans by their anchors (anchor.h). */
typedef struct gm__lookup_inside {
  uint32_t *slots; /* as many as of the other table; NULL: nobody has asked */
  const gm__spans *spans;
  uint32_t shift; /* numbers are addresses without so many bits */
  gm__anchor_levels levels;
} gm__lookup_inside;

typedef struct gm__lookup {
  uint32_t *slots;     /* numbers of spans; 0: empty. Never NULL: without memory all are empty */
  uint32_t bits;       /* there are 1 << bits slots; 0: none of its own */
  uint32_t down, mask; /* from the product to a place; the highest place */
  uint32_t room;       /* how many more may be inserted before the table must grow */
  uint32_t count;
  gm__lookup_inside inside;
} gm__lookup;

/* No slots of its own yet. */
void gm__lookup_init(gm__lookup *lookup);

/* See that one more can be inserted; false without host memory. */
bool gm__lookup_reserve(gm__lookup *lookup, const gm__spans *spans);
void gm__lookup_clear(gm__lookup *lookup, const gm_services *services);

/* From now on spans are found by any address in them, too: `shift` is that of their granules. Takes time for each span
 * that is there when it is called first, 4 bytes a slot, and a little at each insertion and removal afterwards. False
 * without host memory. */
bool gm__lookup_open_inside(gm__lookup *lookup, const gm__spans *spans, uint32_t shift);

/* The span that contains the address; 0: none in the table does. Opened before. */
uint32_t gm__lookup_find_inside(const gm__lookup *lookup, uint64_t address);

void gm__lookup_insert_inside(gm__lookup *lookup, uint32_t number);

static inline uint32_t gm__lookup_place(const gm__lookup *lookup, uint64_t address) {
  return (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> lookup->down);
}

/* Room was reserved. */
static inline void gm__lookup_insert(gm__lookup *lookup, uint64_t address, uint32_t number) {
  uint32_t at = gm__lookup_place(lookup, address);
  while (lookup->slots[at]) at = (at + 1) & lookup->mask;
  lookup->slots[at] = number;
  lookup->room--;
  lookup->count++;
  if (__builtin_expect(lookup->inside.slots != NULL, 0)) gm__lookup_insert_inside(lookup, number);
}

/* 0: no span in the table begins there. */
static inline uint32_t gm__lookup_find(const gm__lookup *lookup, const gm__spans *spans, uint64_t address) {
  uint32_t at = gm__lookup_place(lookup, address), number = lookup->slots[at];
  while (number && __builtin_expect(gm__span_at(spans, number)->address != address, 0)) {
    at = (at + 1) & lookup->mask;
    number = lookup->slots[at];
  }
  return number;
}

/* The same as the next, whatever is beside it. */
void gm__lookup_remove_slow(gm__lookup *lookup, const gm__spans *spans, uint32_t number);

/* A span leaves; it must be there. */
static inline void gm__lookup_remove(gm__lookup *lookup, const gm__spans *spans, uint32_t number) {
  const uint32_t at = gm__lookup_place(lookup, gm__span_at(spans, number)->address);
  const bool alone = lookup->slots[at] == number && !lookup->slots[(at + 1) & lookup->mask];
  if (__builtin_expect(!alone || lookup->inside.slots, 0)) {
    gm__lookup_remove_slow(lookup, spans, number);
    return;
  }
  lookup->slots[at] = 0;
  lookup->room++;
  lookup->count--;
}

#endif
