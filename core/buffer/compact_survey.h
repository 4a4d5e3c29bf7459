/* The part of a pool that a compaction may look at: the places of a pool and the pieces in them. */
#ifndef GM_CORE_BUFFER_COMPACT_SURVEY_H
#define GM_CORE_BUFFER_COMPACT_SURVEY_H

#include "core/buffer/compact_plan.h"
#include "core/heap/pieces.h"
#include "core/pool/pool.h"

/* A look at a part of a pool. The next call looks at the next part, and after the last one at the first. */
typedef struct gm__compact_survey {
  gm_pool *pool;
  gm__plan *plan;           /* what was seen */
  uint64_t most_bytes;      /* larger buffers stay */
  size_t looks;             /* so many pieces it looks at, at the most */
  uint64_t stayed;          /* buffers that somebody has locked or a stream may still use */
  uint64_t memory, address; /* where the next look begins */
} gm__compact_survey;

/* Reads it. With a bound the segment that is the emptiest is in it, too. False without host memory. */
bool gm__compact_survey_read(gm__compact_survey *survey);

#endif
