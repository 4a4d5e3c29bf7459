/* Anchors. A hash table with one entry for each range finds a range by any number in it. The anchor of a range is the
 * number in it that the largest power of two divides. Its level is that power. On each level only one number can be the
 * anchor of the range around a given number. So a look-up tries as many numbers as there are levels, at most 64,
 * whatever the ranges are. */
#ifndef GM_CORE_ALGO_ANCHOR_H
#define GM_CORE_ALGO_ANCHOR_H

#include <stdint.h>

/* The anchor of [first, last], without 0. The highest bit in which first - 1 and last differ is set in `last` and in
 * the anchor. The anchor has no lower bit. */
static inline uint64_t gm__anchor(uint64_t first, uint64_t last) {
  const int bit = 63 - __builtin_clzll((first - 1) ^ last);
  return last >> bit << bit;
}

static inline int gm__anchor_level(uint64_t anchor) { return __builtin_ctzll(anchor); }

/* The number of the level that can be the anchor of a range around `number`. One of the two multiples around it is
 * divisible by twice as much, so it is the other. */
static inline uint64_t gm__anchor_at(uint64_t number, int level) { return (number >> level | 1) << level; }

/* The levels in use: a bit for each, and how many ranges have it. */
typedef struct gm__anchor_levels {
  uint64_t used;
  uint32_t count[64];
} gm__anchor_levels;

static inline void gm__anchor_levels_add(gm__anchor_levels *levels, uint64_t anchor) {
  const int level = gm__anchor_level(anchor);
  levels->count[level]++;
  levels->used |= UINT64_C(1) << level;
}

static inline void gm__anchor_levels_remove(gm__anchor_levels *levels, uint64_t anchor) {
  const int level = gm__anchor_level(anchor);
  if (--levels->count[level] == 0) levels->used &= ~(UINT64_C(1) << level);
}

#endif
