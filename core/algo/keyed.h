/* Sorting by a number. Pure; memory is the caller's. */
#ifndef GM_CORE_ALGO_KEYED_H
#define GM_CORE_ALGO_KEYED_H

#include <stddef.h>
#include <stdint.h>

typedef struct gm__keyed {
  uint64_t key;
  uint64_t value;
} gm__keyed;

/* Sort by rising key; items with one key keep their order. `scratch` is as large as `items`. Steps: `count`, times
 * the bytes in which the keys differ. */
void gm__keyed_sort(gm__keyed *items, gm__keyed *scratch, size_t count);

#endif
