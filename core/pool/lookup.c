#include "core/pool/lookup.h"

#include "core/base/alloc.h"

/* Invariants: open addressing with linear steps, in Robin Hood's order: whoever came further stays, so that the steps
 * of neighbouring slots grow by one at most (beyond GM__LOOKUP_FAR the span's place tells them), and there are no gaps
 * on the way from a span's own place to where it is: a removal moves later ones back. At most an eighth of the slots is
 * used: most spans are in their own place, and a slot that is not the one looked for is known by its steps. The table
 * for anchors has the same spans, or none, as numbers alone, without gaps. A span in the tables keeps its address and
 * its size. */

enum { LOOKUP_LEAST_BITS = 8, LOOKUP_MOST_BITS = 28, LOOKUP_SHARE = 8 };

static uint32_t lookup_number(uint32_t slot) { return slot & (GM__LOOKUP_STEP - 1); }

static uint32_t lookup_steps(uint32_t slot) { return slot >> GM__LOOKUP_STEPS_AT; }

static inline uint64_t lookup_anchor(const gm__lookup *lookup, const gm__spans *spans, uint32_t number) {
  const gm__span *span = gm__span_at(spans, number);
  const uint64_t first = span->address >> lookup->inside.shift;
  return gm__anchor(first, first + span->granules - 1);
}

static void lookup_insert_inside(gm__lookup *lookup, uint32_t number) {
  gm__lookup_inside *inside = &lookup->inside;
  const uint32_t mask = lookup->mask;
  const uint64_t anchor = lookup_anchor(lookup, inside->spans, number);
  uint32_t at = gm__lookup_place(lookup, anchor);
  while (inside->slots[at]) at = (at + 1) & mask;
  inside->slots[at] = number;
  gm__anchor_levels_add(&inside->levels, anchor);
}

void gm__lookup_init(gm__lookup *lookup) {
  static uint32_t none[2]; /* nothing is ever inserted here: there is no room */
  *lookup = (gm__lookup){.slots = none, .down = 63, .mask = 1};
}

static size_t lookup_bytes(const gm__lookup *lookup) { return ((size_t)1 << lookup->bits) * sizeof *lookup->slots; }

static void lookup_close_inside(gm__lookup *lookup, const gm_services *services) {
  if (lookup->inside.slots) gm__release(services, lookup->inside.slots, lookup_bytes(lookup));
  lookup->inside = (gm__lookup_inside){.slots = NULL};
}

static void lookup_fill(gm__lookup *lookup, const gm__spans *spans, const gm__lookup *from) {
  for (size_t i = 0; i <= from->mask; i++) {
    if (from->slots[i]) gm__lookup_insert(lookup, spans, lookup_number(from->slots[i]));
  }
}

bool gm__lookup_reserve(gm__lookup *lookup, const gm__spans *spans) {
  if (lookup->room) return true;
  const uint32_t bits = lookup->bits ? lookup->bits + 1 : LOOKUP_LEAST_BITS;
  if (bits > LOOKUP_MOST_BITS) return false;
  gm__lookup grown = {
      .bits = bits, .down = 64 - bits, .mask = (UINT32_C(1) << bits) - 1, .room = (UINT32_C(1) << bits) / LOOKUP_SHARE};
  grown.slots = gm__alloc_array(spans->services, (size_t)1 << bits, sizeof *grown.slots);
  if (!grown.slots) return false;
  lookup_fill(&grown, spans, lookup);
  if (lookup->inside.slots) gm__lookup_open_inside(&grown, spans, lookup->inside.shift); /* or when asked again */
  gm__lookup_clear(lookup, spans->services);
  *lookup = grown;
  return true;
}

void gm__lookup_clear(gm__lookup *lookup, const gm_services *services) {
  lookup_close_inside(lookup, services);
  if (lookup->bits) gm__release(services, lookup->slots, lookup_bytes(lookup));
  gm__lookup_init(lookup);
}

/* ---- by the address of the first byte ---- */

/* How many steps from its own place the slot's span would be in `at`. */
static uint32_t lookup_way(const gm__lookup *lookup, const gm__spans *spans, uint32_t slot, uint32_t at) {
  if (lookup_steps(slot) < GM__LOOKUP_FAR) return lookup_steps(slot);
  return (at - gm__lookup_place(lookup, gm__span_at(spans, lookup_number(slot))->address)) & lookup->mask;
}

/* What the slot says when its span is a step further on. */
static uint32_t lookup_further(uint32_t slot) {
  return lookup_steps(slot) < GM__LOOKUP_FAR ? slot + GM__LOOKUP_STEP : slot;
}

