#include "core/pages/pages.h"

#include "core/pages/page_keys.h"
#include "core/pages/page_settle.h"

gm_status gm__pages_fault(const gm_pages *set, const char *op, gm_error *err) {
  if (!set) return gm__bad_argument(err, op, "`pages` is NULL");
  if (!gm__object_is(&set->head, GM__KIND_PAGES)) return gm__bad_argument(err, op, "`pages` is destroyed");
  return gm__context_check(set->ctx, op, err);
}

/* A release touches the pages beside its own in the owner's list, too. */
static void pages_prefetch(const gm_pages *set, const gm_page *which, uint32_t i, uint32_t count) {
  const uint32_t near = i + GM__PAGES_AHEAD / 2;
  if (i + GM__PAGES_AHEAD < count) gm__page_prefetch(set, which[i + GM__PAGES_AHEAD]);
  if (near >= count || which[near] >= set->max_pages) return;
  gm__page_prefetch(set, set->pages[which[near]].hold.next);
  gm__page_prefetch(set, set->pages[which[near]].hold.previous);
}

/* ---- take ---- */

static gm_page pages_take_one(gm_pages *set, gm__page_owner *owner) {
  const gm_page page = gm__page_next(set);
  gm__page *record = &set->pages[page];
  if (set->order.stacked >= GM__PAGES_AHEAD)
    __builtin_prefetch(&set->pages[set->order.stack[set->order.stacked - GM__PAGES_AHEAD]], 1);
  if (record->keyed) {
    gm__page_key_remove(set, page);
    set->evicted++;
  }
  record->hold.count = 1;
  gm__page_own(set, owner, &record->hold, page);
  return page;
}

gm_status gm__pages_take(gm_pages *set, gm__page_owner *owner, uint32_t count, uint32_t flags, gm_page *out,
                         const char *op, gm_error *err) {
  const uint32_t reserve = flags & GM_PAGES_URGENT ? 0 : set->reserve;
  const uint32_t available = set->order.available > reserve ? set->order.available - reserve : 0;
  if (count > available) {
    set->refused++;
    if (!err) return GM_ERR_OVER_LIMIT;
    return gm__fail(err, GM_ERR_OVER_LIMIT, op, "\"%s\" asks for %u pages, and %u can be taken", owner->tag, count,
                    available);
  }
  for (uint32_t i = 0; i < count; i++) out[i] = pages_take_one(set, owner);
  set->held += count;
  set->hold_count += count;
  set->taken += count;
  return GM_OK;
}

gm_status gm_pages_take(gm_pages *pages, uint32_t owner, uint32_t count, uint32_t flags, gm_page *out, gm_error *err) {
  static const char op[] = "gm_pages_take";
  if (!out || flags & ~(uint32_t)GM_PAGES_URGENT)
    return gm__bad_argument(err, op, out ? "`flags` has an unknown flag" : "`out` is NULL");
  gm_status status = gm__pages_enter(pages, op, err);
  if (status) return status;
  gm__pages_settle_for(pages, count);
  gm__page_owner *found = gm__page_owner_find(pages, owner);
  status =
      found ? gm__pages_take(pages, found, count, flags, out, op, err) : gm__page_owner_fault(pages, owner, op, err);
  return gm__pages_leave(pages, status);
}

/* ---- release ---- */

bool gm__page_release(gm_pages *set, gm__page_owner *owner, gm_page page) {
  if (!gm__page_hold_drop(set, owner, page)) return false;
  gm__page *record = &set->pages[page];
  if (record->hold.count) return true;
  if (record->keyed && record->keyed != set->keys.generation) gm__page_key_remove(set, page);
  gm__page_retire(set, page);
  return true;
}

gm_status gm__page_not_held(gm_pages *set, const gm__page_owner *owner, gm_page page, const char *op, gm_error *err) {
  if (page >= set->max_pages) return gm__bad_argument(err, op, "page %u is none of %u", page, set->max_pages);
  return gm__bad_argument(err, op, "\"%s\" does not hold page %u, which has %u holds", owner->tag, page,
                          set->pages[page].hold.count);
}

