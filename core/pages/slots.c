/* Calls of a set of slots. A get that finds nothing puts an entry into the map, and then looks for a slot. Others that
 * want the key find by the entry that one thread is loading it. */
#include "gm/slots.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/sized.h"
#include "core/base/thread_data.h"
#include "core/device/device.h"
#include "core/device/point.h"
#include "core/pages/slot_choice.h"

static _Thread_local char slots_here GM__THREAD_DATA; /* its address tells the thread */

/* ---- leases ---- */

static gm__slot_lease *lease_at(const gm_slots *set, uint32_t index) {
  return gm__page_piece_at(&set->lease_table, index, sizeof(gm__slot_lease));
}

/* Leases an entry. 0: no host memory. */
static uint64_t lease_open(gm_slots *set, gm__slots_entry *entry) {
  uint32_t index = set->lease_unused - 1;
  if (!set->lease_unused) {
    index = set->leases_made;
    if (!gm__page_pieces_reserve(gm__slots_services(set), &set->lease_table, index + UINT64_C(1))) return 0;
    set->leases_made++;
    lease_at(set, index)->generation = set->lease_turn;
  }
  gm__slot_lease *lease = lease_at(set, index);
  set->lease_unused = lease->next;
  lease->entry = entry;
  lease->next = 0;
  set->stats.leases++;
  if (entry->leases++ == 0 && entry->slot != GM__NO_SLOT) set->stats.leased++;
  return (uint64_t)lease->generation << 32 | (index + 1);
}

/* NULL: no such lease is open. */
static gm__slot_lease *lease_find(const gm_slots *set, uint64_t number) {
  const uint32_t index = (uint32_t)number - 1;
  if (index >= set->leases_made) return NULL;
  gm__slot_lease *lease = lease_at(set, index);
  const bool given = lease->entry && lease->entry->phase == GM__SLOTS_THERE; /* others nobody has been told of */
  return given && lease->generation == number >> 32 ? lease : NULL;
}

static void lease_close(gm_slots *set, uint64_t number) {
  const uint32_t index = (uint32_t)number - 1;
  gm__slot_lease *lease = lease_at(set, index);
  gm__slots_entry *entry = lease->entry;
  lease->entry = NULL;
  lease->generation++;
  lease->next = set->lease_unused;
  set->lease_unused = index + 1;
  set->stats.leases--;
  if (--entry->leases) return;
  if (entry->slot != GM__NO_SLOT) set->stats.leased--;
  gm__slots_entry_rest(set, entry);
}

/* ---- loads ---- */

static gm_slot slot_place(const gm_slots *set, int32_t index, uint64_t lease) {
  return (gm_slot){.lease = lease,
                   .block = set->block,
                   .offset = (uint64_t)(uint32_t)index * set->stride,
                   .bytes = set->slot_bytes,
                   .index = (uint32_t)index};
}

static void load_begin(gm_slots *set, gm__slots_entry *entry) {
  entry->loader = &slots_here;
  entry->next_load = set->loads;
  set->loads = entry;
}

/* Is the calling thread in a loader of the set? */
static bool load_is_here(const gm_slots *set) {
  for (const gm__slots_entry *entry = set->loads; entry; entry = entry->next_load) {
    if (entry->loader == &slots_here) return true;
  }
  return false;
}

/* Calls the loader without the lock. *why is complete after a failure. */
static gm_status load_call(gm_slots *set, gm__slots_entry *entry, gm_error *why) {
  static const char op[] = "gm_slots_get";
  gm__slot_room *slot = &set->slots[entry->slot];
  const gm_slot place = slot_place(set, entry->slot, 0);
  gm_point old = slot->ready, ready = {0, 0, 0};
  slot->ready = ready;
  set->stats.loads++;
  gm__mutex_unlock(&set->lock);
  gm_point_release(set->device, &old);
  *why = (gm_error){.status = GM_OK};
  gm_status status = set->load(set->user, entry->key, entry->head.key_bytes, &place, &ready, why);
  why->message[sizeof why->message - 1] = '\0';
  if (status && !why->message[0]) status = gm__fail(why, status, op, "the loader answers %s", gm_status_name(status));
  const gm_status point = ready.stream ? gm__point_check(set->device, &ready, op, status ? NULL : why) : GM_OK;
  gm__mutex_lock(&set->lock);
  if (!point) slot->ready = ready;
  return status ? status : point;
}

