/* Anchors: how a range is found by any number in it, through a hash table with one entry for each range. The anchor of
 * a range is the number in it that is divisible by the largest power of two (there is one only), its level that power.
 * So of each level one number alone can be the anchor of the range that contains a given number: a look-up tries as
 * many numbers as there are levels, at most 64, however many ranges there are and however long they are. */
#ifndef GM_CORE_ALGO_ANCHOR_H
#define GM_CORE_ALGO_ANCHOR_H

#include <stdint.h>

/* Of [first, last], without 0. The highest bit in which first - 1 and last differ is set in `last` and in the anchor,
 * and no lower one is in the anchor. */
static inline uint64_t gm__anchor(uint64_t first, uint64_t last) {
  const int bit = 63 - __builtin_clzll((first - 1) ^ last);
  return last >> bit << bit;
}

static inline int gm__anchor_level(uint64_t anchor) { return __builtin_ctzll(anchor); }

/* The one number of the level that can be the anchor of a range which contains `number`: of the two multiples around it
 * (or it and the next one) the other is divisible by twice as much. */
static inline uint64_t gm__anchor_at(uint64_t number, int level) { return (number >> level | 1) << level; }

/* Which levels there are: a bit for each, and how many ranges have it. */
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
