/* The figures of a profile that single allocations and frees change, whether they come from a file or from a pool in
 * use. */
#ifndef GM_CORE_TRACE_PROFILE_TALLY_H
#define GM_CORE_TRACE_PROFILE_TALLY_H

#include "core/base/map.h"
#include "gm/advice.h"

typedef struct gm__profile_tally {
  gm_trace_profile figures;
  uint64_t live_bytes, live_blocks;
  uint64_t class_live[GM_TRACE_CLASSES]; /* live blocks by class */
} gm__profile_tally;

void gm__profile_tally_alloc(gm__profile_tally *tally, uint64_t bytes);

/* A block of `bytes` goes, `age` events after its allocation, perhaps on another stream (`moved`). */
void gm__profile_tally_free(gm__profile_tally *tally, uint64_t bytes, uint64_t age, bool moved);

/* Adds to the value of a key; a new key has 0. The sum stops at 2^64 - 1. OUT_OF_HOST_MEMORY. */
gm_status gm__profile_map_add(gm__map *map, uint64_t key, uint64_t more);

#endif