/* The load failed: what it was for is gone, and its slot is free. */
static void load_failed(gm_slots *set, gm__slots_entry *entry, const gm_error *why) {
  const gm_services *services = gm__slots_services(set);
  set->stats.failed++;
  gm__slot_free(set, &set->slots[entry->slot]);
  entry->slot = GM__NO_SLOT;
  set->stats.leased--;
  entry->phase = GM__SLOTS_FAILED;
  entry->status = why->status;
  entry->why = entry->leases > 1 ? gm__alloc(services, sizeof *entry->why) : NULL; /* others wait */
  if (entry->why) *entry->why = *why;
}

static void load_end(gm_slots *set, gm__slots_entry *entry) {
  gm__slots_entry **at = &set->loads;
  while (*at != entry) at = &(*at)->next_load;
  *at = entry->next_load;
  gm__cond_broadcast(&set->changed);
  if (entry->phase == GM__SLOTS_THERE) {
    entry->turn.hash = entry->head.hash;
    entry->turn.weight = 1;
    if (entry->known) gm__cache_policy_insert(&set->policy, &entry->turn);
    set->stats.there += entry->known;
  } else if (entry->known) {
    gm__key_map_unlink(&set->map, &entry->head);
    entry->known = false;
  }
}

/* Finds a slot for an entry, and loads it. */
static gm_status load_run(gm_slots *set, gm__slots_entry *entry, uint32_t flags, const char *op, gm_error *err) {
  gm_error why;
  load_begin(set, entry);
  int32_t slot = GM__NO_SLOT;
  gm_status status = gm__slot_choose(set, flags, &slot, op, err);
  entry->phase = status ? GM__SLOTS_REFUSED : GM__SLOTS_LOADING;
  if (!status) {
    entry->slot = slot;
    set->slots[slot].entry = entry;
    set->stats.leased++;
    status = load_call(set, entry, &why);
    if (status) {
      why.status = status;
      if (err) *err = why;
      load_failed(set, entry, &why);
    } else {
      entry->phase = GM__SLOTS_THERE;
    }
  }
  load_end(set, entry);
  return status;
}

/* ---- gets ---- */

static gm_status get_no_memory(const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a key or a lease");
}

/* The key is new: this thread loads it. */
static gm_status get_load(gm_slots *set, const void *key, size_t key_bytes, uint32_t flags, uint64_t *out,
                          const char *op, gm_error *err) {
  gm__slots_entry *entry = gm__alloc(gm__slots_services(set), sizeof *entry + key_bytes);
  if (!entry) return get_no_memory(op, err);
  entry->head.key = memcpy(entry->key, key, key_bytes);
  entry->head.key_bytes = key_bytes;
  entry->slot = GM__NO_SLOT;
  const uint64_t lease = gm__key_map_prepare_own(&set->map, &entry->head) ? lease_open(set, entry) : 0;
  if (!lease) {
    gm__slots_entry_end(set, entry);
    return get_no_memory(op, err);
  }
  gm__key_map_link(&set->map, &entry->head);
  entry->known = true;
  const gm_status status = load_run(set, entry, flags, op, err);
  if (status)
    lease_close(set, lease);
  else
    *out = lease;
  return status;
}

