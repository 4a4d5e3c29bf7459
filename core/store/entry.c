#include "core/store/entry.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"

/* Invariants. device_bytes, device_values and image_bytes are the sums over the entries. An entry is in the list of a
 * place exactly when its value of now lies there, and no thread moves it away by gm__store_leave. A tier's copy that is
 * not fresh is in no list. The device has two lists: a persistent entry is in the one that is taken from last. An entry
 * is due exactly when it has a value which the lowest tier has not got for sure. */

gm_status gm__store_check(const gm_store *store, const char *op, gm_error *err) {
  if (!store) return gm__bad_argument(err, op, "`store` is NULL");
  if (!gm__object_is(&store->head, GM__KIND_STORE)) return gm__bad_argument(err, op, "`store` is destroyed");
  return gm__context_check(store->ctx, op, err);
}

/* Writes the normal form to `out`, which has room for the text and an end mark. */
static gm_status entry_key(const char *text, bool prefix, char *out, size_t *out_bytes, const char *op, gm_error *err) {
  if (!text && !prefix) return gm__bad_argument(err, op, "the key is NULL");
  *out_bytes = 0;
  const size_t bytes = text ? strnlen(text, GM__KEY_PATH_MOST + 1) : 0;
  const gm__key_path_fault fault =
      prefix && !bytes ? GM__KEY_PATH_FINE : gm__key_path_normalise(text, bytes, out, out_bytes);
  if (fault) return gm__bad_argument(err, op, "the key \"%.64s\" %s", text, gm__key_path_fault_text(fault));
  if (!*out_bytes && !prefix)
    return gm__bad_argument(err, op, "the key \"%.64s\" is the root, which has no value", text);
  out[*out_bytes] = '\0';
  return GM_OK;
}

gm_status gm__store_key_read(const char *text, bool prefix, gm__store_key *out, const char *op, gm_error *err) {
  out->name.text = out->text;
  return entry_key(text, prefix, out->text, &out->name.bytes, op, err);
}

gm_status gm__store_names_read(const gm_store *store, const char *const *texts, size_t count, gm__store_names *out,
                               const char *op, gm_error *err) {
  const gm_services *services = gm__context_services(store->ctx);
  gm_status status = GM_OK;
  *out = (gm__store_names){.count = count};
  for (size_t i = 0; i < count; i++) out->bytes += texts[i] ? strnlen(texts[i], GM__KEY_PATH_MOST) + 1 : 0;
  out->at = gm__alloc_array(services, count, sizeof *out->at);
  out->text = gm__alloc(services, out->bytes);
  if (!out->at || !out->text) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for the keys");
  char *at = out->text;
  for (size_t i = 0; i < count && !status; i++) {
    out->at[i].text = at;
    status = entry_key(texts[i], false, at, &out->at[i].bytes, op, err);
    if (!status) at += out->at[i].bytes + 1;
  }
  return status;
}

void gm__store_names_end(const gm_store *store, gm__store_names *names) {
  gm__release(gm__context_services(store->ctx), names->at, names->count * sizeof *names->at);
  gm__release(gm__context_services(store->ctx), names->text, names->bytes);
}

gm_status gm__store_missing(const gm__store_name *key, const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_NOT_FOUND, op, "there is no key \"%.300s\"", key->text);
}

/* ---- finding ---- */

static size_t entry_places(const gm_store *store) { return GM__PLACE_TIER + store->tier_count; }

static size_t entry_bytes(const gm_store *store) {
  return sizeof(gm__store_entry) + entry_places(store) * sizeof(gm__victim);
}

gm__store_entry *gm__store_find(gm_store *store, const gm__store_name *key) {
  return (gm__store_entry *)gm__key_map_find(&store->entries, key->text, key->bytes);
}

gm__store_entry *gm__store_find_idle(gm_store *store, const gm__store_name *key) {
  gm__store_entry *entry;
  while ((entry = gm__store_find(store, key)) && entry->busy) gm__cond_wait(&store->changed, &store->watch->lock);
  return entry;
}

gm__store_entry *gm__store_find_settled(gm_store *store, const gm__store_name *key) {
  gm__store_entry *entry;
  while ((entry = gm__store_find(store, key)) && entry->busy && (!entry->value || entry->rises))
    gm__cond_wait(&store->changed, &store->watch->lock);
  return entry;
}

