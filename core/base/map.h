/* Hash map from uint64_t to uint64_t (addresses, handles, ids). Externally synchronised. */
#ifndef GM_CORE_BASE_MAP_H
#define GM_CORE_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/services.h"
#include "gm/status.h"

typedef struct gm__map_slot {
  uint64_t key; /* 0: empty */
  uint64_t value;
} gm__map_slot;

/* Read `count` as you like; the rest belongs to the functions below. */
typedef struct gm__map {
  const gm_services *services; /* borrowed; NULL: the C library */
  gm__map_slot *slots;
  size_t capacity; /* 0 or a power of two */
  size_t count;
  uint64_t zero_value; /* the entry of key 0, which no slot can hold */
  bool has_zero;
} gm__map;

/* An empty map; takes no memory yet. */
void gm__map_init(gm__map *map, const gm_services *services);

/* Gives back all memory; the map is empty and usable again. */
void gm__map_clear(gm__map *map);

/* Room for `count` entries in all, so that inserting up to there cannot fail. GM_ERR_OUT_OF_HOST_MEMORY: unchanged. */
gm_status gm__map_reserve(gm__map *map, size_t count);

/* Set `key` to `value`, replacing what it was. Any key. GM_ERR_OUT_OF_HOST_MEMORY: unchanged; never when `key` is
 * there. */
gm_status gm__map_insert(gm__map *map, uint64_t key, uint64_t value);

/* False when `key` is not there; then *out (NULL: not wanted) is untouched. */
bool gm__map_find(const gm__map *map, uint64_t key, uint64_t *out);

/* The same, and takes the entry out. Needs no memory. */
bool gm__map_remove(gm__map *map, uint64_t key, uint64_t *out);

/* Each entry once, in no order: start with *cursor = 0, until false. The map must not change in between. */
bool gm__map_next(const gm__map *map, size_t *cursor, uint64_t *out_key, uint64_t *out_value);

#endif
