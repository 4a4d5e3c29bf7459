#include "core/pages/page_owners.h"

#include <stdatomic.h>
#include <stdio.h>

#include "core/base/error.h"
#include "core/pages/page_pieces.h"

/* Invariant: indexes below `made` are open, or in the list of closed ones. That one is opened next which was closed
 * first: so a number comes again late. */

enum { OWNER_TURNS = 1 << (32 - GM__PAGE_OWNER_BITS) };

static gm__page_owner *owner_at(gm_pages *set, uint32_t index) {
  return gm__page_piece_at(&set->owners.table, index, sizeof(gm__page_owner));
}

static uint32_t owner_index(uint32_t number) { return number & ((1u << GM__PAGE_OWNER_BITS) - 1); }

/* An owner that was closed, out of their list. */
static gm__page_owner *owner_again(gm_pages *set) {
  gm__page_owners *owners = &set->owners;
  const uint32_t index = owners->closed_first;
  gm__page_owner *owner = owner_at(set, index);
  owners->closed_first = owner->next;
  if (owners->closed_first == GM__NO_NODE) owners->closed_last = GM__NO_NODE;
  const uint32_t turn = (owner->number >> GM__PAGE_OWNER_BITS) % (OWNER_TURNS - 1) + 1;
  owner->number = index | turn << GM__PAGE_OWNER_BITS;
  return owner;
}

uint32_t gm__page_owner_turn(void) {
  enum { TURNS_APART = 613 }; /* owners that come and go take a while to reach another set's numbers */
  static _Atomic uint32_t sets;
  return atomic_fetch_add(&sets, 1) % (OWNER_TURNS - 1) * TURNS_APART % (OWNER_TURNS - 1) + 1;
}

gm__page_owner *gm__page_owner_new(gm_pages *set, const char *tag, const char *op, gm_error *err) {
  gm__page_owners *owners = &set->owners;
  gm__page_owner *owner;
  if (owners->closed_first != GM__NO_NODE) {
    owner = owner_again(set);
  } else if (owners->made == GM_PAGE_OWNERS_MOST) {
    gm__fail(err, GM_ERR_OVER_LIMIT, op, "%u owners are open", owners->made);
    return NULL;
  } else if (!gm__page_pieces_reserve(gm__pages_services(set), &owners->table, owners->made + UINT64_C(1))) {
    gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for an owner");
    return NULL;
  } else {
    owner = owner_at(set, owners->made);
    owner->number = owners->made++ | owners->turn << GM__PAGE_OWNER_BITS;
  }
  owners->open++;
  owner->open = true;
  owner->first = owner->last = GM__NO_NODE;
  owner->pages = 0;
  snprintf(owner->tag, sizeof owner->tag, "%s", tag);
  return owner;
}

void gm__page_owner_end(gm_pages *set, gm__page_owner *owner) {
  gm__page_owners *owners = &set->owners;
  const uint32_t index = owner_index(owner->number);
  owner->open = false;
  owner->next = GM__NO_NODE;
  *(owners->closed_last != GM__NO_NODE ? &owner_at(set, owners->closed_last)->next : &owners->closed_first) = index;
  owners->closed_last = index;
  owners->open--;
}

gm_status gm__page_owner_fault(gm_pages *set, uint32_t number, const char *op, gm_error *err) {
  const uint32_t index = owner_index(number);
  const gm__page_owner *owner = index < set->owners.made ? owner_at(set, index) : NULL;
  if (!owner || !number) return gm__bad_argument(err, op, "there is no owner %u", number);
  if (owner->number == number) return gm__bad_argument(err, op, "owner %u, \"%s\", is closed", number, owner->tag);
  return gm__bad_argument(err, op, "owner %u is closed, or never was one", number);
}

gm__page_owner *gm__page_owner_any(gm_pages *set) {
  for (uint32_t i = 0; i < set->owners.made; i++) {
    if (owner_at(set, i)->open) return owner_at(set, i);
  }
  return NULL;
}
