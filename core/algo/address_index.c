#include "core/algo/address_index.h"

#include "core/base/alloc.h"

/* Invariants: open addressing with linear steps, in Robin Hood's order. A chunk that came further keeps its slot, so
 * the steps of neighbouring slots grow by one at most. Beyond GM__LOOKUP_FAR the chunk's place tells them. No slot
 * between a chunk's own place and its slot is empty: a removal moves later chunks back. At most an eighth of the slots
 * is used. So most chunks are in their own place, and the steps tell most other slots apart. The table by anchors has
 * the same chunks, or none. A chunk in the tables keeps its address and its size.
 *
 * An index grows into tables twice as large. A chunk is in the new ones or in the old ones, in both of a pair. An
 * eighth of the old slots may be inserted before the new ones are full. In that time all old slots are looked through,
 * as GM__LOOKUP_SCAN of them go with GM__LOOKUP_GRANT insertions. */

enum { LOOKUP_LEAST_BITS = 8, LOOKUP_MOST_BITS = 28, LOOKUP_SHARE = 8, LOOKUP_SOON = 128, LOOKUP_PIECE = 1 << 16 };
_Static_assert((int)GM__LOOKUP_SCAN >= (int)GM__LOOKUP_GRANT * LOOKUP_SHARE, "the old slots are empty in time");

static uint32_t lookup_number(uint32_t slot) { return slot & (GM__LOOKUP_STEP - 1); }

static uint32_t lookup_steps(uint32_t slot) { return slot >> GM__LOOKUP_STEPS_AT; }

/* ---- keys ---- */

/* One table. */
typedef struct lookup_side {
  const gm__lookup *lookup;
  const gm__chunks *chunks;
  uint32_t *slots, bits;
  bool inside; /* it is by anchors */
} lookup_side;

static lookup_side lookup_begins(const gm__lookup *lookup, const gm__chunks *chunks) {
  return (lookup_side){lookup, chunks, lookup->slots, lookup->bits ? lookup->bits : 1, false};
}

static lookup_side lookup_anchors(const gm__lookup *lookup, const gm__chunks *chunks) {
  return (lookup_side){lookup, chunks, lookup->inside.slots, lookup->bits, true};
}

static lookup_side lookup_old_begins(const gm__lookup *lookup, const gm__chunks *chunks) {
  return (lookup_side){lookup, chunks, lookup->old.slots, lookup->old.bits, false};
}

static lookup_side lookup_old_anchors(const gm__lookup *lookup, const gm__chunks *chunks) {
  return (lookup_side){lookup, chunks, lookup->old.inside_slots, lookup->old.bits, true};
}

static uint32_t lookup_mask(const lookup_side *side) { return (UINT32_C(1) << side->bits) - 1; }

static uint64_t lookup_anchor(const gm__lookup *lookup, const gm__chunk *chunk) {
  const uint64_t first = chunk->address >> lookup->inside.shift;
  return gm__anchor(first, first + chunk->granules - 1);
}

static uint32_t lookup_place(const lookup_side *side, uint64_t key) { return gm__lookup_hash(key, 64 - side->bits); }

/* The chunk's own place. */
static uint32_t lookup_home(const lookup_side *side, uint32_t number) {
  const gm__chunk *chunk = gm__chunk_at(side->chunks, number);
  return lookup_place(side, side->inside ? lookup_anchor(side->lookup, chunk) : chunk->address);
}

/* ---- slots ---- */

static uint32_t lookup_next(const lookup_side *side, uint32_t at) { return (at + 1) & lookup_mask(side); }

