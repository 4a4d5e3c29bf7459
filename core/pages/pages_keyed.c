/* Calls of a page set about keys. */
#include "core/pages/page_keys.h"
#include "core/pages/pages.h"

static gm_page pages_set_key(gm_pages *set, gm_page page, gm_page_key key, uint32_t priority) {
  gm__page *record = &set->pages[page];
  const bool none = !key.lo && !key.hi;
  const gm_page there = none ? GM_NO_PAGE : gm__page_key_find(set, key);
  record->priority = (uint8_t)priority;
  if (there == page) return page;
  if (record->keyed) gm__page_key_remove(set, page);
  if (none || there != GM_NO_PAGE) return there;
  gm__page_key_put(set, page, key);
  return page;
}

gm_status gm_pages_set_key(gm_pages *pages, uint32_t owner, gm_page page, gm_page_key key, uint32_t priority,
                           gm_page *out, gm_error *err) {
  static const char op[] = "gm_pages_set_key";
  gm_status status = gm__pages_enter(pages, op, err);
  if (status) return status;
  const gm__page_owner *found = gm__page_owner_find(pages, owner);
  if (!found)
    status = gm__page_owner_fault(pages, owner, op, err);
  else if (page >= pages->max_pages || !gm__page_is_held_by(pages, found, page))
    status = gm__page_not_held(pages, found, page, op, err);
  else if (priority >= GM_PAGE_PRIORITIES)
    status = gm__bad_argument(err, op, "`priority` is %u, not below %d", priority, GM_PAGE_PRIORITIES);
  if (status) return gm__pages_leave(pages, status);
  const gm_page there = pages_set_key(pages, page, key, priority);
  if (out) *out = there;
  return gm__pages_leave(pages, GM_OK);
}

/* Gives the owner a hold of the page with that key. GM_NO_PAGE: there is none. REQUIRES: memory for one hold. */
static gm_page pages_find_one(gm_pages *set, gm__page_owner *owner, gm_page_key key) {
  const gm_page page = key.lo || key.hi ? gm__page_key_find(set, key) : GM_NO_PAGE;
  if (page == GM_NO_PAGE || set->pages[page].hold.count == GM_PAGE_HOLDS_MOST) return GM_NO_PAGE;
  if (!set->pages[page].hold.count) gm__page_lift(set, page);
  gm__page_hold_add(set, owner, page);
  return page;
}

enum { PAGES_KEYS_AHEAD = 4 };

static gm_status pages_find(gm_pages *set, gm__page_owner *owner, const gm_page_key *keys, uint32_t count, gm_page *out,
                            uint32_t *out_count) {
  uint32_t found = 0;
  for (; found < count; found++) {
    if (!gm__page_holds_reserve(set, 1)) break;
    if (found + PAGES_KEYS_AHEAD < count) gm__page_key_prefetch(set, keys[found + PAGES_KEYS_AHEAD]);
    out[found] = pages_find_one(set, owner, keys[found]);
    if (out[found] != GM_NO_PAGE) continue;
    set->found += *out_count = found;
    return GM_OK;
  }
  if (found == count) {
    set->found += *out_count = found;
    return GM_OK;
  }
  while (found) gm__page_release(set, owner, out[--found]); /* the last page first, as a sequence does */
  return GM_ERR_OUT_OF_HOST_MEMORY;
}

gm_status gm_pages_find(gm_pages *pages, uint32_t owner, const gm_page_key *keys, uint32_t count, gm_page *out,
                        uint32_t *out_count, gm_error *err) {
  static const char op[] = "gm_pages_find";
  if (!out_count || (count && !(keys && out))) return gm__bad_argument(err, op, "`keys`, `out` or `out_count` is NULL");
  *out_count = 0;
  gm_status status = gm__pages_enter(pages, op, err);
  if (status) return status;
  gm__page_owner *found = gm__page_owner_find(pages, owner);
  status = found ? pages_find(pages, found, keys, count, out, out_count) : gm__page_owner_fault(pages, owner, op, err);
  if (status == GM_ERR_OUT_OF_HOST_MEMORY) gm__fail(err, status, op, "no host memory for a hold");
  return gm__pages_leave(pages, status);
}

gm_status gm_pages_drop_keys(gm_pages *pages, gm_error *err) {
  const gm_status status = gm__pages_enter(pages, "gm_pages_drop_keys", err);
  if (status) return status;
  gm__page_keys_drop(pages);
  pages->order.dropped = gm__page_idle(pages);
  return gm__pages_leave(pages, GM_OK);
}