/* The key is there, or another thread loads it. *again: that one found no slot. */
static gm_status get_there(gm_slots *set, gm__slots_entry *entry, uint64_t *out, bool *again, const char *op,
                           gm_error *err) {
  const bool waits = entry->phase == GM__SLOTS_LOADING;
  if (waits && load_is_here(set)) return gm__fail(err, GM_ERR_BUSY, op, "a loader asks for a key that is being loaded");
  const uint64_t lease = lease_open(set, entry);
  if (!lease) return get_no_memory(op, err);
  set->stats.waits += waits;
  while (entry->phase == GM__SLOTS_LOADING) gm__cond_wait(&set->changed, &set->lock);
  if (entry->phase == GM__SLOTS_THERE) {
    set->stats.hits++;
    gm__cache_policy_touch(&set->policy, &entry->turn);
    *out = lease;
    return GM_OK;
  }
  const gm_status status = entry->status;
  *again = entry->phase == GM__SLOTS_REFUSED;
  if (status && entry->why && err) *err = *entry->why;
  if (status && !entry->why)
    gm__fail(err, status, op, "the loader of another thread answers %s", gm_status_name(status));
  lease_close(set, lease);
  return status;
}

static gm_status get_lease(gm_slots *set, const void *key, size_t key_bytes, uint32_t flags, uint64_t *out,
                           const char *op, gm_error *err) {
  for (bool again = true; again;) {
    gm__slots_entry *entry = (gm__slots_entry *)gm__key_map_find(&set->map, key, key_bytes);
    again = false;
    if (flags & GM_SLOTS_NO_LOAD && (!entry || entry->phase == GM__SLOTS_LOADING))
      return gm__fail(err, GM_ERR_NOT_FOUND, op, "the set has nothing of that key");
    if (!entry) return get_load(set, key, key_bytes, flags, out, op, err);
    const gm_status status = get_there(set, entry, out, &again, op, err);
    if (status) return status;
  }
  return GM_OK;
}

static gm_status slots_key_check(const gm_slots *set, const void *key, size_t key_bytes, const char *op,
                                 gm_error *err) {
  const gm_status status = gm__slots_check(set, op, err);
  if (status) return status;
  if (!key) return gm__bad_argument(err, op, "`key` is NULL");
  if (key_bytes - 1 < GM_SLOT_KEY_MOST) return GM_OK;
  return gm__bad_argument(err, op, "`key_bytes` is %zu, not 1 to %d", key_bytes, GM_SLOT_KEY_MOST);
}

static gm_status get_check(const gm_slots *set, const gm_stream *stream, uint32_t flags, const gm_slot *out,
                           const char *op, gm_error *err) {
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  if (flags & ~(uint32_t)(GM_SLOTS_NO_LOAD | GM_SLOTS_NO_WAIT))
    return gm__bad_argument(err, op, "`flags` is %#x, which has an unknown flag", flags);
  if (!stream || gm_stream_device(stream) == set->device) return GM_OK;
  return gm__bad_argument(err, op, "`stream` is of another device than the pool");
}

/* The contents are there before later work. `ready` stays as it is while the slot is leased. */
static gm_status get_ready(const gm_slots *set, gm_point ready, gm_stream *stream, gm_error *err) {
  if (!ready.stream) return GM_OK;
  return stream ? gm_stream_wait(stream, &ready, err) : gm_point_wait(set->device, &ready, UINT64_MAX, err);
}

gm_status gm_slots_get(gm_slots *slots, const void *key, size_t key_bytes, uint32_t flags, gm_stream *stream,
                       gm_slot *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_slots_get";
  uint64_t lease = 0;
  gm_status status = slots_key_check(slots, key, key_bytes, op, err);
  if (!status) status = get_check(slots, stream, flags, out, op, err);
  if (status) return status;
  gm__mutex_lock(&slots->lock);
  status = get_lease(slots, key, key_bytes, flags, &lease, op, err);
  const int32_t index = status ? 0 : lease_find(slots, lease)->entry->slot;
  const gm_point ready = slots->slots[index].ready;
  gm__mutex_unlock(&slots->lock);
  if (status) return status;
  status = gm__error_of(op, get_ready(slots, ready, stream, err), err);
  if (!status) {
    *out = slot_place(slots, index, lease);
    return GM_OK;
  }
  gm__mutex_lock(&slots->lock);
  lease_close(slots, lease);
  gm__mutex_unlock(&slots->lock);
  return status;
}

