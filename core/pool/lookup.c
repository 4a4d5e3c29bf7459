#include "core/pool/lookup.h"

#include "core/base/alloc.h"

/* Invariants: open addressing with linear steps; no gaps on the way from a span's own place to where it is, so a
 * removal moves later ones back. At most a quarter of the slots is used: most addresses are in their own place, and to
 * compare an address means to touch a span's record. */

enum { LOOKUP_LEAST_BITS = 8, LOOKUP_MOST_BITS = 28, LOOKUP_SHARE = 4 };

static void lookup_fill(gm__lookup *lookup, const gm__spans *spans, const gm__lookup *from) {
  for (size_t i = 0; from->slots && i < (size_t)1 << from->bits; i++) {
    const uint32_t number = from->slots[i];
    if (number) gm__lookup_insert(lookup, gm__span_at(spans, number)->address, number);
  }
}

bool gm__lookup_reserve(gm__lookup *lookup, const gm__spans *spans) {
  if (lookup->room) return true;
  const uint32_t bits = lookup->slots ? lookup->bits + 1 : LOOKUP_LEAST_BITS;
  if (bits > LOOKUP_MOST_BITS) return false;
  gm__lookup grown = {.bits = bits, .room = (UINT32_C(1) << bits) / LOOKUP_SHARE};
  grown.slots = gm__alloc_array(spans->services, (size_t)1 << bits, sizeof *grown.slots);
  if (!grown.slots) return false;
  lookup_fill(&grown, spans, lookup);
  gm__lookup_clear(lookup, spans->services);
  *lookup = grown;
  return true;
}

void gm__lookup_clear(gm__lookup *lookup, const gm_services *services) {
  if (lookup->slots) gm__release(services, lookup->slots, ((size_t)1 << lookup->bits) * sizeof *lookup->slots);
  *lookup = (gm__lookup){.slots = NULL};
}

void gm__lookup_remove(gm__lookup *lookup, const gm__spans *spans, uint32_t number) {
  const uint32_t mask = (UINT32_C(1) << lookup->bits) - 1;
  uint32_t *slots = lookup->slots, gap = gm__lookup_place(lookup, gm__span_at(spans, number)->address), at, next;
  while (slots[gap] != number) gap = (gap + 1) & mask;
  for (at = (gap + 1) & mask; (next = slots[at]); at = (at + 1) & mask) {
    const uint32_t place = gm__lookup_place(lookup, gm__span_at(spans, next)->address);
    if (((at - place) & mask) < ((at - gap) & mask)) continue; /* it may not move before its own place */
    slots[gap] = next;
    gap = at;
  }
  slots[gap] = 0;
  lookup->room++;
  lookup->count--;
}
