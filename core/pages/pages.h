/* The common parts of a page set's calls. REQUIRES: the set's lock, but for gm__pages_check and gm__pages_enter. */
#ifndef GM_CORE_PAGES_PAGES_H
#define GM_CORE_PAGES_PAGES_H

#include "core/base/error.h"
#include "core/pages/page_holds.h"
#include "core/pages/page_order.h"
#include "core/pages/page_owners.h"

/* OK: the set lives, in this process. gm__pages_fault is the slow part. */
gm_status gm__pages_fault(const gm_pages *set, const char *op, gm_error *err);

static inline gm_status gm__pages_check(const gm_pages *set, const char *op, gm_error *err) {
  const bool fine = set && gm__object_is(&set->head, GM__KIND_PAGES) &&
                    atomic_load_explicit(set->generation_at, memory_order_relaxed) == set->generation;
  return __builtin_expect(fine, 1) ? GM_OK : gm__pages_fault(set, op, err);
}

/* Checks the set and takes its lock. After a failure it is not taken. */
static inline gm_status gm__pages_enter(gm_pages *set, const char *op, gm_error *err) {
  const gm_status status = gm__pages_check(set, op, err);
  if (!status) gm__mutex_lock(&set->lock);
  return status;
}

/* Releases the lock, and returns `status`. */
static inline gm_status gm__pages_leave(gm_pages *set, gm_status status) {
  gm__mutex_unlock(&set->lock);
  return status;
}

/* INVALID_ARGUMENT: the stream is of another device than the pool. NULL is GM_OK. */
gm_status gm__page_stream_check(const gm_pool *pool, const gm_stream *stream, const char *op, gm_error *err);

/* A stream without an order of its own gets one around copies. NULL does nothing. */
gm_status gm__page_barrier(gm_stream *stream, gm_error *err);

/* Takes pages, all or none, as gm_pages_take does. */
gm_status gm__pages_take(gm_pages *set, gm__page_owner *owner, uint32_t count, uint32_t flags, gm_page *out,
                         const char *op, gm_error *err);

/* Gives the owner a hold of each page, all or none. */
gm_status gm__pages_share(gm_pages *set, gm__page_owner *owner, const gm_page *which, uint32_t count, const char *op,
                          gm_error *err);

/* Takes a hold away. False: the owner has none. */
bool gm__page_release(gm_pages *set, gm__page_owner *owner, gm_page page);

/* INVALID_ARGUMENT: the owner does not hold the page. */
gm_status gm__page_not_held(gm_pages *set, const gm__page_owner *owner, gm_page page, const char *op, gm_error *err);

#endif