/* How many steps from its own place the slot's chunk would be in `at`. */
static uint32_t lookup_way(const lookup_side *side, uint32_t slot, uint32_t at) {
  if (lookup_steps(slot) < GM__LOOKUP_FAR) return lookup_steps(slot);
  return (at - lookup_home(side, lookup_number(slot))) & lookup_mask(side);
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

/* False: the chunk is not in that table. */
static bool lookup_take(const lookup_side *side, uint32_t number) {
  uint32_t at = lookup_home(side, number), next;
  while (side->slots[at] && lookup_number(side->slots[at]) != number) at = lookup_next(side, at);
  if (!side->slots[at]) return false;
  while (lookup_steps(side->slots[next = lookup_next(side, at)])) {
    side->slots[at] = lookup_nearer(side, side->slots[next], next);
    at = next;
  }
  side->slots[at] = 0;
  return true;
}

/* True when the chunk is the one looked for at that address. */
typedef bool (*lookup_is)(const gm__lookup *lookup, const gm__chunk *chunk, uint64_t address);

/* The chunk looked for, among those with that key; 0: there is none. */
static uint32_t lookup_find_key(const lookup_side *side, uint64_t key, uint64_t address, lookup_is is) {
  uint32_t at = lookup_place(side, key), steps = 0;
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

static void lookup_release(const gm_services *services, uint32_t *slots, uint32_t bits) {
  gm__release(services, slots, ((size_t)1 << bits) * sizeof *slots);
}

static uint32_t *lookup_new(const gm_services *services, uint32_t bits) {
  return gm__alloc_array(services, (size_t)1 << bits, sizeof(uint32_t));
}

static void lookup_close_old(gm__lookup *lookup, const gm_services *services) {
  const gm__lookup_old old = lookup->old;
  lookup->old = (gm__lookup_old){.slots = NULL};
  lookup_release(services, old.slots, old.bits);
  lookup_release(services, old.inside_slots, old.bits);
}

void gm__lookup_clear(gm__lookup *lookup, const gm_services *services) {
  lookup_close_old(lookup, services);
  lookup_release(services, lookup->inside.slots, lookup->bits);
  if (lookup->bits) lookup_release(services, lookup->slots, lookup->bits);
  gm__lookup_init(lookup);
}

/* The tables become the old ones of larger ones. Without memory for the larger table by anchors there is none, until
 * somebody asks again. */
static bool lookup_begin_growth(gm__lookup *lookup, const gm_services *services) {
  const uint32_t bits = lookup->bits ? lookup->bits + 1 : LOOKUP_LEAST_BITS;
  uint32_t *slots = bits > LOOKUP_MOST_BITS ? NULL : lookup_new(services, bits);
  if (!slots) return false;
  const gm__lookup before = *lookup;
  if (before.bits) lookup->old = (gm__lookup_old){.slots = before.slots, .bits = before.bits};
  lookup->slots = slots;
  lookup->bits = bits;
  lookup->down = 64 - bits;
  lookup->mask = (UINT32_C(1) << bits) - 1;
  lookup->old.unready = (UINT32_C(1) << bits) / LOOKUP_SHARE - (before.bits ? before.mask + 1 : 0) / LOOKUP_SHARE;
  lookup->inside.slots = before.inside.slots ? lookup_new(services, bits) : NULL;
  if (lookup->inside.slots) lookup->old.inside_slots = before.inside.slots;
  if (before.inside.slots && !lookup->inside.slots) {
    lookup->inside = (gm__lookup_inside){.slots = NULL};
    lookup_release(services, before.inside.slots, before.bits);
  }
  return true;
}

/* True when the chunk is in a table by anchors, as soon as it is in one by addresses. */
static bool lookup_is_inside(const gm__lookup *lookup, uint32_t number) {
  return lookup->inside.slots && number < lookup->inside.end;
}

/* Takes all chunks out of the old slot. */
static void lookup_move(const gm__lookup *lookup, const gm__chunks *chunks, uint32_t at) {
  const lookup_side olds = lookup_old_begins(lookup, chunks), old_anchors = lookup_old_anchors(lookup, chunks);
  const lookup_side begins = lookup_begins(lookup, chunks), anchors = lookup_anchors(lookup, chunks);
  for (uint32_t slot; (slot = olds.slots[at]);) {
    lookup_take(&olds, lookup_number(slot));
    lookup_put(&begins, lookup_number(slot));
    if (!lookup_is_inside(lookup, lookup_number(slot))) continue;
    lookup_take(&old_anchors, lookup_number(slot));
    lookup_put(&anchors, lookup_number(slot));
  }
}

/* Empties the next old slot. Every LOOKUP_PIECE of them give their memory back, so that the last one has little to do.
 */
static void lookup_scan_one(gm__lookup *lookup, const gm__chunks *chunks) {
  uint32_t *slots = lookup->old.slots;
  const uint32_t count = UINT32_C(1) << lookup->old.bits, soon = (lookup->old.at + LOOKUP_SOON) & (count - 1);
  __builtin_prefetch(gm__chunk_at(chunks, lookup_number(slots[soon])));
  lookup_move(lookup, chunks, lookup->old.at++);
  if (lookup->old.at % LOOKUP_PIECE) return;
  gm__alloc_unback(chunks->services, (size_t)count * sizeof *slots, &slots[lookup->old.at - LOOKUP_PIECE],
                   LOOKUP_PIECE * sizeof *slots);
}

/* Looks through so many old slots, or through all. */
static void lookup_scan(gm__lookup *lookup, const gm__chunks *chunks, uint32_t count) {
  const uint32_t end = lookup->old.slots ? UINT32_C(1) << lookup->old.bits : 0;
  while (count-- && lookup->old.at < end) lookup_scan_one(lookup, chunks);
  const bool done = lookup->old.at == end;
  const uint32_t more = done || lookup->old.unready < GM__LOOKUP_GRANT ? lookup->old.unready : GM__LOOKUP_GRANT;
  lookup->old.unready -= more;
  lookup->room += more;
  if (done) lookup_close_old(lookup, chunks->services);
}

bool gm__lookup_reserve_slow(gm__lookup *lookup, const gm__chunks *chunks) {
  if (!lookup->old.slots && !lookup_begin_growth(lookup, chunks->services)) return false;
  lookup_scan(lookup, chunks, GM__LOOKUP_SCAN);
  return true;
}

/* ---- by the address of the first byte ---- */

/* `old`: among the old tables. */
static void lookup_put_inside(gm__lookup *lookup, const gm__chunks *chunks, uint32_t number, bool old) {
  const lookup_side anchors = old ? lookup_old_anchors(lookup, chunks) : lookup_anchors(lookup, chunks);
  lookup_put(&anchors, number);
  gm__anchor_levels_add(&lookup->inside.levels, lookup_anchor(lookup, gm__chunk_at(chunks, number)));
}

void gm__lookup_insert_slow(gm__lookup *lookup, const gm__chunks *chunks, uint32_t number) {
  const lookup_side begins = lookup_begins(lookup, chunks);
  lookup_put(&begins, number);
  if (lookup_is_inside(lookup, number)) lookup_put_inside(lookup, chunks, number, false);
}

void gm__lookup_remove_slow(gm__lookup *lookup, const gm__chunks *chunks, uint32_t number) {
  const lookup_side begins = lookup_begins(lookup, chunks), anchors = lookup_anchors(lookup, chunks);
  const lookup_side old_begins = lookup_old_begins(lookup, chunks), old_anchors = lookup_old_anchors(lookup, chunks);
  const bool old = !lookup_take(&begins, number);
  if (old) lookup_take(&old_begins, number);
  if (!lookup_is_inside(lookup, number)) return;
  lookup_take(old ? &old_anchors : &anchors, number);
  gm__anchor_levels_remove(&lookup->inside.levels, lookup_anchor(lookup, gm__chunk_at(chunks, number)));
}

static bool lookup_is_begin(const gm__lookup *lookup, const gm__chunk *chunk, uint64_t address) {
  (void)lookup;
  return chunk->address == address;
}

uint32_t gm__lookup_find_far(const gm__lookup *lookup, const gm__chunks *chunks, uint64_t address) {
  const lookup_side begins = lookup_begins(lookup, chunks), old = lookup_old_begins(lookup, chunks);
  const uint32_t number = lookup_find_key(&begins, address, address, lookup_is_begin);
  return number || !old.slots ? number : lookup_find_key(&old, address, address, lookup_is_begin);
}

/* ---- by any address ---- */

bool gm__lookup_open_inside(gm__lookup *lookup, const gm__chunks *chunks, uint32_t shift) {
  const bool grows = lookup->old.slots != NULL;
  if (lookup->inside.slots) return true;
  if (!lookup->bits) return false;
  uint32_t *slots = lookup_new(chunks->services, lookup->bits);
  uint32_t *old_slots = slots && grows ? lookup_new(chunks->services, lookup->old.bits) : NULL;
  if (!slots || (grows && !old_slots)) {
    lookup_release(chunks->services, slots, lookup->bits);
    return false;
  }
  lookup->inside = (gm__lookup_inside){.slots = slots, .shift = shift, .end = 1};
  lookup->old.inside_slots = old_slots;
  return true;
}

/* Puts the chunk into the table by anchors, if it is in the index. */
static void lookup_fill_one(gm__lookup *lookup, const gm__chunks *chunks, uint32_t number) {
  const lookup_side begins = lookup_begins(lookup, chunks), old = lookup_old_begins(lookup, chunks);
  const uint64_t address = gm__chunk_at(chunks, number)->address;
  if (lookup_find_key(&begins, address, address, lookup_is_begin) == number) {
    lookup_put_inside(lookup, chunks, number, false);
  } else if (old.slots && lookup_find_key(&old, address, address, lookup_is_begin) == number) {
    lookup_put_inside(lookup, chunks, number, true);
  }
}

static void lookup_fill(gm__lookup *lookup, const gm__chunks *chunks) {
  const uint32_t count = gm__chunks_count(chunks);
  for (int left = GM__LOOKUP_SCAN; left && lookup->inside.end < count; left--) {
    lookup_fill_one(lookup, chunks, lookup->inside.end++);
  }
  if (lookup->inside.end >= count) lookup->inside.end = GM__LOOKUP_ALL;
}

static bool lookup_contains(const gm__lookup *lookup, const gm__chunk *chunk, uint64_t address) {
  const uint32_t shift = lookup->inside.shift;
  return (address >> shift) - (chunk->address >> shift) < chunk->granules;
}

static uint32_t lookup_find_anchored(const gm__lookup *lookup, const gm__chunks *chunks, uint64_t address) {
  const lookup_side anchors = lookup_anchors(lookup, chunks), old = lookup_old_anchors(lookup, chunks);
  uint32_t number = 0;
  for (uint64_t left = lookup->inside.levels.used; left && !number; left &= left - 1) {
    const uint64_t anchor = gm__anchor_at(address >> lookup->inside.shift, __builtin_ctzll(left));
    number = lookup_find_key(&anchors, anchor, address, lookup_contains);
    if (!number && old.slots) number = lookup_find_key(&old, anchor, address, lookup_contains);
  }
  return number;
}

/* Looks for a chunk that begins at one of GM__LOOKUP_SCAN granules up to *granule, which becomes the one before them.
 */
static uint32_t lookup_look_back(const gm__lookup *lookup, const gm__chunks *chunks, uint64_t *granule) {
  uint32_t number = 0;
  for (int left = GM__LOOKUP_SCAN; left && *granule && !number; left--) {
    number = gm__lookup_find(lookup, chunks, (*granule)-- << lookup->inside.shift);
  }
  return number;
}

uint32_t gm__lookup_find_inside(gm__lookup *lookup, const gm__chunks *chunks, uint64_t address) {
  uint64_t granule = address >> lookup->inside.shift;
  while (lookup->inside.end != GM__LOOKUP_ALL) {
    lookup_fill(lookup, chunks);
    const uint32_t anchored = lookup_find_anchored(lookup, chunks, address);
    const uint32_t before = anchored ? anchored : lookup_look_back(lookup, chunks, &granule);
    if (before) return lookup_contains(lookup, gm__chunk_at(chunks, before), address) ? before : 0;
  }
  return lookup_find_anchored(lookup, chunks, address);
}
