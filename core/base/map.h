/* A hash map from uint64_t to uint64_t (addresses, handles, ids). It grows without a copy: each insertion moves a few
 * entries to the larger table. The caller synchronises. */
#ifndef GM_CORE_BASE_MAP_H
#define GM_CORE_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/inner.h"
#include "gm/services.h"
#include "gm/status.h"

typedef struct gm__map_slot {
  uint64_t key; /* 0: empty */
  uint64_t value;
} gm__map_slot;

/* Callers may read `count`. The other members belong to the functions below. */
typedef struct gm__map {
  const gm_services *services; /* borrowed; NULL: the C library */
  gm__map_slot *slots;
  size_t capacity;         /* 0 or a power of two */
  gm__map_slot *old_slots; /* of the table that it grew out of; NULL: there is none */
  size_t old_capacity, old_at;
  size_t count;
  uint64_t zero_value; /* the entry of key 0, which no slot can hold */
  bool has_zero;
} gm__map;

/* Make an empty map. It has no memory yet. */
GM__INNER void gm__map_init(gm__map *map, const gm_services *services);

/* Free all memory. The map is then empty and usable again. */
GM__INNER void gm__map_clear(gm__map *map);

/* Make room for `count` entries in all, so that inserting up to that number cannot fail. GM_ERR_OUT_OF_HOST_MEMORY
 * leaves the map unchanged. */
gm_status gm__map_reserve(gm__map *map, size_t count);

/* Set `key` to `value`. Every key is valid. GM_ERR_OUT_OF_HOST_MEMORY leaves the map unchanged. It never comes for a
 * key that the map has. */
GM__INNER gm_status gm__map_insert(gm__map *map, uint64_t key, uint64_t value);

/* Find the value of `key`. False: there is none, and *out is untouched. `out` may be NULL. */
GM__INNER bool gm__map_find(const gm__map *map, uint64_t key, uint64_t *out);

/* Find the value of `key` and remove the entry. It needs no memory. */
GM__INNER bool gm__map_remove(gm__map *map, uint64_t key, uint64_t *out);

/* Give each entry once, in any order. Begin with *cursor = 0 and call until false. The map must not change meanwhile.
 */
GM__INNER bool gm__map_next(const gm__map *map, size_t *cursor, uint64_t *out_key, uint64_t *out_value);

#endif
