#include "core/pages/page_holds.h"

#include "core/pages/page_pieces.h"

/* Invariants. A page whose own node is not used may have extra ones. An owner has one node of a page at most. Extra
 * nodes in use are in the buckets, which are split one at a time as they become more (linear hashing). A split that
 * gets no memory is left out: chains are longer then. */

enum { HOLDS_EXTRAS_MOST = 1 << 30 };

bool gm__page_holds_begin(gm_pages *set) {
  gm__page_holds *holds = &set->holds;
  holds->extras.entry_bytes = sizeof(gm__page_extra);
  holds->heads.entry_bytes = sizeof(uint32_t);
  holds->buckets = holds->level = GM__PAGE_PIECE;
  return gm__page_pieces_reserve(gm__pages_services(set), &holds->heads, holds->buckets);
}

void gm__page_holds_end(gm_pages *set) {
  gm__page_pieces_end(gm__pages_services(set), &set->holds.extras);
  gm__page_pieces_end(gm__pages_services(set), &set->holds.heads);
}

bool gm__page_holds_reserve(gm_pages *set, uint32_t count) {
  gm__page_holds *holds = &set->holds;
  const uint64_t wanted = (uint64_t)holds->used + count;
  if (wanted > HOLDS_EXTRAS_MOST) return false;
  return gm__page_pieces_reserve(gm__pages_services(set), &holds->extras, wanted);
}

/* ---- buckets ---- */

static uint32_t holds_hash(uint32_t owner, gm_page page) {
  return (uint32_t)((((uint64_t)owner << 32 | page) * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static uint32_t *holds_bucket(gm__page_holds *holds, uint32_t hash) {
  uint32_t bucket = hash & (2 * holds->level - 1);
  if (bucket >= holds->buckets) bucket = hash & (holds->level - 1);
  return gm__page_piece_at(&holds->heads, bucket, sizeof(uint32_t));
}

static gm__page_extra *holds_extra(gm_pages *set, uint32_t name) {
  return gm__page_piece_at(&set->holds.extras, name - 1, sizeof(gm__page_extra));
}

/* One bucket more: the nodes of an earlier one that belong there go there. */
static void holds_split(gm_pages *set) {
  gm__page_holds *holds = &set->holds;
  if (!gm__page_pieces_reserve(gm__pages_services(set), &holds->heads, holds->buckets + UINT64_C(1))) return;
  const uint32_t bucket = holds->buckets++;
  uint32_t *from = gm__page_piece_at(&holds->heads, bucket - holds->level, sizeof(uint32_t));
  uint32_t *to = gm__page_piece_at(&holds->heads, bucket, sizeof(uint32_t));
  while (*from) {
    gm__page_extra *extra = holds_extra(set, *from);
    const uint32_t hash = holds_hash(extra->hold.owner, extra->page);
    if ((hash & (2 * holds->level - 1)) == bucket) {
      *to = *from;
      *from = extra->chain;
      to = &extra->chain;
      *to = 0;
    } else {
      from = &extra->chain;
    }
  }
  if (holds->buckets == 2 * holds->level) holds->level *= 2;
}

/* The place that names the node of an owner and a page; it holds 0 where there is none. */
static uint32_t *holds_find(gm_pages *set, uint32_t owner, gm_page page) {
  uint32_t *place = holds_bucket(&set->holds, holds_hash(owner, page));
  while (*place) {
    gm__page_extra *extra = holds_extra(set, *place);
    if (extra->hold.owner == owner && extra->page == page) break;
    place = &extra->chain;
  }
  return place;
}

/* ---- holds ---- */

static void holds_new(gm_pages *set, gm__page_owner *owner, gm_page page, uint32_t *place) {
  gm__page_holds *holds = &set->holds;
  const uint32_t name = holds->unused ? holds->unused : ++holds->made;
  gm__page_extra *extra = holds_extra(set, name);
  if (holds->unused) holds->unused = extra->chain;
  extra->page = page;
  extra->chain = 0;
  *place = name;
  gm__page_own(set, owner, &extra->hold, set->max_pages + name - 1);
  if (++holds->used > holds->buckets) holds_split(set);
}

/* REQUIRES: somebody holds the page. */
static inline void holds_add(gm_pages *set, gm__page_owner *owner, gm_page page) {
  gm__page_hold *own = &set->pages[page].hold;
  own->count++;
  if (own->owner == owner->number) {
    own->times++;
    return;
  }
  uint32_t *place = holds_find(set, owner->number, page);
  if (*place)
    holds_extra(set, *place)->hold.times++;
  else if (own->owner)
    holds_new(set, owner, page, place);
  else
    gm__page_own(set, owner, own, page);
}

void gm__page_hold_add(gm_pages *set, gm__page_owner *owner, gm_page page) {
  gm__page_hold *own = &set->pages[page].hold;
  set->hold_count++;
  if (own->count) {
    holds_add(set, owner, page);
    return;
  }
  set->held++;
  own->count = 1;
  gm__page_own(set, owner, own, page);
}

uint32_t gm__page_holds_share(gm_pages *set, gm__page_owner *owner, const gm_page *which, uint32_t count) {
  uint32_t done = 0;
  for (; done < count && gm__page_can_share(set, which[done]); done++) {
    if (done + GM__PAGES_AHEAD < count) gm__page_prefetch(set, which[done + GM__PAGES_AHEAD]);
    holds_add(set, owner, which[done]);
  }
  set->hold_count += done;
  return done;
}

void gm__page_holds_fork(gm_pages *set, const gm__page_owner *from, gm__page_owner *to) {
  for (uint32_t node = from->first; node != GM__NO_NODE; node = gm__page_node(set, node)->next)
    holds_add(set, to, gm__page_of_node(set, node));
  set->hold_count += from->pages;
}

static bool holds_drop_extra(gm_pages *set, gm__page_owner *owner, gm_page page) {
  gm__page_holds *holds = &set->holds;
  uint32_t *place = holds_find(set, owner->number, page);
  if (!*place) return false;
  const uint32_t name = *place;
  gm__page_extra *extra = holds_extra(set, name);
  if (--extra->hold.times) return true;
  gm__page_disown(set, owner, &extra->hold);
  *place = extra->chain;
  extra->chain = holds->unused;
  holds->unused = name;
  holds->used--;
  return true;
}

bool gm__page_hold_drop(gm_pages *set, gm__page_owner *owner, gm_page page) {
  gm__page *record = &set->pages[page];
  if (record->hold.owner == owner->number) {
    if (!--record->hold.times) gm__page_disown(set, owner, &record->hold);
  } else if (!record->hold.count || !holds_drop_extra(set, owner, page)) {
    return false;
  }
  set->hold_count--;
  set->held -= --record->hold.count == 0;
  return true;
}

bool gm__page_is_held_by(gm_pages *set, const gm__page_owner *owner, gm_page page) {
  return set->pages[page].hold.owner == owner->number || *holds_find(set, owner->number, page);
}
