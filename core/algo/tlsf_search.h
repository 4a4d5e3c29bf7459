/* A search through all bins for a free chunk: at any alignment, and sure. */
#ifndef GM_CORE_ALGO_TLSF_SEARCH_H
#define GM_CORE_ALGO_TLSF_SEARCH_H

#include "core/algo/tlsf.h"

/* So many granules of `granule` bytes at that alignment, which is at least a granule. */
typedef struct gm__tlsf_wish {
  uint32_t granules;
  uint64_t align, granule;
  bool (*suits)(const struct gm__tlsf_wish *wish, const gm__chunk *chunk); /* NULL: all chunks do */
  const void *user;
} gm__tlsf_wish;

bool gm__tlsf_serves(const gm__tlsf_wish *wish, const gm__chunk *chunk);

/* Like gm__tlsf_find, for any wish, and sure: 0 means that there is none. The steps are bounded, except where it must
 * look at a whole bin. */
uint32_t gm__tlsf_search(const gm__chunks *chunks, const gm__tlsf *tlsf, const gm__tlsf_wish *wish);

/* The last bin up to `bin` that is not empty; GM__TLSF_BINS: there is none. */
uint32_t gm__tlsf_last(const gm__tlsf *tlsf, uint32_t bin);

#endif
