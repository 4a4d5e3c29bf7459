#include "core/pages/slot_choice.h"

#include <stddef.h>
#include <string.h>

#include "core/base/alloc.h"

/* Invariant: an entry that is THERE and known is in the policy, with two exceptions. Its slot is claimed. Or it was
 * leased when its turn came, and joins the policy with the end of its last lease. */

/* ---- points ---- */

/* A lost device reads nothing any more. */
static bool point_passed(gm_device *device, const gm_point *point, bool wait, gm_error *err) {
  gm_error why;
  bool done = false;
  if (!point->stream) return true;
  const gm_status status =
      wait ? gm_point_wait(device, point, UINT64_MAX, &why) : gm_point_done(device, point, &done, &why);
  if (!status) return wait || done;
  if (status != GM_ERR_DEVICE_LOST && wait && err) *err = why;
  return status == GM_ERR_DEVICE_LOST;
}

bool gm__slot_settle(gm_slots *set, gm__slot_room *slot, bool wait, gm_error *err) {
  gm_point points[GM_SLOT_POINTS_MOST];
  const gm_point ready = slot->ready; /* it changes with the contents, and for these the slot must be leased or free */
  uint32_t late = 0;
  const uint32_t count = slot->count;
  memcpy(points, slot->points, sizeof points);
  slot->away = count;
  slot->count = 0;
  gm__mutex_unlock(&set->lock);
  for (uint32_t i = 0; i < count; i++) {
    if (point_passed(set->device, &points[i], wait, err))
      gm_point_release(set->device, &points[i]);
    else
      points[late++] = points[i];
  }
  const bool loaded = point_passed(set->device, &ready, wait, err);
  gm__mutex_lock(&set->lock);
  slot->away = 0;
  memcpy(slot->points + slot->count, points, late * sizeof *points);
  slot->count += late;
  return loaded && !slot->count;
}

/* ---- claims ---- */

static gm__slots_entry *entry_of_turn(gm__cache_entry *turn) {
  return (gm__slots_entry *)(void *)((unsigned char *)turn - offsetof(gm__slots_entry, turn));
}

void gm__slot_free(gm_slots *set, gm__slot_room *slot) {
  slot->entry = NULL;
  if (slot->claimed) return;
  slot->next = set->free_first;
  set->free_first = (int32_t)(slot - set->slots);
}

void gm__slots_entry_end(gm_slots *set, gm__slots_entry *entry) {
  const gm_services *services = gm__slots_services(set);
  if (entry->why) gm__release(services, entry->why, sizeof *entry->why);
  gm__release(services, entry, sizeof *entry + entry->head.key_bytes);
}

void gm__slots_entry_rest(gm_slots *set, gm__slots_entry *entry) {
  gm__slot_room *slot = entry->slot == GM__NO_SLOT ? NULL : &set->slots[entry->slot];
  if (entry->known && slot) {
    if (!slot->claimed && !entry->turn.place) gm__cache_policy_resume(&set->policy, &entry->turn);
    return;
  }
  if (slot) gm__slot_free(set, slot);
  gm__slots_entry_end(set, entry);
}

/* The next slot by the order, which is claimed then. Leased entries are put aside until nobody leases them. */
static gm__slot_room *slot_claim(gm_slots *set) {
  gm__slot_room *slot = NULL;
  gm__cache_entry *turn;
  if (set->free_first != GM__NO_SLOT) {
    slot = &set->slots[set->free_first];
    set->free_first = slot->next;
  }
  while (!slot && (turn = gm__cache_policy_victim(&set->policy)) != NULL) {
    const gm__slots_entry *entry = entry_of_turn(turn);
    gm__cache_policy_pause(&set->policy, turn);
    if (!entry->leases) slot = &set->slots[entry->slot];
  }
  if (!slot) return NULL;
  slot->claimed = true;
  set->claims++;
  return slot;
}

static bool slot_is_leased(const gm__slot_room *slot) { return slot->entry && slot->entry->leases; }

