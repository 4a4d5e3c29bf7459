/* Pages: physical memory of a pool's device in handles, each mapped into one of the pool's ranges or kept to be mapped
 * again. Externally synchronised (`lock`, which is taken before an arena's and held over the driver's calls). */
#ifndef GM_CORE_POOL_PAGES_H
#define GM_CORE_POOL_PAGES_H

#include "core/base/thread.h"
#include "core/device/device.h"
#include "core/pool/spare.h"
#include "gm/pool.h"

typedef struct gm__pages {
  gm__mutex lock;
  bool usable;
  uint32_t type;       /* of memory */
  uint64_t page_bytes; /* a power of two */
  gm__handle *handles; /* by number, from 1 */
  uint32_t capacity;
  uint32_t unused; /* a list; 0: the end */
  gm__spare spare;
  _Atomic uint64_t spare_bytes;
  uint64_t made; /* handles, ever */
  uint32_t shut_count;
} gm__pages;

/* Addresses, and which handle is behind each page (0: none). */
typedef struct gm__range {
  uint64_t address;
  uint32_t page_count;
  bool described;              /* the backend made the memory that stands for it */
  _Atomic bool zeroed;         /* whatever is mapped is filled with zeros then */
  gm_memory memory;            /* what stands for it */
  uint64_t *mapped_pages;      /* where its owner counts them, under the lock */
  _Atomic uint32_t *handle_of; /* read without the lock, too: of pages that nobody maps or unmaps meanwhile */
} gm__range;

void gm__pages_init(gm_pool *pool, bool wanted);
void gm__pages_clear(gm_pool *pool, gm_close_mode mode);

/* No range is larger. */
uint64_t gm__range_most_bytes(const gm_pool *pool);

/* A range of addresses for an arena, which counts in *mapped_pages how many pages of all its ranges have memory; NULL:
 * none can be had, and `err` says why. */
gm__range *gm__range_open(gm_pool *pool, uint64_t *mapped_pages, gm_memory *out_memory, gm_error *err);
/* Its handles, too, whatever is in it. */
void gm__range_close(gm_pool *pool, gm__range *range, const gm_memory *memory, gm_close_mode mode);

/* Put memory behind each page of [from, to) that has none. Takes spare handles first, which may reach beyond `to` up to
 * `reach`, then new ones as large as the room allows. On failure some may have been done. The supply layer's answers.
 */
gm_status gm__pages_fill(gm_pool *pool, gm__range *range, uint32_t from, uint32_t to, uint32_t reach, gm_error *err);

/* Of the pages of [from, to) those whose handles were made after the `since`th leave the range, unused as they are, and
 * go back to the device; not what is shut. */
void gm__pages_undo(gm_pool *pool, gm__range *range, uint32_t from, uint32_t to, uint64_t since);

/* The handle leaves its range, where nothing uses it: it is spare from now on. False: the driver refused. */
bool gm__pages_unmap(gm_pool *pool, gm__range *range, uint32_t handle);

/* Is memory behind the page that the driver would neither open nor unmap? */
bool gm__page_is_shut(const gm_pool *pool, const gm__range *range, uint64_t page);

/* Try once more to unmap what of [from, to) is shut: it is spare then. */
void gm__pages_retry(gm_pool *pool, gm__range *range, uint64_t from, uint64_t to);

/* Bytes of handles that are mapped nowhere. Any thread may ask. */
uint64_t gm__pages_spare_bytes(const gm_pool *pool);

/* Give spare handles back to the device; their bytes. */
uint64_t gm__pages_release(gm_pool *pool);

#endif
