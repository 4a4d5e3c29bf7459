/* From an address to the span that begins there. Externally synchronised (the arena's lock). */
#ifndef GM_CORE_POOL_LOOKUP_H
#define GM_CORE_POOL_LOOKUP_H

#include "core/algo/span.h"

typedef struct gm__lookup {
  uint32_t *slots; /* numbers of spans; 0: empty */
  uint32_t bits;   /* there are 1 << bits slots */
  uint32_t room;   /* how many more may be inserted before the table must grow */
  uint32_t count;
} gm__lookup;

/* See that one more can be inserted; false without host memory. */
bool gm__lookup_reserve(gm__lookup *lookup, const gm__spans *spans);
void gm__lookup_clear(gm__lookup *lookup, const gm_services *services);

/* A span leaves; it must be there. */
void gm__lookup_remove(gm__lookup *lookup, const gm__spans *spans, uint32_t number);

static inline uint32_t gm__lookup_place(const gm__lookup *lookup, uint64_t address) {
  return (uint32_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - lookup->bits));
}

/* Room was reserved. */
static inline void gm__lookup_insert(gm__lookup *lookup, uint64_t address, uint32_t number) {
  const uint32_t mask = (UINT32_C(1) << lookup->bits) - 1;
  uint32_t at = gm__lookup_place(lookup, address);
  while (lookup->slots[at]) at = (at + 1) & mask;
  lookup->slots[at] = number;
  lookup->room--;
  lookup->count++;
}

/* 0: no span in the table begins there. */
static inline uint32_t gm__lookup_find(const gm__lookup *lookup, const gm__spans *spans, uint64_t address) {
  if (!lookup->count) return 0;
  const uint32_t mask = (UINT32_C(1) << lookup->bits) - 1;
  uint32_t at = gm__lookup_place(lookup, address), number;
  while ((number = lookup->slots[at]) && gm__span_at(spans, number)->address != address) at = (at + 1) & mask;
  return number;
}

#endif
