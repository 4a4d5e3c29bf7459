#include "core/base/map.h"

#include "core/base/alloc.h"

/* Open addressing with linear probing. Invariants: at most 3/4 of the slots are used, so a probe always meets an empty
 * one. There is no empty slot between an entry's home slot and its slot: a removal shifts entries back, and leaves no
 * tombstones. Key 0 marks an empty slot. The entry of key 0 lies beside the table.
 *
 * A map grows into a table twice as large. Its entries go over from the old one a few at a time, with each insertion.
 * An entry is in one of the two. Slots of the old one before `old_at` are empty. */

enum { MAP_SMALLEST = 16, MAP_SCAN = 16, MAP_PIECE = 1 << 14 };
_Static_assert(MAP_SCAN >= 2, "the old slots are empty before the new ones are full");

void gm__map_init(gm__map *map, const gm_services *services) { *map = (gm__map){.services = services}; }

static void map_release_old(gm__map *map) {
  const gm__map before = *map; /* freed last: a forked child must not find freed memory */
  map->old_slots = NULL;
  map->old_capacity = map->old_at = 0;
  gm__release(map->services, before.old_slots, before.old_capacity * sizeof *before.old_slots);
}

void gm__map_clear(gm__map *map) {
  map_release_old(map);
  gm__release(map->services, map->slots, map->capacity * sizeof *map->slots);
  gm__map_init(map, map->services);
}

/* The finaliser of MurmurHash3. Addresses differ in a few middle bits, and each of them must reach the low bits. */
static size_t map_home(uint64_t key, size_t capacity) {
  key = (key ^ key >> 33) * UINT64_C(0xff51afd7ed558ccd);
  key = (key ^ key >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
  return (size_t)(key ^ key >> 33) & (capacity - 1);
}

/* The slot that holds `key`, or the empty slot for it. REQUIRES: capacity > 0 and key != 0. */
static size_t map_probe(const gm__map_slot *slots, size_t capacity, uint64_t key) {
  size_t at = map_home(key, capacity);
  while (slots[at].key && slots[at].key != key) at = (at + 1) & (capacity - 1);
  return at;
}

/* Empties the slot `hole`. Then moves each later entry of the run back that can be nearer to its home slot. */
static void map_close_hole(gm__map_slot *slots, size_t capacity, size_t hole) {
  const size_t mask = capacity - 1;
  for (size_t at = (hole + 1) & mask; slots[at].key; at = (at + 1) & mask) {
    const size_t home = map_home(slots[at].key, capacity);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    slots[hole] = slots[at];
    hole = at;
  }
  slots[hole] = (gm__map_slot){0};
}

/* Takes all entries out of the next old slot. Every MAP_PIECE of them give their memory back, so that the last one has
 * little to do. */
static void map_move_one(gm__map *map) {
  const size_t at = map->old_at;
  for (gm__map_slot *from = &map->old_slots[at]; from->key;) {
    map->slots[map_probe(map->slots, map->capacity, from->key)] = *from;
    map_close_hole(map->old_slots, map->old_capacity, at);
  }
  map->old_at++;
  if (map->old_at % MAP_PIECE) return;
  gm__alloc_unback(map->services, map->old_capacity * sizeof *map->old_slots, &map->old_slots[map->old_at - MAP_PIECE],
                   MAP_PIECE * sizeof *map->old_slots);
}

static void map_move(gm__map *map, size_t count) {
  while (count-- && map->old_at < map->old_capacity) map_move_one(map);
  if (map->old_slots && map->old_at == map->old_capacity) map_release_old(map);
}

static gm_status map_resize(gm__map *map, size_t capacity) {
  gm__map_slot *slots = gm__alloc_array(map->services, capacity, sizeof *slots);
  if (!slots) return GM_ERR_OUT_OF_HOST_MEMORY;
  map_move(map, SIZE_MAX); /* nothing, but where a caller reserved room again and again */
  map->old_slots = map->slots;
  map->old_capacity = map->capacity;
  map->slots = slots;
  map->capacity = capacity;
  return GM_OK;
}

gm_status gm__map_reserve(gm__map *map, size_t count) {
  size_t capacity = map->capacity ? map->capacity : MAP_SMALLEST;
  while (count > capacity / 4 * 3) {
    if (capacity > SIZE_MAX / 2) return GM_ERR_OUT_OF_HOST_MEMORY;
    capacity *= 2;
  }
  return capacity == map->capacity ? GM_OK : map_resize(map, capacity);
}

/* The slot that holds `key`; NULL: none does. REQUIRES: key != 0. */
static gm__map_slot *map_slot_of(const gm__map *map, uint64_t key) {
  gm__map_slot *slot = map->capacity ? &map->slots[map_probe(map->slots, map->capacity, key)] : NULL;
  if (slot && slot->key) return slot;
  slot = map->old_slots ? &map->old_slots[map_probe(map->old_slots, map->old_capacity, key)] : NULL;
  return slot && slot->key ? slot : NULL;
}

static void map_insert_zero(gm__map *map, uint64_t value) {
  map->count += !map->has_zero;
  map->has_zero = true;
  map->zero_value = value;
}

gm_status gm__map_insert(gm__map *map, uint64_t key, uint64_t value) {
  gm__map_slot *there = key ? map_slot_of(map, key) : NULL;
  if (there) {
    there->value = value;
  } else if (!key) {
    map_insert_zero(map, value);
  } else {
    const gm_status status = gm__map_reserve(map, map->count + 1);
    if (status) return status;
    map_move(map, MAP_SCAN);
    map->slots[map_probe(map->slots, map->capacity, key)] = (gm__map_slot){key, value};
    map->count++;
  }
  return GM_OK;
}

bool gm__map_find(const gm__map *map, uint64_t key, uint64_t *out) {
  const gm__map_slot *slot = key ? map_slot_of(map, key) : NULL;
  const bool found = key ? slot != NULL : map->has_zero;
  if (found && out) *out = slot ? slot->value : map->zero_value;
  return found;
}

static void map_empty_slot(gm__map *map, const gm__map_slot *slot) {
  const uintptr_t at = (uintptr_t)slot, begin = (uintptr_t)map->slots;
  if (at >= begin && at - begin < map->capacity * sizeof *slot) {
    map_close_hole(map->slots, map->capacity, (size_t)(slot - map->slots));
  } else {
    map_close_hole(map->old_slots, map->old_capacity, (size_t)(slot - map->old_slots));
  }
}

bool gm__map_remove(gm__map *map, uint64_t key, uint64_t *out) {
  if (!gm__map_find(map, key, out)) return false;
  if (key == 0) {
    map->has_zero = false;
  } else {
    map_empty_slot(map, map_slot_of(map, key));
  }
  map->count--;
  return true;
}

bool gm__map_next(const gm__map *map, size_t *cursor, uint64_t *out_key, uint64_t *out_value) {
  const size_t all = map->capacity + map->old_capacity;
  for (; *cursor < all; ++*cursor) {
    const bool old = *cursor >= map->capacity;
    const gm__map_slot *slot = old ? &map->old_slots[*cursor - map->capacity] : &map->slots[*cursor];
    if (!slot->key) continue;
    *out_key = slot->key;
    *out_value = slot->value;
    ++*cursor;
    return true;
  }
  if (*cursor > all || !map->has_zero) return false;
  *out_key = 0;
  *out_value = map->zero_value;
  ++*cursor;
  return true;
}