/* The slot goes back to where it was. */
static void slot_unclaim(gm_slots *set, gm__slot_room *slot) {
  slot->claimed = false;
  set->claims--;
  gm__cond_broadcast(&set->changed);
  if (!slot->entry)
    gm__slot_free(set, slot);
  else if (!slot->entry->leases)
    gm__slots_entry_rest(set, slot->entry);
}

/* The caller has the slot, without an entry. REQUIRES: it is claimed, and not leased. */
static int32_t slot_have(gm_slots *set, gm__slot_room *slot) {
  gm__slots_entry *entry = slot->entry;
  if (entry) {
    gm__cache_policy_resume(&set->policy, &entry->turn);
    gm__cache_policy_evict(&set->policy, &entry->turn);
    gm__key_map_unlink(&set->map, &entry->head);
    gm__slots_entry_end(set, entry);
    set->stats.there--;
    set->stats.evictions++;
  }
  slot->entry = NULL;
  slot->claimed = false;
  set->claims--;
  gm__cond_broadcast(&set->changed);
  return (int32_t)(slot - set->slots);
}

/* ---- choice ---- */

typedef struct choice_late { /* claimed slots whose points have not passed, in their order */
  int32_t first, last;
} choice_late;

static void late_add(gm_slots *set, choice_late *late, gm__slot_room *slot) {
  const int32_t index = (int32_t)(slot - set->slots);
  slot->next = GM__NO_SLOT;
  *(late->first == GM__NO_SLOT ? &late->first : &set->slots[late->last].next) = index;
  late->last = index;
}

/* All but the first, with `keep`. */
static void late_unclaim(gm_slots *set, choice_late *late, bool keep) {
  int32_t at = late->first;
  if (at != GM__NO_SLOT && keep) at = set->slots[at].next;
  while (at != GM__NO_SLOT) {
    gm__slot_room *slot = &set->slots[at];
    at = slot->next;
    slot_unclaim(set, slot);
  }
}

/* Looks at slots in their order. NULL: none has passed, and *late has those that are late. */
static gm__slot_room *choice_look(gm_slots *set, choice_late *late) {
  gm__slot_room *slot;
  *late = (choice_late){GM__NO_SLOT, GM__NO_SLOT};
  while ((slot = slot_claim(set)) != NULL) {
    const bool passed = gm__slot_settle(set, slot, false, NULL);
    if (slot_is_leased(slot))
      slot_unclaim(set, slot);
    else if (passed)
      return slot;
    else
      late_add(set, late, slot);
  }
  return NULL;
}

static gm_status choice_refused(gm_slots *set, const choice_late *late, const char *op, gm_error *err) {
  set->stats.refused++;
  return gm__fail(err, GM_ERR_OVER_LIMIT, op, "%u of %u slots are leased%s", set->stats.leased, set->count,
                  late->first == GM__NO_SLOT && !set->claims ? "" : ", and work may still read the others");
}

gm_status gm__slot_choose(gm_slots *set, uint32_t flags, int32_t *out, const char *op, gm_error *err) {
  for (;;) {
    choice_late late;
    gm_error why = {.status = GM_OK};
    gm__slot_room *slot = choice_look(set, &late);
    const bool wait = !slot && !(flags & GM_SLOTS_NO_WAIT);
    late_unclaim(set, &late, wait);
    if (!slot && wait && late.first != GM__NO_SLOT) {
      set->stats.late++;
      slot = &set->slots[late.first];
      const bool passed = gm__slot_settle(set, slot, true, &why);
      const bool leased = slot_is_leased(slot);
      if (!passed || leased) slot_unclaim(set, slot);
      if (why.status && err) *err = why;
      if (why.status) return gm__error_of(op, why.status, err);
      if (!passed || leased) continue;
    }
    if (slot) {
      *out = slot_have(set, slot);
      return GM_OK;
    }
    if (!wait || !set->claims) return choice_refused(set, &late, op, err);
    gm__cond_wait(&set->changed, &set->lock);
  }
}
