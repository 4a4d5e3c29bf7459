/* The holders of each page, and the list of each owner's pages. REQUIRES everywhere: the set's lock. */
#ifndef GM_CORE_PAGES_PAGE_HOLDS_H
#define GM_CORE_PAGES_PAGE_HOLDS_H

#include "core/pages/pages_state.h"

/* False: no host memory. gm__page_holds_end gives back what there is. */
bool gm__page_holds_begin(gm_pages *set);
void gm__page_holds_end(gm_pages *set);

enum { GM__PAGES_AHEAD = 8 }; /* records that are asked for before they are needed */

/* The page may be any number: to ask for memory that is not there does nothing. */
static inline void gm__page_prefetch(const gm_pages *set, gm_page page) {
  __builtin_prefetch((const void *)((uintptr_t)set->pages + (uintptr_t)page * sizeof *set->pages), 1); /* NOLINT */
}

static inline gm__page_extra *gm__page_extra_at(gm_pages *set, uint32_t node) {
  return gm__page_piece_at(&set->holds.extras, node - set->max_pages, sizeof(gm__page_extra));
}

static inline gm__page_hold *gm__page_node(gm_pages *set, uint32_t node) {
  return node < set->max_pages ? &set->pages[node].hold : &gm__page_extra_at(set, node)->hold;
}

static inline gm_page gm__page_of_node(gm_pages *set, uint32_t node) {
  return node < set->max_pages ? node : gm__page_extra_at(set, node)->page;
}

/* Appends a node to the owner's list. */
static inline void gm__page_own(gm_pages *set, gm__page_owner *owner, gm__page_hold *hold, uint32_t node) {
  hold->owner = owner->number;
  hold->times = 1;
  hold->previous = owner->last;
  hold->next = GM__NO_NODE;
  *(owner->last != GM__NO_NODE ? &gm__page_node(set, owner->last)->next : &owner->first) = node;
  owner->last = node;
  owner->pages++;
}

static inline void gm__page_disown(gm_pages *set, gm__page_owner *owner, gm__page_hold *hold) {
  *(hold->previous != GM__NO_NODE ? &gm__page_node(set, hold->previous)->next : &owner->first) = hold->next;
  *(hold->next != GM__NO_NODE ? &gm__page_node(set, hold->next)->previous : &owner->last) = hold->previous;
  hold->owner = 0;
  owner->pages--;
}

/* Makes memory for `count` more nodes. False: there is none, and nothing else has changed. */
bool gm__page_holds_reserve(gm_pages *set, uint32_t count);

/* Gives the owner a hold of a page. REQUIRES: memory for one node, and fewer than GM_PAGE_HOLDS_MOST holds. */
void gm__page_hold_add(gm_pages *set, gm__page_owner *owner, gm_page page);

/* Can the page have one hold more beside those that it has? */
static inline bool gm__page_can_share(const gm_pages *set, gm_page page) {
  if (page >= set->max_pages) return false;
  const uint32_t holds = set->pages[page].hold.count;
  return holds && holds < GM_PAGE_HOLDS_MOST;
}

/* Gives the owner a hold of each page, until one cannot be shared. Returns how many it got. REQUIRES: memory for so
 * many nodes. */
uint32_t gm__page_holds_share(gm_pages *set, gm__page_owner *owner, const gm_page *which, uint32_t count);

/* Gives `to` a hold of each page that `from` holds. REQUIRES: memory for so many nodes, and each page can be shared. */
void gm__page_holds_fork(gm_pages *set, const gm__page_owner *from, gm__page_owner *to);

/* Takes a hold away. False: the owner has none. */
bool gm__page_hold_drop(gm_pages *set, gm__page_owner *owner, gm_page page);

/* Does the owner hold the page? */
bool gm__page_is_held_by(gm_pages *set, const gm__page_owner *owner, gm_page page);

#endif
