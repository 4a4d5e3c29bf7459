#include "core/staging/convert.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/env.h"

const gm__convert_way *gm__convert_way_at(size_t index) {
  const gm__convert_way *const ways[] = {gm__convert_avx512(), gm__convert_avx2(), &gm__convert_vector,
                                         &gm__convert_scalar};
  size_t seen = 0;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    if (ways[i] && seen++ == index) return ways[i];
  }
  return NULL;
}

static const gm__convert_way *convert_choose(void) {
  const char *name = gm__env("GM_CONVERT");
  const gm__convert_way *way = NULL;
  for (size_t i = 0; name && (way = gm__convert_way_at(i)) != NULL; i++) {
    if (strcmp(way->name, name) == 0) return way;
  }
  return gm__convert_way_at(0);
}

const gm__convert_way *gm__convert_way_here(void) {
  static const gm__convert_way *_Atomic chosen;
  const gm__convert_way *way = atomic_load_explicit(&chosen, memory_order_acquire);
  if (way) return way;
  way = convert_choose(); /* each thread that comes here at once finds the same */
  atomic_store_explicit(&chosen, way, memory_order_release);
  return way;
}
