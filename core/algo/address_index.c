#include "core/algo/address_index.h"

#include "core/base/alloc.h"

/* Invariants: open addressing with linear steps, in Robin Hood's order. A chunk that came further keeps its slot, so
 * the steps of neighbouring slots grow by one at most. Beyond GM__LOOKUP_FAR the chunk's place tells them. No slot
 * between a chunk's own place and its slot is empty: a removal moves later chunks back. At most an eighth of the slots
 * is used. So most chunks are in their own place, and the steps tell most other slots apart. The table by anchors has
 * the same chunks, or none. A chunk in the tables keeps its address and its size. */

enum { LOOKUP_LEAST_BITS = 8, LOOKUP_MOST_BITS = 28, LOOKUP_SHARE = 8 };

static uint32_t lookup_number(uint32_t slot) { return slot & (GM__LOOKUP_STEP - 1); }

static uint32_t lookup_steps(uint32_t slot) { return slot >> GM__LOOKUP_STEPS_AT; }

/* ---- keys ---- */

/* One of the two tables. */
typedef struct lookup_side {
  const gm__lookup *lookup;
  const gm__chunks *chunks;
  uint32_t *slots;
} lookup_side;

static lookup_side lookup_begins(const gm__lookup *lookup, const gm__chunks *chunks) {
  return (lookup_side){.lookup = lookup, .chunks = chunks, .slots = lookup->slots};
}

static lookup_side lookup_anchors(const gm__lookup *lookup, const gm__chunks *chunks) {
  return (lookup_side){.lookup = lookup, .chunks = chunks, .slots = lookup->inside.slots};
}

static uint64_t lookup_anchor(const gm__lookup *lookup, const gm__chunk *chunk) {
  const uint64_t first = chunk->address >> lookup->inside.shift;
  return gm__anchor(first, first + chunk->granules - 1);
}

/* The chunk's own place. */
static uint32_t lookup_home(const lookup_side *side, uint32_t number) {
  const gm__chunk *chunk = gm__chunk_at(side->chunks, number);
  const bool inside = side->slots == side->lookup->inside.slots;
  return gm__lookup_place(side->lookup, inside ? lookup_anchor(side->lookup, chunk) : chunk->address);
}

/* ---- slots ---- */

static uint32_t lookup_next(const lookup_side *side, uint32_t at) { return (at + 1) & side->lookup->mask; }

/* How many steps from its own place the slot's chunk would be in `at`. */
static uint32_t lookup_way(const lookup_side *side, uint32_t slot, uint32_t at) {
  if (lookup_steps(slot) < GM__LOOKUP_FAR) return lookup_steps(slot);
  return (at - lookup_home(side, lookup_number(slot))) & side->lookup->mask;
}

/* The content of the slot once its chunk is a step further on. */
static uint32_t lookup_further(uint32_t slot) {
  return lookup_steps(slot) < GM__LOOKUP_FAR ? slot + GM__LOOKUP_STEP : slot;
}

/* The content of the slot once its chunk, which is in `at` now, moves a step nearer. */
static uint32_t lookup_nearer(const lookup_side *side, uint32_t slot, uint32_t at) {
  return lookup_way(side, slot, at) > GM__LOOKUP_FAR ? slot : slot - GM__LOOKUP_STEP;
}

static void lookup_put(const lookup_side *side, uint32_t number) {
  uint32_t at = lookup_home(side, number), carried = number;
  for (; side->slots[at]; at = lookup_next(side, at)) {
    const uint32_t there = side->slots[at];
    if (lookup_way(side, there, at) < lookup_way(side, carried, at)) {
      side->slots[at] = carried;
      carried = there;
    }
    carried = lookup_further(carried);
  }
  side->slots[at] = carried;
}

static void lookup_take(const lookup_side *side, uint32_t number) {
  uint32_t at = lookup_home(side, number), next;
  while (lookup_number(side->slots[at]) != number) at = lookup_next(side, at);
  while (lookup_steps(side->slots[next = lookup_next(side, at)])) {
    side->slots[at] = lookup_nearer(side, side->slots[next], next);
    at = next;
  }
  side->slots[at] = 0;
}

/* True when the chunk is the one looked for at that address. */
typedef bool (*lookup_is)(const gm__lookup *lookup, const gm__chunk *chunk, uint64_t address);

/* The chunk looked for, among those whose own place is `at`; 0: there is none. */
static uint32_t lookup_find_at(const lookup_side *side, uint32_t at, uint64_t address, lookup_is is) {
  uint32_t steps = 0;
  for (uint32_t slot; (slot = side->slots[at]) && lookup_steps(slot) >= steps; at = lookup_next(side, at)) {
    const uint32_t number = lookup_number(slot);
    if (lookup_steps(slot) == steps && is(side->lookup, gm__chunk_at(side->chunks, number), address)) return number;
    if (steps < GM__LOOKUP_FAR) steps++;
  }
  return 0;
}

/* ---- tables ---- */

void gm__lookup_init(gm__lookup *lookup) {
  static uint32_t none[2]; /* nothing is ever inserted here: it has no room */
  *lookup = (gm__lookup){.slots = none, .down = 63, .mask = 1};
}

