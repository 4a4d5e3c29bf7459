/* Holes of memory, binned by size: near-best-fit search, cutting and joining. Pure: no lock, no device, no allocation;
 * spans and bins are the caller's, outside the memory they describe. Externally synchronised. */
#ifndef GM_CORE_ALGO_HEAP_H
#define GM_CORE_ALGO_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  GM__HEAP_SUB_BINS = 16, /* between two powers of two */
  GM__HEAP_BINS = 976,
  GM__HEAP_WORDS = (GM__HEAP_BINS + 63) / 64,
  GM__HEAP_GROUPS = 66
};

/* A range of one segment: handed out, or a hole. */
typedef struct gm__span gm__span;
struct gm__span {
  uint64_t address, bytes;
  gm__span *left, *right; /* neighbours in the segment, by address */
  gm__span *prev, *next;  /* in its bin, while it is a hole */
  uint16_t bin;
  uint8_t group;
  bool hole;
};

/* The holes of one group; zero-initialised it is empty. */
typedef struct gm__heap_bins {
  uint64_t top; /* words that are not 0 */
  uint64_t words[GM__HEAP_WORDS];
  gm__span *heads[GM__HEAP_BINS];
} gm__heap_bins;

/* Holes are kept apart by group (whatever the caller means by it); a group without bins has no holes. */
typedef struct gm__heap {
  gm__heap_bins *groups[GM__HEAP_GROUPS];
} gm__heap;

/* The bin of a size: 2^k * (1 + i/16). */
uint32_t gm__heap_bin(uint64_t bytes);

/* Make a span that is none a hole of the group, which must have bins; and the other way round. */
void gm__heap_put(gm__heap *heap, gm__span *span, uint32_t group);
void gm__heap_take(gm__heap *heap, gm__span *span);

/* Bytes to skip at the begin of the span to be aligned (a power of two). */
uint64_t gm__span_pad(const gm__span *span, uint64_t align);
/* True when `bytes` fit at that alignment. */
bool gm__span_fits(const gm__span *span, uint64_t bytes, uint64_t align);

/* A hole of the group that fits, close to the smallest; NULL only when there is none. A bounded number of steps, but
 * for a search that ends in the hole's own bin because no larger one has any. */
gm__span *gm__heap_find(const gm__heap *heap, uint32_t group, uint64_t bytes, uint64_t align);

/* The first `bytes` (less than all) of a hole become `front`, no hole; the rest stays the hole it is. */
void gm__heap_cut(gm__heap *heap, gm__span *hole, uint64_t bytes, gm__span *front);

/* `left`, no hole now, swallows its right neighbour, no hole either. */
void gm__span_join(gm__span *left);

/* The group's holes, taken out and linked by `next`; NULL when there are none. */
gm__span *gm__heap_drain(gm__heap *heap, uint32_t group);

#endif
