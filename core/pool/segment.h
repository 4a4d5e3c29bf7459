/* Segments: memory of a pool that is carved by one of its arenas. */
#ifndef GM_CORE_POOL_SEGMENT_H
#define GM_CORE_POOL_SEGMENT_H

#include "core/pool/node.h"
#include "core/pool/request.h"

typedef struct gm__arena gm__arena;

/* Memory that can serve the same requests. */
typedef struct gm__memory_kind {
  uint32_t align, usage, flags; /* what it can do: GM_HOST_VISIBLE, GM_COMMIT */
  gm_must_be must_be;
  bool beside_device;
} gm__memory_kind;

/* The memory's own figures are the node's, in state GM__NODE_SEGMENT. A range of mapped pages is a segment, too: of all
 * its addresses; what is not mapped is a gap. */
typedef struct gm__segment {
  struct gm__segment *prev, *next; /* of the arena */
  gm__arena *arena;
  gm__node *node;
  struct gm__range *range; /* NULL: one driver allocation */
  uint64_t freed_at;       /* while no arena has it: when the last of it was freed; 0: it was never used */
  bool zeroed;             /* when it was made; of a range, that of its pages counts */
  uint32_t edge;           /* the span before the first one */
  uint32_t home;           /* its number in the arena */
} gm__segment;

/* What pools of a device know of its memory types. */
typedef struct gm__segment_rules {
  bool zeroes;                 /* new memory, before anybody gets a part of it */
  uint64_t small;              /* blocks of so many bytes at most are kept in quick lists */
  uint64_t size;               /* what to take at a time; UINT64_MAX: as the pool grows */
  uint64_t granule;            /* every span is so many bytes (a power of two), times n, at a multiple of it */
  bool all_local, all_visible; /* the device has no other memory */
} gm__segment_rules;

void gm__segment_rules_init(gm__segment_rules *rules, const gm_device *device);

/* What matters of a request here. */
gm__memory_kind gm__kind_of(const gm__segment_rules *rules, const gm__want *want);
bool gm__kind_serves(const gm__memory_kind *kind, const gm__memory_kind *asked);

/* The memory becomes one idle hole (of a range: one gap) of the arena, whose lock is held. False without host memory:
 * unchanged. */
bool gm__segment_open(gm__arena *arena, gm__segment *segment);

/* What of it was never used is all zeros. */
bool gm__segment_is_zeroed(const gm__segment *segment);

/* A segment of the arena that is one idle hole leaves it, with its memory. */
void gm__segment_close(gm__arena *arena, gm__segment *segment);

/* Is it one hole that no stream is known to use? */
bool gm__segment_is_idle(const gm__arena *arena, const gm__segment *segment);

/* The same, and the hole was last freed by that time. */
bool gm__segment_is_idle_since(const gm__arena *arena, const gm__segment *segment, uint64_t freed_by);

#endif
