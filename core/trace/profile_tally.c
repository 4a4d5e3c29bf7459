#include "core/trace/profile_tally.h"

#include "core/base/saturate.h"
#include "gm/size.h"

static void tally_raise(uint64_t *highest, uint64_t value) { *highest = gm__max(*highest, value); }

void gm__profile_tally_alloc(gm__profile_tally *tally, uint64_t bytes) {
  gm_trace_profile *out = &tally->figures;
  const uint32_t class = gm_size_class(bytes);
  out->allocs++;
  out->small_allocs += bytes <= GM_TRACE_SMALL;
  out->total_bytes = gm__add_sat(out->total_bytes, bytes);
  tally->live_bytes = gm__add_sat(tally->live_bytes, bytes);
  tally_raise(&out->peak_live_bytes, tally->live_bytes);
  tally_raise(&out->peak_live_blocks, ++tally->live_blocks);
  tally_raise(&out->class_peak_blocks[class], ++tally->class_live[class]);
  tally_raise(&out->class_largest_bytes[class], bytes);
}

void gm__profile_tally_free(gm__profile_tally *tally, uint64_t bytes, uint64_t age, bool moved) {
  tally->figures.frees++;
  tally->figures.brief_allocs += age < GM_TRACE_BRIEF_EVENTS;
  tally->figures.moved_frees += moved;
  tally->live_bytes = gm__sub_sat(tally->live_bytes, bytes); /* the sum may have been cut */
  tally->live_blocks--;
  tally->class_live[gm_size_class(bytes)]--;
}

gm_status gm__profile_map_add(gm__map *map, uint64_t key, uint64_t more) {
  uint64_t sum = 0;
  gm__map_find(map, key, &sum);
  return gm__map_insert(map, key, gm__add_sat(sum, more));
}
