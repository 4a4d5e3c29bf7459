#include "core/algo/chunk.h"

#include "core/base/alloc.h"

/* Invariants: the `check` of a record only counts up, from a number that differs from owner to owner. Records become
 * unused a few at a time, so that no call pays for a whole larger table. */

/* Makes the table half as large again, or as large as it can be. */
static bool chunks_grow(gm__chunks *chunks) {
  const uint32_t wish = chunks->capacity + chunks->capacity / 2 + GM__CHUNKS_STEP;
  const uint32_t capacity = wish < chunks->most ? wish : chunks->most;
  const size_t size = sizeof *chunks->table;
  if (capacity - chunks->count < GM__CHUNKS_STEP) return false;
  if (!gm__grow(chunks->services, &chunks->table, chunks->capacity * size, capacity * size)) return false;
  chunks->capacity = capacity;
  return true;
}

bool gm__chunks_reserve_slow(gm__chunks *chunks) {
  if (chunks->capacity - chunks->count < GM__CHUNKS_STEP && !chunks_grow(chunks)) return false;
  const uint32_t first = chunks->count ? chunks->count : 1; /* number 0 is never taken */
  chunks->count += GM__CHUNKS_STEP;
  for (uint32_t number = chunks->count; number-- > first;) {
    gm__chunk_at(chunks, number)->check = chunks->first_check;
    gm__chunks_push(chunks, number);
  }
  return true;
}

bool gm__chunks_init(gm__chunks *chunks, const gm_services *services, uint32_t first_check) {
  *chunks = (gm__chunks){.services = services, .first_check = first_check, .most = GM__CHUNKS_MAX};
  if (!gm__chunks_reserve_slow(chunks)) return false;
  gm__chunk_at(chunks, 0)->state = GM__CHUNK_EDGE;
  return true;
}

void gm__chunks_clear(gm__chunks *chunks) {
  gm__release(chunks->services, chunks->table, chunks->capacity * sizeof *chunks->table);
  *chunks = (gm__chunks){.services = chunks->services};
}
