/* From an address to the span that begins there; and, once somebody asks for that, to the span that it lies in.
 * Externally synchronised (the arena's lock). */
#ifndef GM_CORE_POOL_LOOKUP_H
#define GM_CORE_POOL_LOOKUP_H

#include "core/algo/anchor.h"
#include "core/algo/span.h"

/* The same spans by their anchors (anchor.h). */
typedef struct gm__lookup_inside {
  uint32_t *slots; /* as many as of the other table; NULL: nobody has asked */
  uint32_t shift;  /* numbers are addresses without so many bits */
  gm__anchor_levels levels;
} gm__lookup_inside;

/* A slot names a span by its number and says how many steps from its own place the span is: what begins elsewhere is
 * passed by without a look at its record. */
enum {
  GM__LOOKUP_STEPS_AT = 24, /* above the number, which has no more bits */
  GM__LOOKUP_FAR = 255      /* so many steps, or more */
};
#define GM__LOOKUP_STEP (UINT32_C(1) << GM__LOOKUP_STEPS_AT)
_Static_assert((uint32_t)GM__SPANS_MAX <= GM__LOOKUP_STEP, "a number has room in a slot");

typedef struct gm__lookup {
  uint32_t *slots;     /* 0: empty. Never NULL: without memory all are empty */
  uint32_t bits;       /* there are 1 << bits slots; 0: none of its own */
  uint32_t down, mask; /* from the product to a place; the highest place */
  uint32_t room;       /* how many more may be inserted before the table must grow */
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
uint32_t gm__lookup_find_inside(const gm__lookup *lookup, const gm__spans *spans, uint64_t address);

static inline uint32_t gm__lookup_place(const gm__lookup *lookup, uint64_t address) {
  return (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> lookup->down);
}

/* What is not done in a step: the slot is taken, or spans are found by any address in them. */
void gm__lookup_insert_slow(gm__lookup *lookup, const gm__spans *spans, uint32_t number);

/* Room was reserved. */
static inline void gm__lookup_insert(gm__lookup *lookup, const gm__spans *spans, uint32_t number) {
  uint32_t *slot = &lookup->slots[gm__lookup_place(lookup, gm__span_at(spans, number)->address)];
  lookup->room--;
  if (__builtin_expect(*slot || lookup->inside.slots, 0)) {
    gm__lookup_insert_slow(lookup, spans, number);
    return;
  }
  *slot = number;
}

/* The span that begins there if it is in its own place; 0: none is. */
static inline uint32_t gm__lookup_find_home(const gm__lookup *lookup, const gm__spans *spans, uint64_t address) {
  const uint32_t slot = lookup->slots[gm__lookup_place(lookup, address)];
  if (__builtin_expect(slot >= GM__LOOKUP_STEP || gm__span_at(spans, slot)->address != address, 0)) return 0;
  return slot;
}

uint32_t gm__lookup_find_far(const gm__lookup *lookup, const gm__spans *spans, uint64_t address);

/* 0: no span in the table begins there. */
static inline uint32_t gm__lookup_find(const gm__lookup *lookup, const gm__spans *spans, uint64_t address) {
  const uint32_t number = gm__lookup_find_home(lookup, spans, address);
  return __builtin_expect(number != 0, 1) ? number : gm__lookup_find_far(lookup, spans, address);
}

void gm__lookup_remove_slow(gm__lookup *lookup, const gm__spans *spans, uint32_t number);

/* A span leaves; it must be there. */
static inline void gm__lookup_remove(gm__lookup *lookup, const gm__spans *spans, uint32_t number) {
  const uint32_t at = gm__lookup_place(lookup, gm__span_at(spans, number)->address);
  const bool alone = lookup->slots[at] == number && lookup->slots[(at + 1) & lookup->mask] < GM__LOOKUP_STEP;
  lookup->room++;
  if (__builtin_expect(!alone || lookup->inside.slots, 0)) {
    gm__lookup_remove_slow(lookup, spans, number);
    return;
  }
  lookup->slots[at] = 0;
}

#endif
