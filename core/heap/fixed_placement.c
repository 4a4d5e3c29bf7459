#include "core/heap/placement.h"

/* Blocks of fixed sizes. Each is a whole segment of an arena, so requests of a size find it in quick lists. A request
 * beyond all sizes is left to the buckets, which keep none of its memory. */

static const gm__fixed_sizes *fixed_sizes(const gm__attempt *attempt) {
  return &attempt->heap->dedicated.buckets.fixed;
}

/* The placement for the request. */
static const gm__placement *fixed_place(const gm__attempt *attempt) {
  const bool beyond = gm__bucket_is_beyond(&attempt->heap->dedicated.buckets, attempt->want->size_class);
  return beyond ? &gm__bucket_placement : &gm__best_fit_placement;
}

static gm_status fixed_begin(gm__attempt *attempt, gm_error *err) { return fixed_place(attempt)->begin(attempt, err); }

static bool fixed_pooled(gm__attempt *attempt) { return fixed_place(attempt)->pooled(attempt); }

static gm_status fixed_fresh(gm__attempt *attempt, gm_error *err) { return fixed_place(attempt)->fresh(attempt, err); }

/* Tries a search with the request's own size, then with each larger one if the pool takes those. */
static bool fixed_search(gm__attempt *attempt, bool (*search)(gm__attempt *attempt)) {
  const gm__fixed_sizes *fixed = fixed_sizes(attempt);
  const gm__want *want = attempt->want;
  gm__want larger = *want;
  bool found = search(attempt);
  for (uint32_t i = want->size_class + 1; !found && fixed->takes_larger && i < fixed->count; i++) {
    larger.exact = fixed->bytes[i];
    attempt->want = &larger;
    found = gm__best_fit_placement.pooled(attempt) || search(attempt);
  }
  attempt->want = want;
  return found;
}

static bool fixed_moved(gm__attempt *attempt) { return fixed_search(attempt, fixed_place(attempt)->moved); }

static bool fixed_anywhere(gm__attempt *attempt) { return fixed_search(attempt, fixed_place(attempt)->anywhere); }

const gm__placement gm__fixed_placement = {fixed_begin, fixed_pooled, fixed_moved, fixed_fresh, fixed_anywhere};
