/* The memory of a set's pages: blocks of a pool, one for each granule and plane. */
#ifndef GM_CORE_PAGES_PAGE_PLANES_H
#define GM_CORE_PAGES_PAGE_PLANES_H

#include "core/pages/pages_state.h"

/* Checks what the parameters say about planes, in a context. */
gm_status gm__page_planes_check(const gm_context *ctx, const gm_pages_params *params, const char *op, gm_error *err);

/* False: no host memory. gm__page_planes_end gives back what there is. Without a pool there is nothing to do. REQUIRES:
 * the parameters were checked. */
bool gm__page_planes_begin(gm_pages *set, const gm_pages_params *params);
void gm__page_planes_end(gm_pages *set);

/* Gives all blocks back, before the end. BUSY: one is mapped, and the rest is given back. */
gm_status gm__page_planes_release(gm_pages *set, const char *op, gm_error *err);

/* The status of a request that the pool refused. */
gm_status gm__page_pool_refused(gm_acquire answer, uint64_t bytes, const char *op, gm_error *err);

/* gm_pages_grow. REQUIRES: not the lock; no more than max_pages. */
gm_status gm__page_planes_grow(gm_pages *set, uint32_t backed, const char *op, gm_error *err);

/* The block of a page in a plane; NULL: the page has no memory. REQUIRES: the lock, or a page that is held. */
static inline const gm_block *gm__page_block(const gm_pages *set, uint32_t plane, gm_page page) {
  const gm__page_planes *planes = &set->planes;
  const uint32_t granule = page / planes->granule_pages;
  if (planes->states[granule] != GM__GRANULE_BACKED) return NULL;
  return &planes->blocks[(size_t)granule * planes->count + plane];
}

/* Where a page begins in its block. */
static inline uint64_t gm__page_offset(const gm_pages *set, uint32_t plane, gm_page page) {
  return page % set->planes.granule_pages * set->planes.bytes[plane];
}

#endif
