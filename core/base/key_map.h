/* A hash map from keys of bytes to entries that hold what the caller wants. Each call takes O(1) steps: the map grows
 * by one place with an entry, and copies no table. The caller synchronises. */
#ifndef GM_CORE_BASE_KEY_MAP_H
#define GM_CORE_BASE_KEY_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/inner.h"
#include "core/base/places.h"

/* First member of a caller's entry. The map owns no entry: it links them. */
typedef struct gm__key_entry {
  struct gm__key_entry *next; /* of the entries with an equal place */
  uint64_t hash;
  size_t key_bytes;
  unsigned char *key; /* a copy, of the map or (gm__key_map_prepare_own) of the caller */
} gm__key_entry;

typedef struct gm__key_map {
  const gm_services *services; /* borrowed */
  gm__places places;           /* each a gm__key_entry *: the first of its list */
  size_t count;
} gm__key_map;

GM__INNER void gm__key_map_init(gm__key_map *map, const gm_services *services);

/* Frees the map's own memory. REQUIRES: it is empty. */
GM__INNER void gm__key_map_clear(gm__key_map *map);

/* Finds the entry of a key. NULL: there is none. */
GM__INNER gm__key_entry *gm__key_map_find(const gm__key_map *map, const void *key, size_t key_bytes);

/* Copies the key into `entry`, and makes room for one entry more. False: no host memory, and nothing has changed. */
GM__INNER bool gm__key_map_prepare(gm__key_map *map, gm__key_entry *entry, const void *key, size_t key_bytes);

/* Like gm__key_map_prepare, for an entry whose `key` and `key_bytes` the caller has set. The memory is the caller's,
 * which may be that of the entry: so a search finds both in one place. */
GM__INNER bool gm__key_map_prepare_own(gm__key_map *map, gm__key_entry *entry);

/* Links an entry that was prepared, and whose key has no entry yet. It cannot fail: no other entry may be linked
 * between the two calls. */
GM__INNER void gm__key_map_link(gm__key_map *map, gm__key_entry *entry);

/* Frees the key of an entry that was prepared and not linked. */
GM__INNER void gm__key_map_drop(const gm__key_map *map, gm__key_entry *entry);

/* Unlinks an entry, and frees its key. It needs no memory. */
GM__INNER void gm__key_map_remove(gm__key_map *map, gm__key_entry *entry);
/* Unlinks an entry. Its key stays as it is. */
GM__INNER void gm__key_map_unlink(gm__key_map *map, gm__key_entry *entry);

/* Gives each entry once, in any order. Begin with *cursor = 0 and `entry` NULL, and pass the entry that came last.
 * NULL: there are no more. After this call gave the next entry, only the one that came last may be removed
 * meanwhile. */
GM__INNER gm__key_entry *gm__key_map_next(const gm__key_map *map, size_t *cursor, const gm__key_entry *entry);

/* Like gm__key_map_next, for the entries whose keys begin with `prefix` (NULL only for 0 bytes: all). */
GM__INNER gm__key_entry *gm__key_map_next_under(const gm__key_map *map, size_t *cursor, const gm__key_entry *entry,
                                                const void *prefix, size_t prefix_bytes);

#endif
