#include "core/store/get.h"

#include "core/base/cancel.h"
#include "core/store/down.h"
#include "core/store/remove.h"
#include "core/store/rise.h"
#include "core/store/room.h"
#include "core/store/tier_copy.h"

/* Invariant: of the threads that want a value that is below the device, one brings it back; the others wait. They wait,
 * too, while a value that nobody else held goes up. */

/* Brings the value of a busy entry back. */
static gm_status get_bring_back(gm_store *store, gm__store_entry *entry, gm_value **out, gm_error *err) {
  gm__image *image = entry->image;
  gm__leftover left = {NULL, NULL};
  gm_status status = GM_OK;
  if (image) {
    gm__image_retain(image);
  } else {
    status = gm__tier_copy_read(store, entry, &image, err);
  }
  if (!status) status = gm__room_image(store, image, out, err);
  if (!status) {
    gm__mutex_lock(&store->watch->lock);
    gm_value_retain(*out); /* one reference for the entry, one for the caller */
    gm__store_set_value(store, entry, *out, &left);
    gm__store_set_image(store, entry, NULL, &left);
    store->stats.came_back++;
    gm__mutex_unlock(&store->watch->lock);
  }
  gm__leftover_drop(&left);
  gm__image_release(image);
  return status;
}

/* Only the store has the value, by this key, and a part of it fell back. */
static bool get_may_rise(const gm__store_entry *entry) {
  const gm_value *value = entry->value;
  return !entry->busy && value && atomic_load(&value->fell) && gm__value_references(value) == 1;
}

/* Finds the entry, and retains its value if that is there. Otherwise the entry is busy for the caller, as one is that
 * `rises`. */
static gm__store_entry *get_begin(gm_store *store, const gm__store_name *key, uint64_t users, gm_value **out,
                                  bool *rises) {
  gm__mutex_lock(&store->watch->lock);
  gm__store_entry *entry = gm__store_find_settled(store, key);
  if (entry) {
    entry->uses += users;
    store->stats.gets++;
    gm__store_touch(store, entry);
    *rises = entry->rises = get_may_rise(entry);
    gm_value_retain(entry->value);
    *out = entry->value;
    entry->busy = entry->busy || *rises || !entry->value;
  } else {
    store->stats.misses++;
  }
  gm__mutex_unlock(&store->watch->lock);
  return entry;
}

/* A busy entry whose value does not come back. */
static gm_status get_failed(gm_store *store, gm__store_entry *entry, uint64_t users, gm_status status,
                            const gm__store_name *key, const char *op, gm_error *err) {
  gm__mutex_lock(&store->watch->lock);
  entry->uses -= users;
  gm__mutex_unlock(&store->watch->lock);
  return gm__remove_lost(store, entry, status, key, op, err);
}

gm_status gm__get(gm_store *store, const gm__store_name *key, uint64_t users, const char *op, gm_value **out,
                  gm_error *err) {
  gm_value *value = NULL;
  bool rises = false;
  gm__store_entry *entry = get_begin(store, key, users, &value, &rises);
  if (!entry) return gm__store_missing(key, op, err);
  if (!value) {
    const gm_status status = get_bring_back(store, entry, &value, err);
    if (status) return get_failed(store, entry, users, status, key, op, err);
    gm__store_idle(store, entry);
    gm__down_unused(store);
    gm__down_to_bounds(store);
  } else if (atomic_load(&value->fell)) {
    gm__rise(value, rises);
    if (rises) gm__store_idle(store, entry);
  }
  *out = value;
  return GM_OK;
}

static gm_status get_checked(gm_store *store, const char *text, uint64_t users, gm_value **out, const char *op,
                             gm_error *err) {
  gm__store_key key;
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(text, false, &key, op, err);
  if (!status && !out) status = gm__bad_argument(err, op, "`out` is NULL");
  return status ? status : gm__get(store, &key.name, users, op, out, err);
}

gm_status gm_store_get(gm_store *store, const char *key, gm_value **out, gm_error *err) {
  GM__UNCANCELLED();
  return get_checked(store, key, 0, out, "gm_store_get", err);
}

gm_status gm_store_acquire(gm_store *store, const char *key, gm_value **out, gm_error *err) {
  GM__UNCANCELLED();
  return get_checked(store, key, 1, out, "gm_store_acquire", err);
}

gm_status gm_store_get_many(gm_store *store, const char *const *keys, size_t count, gm_value **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_get_many";
  gm_status status = gm__store_check(store, op, err);
  if (status || !count) return status;
  if (!keys || !out) return gm__bad_argument(err, op, "`%s` is NULL", keys ? "out" : "keys");
  size_t done = 0;
  for (; done < count && !status; done += !status) status = get_checked(store, keys[done], 0, &out[done], op, err);
  while (status && done > 0) {
    gm_value_release(out[--done], NULL);
    out[done] = NULL;
  }
  return status;
}

gm_status gm_store_exists(gm_store *store, const char *text, bool *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_exists";
  gm__store_key key;
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(text, false, &key, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  gm__mutex_lock(&store->watch->lock);
  *out = gm__store_find(store, &key.name);
  gm__mutex_unlock(&store->watch->lock);
  return GM_OK;
}