static gm_status pages_release(gm_pages *set, gm__page_owner *owner, const gm_page *which, uint32_t count,
                               gm_error *err) {
  for (uint32_t i = 0; i < count; i++) {
    pages_prefetch(set, which, i, count);
    if (which[i] >= set->max_pages || !gm__page_release(set, owner, which[i]))
      return gm__page_not_held(set, owner, which[i], "gm_pages_release", err);
  }
  return GM_OK;
}

gm_status gm_pages_release(gm_pages *pages, uint32_t owner, const gm_page *which, uint32_t count, gm_error *err) {
  static const char op[] = "gm_pages_release";
  if (!which && count) return gm__bad_argument(err, op, "`which` is NULL");
  gm_status status = gm__pages_enter(pages, op, err);
  if (status) return status;
  gm__page_owner *found = gm__page_owner_find(pages, owner);
  status = found ? pages_release(pages, found, which, count, err) : gm__page_owner_fault(pages, owner, op, err);
  return gm__pages_leave(pages, status);
}

/* ---- share ---- */

static gm_status pages_share_fault(gm_pages *set, gm_page page, const char *op, gm_error *err) {
  if (page >= set->max_pages) return gm__bad_argument(err, op, "page %u is none of %u", page, set->max_pages);
  if (!set->pages[page].hold.count) return gm__bad_argument(err, op, "nobody holds page %u", page);
  return gm__fail(err, GM_ERR_OVER_LIMIT, op, "page %u has %d holds", page, GM_PAGE_HOLDS_MOST);
}

gm_status gm__pages_share(gm_pages *set, gm__page_owner *owner, const gm_page *which, uint32_t count, const char *op,
                          gm_error *err) {
  if (!gm__page_holds_reserve(set, count))
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for %u holds", count);
  uint32_t done = gm__page_holds_share(set, owner, which, count);
  if (done == count) return GM_OK;
  const gm_page bad = which[done];
  while (done) gm__page_hold_drop(set, owner, which[--done]); /* others hold it: the count is not 0 */
  return pages_share_fault(set, bad, op, err);
}

gm_status gm_pages_share(gm_pages *pages, uint32_t owner, const gm_page *which, uint32_t count, gm_error *err) {
  static const char op[] = "gm_pages_share";
  if (!which && count) return gm__bad_argument(err, op, "`which` is NULL");
  gm_status status = gm__pages_enter(pages, op, err);
  if (status) return status;
  gm__page_owner *found = gm__page_owner_find(pages, owner);
  status = found ? gm__pages_share(pages, found, which, count, op, err) : gm__page_owner_fault(pages, owner, op, err);
  return gm__pages_leave(pages, status);
}

/* ---- fork ---- */

/* GM_NO_PAGE: each page of the owner can have one hold more. */
static gm_page pages_at_limit(gm_pages *set, const gm__page_owner *from) {
  for (uint32_t node = from->first; node != GM__NO_NODE; node = gm__page_node(set, node)->next) {
    const gm_page page = gm__page_of_node(set, node);
    if (!gm__page_can_share(set, page)) return page;
  }
  return GM_NO_PAGE;
}

static gm_status pages_fork(gm_pages *set, const gm__page_owner *from, gm__page_owner *to, gm_error *err) {
  static const char op[] = "gm_pages_fork";
  const gm_page bad = pages_at_limit(set, from);
  if (bad != GM_NO_PAGE) return pages_share_fault(set, bad, op, err);
  if (!gm__page_holds_reserve(set, from->pages))
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for %u holds", from->pages);
  gm__page_holds_fork(set, from, to);
  return GM_OK;
}

gm_status gm_pages_fork(gm_pages *pages, uint32_t from, uint32_t to, gm_error *err) {
  static const char op[] = "gm_pages_fork";
  if (from == to) return gm__bad_argument(err, op, "`from` and `to` are the same owner");
  gm_status status = gm__pages_enter(pages, op, err);
  if (status) return status;
  gm__page_owner *source = gm__page_owner_find(pages, from), *target = gm__page_owner_find(pages, to);
  status = source && target ? pages_fork(pages, source, target, err)
                            : gm__page_owner_fault(pages, source ? to : from, op, err);
  return gm__pages_leave(pages, status);
}
