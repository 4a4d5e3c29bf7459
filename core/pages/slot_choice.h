/* Which slot is used next, and when it may be. REQUIRES everywhere: the set's lock. */
#ifndef GM_CORE_PAGES_SLOT_CHOICE_H
#define GM_CORE_PAGES_SLOT_CHOICE_H

#include "core/pages/slots_state.h"

/* Asks whether the points of a slot have passed, or waits for them; those that have are released. It gives the lock up
 * meanwhile. False: some have not. *err is written only where a wait failed. */
bool gm__slot_settle(gm_slots *set, gm__slot_room *slot, bool wait, gm_error *err);

/* Chooses a slot whose points have passed; what was in there is evicted. It gives the lock up meanwhile. */
gm_status gm__slot_choose(gm_slots *set, uint32_t flags, int32_t *out, const char *op, gm_error *err);

/* A slot has nothing any more. If it is claimed, the thread that has it goes on. */
void gm__slot_free(gm_slots *set, gm__slot_room *slot);

/* Gives back the host memory of an entry, which neither the map nor a slot has. */
void gm__slots_entry_end(gm_slots *set, gm__slots_entry *entry);

/* Nobody leases the entry any more: its slot joins the order again, or is free. */
void gm__slots_entry_rest(gm_slots *set, gm__slots_entry *entry);

#endif