gm__store_entry *gm__store_entry_of(gm_store *store, const gm__store_name *key) {
  gm__store_entry *entry = gm__store_find(store, key);
  if (entry) return entry;
  entry = gm__alloc(gm__context_services(store->ctx), entry_bytes(store));
  if (!entry) return NULL;
  if (!gm__key_map_prepare(&store->entries, &entry->head, key->text, key->bytes)) {
    gm__release(gm__context_services(store->ctx), entry, entry_bytes(store));
    return NULL;
  }
  if (!gm__folder_add(&store->folders, &entry->item, key->text, key->bytes)) {
    gm__key_map_drop(&store->entries, &entry->head);
    gm__release(gm__context_services(store->ctx), entry, entry_bytes(store));
    return NULL;
  }
  gm__key_map_link(&store->entries, &entry->head);
  return entry;
}

/* ---- places ---- */

static gm__victims *entry_list(gm_store *store, const gm__store_entry *entry, size_t place) {
  return place == GM__PLACE_DEVICE && entry->persistent ? &store->persistent : &store->places[place];
}

/* The value lies in a place from now on, or another one does. */
static void entry_arrives(gm_store *store, gm__store_entry *entry, size_t place, uint64_t weight) {
  gm__victims_insert(entry_list(store, entry, place), &entry->links[place], entry->head.hash, weight);
}

static void entry_is_gone(gm_store *store, gm__store_entry *entry, size_t place) {
  gm__victims_remove(entry_list(store, entry, place), &entry->links[place]);
}

void gm__store_set_persistent(gm_store *store, gm__store_entry *entry, bool persistent) {
  const bool there = entry->links[GM__PLACE_DEVICE].turn.place;
  if (there) entry_is_gone(store, entry, GM__PLACE_DEVICE);
  entry->persistent = persistent;
  if (there) entry_arrives(store, entry, GM__PLACE_DEVICE, entry->value->bytes);
}

/* ---- entries whose value is held ---- */

static gm__store_entry *entry_of_turn(gm__cache_entry *turn) {
  return gm__store_entry_at((gm__victim *)(void *)((char *)turn - offsetof(gm__victim, turn)), GM__PLACE_DEVICE);
}

/* In no order of the device, the entry uses its links for the list of its value. */
static void entry_set_aside(gm_store *store, gm__store_entry *entry) {
  gm_value *value = entry->value;
  gm__cache_entry *turn = &entry->links[GM__PLACE_DEVICE].turn, *first = value->aside;
  entry_is_gone(store, entry, GM__PLACE_DEVICE);
  turn->newer = NULL;
  turn->older = first;
  if (first) first->newer = turn;
  value->aside = turn;
  entry->aside = true;
}

static void entry_end_aside(gm__store_entry *entry) {
  gm__cache_entry *turn = &entry->links[GM__PLACE_DEVICE].turn;
  if (!entry->aside) return;
  if (turn->newer)
    turn->newer->older = turn->older;
  else
    entry->value->aside = turn->older;
  if (turn->older) turn->older->newer = turn->newer;
  entry->aside = false;
  if (!entry->value->aside) gm__value_watch_end(entry->value);
}

void gm__store_wake(void *user, gm_value *value) {
  gm_store *store = user;
  while (value->aside) {
    gm__store_entry *entry = entry_of_turn(value->aside);
    entry_end_aside(entry);
    gm__victims_return(entry_list(store, entry, GM__PLACE_DEVICE), &entry->links[GM__PLACE_DEVICE]);
  }
}

void gm__store_set_value(gm_store *store, gm__store_entry *entry, gm_value *value, gm__leftover *out) {
  entry_end_aside(entry);
  out->value = entry->value;
  if (out->value) {
    store->device_bytes -= out->value->bytes;
    store->device_values -= out->value->bytes > 0;
    atomic_fetch_sub(&out->value->stored, 1);
  }
  if (value) {
    store->device_bytes += value->bytes;
    store->device_values += value->bytes > 0;
    atomic_fetch_add(&value->stored, 1);
  }
  entry->value = value;
  if (value && value->bytes)
    entry_arrives(store, entry, GM__PLACE_DEVICE, value->bytes);
  else
    entry_is_gone(store, entry, GM__PLACE_DEVICE);
}

void gm__store_set_image(gm_store *store, gm__store_entry *entry, gm__image *image, gm__leftover *out) {
  out->image = entry->image;
  if (out->image) {
    store->image_bytes[gm__image_place(out->image)] -= out->image->bytes;
    entry_is_gone(store, entry, gm__image_place(out->image));
  }
  entry->image = image;
  if (!image) return;
  store->image_bytes[gm__image_place(image)] += image->bytes;
  entry_arrives(store, entry, gm__image_place(image), image->bytes);
}

/* ---- what a flush has to do ---- */

static void entry_due_end(gm_store *store, gm__store_entry *entry) {
  *(entry->due_before ? &entry->due_before->due_after : &store->due_first) = entry->due_after;
  *(entry->due_after ? &entry->due_after->due_before : &store->due_last) = entry->due_before;
  entry->due = false;
  store->due_count--;
}

