#include "backends/shared/event_slots.h"

#include "core/base/alloc.h"

/* Invariants: `use` of a slot equals the value of the point that holds it. It goes up by one when somebody gives the
 * point back, which happens once. Until the slot is unused again, only that caller touches `event`. A slot stays in use
 * while copies need its event. */

enum { EVENT_SLOTS_SPARE = 64 }; /* the driver gets more back */

void gm__event_slots_init(gm__event_slots *slots, const gm_services *services) {
  *slots = (gm__event_slots){.services = services};
  gm__mutex_init(&slots->lock, GM__RANK_LEAF);
}

void gm__event_slots_clear(gm__event_slots *slots) {
  while (slots->all) {
    gm__event_slot *slot = slots->all;
    slots->all = slot->next;
    gm__release(slots->services, slot, sizeof *slot);
  }
  gm__mutex_destroy(&slots->lock);
}

static gm__event_slot *event_slots_pop(gm__event_slots *slots, gm__event_slot **list) {
  gm__event_slot *slot = *list;
  if (slot) *list = slot->next_spare;
  if (slot && slot->event) slots->spare_count--;
  return slot;
}

gm__event_slot *gm__event_slots_take(gm__event_slots *slots, bool with_event) {
  gm__mutex_lock(&slots->lock);
  gm__event_slot *slot = with_event ? event_slots_pop(slots, &slots->spare) : NULL;
  if (!slot) slot = event_slots_pop(slots, &slots->blank);
  gm__mutex_unlock(&slots->lock);
  if (slot) return slot;
  slot = gm__alloc(slots->services, sizeof *slot);
  if (!slot) return NULL;
  atomic_init(&slot->use, 1);
  slot->holds = 1;
  gm__mutex_lock(&slots->lock);
  slot->next = slots->all;
  slots->all = slot;
  gm__mutex_unlock(&slots->lock);
  return slot;
}

/* Nobody needs the slot's event any more: put the slot into a list of unused ones. REQUIRES: lock of the slots. */
static void *event_slots_push(gm__event_slots *slots, gm__event_slot *slot) {
  void *surplus = NULL;
  if (slot->lent || slots->spare_count >= EVENT_SLOTS_SPARE) {
    if (!slot->lent) surplus = slot->event;
    slot->event = NULL;
    slot->lent = false;
  }
  gm__event_slot **list = slot->event ? &slots->spare : &slots->blank;
  if (slot->event) slots->spare_count++;
  slot->next_spare = *list;
  *list = slot;
  slot->origin = NULL;
  slot->holds = 1; /* of the next point */
  return surplus;
}

void *gm__event_slots_put(gm__event_slots *slots, gm__event_slot *slot) {
  gm__mutex_lock(&slots->lock);
  gm__event_slot *owner = slot->origin ? slot->origin : slot;
  if (owner != slot) event_slots_push(slots, slot); /* which has no event of its own */
  void *surplus = --owner->holds ? NULL : event_slots_push(slots, owner);
  gm__mutex_unlock(&slots->lock);
  return surplus;
}

gm__event_slot *gm__event_slots_copy(gm__event_slots *slots, gm__event_slot *slot, uint64_t use, bool *out_passed) {
  gm__event_slot *copy = gm__event_slots_take(slots, false);
  *out_passed = false;
  if (!copy) return NULL;
  gm__mutex_lock(&slots->lock);
  *out_passed = !gm__event_slot_find((uintptr_t)slot, use);
  if (*out_passed) {
    event_slots_push(slots, copy);
  } else {
    copy->origin = slot->origin ? slot->origin : slot;
    copy->origin->holds++;
    copy->event = slot->event;
    copy->lent = true;
  }
  gm__mutex_unlock(&slots->lock);
  return *out_passed ? NULL : copy;
}

gm__event_slot *gm__event_slot_find(uint64_t handle, uint64_t use) {
  gm__event_slot *slot = (gm__event_slot *)(uintptr_t)handle;
  return slot && atomic_load(&slot->use) == use ? slot : NULL;
}

bool gm__event_slot_retire(gm__event_slot *slot, uint64_t use) {
  return atomic_compare_exchange_strong(&slot->use, &use, use + 1);
}