/* ---- releases ---- */

static bool points_are_full(const gm__slot_room *slot) { return slot->count + slot->away == GM_SLOT_POINTS_MOST; }

/* Makes room for a point, or waits until it has passed: then it is zero. It gives the lock up meanwhile. */
static gm_status release_room(gm_slots *set, gm__slot_room *slot, gm_point *point, gm_error *err) {
  if (points_are_full(slot) && !slot->away) gm__slot_settle(set, slot, false, NULL);
  if (!points_are_full(slot)) return GM_OK;
  gm__mutex_unlock(&set->lock);
  gm_status status = gm_point_wait(set->device, point, UINT64_MAX, err);
  if (status == GM_ERR_DEVICE_LOST) status = GM_OK;
  if (!status) gm_point_release(set->device, point);
  gm__mutex_lock(&set->lock);
  return status;
}

/* The set has the point afterwards, or it is as it was. */
static gm_status release_lease(gm_slots *set, uint64_t number, gm_point *point, const char *op, gm_error *err) {
  gm_status status = GM_OK;
  const gm__slot_lease *lease = lease_find(set, number);
  if (lease && point->stream) status = release_room(set, &set->slots[lease->entry->slot], point, err);
  if (status) return gm__error_of(op, status, err);
  lease = lease_find(set, number); /* another thread may have given it back */
  if (!lease) return gm__bad_argument(err, op, "lease %#" PRIx64 " is not open", number);
  gm__slot_room *slot = &set->slots[lease->entry->slot];
  if (point->stream) slot->points[slot->count++] = *point;
  *point = (gm_point){0, 0, 0};
  lease_close(set, number);
  return GM_OK;
}

gm_status gm_slots_release(gm_slots *slots, uint64_t lease, const gm_point *point, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_slots_release";
  gm_point own = {0, 0, 0};
  gm_status status = gm__slots_check(slots, op, err);
  if (!status && point) status = gm__point_check(slots->device, point, op, err);
  if (!status) status = gm__error_of(op, gm__point_keep(slots->device, point, &own, err), err);
  if (status) return status;
  gm__mutex_lock(&slots->lock);
  status = release_lease(slots, lease, &own, op, err);
  gm__mutex_unlock(&slots->lock);
  gm_point_release(slots->device, &own);
  return status;
}

gm_status gm_slots_drop(gm_slots *slots, const void *key, size_t key_bytes, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_slots_drop";
  const gm_status status = slots_key_check(slots, key, key_bytes, op, err);
  if (status) return status;
  gm__mutex_lock(&slots->lock);
  gm__slots_entry *entry = (gm__slots_entry *)gm__key_map_find(&slots->map, key, key_bytes);
  if (entry) {
    gm__key_map_unlink(&slots->map, &entry->head);
    entry->known = false;
    slots->stats.there -= entry->phase == GM__SLOTS_THERE;
    gm__cache_policy_remove(&slots->policy, &entry->turn);
    if (!entry->leases) gm__slots_entry_rest(slots, entry);
  }
  gm__mutex_unlock(&slots->lock);
  return entry ? GM_OK : gm__fail(err, GM_ERR_NOT_FOUND, op, "the set has nothing of that key");
}

gm_status gm_slots_get_stats(gm_slots *slots, gm_slots_stats *out, gm_error *err) {
  static const char op[] = "gm_slots_get_stats";
  gm_status status = gm__slots_check(slots, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  gm__mutex_lock(&slots->lock);
  gm_slots_stats now = slots->stats;
  gm__mutex_unlock(&slots->lock);
  now.struct_size = sizeof now;
  gm__sized_out(out, &now, sizeof now);
  return GM_OK;
}