void gm__lookup_insert_slow(gm__lookup *lookup, const gm__spans *spans, uint32_t number) {
  uint32_t at = gm__lookup_place(lookup, gm__span_at(spans, number)->address), carried = number;
  for (; lookup->slots[at]; at = (at + 1) & lookup->mask) {
    const uint32_t there = lookup->slots[at];
    if (lookup_way(lookup, spans, there, at) < lookup_way(lookup, spans, carried, at)) {
      lookup->slots[at] = carried;
      carried = there;
    }
    carried = lookup_further(carried);
  }
  lookup->slots[at] = carried;
  if (lookup->inside.slots) lookup_insert_inside(lookup, number);
}

uint32_t gm__lookup_find_far(const gm__lookup *lookup, const gm__spans *spans, uint64_t address) {
  uint32_t at = gm__lookup_place(lookup, address), steps = 0;
  for (uint32_t slot; (slot = lookup->slots[at]) && lookup_steps(slot) >= steps; at = (at + 1) & lookup->mask) {
    const uint32_t number = lookup_number(slot);
    if (lookup_steps(slot) == steps && gm__span_at(spans, number)->address == address) return number;
    if (steps < GM__LOOKUP_FAR) steps++;
  }
  return 0;
}

/* What the slot says when its span, which is in `at` now, is a step nearer. */
static uint32_t lookup_nearer(const gm__lookup *lookup, const gm__spans *spans, uint32_t slot, uint32_t at) {
  return lookup_way(lookup, spans, slot, at) > GM__LOOKUP_FAR ? slot : slot - GM__LOOKUP_STEP;
}

static void lookup_remove(gm__lookup *lookup, const gm__spans *spans, uint32_t number) {
  const uint32_t mask = lookup->mask;
  uint32_t at = gm__lookup_place(lookup, gm__span_at(spans, number)->address), next;
  while (lookup_number(lookup->slots[at]) != number) at = (at + 1) & mask;
  while (lookup_steps(lookup->slots[next = (at + 1) & mask])) {
    lookup->slots[at] = lookup_nearer(lookup, spans, lookup->slots[next], next);
    at = next;
  }
  lookup->slots[at] = 0;
}

/* ---- by any address ---- */

static void lookup_remove_inside(gm__lookup *lookup, const gm__spans *spans, uint32_t number) {
  const uint32_t mask = lookup->mask;
  uint32_t *slots = lookup->inside.slots;
  const uint64_t anchor = lookup_anchor(lookup, spans, number);
  uint32_t gap = gm__lookup_place(lookup, anchor), at, next;
  while (slots[gap] != number) gap = (gap + 1) & mask;
  for (at = (gap + 1) & mask; (next = slots[at]); at = (at + 1) & mask) {
    const uint32_t place = gm__lookup_place(lookup, lookup_anchor(lookup, spans, next));
    if (((at - place) & mask) < ((at - gap) & mask)) continue; /* it may not move before its own place */
    slots[gap] = next;
    gap = at;
  }
  slots[gap] = 0;
  gm__anchor_levels_remove(&lookup->inside.levels, anchor);
}

void gm__lookup_remove_slow(gm__lookup *lookup, const gm__spans *spans, uint32_t number) {
  lookup_remove(lookup, spans, number);
  if (lookup->inside.slots) lookup_remove_inside(lookup, spans, number);
}

bool gm__lookup_open_inside(gm__lookup *lookup, const gm__spans *spans, uint32_t shift) {
  if (lookup->inside.slots) return true;
  if (!lookup->bits) return false;
  uint32_t *slots = gm__alloc_array(spans->services, (size_t)1 << lookup->bits, sizeof *slots);
  if (!slots) return false;
  lookup->inside = (gm__lookup_inside){.slots = slots, .spans = spans, .shift = shift};
  for (size_t i = 0; i < (size_t)1 << lookup->bits; i++) {
    if (lookup->slots[i]) lookup_insert_inside(lookup, lookup_number(lookup->slots[i]));
  }
  return true;
}

/* The span in the slots from the anchor's place on that contains the granule; 0: none. */
static uint32_t lookup_try(const gm__lookup *lookup, uint64_t anchor, uint64_t granule) {
  const gm__lookup_inside *inside = &lookup->inside;
  const uint32_t mask = lookup->mask;
  uint32_t at = gm__lookup_place(lookup, anchor), number;
  for (; (number = inside->slots[at]); at = (at + 1) & mask) {
    const gm__span *span = gm__span_at(inside->spans, number);
    if (granule - (span->address >> inside->shift) < span->granules) return number;
  }
  return 0;
}

uint32_t gm__lookup_find_inside(const gm__lookup *lookup, uint64_t address) {
  const uint64_t granule = address >> lookup->inside.shift;
  uint32_t number = 0;
  for (uint64_t left = lookup->inside.levels.used; left && !number; left &= left - 1) {
    number = lookup_try(lookup, gm__anchor_at(granule, __builtin_ctzll(left)), granule);
  }
  return number;
}