static void entry_due_begin(gm_store *store, gm__store_entry *entry) {
  entry->due_before = store->due_last;
  entry->due_after = NULL;
  *(store->due_last ? &store->due_last->due_after : &store->due_first) = entry;
  store->due_last = entry;
  entry->due = true;
  store->due_count++;
}

static void entry_due_note(gm_store *store, gm__store_entry *entry) {
  const uint32_t lowest = store->tier_count ? UINT32_C(1) << (store->tier_count - 1) : 0;
  const bool has = entry->value || entry->image || entry->fresh || entry->maybe;
  const bool due = lowest && has && !(entry->fresh & lowest);
  if (due && !entry->due) entry_due_begin(store, entry);
  if (!due && entry->due) entry_due_end(store, entry);
}

void gm__store_set_tiers(gm_store *store, gm__store_entry *entry, uint32_t copies, uint32_t fresh) {
  for (uint32_t i = 0; i < store->tier_count; i++) {
    const uint32_t bit = UINT32_C(1) << i;
    if (fresh & ~entry->fresh & bit) entry_arrives(store, entry, GM__PLACE_TIER + i, 1);
    if (entry->fresh & ~fresh & bit) entry_is_gone(store, entry, GM__PLACE_TIER + i);
  }
  entry->copies = copies;
  entry->fresh = fresh;
  entry_due_note(store, entry);
}

void gm__store_touch(gm_store *store, gm__store_entry *entry) {
  for (size_t i = 0; i < entry_places(store); i++) gm__victims_touch(entry_list(store, entry, i), &entry->links[i]);
}

/* ---- leaving a place ---- */

typedef struct entry_leaving {
  gm_store *store;
  bool (*may)(const gm__store_entry *entry);
  size_t place;
} entry_leaving;

static gm__victim_answer entry_may_leave(void *user, gm__victim *victim) {
  const entry_leaving *leaving = user;
  gm__store_entry *entry = gm__store_entry_at(victim, leaving->place);
  if (entry->busy) return GM__VICTIM_STAYS;
  if (leaving->place == GM__PLACE_DEVICE && gm__value_is_held(entry->value)) {
    if (!gm__value_watch_begin(entry->value, leaving->store->watch)) return GM__VICTIM_STAYS;
    entry_set_aside(leaving->store, entry);
    return GM__VICTIM_IS_OUT;
  }
  return !leaving->may || leaving->may(entry) ? GM__VICTIM_GOES : GM__VICTIM_STAYS;
}

gm__store_entry *gm__store_leave(gm_store *store, size_t place, bool (*may)(const gm__store_entry *entry),
                                 bool persistent) {
  entry_leaving leaving = {store, may, place};
  gm__victim *victim = gm__victims_leave(&store->places[place], entry_may_leave, &leaving);
  if (!victim && persistent && place == GM__PLACE_DEVICE) {
    victim = gm__victims_leave(&store->persistent, entry_may_leave, &leaving);
  }
  if (!victim) return NULL;
  gm__store_entry *entry = gm__store_entry_at(victim, place);
  entry->busy = true;
  return entry;
}

void gm__store_left(gm_store *store, gm__store_entry *entry, size_t place, bool stays) {
  gm__mutex_lock(&store->watch->lock);
  if (stays) gm__victims_return(entry_list(store, entry, place), &entry->links[place]);
  gm__mutex_unlock(&store->watch->lock);
  gm__store_idle(store, entry);
}

void gm__store_replace(gm_store *store, gm__store_entry *entry, gm_value *value, gm__leftover *out) {
  gm__store_set_value(store, entry, value, out);
  gm__store_set_image(store, entry, NULL, out);
  const uint32_t copies = entry->copies | entry->maybe;
  entry->maybe = 0;
  gm__store_set_tiers(store, entry, copies, 0);
}

void gm__store_entry_end(gm_store *store, gm__store_entry *entry, gm__leftover *out) {
  gm__store_replace(store, entry, NULL, out);
  gm__folder_remove(&store->folders, &entry->item);
  gm__key_map_remove(&store->entries, &entry->head);
  gm__release(gm__context_services(store->ctx), entry, entry_bytes(store));
}

void gm__store_idle(gm_store *store, gm__store_entry *entry) {
  gm__mutex_lock(&store->watch->lock);
  entry->busy = entry->rises = false;
  gm__cond_broadcast(&store->changed);
  gm__mutex_unlock(&store->watch->lock);
}

uint64_t gm__leftover_drop(gm__leftover *leftover) {
  const uint64_t freed = gm__value_release(leftover->value, NULL);
  gm__image_release(leftover->image);
  *leftover = (gm__leftover){NULL, NULL};
  return freed;
}
