#include "core/base/places.h"

#include "core/base/alloc.h"
#include "core/base/saturate.h"

/* Invariants. `count` is at most `room`. Place `count` splits from that whose number lacks its highest bit. */

void gm__places_init(gm__places *places, size_t place_bytes, const gm_services *services) {
  *places = (gm__places){.services = services, .place_bytes = place_bytes};
}

void gm__places_clear(gm__places *places) {
  for (size_t first = 0; first < places->room; first += GM__PLACES_CHUNK) {
    const size_t has = places->room < GM__PLACES_CHUNK ? places->room : GM__PLACES_CHUNK;
    gm__release(places->services, places->chunks[first / GM__PLACES_CHUNK], has * places->place_bytes);
  }
  gm__release(places->services, places->chunks, places->chunk_room * sizeof *places->chunks);
  gm__places_init(places, places->place_bytes, places->services);
}

/* The list of chunks is short: a thousandth of the table. */
static bool places_list_room(gm__places *places, size_t chunks) {
  const size_t room = places->chunk_room, more = gm__max(2 * room, 4);
  if (chunks <= room) return true;
  if (!gm__grow(places->services, &places->chunks, room * sizeof *places->chunks, more * sizeof *places->chunks)) {
    return false;
  }
  places->chunk_room = more;
  return true;
}

/* A first chunk that is not whole gets twice the places. */
static bool places_grow_first(gm__places *places) {
  const size_t room = places->room, more = gm__max(2 * room, GM__PLACES_LEAST);
  if (!gm__grow(places->services, &places->chunks[0], room * places->place_bytes, more * places->place_bytes)) {
    return false;
  }
  places->room = more;
  return true;
}

static bool places_make_room(gm__places *places) {
  if (places->count < places->room) return true;
  const size_t chunks = places->room / GM__PLACES_CHUNK;
  if (!places_list_room(places, chunks + 1)) return false;
  if (places->room < GM__PLACES_CHUNK) return places_grow_first(places);
  places->chunks[chunks] = gm__alloc_array(places->services, GM__PLACES_CHUNK, places->place_bytes);
  if (places->chunks[chunks]) places->room += GM__PLACES_CHUNK;
  return places->chunks[chunks];
}

bool gm__places_add(gm__places *places, size_t *out_from, size_t *out_to) {
  *out_from = *out_to = 0;
  if (!places_make_room(places)) return false;
  if (!places->count) {
    places->count = GM__PLACES_LEAST;
    places->mask = GM__PLACES_LEAST - 1;
    return true;
  }
  if (places->count > places->mask) places->mask = 2 * places->mask + 1;
  *out_to = places->count++;
  *out_from = *out_to & places->mask >> 1;
  return true;
}
