/* The places of a hash table, which come one by one (linear hashing: Litwin 1980). A table grows with each entry by as
 * little as one place: no call copies them all. A place is memory of the caller's kind, zero at first. The caller
 * synchronises. */
#ifndef GM_CORE_BASE_PLACES_H
#define GM_CORE_BASE_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/services.h"

enum { GM__PLACES_CHUNK = 512, GM__PLACES_LEAST = 16 }; /* powers of two */

typedef struct gm__places {
  const gm_services *services; /* borrowed */
  unsigned char **chunks;      /* of GM__PLACES_CHUNK places, the first one of fewer while it is alone */
  size_t place_bytes;
  size_t count; /* of places: 0, or at least GM__PLACES_LEAST */
  size_t mask;  /* the smallest power of two that is not below `count`, less one */
  size_t room;  /* of chunks: places that they have */
  size_t chunk_room;
} gm__places;

void gm__places_init(gm__places *places, size_t place_bytes, const gm_services *services);

/* Frees all memory. The row is then empty and usable again. */
void gm__places_clear(gm__places *places);

/* Adds one place, or the first GM__PLACES_LEAST. Then some of the hashes of place *out_from are of *out_to. Both are 0
 * for the first ones. False: no host memory, and nothing has changed. */
bool gm__places_add(gm__places *places, size_t *out_from, size_t *out_to);

/* The memory of place `at`, which moves while there are fewer than GM__PLACES_CHUNK places. */
static inline void *gm__places_at(const gm__places *places, size_t at) {
  return places->chunks[at / GM__PLACES_CHUNK] + at % GM__PLACES_CHUNK * places->place_bytes;
}

/* The number of the place of a hash. REQUIRES: there are places. */
static inline size_t gm__places_of(const gm__places *places, uint64_t hash) {
  const size_t at = (size_t)hash & places->mask;
  return at < places->count ? at : at & places->mask >> 1;
}

#endif
