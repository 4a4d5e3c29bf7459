/* Segments: memory that an arena carves into chunks. */
#ifndef GM_CORE_ARENA_SEGMENT_H
#define GM_CORE_ARENA_SEGMENT_H

#include "core/arena/arena_set.h"
#include "core/arena/stream_cache.h"
#include "core/provider/va_range.h"

/* A segment is one driver allocation, in state GM__ALLOCATION_SEGMENT, or all addresses of a VA range. Memory of a
 * range that is not mapped is an unmapped chunk. */
typedef struct gm__segment {
  struct gm__segment *prev, *next; /* of the arena's list */
  gm__arena *arena;
  gm__allocation *allocation;
  gm__va_range *range; /* NULL: one driver allocation */
  gm__area area;
  uint64_t freed_at;      /* while no arena has it: when its last chunk was freed; 0: it was never used */
  bool mapped;            /* its memory has an address of the host for as long as it lives. REQUIRES: arena lock */
  bool zeroed;            /* it was filled with zeros when it was made; for a range see gm__va_range.zeroed */
  uint32_t edge;          /* the chunk without bytes before the first one */
  uint32_t segment_index; /* its number in the arena */
} gm__segment;

/* Makes the segment's memory one idle free chunk of the arena (a range: one unmapped chunk). False without host memory:
 * nothing has changed. REQUIRES: arena lock. */
bool gm__segment_open(gm__arena *arena, gm__segment *segment);

/* The segment that the chunk lies in. REQUIRES: arena lock. */
gm__segment *gm__segment_of(const gm__arena *arena, uint32_t number);

/* True when the parts that were never used are all zeros. */
bool gm__segment_is_zeroed(const gm__segment *segment);

/* A segment that is one idle free chunk leaves the arena. REQUIRES: arena lock. */
void gm__segment_close(gm__arena *arena, gm__segment *segment);

/* True when the segment is one free chunk that no stream is known to use. gm__segment_is_idle_since: and it was free at
 * that time already. REQUIRES: arena lock. */
bool gm__segment_is_idle(const gm__arena *arena, const gm__segment *segment);

bool gm__segment_is_idle_since(const gm__arena *arena, const gm__segment *segment, uint64_t freed_by);

#endif
