#include "core/base/map.h"

#include "core/base/alloc.h"

/* Open addressing with linear probing. Invariants: at most 3/4 of the slots are used, so a probe always meets an empty
 * one. There is no empty slot between an entry's home slot and its slot: a removal shifts entries back, and leaves no
 * tombstones. Key 0 marks an empty slot. The entry of key 0 lies beside the table. */

enum { MAP_SMALLEST = 16 };

void gm__map_init(gm__map *map, const gm_services *services) { *map = (gm__map){.services = services}; }

void gm__map_clear(gm__map *map) {
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

static gm_status map_resize(gm__map *map, size_t capacity) {
  gm__map_slot *slots = gm__alloc_array(map->services, capacity, sizeof *slots);
  if (!slots) return GM_ERR_OUT_OF_HOST_MEMORY;
  for (size_t i = 0; i < map->capacity; i++) {
    const gm__map_slot *from = &map->slots[i];
    if (from->key) slots[map_probe(slots, capacity, from->key)] = *from;
  }
  const gm__map old = *map; /* freed last: a forked child must not find freed memory */
  map->slots = slots;
  map->capacity = capacity;
  gm__release(map->services, old.slots, old.capacity * sizeof *old.slots);
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

static void map_insert_zero(gm__map *map, uint64_t value) {
  map->count += !map->has_zero;
  map->has_zero = true;
  map->zero_value = value;
}

gm_status gm__map_insert(gm__map *map, uint64_t key, uint64_t value) {
  if (key == 0) {
    map_insert_zero(map, value);
    return GM_OK;
  }
  size_t at = map->capacity ? map_probe(map->slots, map->capacity, key) : 0;
  if (!map->capacity || map->slots[at].key != key) {
    gm_status status = gm__map_reserve(map, map->count + 1);
    if (status) return status;
    at = map_probe(map->slots, map->capacity, key);
    map->count++;
  }
  map->slots[at] = (gm__map_slot){key, value};
  return GM_OK;
}

static const uint64_t *map_value(const gm__map *map, uint64_t key) {
  if (key == 0) return map->has_zero ? &map->zero_value : NULL;
  if (!map->capacity) return NULL;
  const gm__map_slot *slot = &map->slots[map_probe(map->slots, map->capacity, key)];
  return slot->key ? &slot->value : NULL;
}

bool gm__map_find(const gm__map *map, uint64_t key, uint64_t *out) {
  const uint64_t *value = map_value(map, key);
  if (value && out) *out = *value;
  return value != NULL;
}

/* Empty the slot `hole`. Then move each later entry of the run back that can be nearer to its home slot. */
static void map_close_hole(gm__map *map, size_t hole) {
  size_t mask = map->capacity - 1;
  for (size_t at = (hole + 1) & mask; map->slots[at].key; at = (at + 1) & mask) {
    size_t home = map_home(map->slots[at].key, map->capacity);
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    map->slots[hole] = map->slots[at];
    hole = at;
  }
  map->slots[hole].key = 0;
}

bool gm__map_remove(gm__map *map, uint64_t key, uint64_t *out) {
  if (!gm__map_find(map, key, out)) return false;
  if (key == 0) {
    map->has_zero = false;
  } else {
    map_close_hole(map, map_probe(map->slots, map->capacity, key));
  }
  map->count--;
  return true;
}

bool gm__map_next(const gm__map *map, size_t *cursor, uint64_t *out_key, uint64_t *out_value) {
  for (; *cursor < map->capacity; ++*cursor) {
    const gm__map_slot *slot = &map->slots[*cursor];
    if (!slot->key) continue;
    *out_key = slot->key;
    *out_value = slot->value;
    ++*cursor;
    return true;
  }
  if (*cursor > map->capacity || !map->has_zero) return false;
  *out_key = 0;
  *out_value = map->zero_value;
  ++*cursor;
  return true;
}
