/* The owners of a set, by number. REQUIRES everywhere: the set's lock. */
#ifndef GM_CORE_PAGES_PAGE_OWNERS_H
#define GM_CORE_PAGES_PAGE_OWNERS_H

#include "core/pages/pages_state.h"

enum { GM__PAGE_OWNER_BITS = 20 }; /* of a number: the index. Those above count how often it was opened */

/* The turn of a new set: so many sets made one after the other have owners of different numbers. */
uint32_t gm__page_owner_turn(void);

gm__page_owner *gm__page_owner_new(gm_pages *set, const char *tag, const char *op, gm_error *err);

/* REQUIRES: it holds nothing. */
void gm__page_owner_end(gm_pages *set, gm__page_owner *owner);

/* The open owner of that number; NULL: there is none. */
static inline gm__page_owner *gm__page_owner_find(gm_pages *set, uint32_t number) {
  const uint32_t index = number & ((1u << GM__PAGE_OWNER_BITS) - 1);
  if (index >= set->owners.made) return NULL;
  gm__page_owner *owner = gm__page_piece_at(&set->owners.table, index, sizeof(gm__page_owner));
  return owner->open && owner->number == number ? owner : NULL;
}

/* INVALID_ARGUMENT, with the tag of an owner that is closed, if it is still known. */
gm_status gm__page_owner_fault(gm_pages *set, uint32_t number, const char *op, gm_error *err);

/* Any open owner; NULL: there is none. */
gm__page_owner *gm__page_owner_any(gm_pages *set);

#endif
