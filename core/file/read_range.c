#include "core/file/read_range.h"

#include "core/base/saturate.h"

/* Runs that lie close are read together, up to the end of their stretch of the file. */
uint64_t gm__read_range_part(const gm__read_range *range, uint64_t piece_bytes, uint64_t from, uint64_t *out_extent) {
  const uint64_t begin = gm__read_range_at(range, from), limit = (begin / piece_bytes + 1) * piece_bytes;
  const uint64_t run = range->run ? range->run : range->bytes;
  const bool joins = range->run && range->step - range->run <= GM__READ_GAP;
  uint64_t at = begin, end = begin, done = 0;
  while (from + done < range->bytes && at < limit) {
    const uint64_t left = run - (from + done) % run, bytes = gm__min(left, limit - at);
    done += bytes;
    end = at + bytes;
    if (!joins || bytes < left) break;
    at = gm__read_range_at(range, from + done);
  }
  *out_extent = end - begin;
  return done;
}
