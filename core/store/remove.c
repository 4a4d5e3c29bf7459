#include "core/store/remove.h"

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/store/put.h"
#include "core/store/tier_copy.h"

/* Invariant: an entry goes after its copies in the tiers, so a key that was deleted does not come back. */

gm_status gm__remove_entry(gm_store *store, gm__store_entry *entry, gm_error *err) {
  gm__leftover left = {NULL, NULL};
  const gm_status status = gm__tier_copy_remove(store, entry, err);
  gm__mutex_lock(&store->watch->lock);
  entry->busy = false;
  if (!status) gm__store_entry_end(store, entry, &left);
  gm__cond_broadcast(&store->changed);
  gm__mutex_unlock(&store->watch->lock);
  gm__leftover_drop(&left);
  return status;
}

gm_status gm__remove_lost(gm_store *store, gm__store_entry *entry, gm_status status, const gm__store_name *key,
                          const char *op, gm_error *err) {
  if (status != GM_ERR_NOT_FOUND) {
    gm__store_idle(store, entry);
    return status;
  }
  (void)gm__remove_entry(store, entry, NULL);
  return gm__store_missing(key, op, err);
}

gm_status gm__remove(gm_store *store, const gm__store_name *key, const char *op, gm_error *err) {
  gm__mutex_lock(&store->watch->lock);
  gm__store_entry *entry = gm__store_find_idle(store, key);
  if (entry) entry->busy = true;
  gm__mutex_unlock(&store->watch->lock);
  return entry ? gm__remove_entry(store, entry, err) : gm__store_missing(key, op, err);
}

gm_status gm_store_delete(gm_store *store, const char *text, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_delete";
  gm__store_key key;
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(text, false, &key, op, err);
  return status ? status : gm__remove(store, &key.name, op, err);
}

gm_status gm_store_release(gm_store *store, const char *text, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_release";
  gm__store_key key;
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(text, false, &key, op, err);
  if (status) return status;
  gm__mutex_lock(&store->watch->lock);
  gm__store_entry *entry = gm__store_find_idle(store, &key.name);
  const bool last = entry && entry->uses == 1;
  if (entry && entry->uses) entry->uses--;
  if (last) entry->busy = true;
  gm__mutex_unlock(&store->watch->lock);
  return last ? gm__remove_entry(store, entry, err) : GM_OK;
}

/* ---- several keys ---- */

/* Makes the entries of all keys busy. A key that comes again has NULL in its place. */
static gm_status remove_begin(gm_store *store, const gm__store_name *keys, size_t count, gm__store_entry **entries,
                              gm_error *err) {
  size_t i = 0;
  gm__mutex_lock(&store->watch->lock);
  while (i < count) {
    const gm__store_entry *entry = gm__store_find(store, &keys[i]);
    if (!entry) break;
    const bool busy = entry->busy;
    if (busy) gm__cond_wait(&store->changed, &store->watch->lock);
    i = busy ? 0 : i + 1;
  }
  for (size_t at = 0; at < count && i == count; at++) {
    gm__store_entry *entry = gm__store_find(store, &keys[at]);
    entries[at] = entry->busy ? NULL : entry;
    entry->busy = true;
  }
  gm__mutex_unlock(&store->watch->lock);
  return i == count ? GM_OK : gm__store_missing(&keys[i], "gm_store_delete_many", err);
}

static gm_status remove_all(gm_store *store, gm__store_entry **entries, size_t count, gm_error *err) {
  gm_status status = GM_OK;
  for (size_t i = 0; i < count; i++) {
    if (!entries[i]) continue;
    if (status) {
      gm__store_idle(store, entries[i]);
    } else {
      status = gm__remove_entry(store, entries[i], err);
    }
  }
  return status;
}

gm_status gm_store_delete_many(gm_store *store, const char *const *texts, size_t count, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_delete_many";
  gm_status status = gm__store_check(store, op, err);
  if (status || !count) return status;
  if (!texts) return gm__bad_argument(err, op, "`keys` is NULL");
  const gm_services *services = gm__context_services(store->ctx);
  gm__store_names keys;
  status = gm__store_names_read(store, texts, count, &keys, op, err);
  gm__store_entry **entries = gm__alloc_array(services, count, sizeof *entries);
  if (!entries && !status) status = gm__put_no_memory(op, err);
  if (entries && !status) status = remove_begin(store, keys.at, count, entries, err);
  if (entries && !status) status = remove_all(store, entries, count, err);
  gm__store_names_end(store, &keys);
  gm__release(services, entries, count * sizeof *entries);
  return status;
}