static size_t lookup_bytes(const gm__lookup *lookup) { return ((size_t)1 << lookup->bits) * sizeof *lookup->slots; }

static void lookup_close_inside(gm__lookup *lookup, const gm_services *services) {
  if (lookup->inside.slots) gm__release(services, lookup->inside.slots, lookup_bytes(lookup));
  lookup->inside = (gm__lookup_inside){.slots = NULL};
}

static void lookup_fill(gm__lookup *lookup, const gm__chunks *chunks, const gm__lookup *from) {
  for (size_t i = 0; i <= from->mask; i++) {
    if (from->slots[i]) gm__lookup_insert(lookup, chunks, lookup_number(from->slots[i]));
  }
}

bool gm__lookup_reserve(gm__lookup *lookup, const gm__chunks *chunks) {
  if (lookup->room) return true;
  const uint32_t bits = lookup->bits ? lookup->bits + 1 : LOOKUP_LEAST_BITS;
  if (bits > LOOKUP_MOST_BITS) return false;
  gm__lookup grown = {
      .bits = bits, .down = 64 - bits, .mask = (UINT32_C(1) << bits) - 1, .room = (UINT32_C(1) << bits) / LOOKUP_SHARE};
  grown.slots = gm__alloc_array(chunks->services, (size_t)1 << bits, sizeof *grown.slots);
  if (!grown.slots) return false;
  lookup_fill(&grown, chunks, lookup);
  if (lookup->inside.slots)
    gm__lookup_open_inside(&grown, chunks, lookup->inside.shift); /* or when somebody asks again */
  gm__lookup_clear(lookup, chunks->services);
  *lookup = grown;
  return true;
}

void gm__lookup_clear(gm__lookup *lookup, const gm_services *services) {
  lookup_close_inside(lookup, services);
  if (lookup->bits) gm__release(services, lookup->slots, lookup_bytes(lookup));
  gm__lookup_init(lookup);
}

/* ---- by the address of the first byte ---- */

static void lookup_put_inside(gm__lookup *lookup, const gm__chunks *chunks, uint32_t number) {
  const lookup_side anchors = lookup_anchors(lookup, chunks);
  lookup_put(&anchors, number);
  gm__anchor_levels_add(&lookup->inside.levels, lookup_anchor(lookup, gm__chunk_at(chunks, number)));
}

void gm__lookup_insert_slow(gm__lookup *lookup, const gm__chunks *chunks, uint32_t number) {
  const lookup_side begins = lookup_begins(lookup, chunks);
  lookup_put(&begins, number);
  if (lookup->inside.slots) lookup_put_inside(lookup, chunks, number);
}

void gm__lookup_remove_slow(gm__lookup *lookup, const gm__chunks *chunks, uint32_t number) {
  const lookup_side begins = lookup_begins(lookup, chunks), anchors = lookup_anchors(lookup, chunks);
  lookup_take(&begins, number);
  if (!lookup->inside.slots) return;
  lookup_take(&anchors, number);
  gm__anchor_levels_remove(&lookup->inside.levels, lookup_anchor(lookup, gm__chunk_at(chunks, number)));
}

static bool lookup_is_begin(const gm__lookup *lookup, const gm__chunk *chunk, uint64_t address) {
  (void)lookup;
  return chunk->address == address;
}

uint32_t gm__lookup_find_far(const gm__lookup *lookup, const gm__chunks *chunks, uint64_t address) {
  const lookup_side begins = lookup_begins(lookup, chunks);
  return lookup_find_at(&begins, gm__lookup_place(lookup, address), address, lookup_is_begin);
}

/* ---- by any address ---- */

bool gm__lookup_open_inside(gm__lookup *lookup, const gm__chunks *chunks, uint32_t shift) {
  if (lookup->inside.slots) return true;
  if (!lookup->bits) return false;
  uint32_t *slots = gm__alloc_array(chunks->services, (size_t)1 << lookup->bits, sizeof *slots);
  if (!slots) return false;
  lookup->inside = (gm__lookup_inside){.slots = slots, .shift = shift};
  for (size_t i = 0; i <= lookup->mask; i++) {
    if (lookup->slots[i]) lookup_put_inside(lookup, chunks, lookup_number(lookup->slots[i]));
  }
  return true;
}

static bool lookup_contains(const gm__lookup *lookup, const gm__chunk *chunk, uint64_t address) {
  const uint32_t shift = lookup->inside.shift;
  return (address >> shift) - (chunk->address >> shift) < chunk->granules;
}

uint32_t gm__lookup_find_inside(const gm__lookup *lookup, const gm__chunks *chunks, uint64_t address) {
  const lookup_side anchors = lookup_anchors(lookup, chunks);
  uint32_t number = 0;
  for (uint64_t left = lookup->inside.levels.used; left && !number; left &= left - 1) {
    const uint64_t anchor = gm__anchor_at(address >> lookup->inside.shift, __builtin_ctzll(left));
    number = lookup_find_at(&anchors, gm__lookup_place(lookup, anchor), address, lookup_contains);
  }
  return number;
}
