/* VA ranges: addresses of a pool, and which handle is mapped behind each page of them. */
#ifndef GM_CORE_PROVIDER_VA_RANGE_H
#define GM_CORE_PROVIDER_VA_RANGE_H

#include "core/provider/handles.h"
#include "core/provider/saved_pages.h"

typedef struct gm__va_range {
  uint64_t address;
  uint32_t page_count;
  bool fine;                   /* its handles are small */
  bool described;              /* the backend made `memory`, and must free it */
  _Atomic bool zeroed;         /* every page is filled with zeros when it is mapped */
  gm_memory memory;            /* what copies and native objects of its blocks take */
  uint64_t *mapped_pages;      /* the owner's count of mapped pages. REQUIRES: pages lock */
  gm__saved_pages *saved;      /* what its pages held when it fell asleep. REQUIRES: pages lock */
  struct gm__va_range *next;   /* the next one that is to wake. REQUIRES: pages lock */
  uint32_t woken;              /* its first handle that has memory again and is not mapped yet; 0: none */
  _Atomic uint32_t *handle_of; /* by page: the number of its handle, 0: none. A page that nobody maps or unmaps
                                * meanwhile may be read without the lock. */
} gm__va_range;

/* The size of the largest range. */
uint64_t gm__va_range_most_bytes(const gm__provider *provider);

/* Reserves a range for an arena. `fine`: no handle has more than a hundredth of what is mapped, so that one block pins
 * little. *mapped_pages counts the mapped pages of this range and of those like it. NULL: `err` says why. REQUIRES:
 * pages lock. */
gm__va_range *gm__va_range_open(gm__provider *provider, bool fine, uint64_t *mapped_pages, gm_memory *out_memory,
                                gm_error *err);

/* Ends a range and destroys the handles in it. */
void gm__va_range_close(gm__provider *provider, gm__va_range *range, const gm_memory *memory, gm_close_mode mode);

/* Maps memory behind each page of [from, to) that has none. A cached handle may reach beyond `to`, up to `reach`. On
 * failure some pages may have been mapped. The provider's answers. REQUIRES: pages lock. */
gm_status gm__va_range_fill(gm__provider *provider, gm__va_range *range, uint32_t from, uint32_t to, uint32_t reach,
                            gm_error *err);

/* Unmaps and destroys the handles in [from, to) that were made after the first `since` ones. Nobody has used them.
 * Shut ones stay. Bytes that growths drew of promises meanwhile (pages.drawn) are promised again. REQUIRES: pages
 * lock. */
void gm__va_range_undo(gm__provider *provider, gm__va_range *range, uint32_t from, uint32_t to, uint64_t since);

/* Unmaps a handle that nothing uses, and caches it. False: the driver refused. REQUIRES: pages lock. */
bool gm__va_range_unmap(gm__provider *provider, gm__va_range *range, uint32_t number);

/* True when the page's handle is shut: the driver would neither open nor unmap it. REQUIRES: pages lock. */
bool gm__va_range_is_shut(const gm__provider *provider, const gm__va_range *range, uint64_t page);

/* Tries again to unmap the shut handles in [from, to), and puts them into the handle cache. REQUIRES: pages lock. */
void gm__va_range_retry(gm__provider *provider, gm__va_range *range, uint64_t from, uint64_t to);

/* The range falls asleep: its handles give their memory back and keep their pages. *bytes grows by what went back. It
 * leaves shut handles alone. Nobody uses the memory. After a failure some handles are asleep. REQUIRES: pages lock. */
gm_status gm__va_range_sleep(gm__provider *provider, gm__va_range *range, uint64_t *bytes, gm_error *err);

/* The ranges from `first` on wake, in one turn of the card: there is memory again behind their pages, with undefined
 * contents. The provider's answers; after a failure some handles are awake. REQUIRES: pages lock. */
gm_status gm__va_ranges_wake(gm__provider *provider, gm__va_range *first, gm_error *err);

/* Writes what was saved back to the pages that are mapped. Others were given up meanwhile. The answers of a copy; what
 * was saved stays. `stream`: for the copies; NULL: the device's own. REQUIRES: pages lock. */
gm_status gm__va_range_restore(gm__provider *provider, const gm__va_range *range, gm_stream *stream, gm_error *err);

#endif
