#include "core/algo/span.h"

#include <string.h>

#include "core/base/alloc.h"

/* Invariants: `check` of a record only ever counts up, from a number that differs from owner to owner. Records become
 * unused some at a time, so that no call pays for all that a larger table has room for. */

static size_t spans_bytes(uint32_t capacity) { return ((size_t)capacity + 1) * sizeof(gm__span); }

/* A table half as large again, or with all that there can be, at a multiple of a record's size. */
static bool spans_grow(gm__spans *spans) {
  const uint32_t wish = spans->capacity + spans->capacity / 2 + GM__SPANS_STEP;
  const uint32_t capacity = wish < spans->most ? wish : spans->most;
  if (capacity - spans->count < GM__SPANS_STEP) return false;
  void *memory = gm__alloc(spans->services, spans_bytes(capacity));
  if (!memory) return false;
  const uintptr_t address = (uintptr_t)memory, most = sizeof(gm__span) - 1;
  gm__span *table = (gm__span *)((address + most) & ~most);
  if (spans->count) memcpy(table, spans->table, spans->count * sizeof *table);
  gm__release(spans->services, spans->memory, spans_bytes(spans->capacity));
  spans->memory = memory;
  spans->table = table;
  spans->capacity = capacity;
  return true;
}

bool gm__spans_reserve_slow(gm__spans *spans) {
  if (spans->capacity - spans->count < GM__SPANS_STEP && !spans_grow(spans)) return false;
  const uint32_t first = spans->count ? spans->count : 1; /* number 0 is never taken */
  spans->count += GM__SPANS_STEP;
  for (uint32_t number = spans->count; number-- > first;) {
    gm__span_at(spans, number)->check = spans->first_check;
    gm__spans_give(spans, number);
  }
  return true;
}

bool gm__spans_init(gm__spans *spans, const gm_services *services, uint32_t first_check) {
  *spans = (gm__spans){.services = services, .first_check = first_check, .most = GM__SPANS_MAX};
  if (!gm__spans_reserve_slow(spans)) return false;
  gm__span_at(spans, 0)->state = GM__SPAN_EDGE;
  return true;
}

void gm__spans_clear(gm__spans *spans) {
  gm__release(spans->services, spans->memory, spans_bytes(spans->capacity));
  *spans = (gm__spans){.services = spans->services};
}
