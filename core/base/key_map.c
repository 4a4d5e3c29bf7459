#include "core/base/key_map.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/checksum.h"

/* Invariant: an entry is in the list of its hash's place. There are at most as many entries as places. */

/* An end of the hash that the checksum mixes well. */
static uint64_t key_map_hash(uint64_t hash) { return hash ^ hash >> 32; }

static gm__key_entry **key_map_place(const gm__key_map *map, uint64_t hash) {
  return gm__places_at(&map->places, gm__places_of(&map->places, key_map_hash(hash)));
}

void gm__key_map_init(gm__key_map *map, const gm_services *services) {
  *map = (gm__key_map){.services = services};
  gm__places_init(&map->places, sizeof(gm__key_entry *), services);
}

void gm__key_map_clear(gm__key_map *map) { gm__places_clear(&map->places); }

/* One place more, which gets its entries from one other. */
static bool key_map_grow(gm__key_map *map) {
  size_t from, to;
  if (!gm__places_add(&map->places, &from, &to)) return false;
  gm__key_entry **at = gm__places_at(&map->places, from), **moved = gm__places_at(&map->places, to);
  while (from != to && *at) {
    gm__key_entry *entry = *at;
    if (gm__places_of(&map->places, key_map_hash(entry->hash)) == from) {
      at = &entry->next;
      continue;
    }
    *at = entry->next;
    entry->next = *moved;
    *moved = entry;
  }
  return true;
}

gm__key_entry *gm__key_map_find(const gm__key_map *map, const void *key, size_t key_bytes) {
  if (!map->count) return NULL;
  const uint64_t hash = gm__checksum(key, key_bytes, 0);
  gm__key_entry *entry = *key_map_place(map, hash);
  while (entry && !(entry->hash == hash && entry->key_bytes == key_bytes && memcmp(entry->key, key, key_bytes) == 0)) {
    entry = entry->next;
  }
  return entry;
}

bool gm__key_map_prepare_own(gm__key_map *map, gm__key_entry *entry) {
  if (map->count == map->places.count && !key_map_grow(map)) return false;
  entry->hash = gm__checksum(entry->key, entry->key_bytes, 0);
  return true;
}

bool gm__key_map_prepare(gm__key_map *map, gm__key_entry *entry, const void *key, size_t key_bytes) {
  entry->key = gm__alloc(map->services, key_bytes);
  if (!entry->key) return false;
  memcpy(entry->key, key, key_bytes);
  entry->key_bytes = key_bytes;
  if (gm__key_map_prepare_own(map, entry)) return true;
  gm__key_map_drop(map, entry);
  return false;
}

void gm__key_map_link(gm__key_map *map, gm__key_entry *entry) {
  gm__key_entry **place = key_map_place(map, entry->hash);
  entry->next = *place;
  *place = entry;
  map->count++;
}

void gm__key_map_drop(const gm__key_map *map, gm__key_entry *entry) {
  gm__release(map->services, entry->key, entry->key_bytes);
  entry->key = NULL;
}

void gm__key_map_unlink(gm__key_map *map, gm__key_entry *entry) {
  gm__key_entry **at = key_map_place(map, entry->hash);
  while (*at != entry) at = &(*at)->next;
  *at = entry->next;
  map->count--;
}

void gm__key_map_remove(gm__key_map *map, gm__key_entry *entry) {
  gm__key_map_unlink(map, entry);
  gm__key_map_drop(map, entry);
}

gm__key_entry *gm__key_map_next(const gm__key_map *map, size_t *cursor, const gm__key_entry *entry) {
  gm__key_entry *next = entry ? entry->next : NULL;
  while (!next && *cursor < map->places.count) next = *(gm__key_entry **)gm__places_at(&map->places, (*cursor)++);
  return next;
}

gm__key_entry *gm__key_map_next_under(const gm__key_map *map, size_t *cursor, const gm__key_entry *entry,
                                      const void *prefix, size_t prefix_bytes) {
  gm__key_entry *next = gm__key_map_next(map, cursor, entry);
  while (next && prefix_bytes && (next->key_bytes < prefix_bytes || memcmp(next->key, prefix, prefix_bytes) != 0)) {
    next = gm__key_map_next(map, cursor, next);
  }
  return next;
}
