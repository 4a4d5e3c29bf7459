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
  holds->buckets = GM__PAGE_PIECE;
  holds->mask = 2 * GM__PAGE_PIECE - 1;
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
  uint32_t bucket = hash & holds->mask;
  if (bucket >= holds->buckets) bucket = hash & holds->mask >> 1;
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
  uint32_t *from = gm__page_piece_at(&holds->heads, bucket - (holds->mask + 1) / 2, sizeof(uint32_t));
  uint32_t *to = gm__page_piece_at(&holds->heads, bucket, sizeof(uint32_t));
  while (*from) {
    gm__page_extra *extra = holds_extra(set, *from);
    const uint32_t hash = holds_hash(extra->hold.owner, extra->page);
    if ((hash & holds->mask) == bucket) {
      *to = *from;
      *from = extra->chain;
      to = &extra->chain;
      *to = 0;
    } else {
      from = &extra->chain;
    }
  }
  if (holds->buckets > holds->mask) holds->mask = 2 * holds->mask + 1;
}

/* The place that names the node of an owner and a page; it holds 0 where there is none. */
static inline uint32_t *holds_find(gm_pages *set, uint32_t owner, gm_page page) {
  uint32_t *place = holds_bucket(&set->holds, holds_hash(owner, page));
  while (*place) {
    gm__page_extra *extra = holds_extra(set, *place);
    if (extra->hold.owner == owner && extra->page == page) break;
    place = &extra->chain;
  }
  return place;
}

/* ---- holds ---- */

/* An extra node for a page, in the bucket of `place`. `used` is the caller's to count. */
static inline uint32_t holds_new(gm_pages *set, gm_page page, uint32_t *place) {
  gm__page_holds *holds = &set->holds;
  const uint32_t name = holds->unused ? holds->unused : ++holds->made;
  gm__page_extra *extra = holds_extra(set, name);
  if (holds->unused) holds->unused = extra->chain;
  extra->page = page;
  extra->chain = 0;
  *place = name;
  return name;
}

/* So many extra nodes are in use now. */
static inline void holds_use(gm_pages *set, uint32_t count) {
  gm__page_holds *holds = &set->holds;
  holds->used += count;
  for (; count && holds->used > holds->buckets; count--) holds_split(set);
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
  else if (!own->owner)
    gm__page_own(set, owner, own, page);
  else {
    const uint32_t name = holds_new(set, page, place);
    gm__page_own(set, owner, &holds_extra(set, name)->hold, set->max_pages + name - 1);
    holds_use(set, 1);
  }
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

/* A batch of new holds changes these, and keeps them in registers. holds_run_end writes it back. */
typedef struct holds_run {
  uint32_t *link; /* where the owner's list ends: the next node's number goes there */
  uint32_t last;  /* the last node of the list */
  uint32_t unused, made, added;
} holds_run;

static inline holds_run holds_run_begin(gm_pages *set, gm__page_owner *owner) {
  return (holds_run){owner->last != GM__NO_NODE ? &gm__page_node(set, owner->last)->next : &owner->first, owner->last,
                     set->holds.unused, set->holds.made, 0};
}

static void holds_run_end(gm_pages *set, gm__page_owner *owner, holds_run run) {
  owner->last = run.last;
  owner->pages += run.added;
  set->holds.unused = run.unused;
  set->holds.made = run.made;
  holds_use(set, run.added);
}

/* The unusual page of a batch: its bucket is not empty, or the owner has its own node. */
static __attribute__((noinline)) holds_run holds_run_add(gm_pages *set, gm__page_owner *owner, gm_page page,
                                                         holds_run run) {
  holds_run_end(set, owner, run);
  holds_add(set, owner, page);
  return holds_run_begin(set, owner);
}

/* Does what holds_add does, in a batch. */
static inline __attribute__((always_inline)) holds_run holds_append(gm_pages *set, gm__page_owner *owner,
                                                                    uint32_t number, gm_page page, holds_run run) {
  gm__page_hold *own = &set->pages[page].hold;
  uint32_t *place = holds_find(set, number, page);
  if (__builtin_expect(own->owner == number || *place, 0)) return holds_run_add(set, owner, page, run);
  own->count++;
  const uint32_t name = run.unused ? run.unused : ++run.made;
  gm__page_extra *extra = holds_extra(set, name);
  run.unused = run.unused ? extra->chain : 0;
  *place = name;
  extra->hold.owner = number;
  extra->hold.next = GM__NO_NODE;
  extra->hold.previous = run.last;
  extra->hold.times = 1;
  extra->page = page;
  extra->chain = 0;
  *run.link = run.last = set->max_pages + name - 1;
  run.link = &extra->hold.next;
  run.added++;
  return run;
}

uint32_t gm__page_holds_share(gm_pages *set, gm__page_owner *owner, const gm_page *which, uint32_t count) {
  const uint32_t number = owner->number;
  uint32_t done = 0;
  holds_run run = holds_run_begin(set, owner);
  const uint32_t near = count > GM__PAGES_AHEAD ? count - GM__PAGES_AHEAD : 0; /* of the end: nothing is ahead */
  for (; done < near && gm__page_can_share(set, which[done]); done++) {
    gm__page_prefetch(set, which[done + GM__PAGES_AHEAD]);
    run = holds_append(set, owner, number, which[done], run);
  }
  for (; done >= near && done < count && gm__page_can_share(set, which[done]); done++)
    run = holds_append(set, owner, number, which[done], run);
  holds_run_end(set, owner, run);
  set->hold_count += done;
  return done;
}

void gm__page_holds_fork(gm_pages *set, const gm__page_owner *from, gm__page_owner *to) {
  const uint32_t number = to->number;
  holds_run run = holds_run_begin(set, to);
  for (uint32_t node = from->first; node != GM__NO_NODE; node = gm__page_node(set, node)->next)
    run = holds_append(set, to, number, gm__page_of_node(set, node), run);
  holds_run_end(set, to, run);
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
