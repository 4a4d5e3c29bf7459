#include "core/algo/span.h"

#include "core/base/alloc.h"

/* Invariants: chunks are not moved or given back before all is cleared, so a record's address is good as long as its
 * number is. `check` of a record only ever counts up, from a number that differs from owner to owner. */

static bool spans_reserve_chunks(gm__spans *spans) {
  if (spans->chunk_count < spans->chunk_capacity) return true;
  const uint32_t capacity = spans->chunk_capacity ? spans->chunk_capacity * 2 : 16;
  const size_t size = sizeof *spans->chunks;
  if (!gm__grow(spans->services, &spans->chunks, spans->chunk_capacity * size, capacity * size)) return false;
  spans->chunk_capacity = capacity;
  return true;
}

static bool spans_add_chunk(gm__spans *spans) {
  if (gm__spans_count(spans) >= GM__SPANS_MAX || !spans_reserve_chunks(spans)) return false;
  gm__span *chunk = gm__alloc_array(spans->services, GM__SPAN_CHUNK, sizeof *chunk);
  if (!chunk) return false;
  const uint32_t first = gm__spans_count(spans);
  spans->chunks[spans->chunk_count++] = chunk;
  const uint32_t kept = first == 0 ? 1 : 0; /* number 0 is never taken */
  for (uint32_t i = GM__SPAN_CHUNK; i-- > kept;) {
    chunk[i].check = spans->first_check;
    gm__spans_give(spans, first + i);
  }
  return true;
}

bool gm__spans_init(gm__spans *spans, const gm_services *services, uint32_t first_check) {
  *spans = (gm__spans){.services = services, .first_check = first_check};
  if (!spans_add_chunk(spans)) {
    gm__spans_clear(spans);
    return false;
  }
  gm__span_at(spans, 0)->state = GM__SPAN_EDGE;
  return true;
}

void gm__spans_clear(gm__spans *spans) {
  for (uint32_t i = 0; i < spans->chunk_count; i++) {
    gm__release(spans->services, spans->chunks[i], GM__SPAN_CHUNK * sizeof(gm__span));
  }
  gm__release(spans->services, spans->chunks, spans->chunk_capacity * sizeof *spans->chunks);
  *spans = (gm__spans){.services = spans->services};
}

bool gm__spans_reserve(gm__spans *spans, uint32_t count) {
  return spans->unused_count >= count || spans_add_chunk(spans);
}
