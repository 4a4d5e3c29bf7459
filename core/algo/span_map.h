/* Which span of a segment contains an address. Pure; its memory is the caller's. Externally synchronised. */
#ifndef GM_CORE_ALGO_SPAN_MAP_H
#define GM_CORE_ALGO_SPAN_MAP_H

#include "core/algo/heap.h"

#define GM__SPAN_PAGE UINT64_C(65536)

typedef struct gm__span_map {
  uint64_t address, pages;
  gm__span **first; /* of the spans that begin in a page, the lowest */
  uint64_t *any;    /* a bit for each page in which one begins */
} gm__span_map;

/* What a map of `bytes` takes; 0: more than a size_t can say. */
size_t gm__span_map_size(uint64_t bytes);

/* `memory`: gm__span_map_size(bytes), zeroed, aligned for pointers. */
void gm__span_map_init(gm__span_map *map, uint64_t address, uint64_t bytes, void *memory);

/* The one span that is all of the segment. */
void gm__span_map_open(gm__span_map *map, gm__span *all);

/* After a cut (gm__heap_cut): `front` begins where `rest`, its right neighbour, began. */
void gm__span_map_cut(gm__span_map *map, gm__span *front, gm__span *rest);

/* Before a join: the span that will be swallowed. */
void gm__span_map_leave(gm__span_map *map, const gm__span *span);

/* The span that contains `address`, which must be in the segment. Steps: the spans in one page, and one for each 4 MiB
 * of the span that is found. */
gm__span *gm__span_map_find(const gm__span_map *map, uint64_t address);

#endif
