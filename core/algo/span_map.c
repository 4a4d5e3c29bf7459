#include "core/algo/span_map.h"

/* Invariant: the spans tile the segment, so the first page always has one, and the span that contains an address is the
 * last one to begin at or below it. */

static uint64_t map_pages(uint64_t bytes) { return bytes / GM__SPAN_PAGE + 1; }

static uint64_t map_page(const gm__span_map *map, uint64_t address) { return (address - map->address) / GM__SPAN_PAGE; }

size_t gm__span_map_size(uint64_t bytes) {
  uint64_t pages = map_pages(bytes);
  if (pages > SIZE_MAX / 32) return 0;
  return (size_t)pages * sizeof(gm__span *) + (size_t)(pages / 64 + 1) * sizeof(uint64_t);
}

void gm__span_map_init(gm__span_map *map, uint64_t address, uint64_t bytes, void *memory) {
  *map = (gm__span_map){.address = address, .pages = map_pages(bytes), .first = memory};
  map->any = (uint64_t *)(void *)(map->first + map->pages);
}

static void map_set(gm__span_map *map, uint64_t page, gm__span *span) {
  map->first[page] = span;
  map->any[page / 64] |= UINT64_C(1) << page % 64;
}

void gm__span_map_open(gm__span_map *map, gm__span *all) { map_set(map, 0, all); }

/* In the page where the rest begins now, what begins there besides lies behind it: it is the lowest, unless the front
 * begins there, too. No other span is looked at, because it would not be in the cache. */
void gm__span_map_cut(gm__span_map *map, gm__span *front, gm__span *rest) {
  uint64_t page = map_page(map, front->address), next = map_page(map, rest->address);
  if (map->first[page] == rest) map->first[page] = front;
  if (next != page) map_set(map, next, rest);
}

void gm__span_map_leave(gm__span_map *map, const gm__span *span) {
  uint64_t page = map_page(map, span->address);
  if (map->first[page] != span) return;
  gm__span *right = span->right;
  map->first[page] = right && map_page(map, right->address) == page ? right : NULL;
  if (!map->first[page]) map->any[page / 64] &= ~(UINT64_C(1) << page % 64);
}

/* The last page below `page` in which a span begins. */
static uint64_t map_before(const gm__span_map *map, uint64_t page) {
  uint64_t word = page / 64;
  uint64_t bits = map->any[word] & ((UINT64_C(1) << page % 64) - 1);
  while (!bits && word > 0) bits = map->any[--word];
  return bits ? word * 64 + 63 - (uint64_t)__builtin_clzll(bits) : 0;
}

gm__span *gm__span_map_find(const gm__span_map *map, uint64_t address) {
  uint64_t page = map_page(map, address);
  gm__span *span = map->first[page];
  if (!span || span->address > address) span = map->first[map_before(map, page)];
  while (span->right && span->right->address <= address) span = span->right;
  return span;
}
