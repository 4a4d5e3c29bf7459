/* Memory of page sets. A set with a pool (gm_pages_params.pool) has planes, such as the keys and the values of each
 * layer. A page has a part in each plane.
 *
 * Memory comes and goes by granules of granule_pages pages. In each plane a granule is one block of the pool. So page p
 * lies in granule p / granule_pages. In plane k it begins at byte p % granule_pages * plane_bytes[k] of that granule's
 * block, and has plane_bytes[k] bytes. The place of a page that somebody holds never changes. With granule_pages 0 each
 * plane is one block: the address is base + p * plane_bytes[k].
 *
 * Pages without memory are never handed out. Every call is thread-safe. Takes and releases go on while another thread
 * is in one of these calls. */
#ifndef GM_PAGE_MEMORY_H
#define GM_PAGE_MEMORY_H

#include "gm/pages.h"

GM_BEGIN_DECLS

/* Gets memory until `backed_pages` pages have some, rounded up to granules: those of the least numbers first. A set
 * that has so many already stays as it is. Call it from a thread that may wait, before takes need the pages. After a
 * failure the granules that are whole stay. Errors: INVALID_ARGUMENT: also where the set has no pool, or not so many
 * pages. OUT_OF_DEVICE_MEMORY, OVER_LIMIT, DRIVER: what the pool said. FORKED. */
GM_API gm_status gm_pages_grow(gm_pages *pages, uint32_t backed_pages, gm_error *err);

/* Gives memory of whole granules back to the pool, while at least `backed_pages` pages keep theirs. Such a granule has
 * no page that is held, and none that a step may read. Granules without idle pages go first, and of those alike the
 * ones of the largest numbers. Idle pages that go lose their keys. *out (NULL is allowed) is the number of pages that
 * lost their memory. The call takes time by the number of pages of the set. Errors: INVALID_ARGUMENT: also where the
 * set has no pool. BUSY: a block is mapped; its granule has no memory until the next gm_pages_grow. FORKED. */
GM_API gm_status gm_pages_trim(gm_pages *pages, uint32_t backed_pages, uint32_t *out, gm_error *err);

/* Tells where a page lies in a plane. *out is the granule's block, borrowed while somebody holds the page. The page
 * begins *out_offset bytes into it. Errors: INVALID_ARGUMENT: no such page or plane, or the page has
 * no memory. FORKED. */
GM_API gm_status gm_pages_place(gm_pages *pages, uint32_t plane, gm_page page, gm_block *out, uint64_t *out_offset,
                                gm_error *err);

GM_END_DECLS

#endif
