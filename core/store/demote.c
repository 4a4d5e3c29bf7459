#include "core/base/cancel.h"
#include "core/store/down.h"
#include "core/store/remove.h"
#include "core/store/tier_copy.h"

/* Values go down because the host program says so. */

gm_status gm_store_demote(gm_store *store, uint64_t bytes, uint64_t *out_bytes, gm_error *err) {
  GM__UNCANCELLED();
  const gm_status status = gm__store_check(store, "gm_store_demote", err);
  if (status) return status;
  const gm__down_result result = gm__down_some(store, bytes);
  if (out_bytes) *out_bytes = result.gone;
  return GM_OK;
}

gm_status gm_store_demote_key(gm_store *store, const char *text, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_demote_key";
  gm__store_key key;
  uint64_t freed;
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(text, false, &key, op, err);
  if (status) return status;
  gm__mutex_lock(&store->watch->lock);
  gm__store_entry *entry = gm__store_find_idle(store, &key.name);
  if (entry) entry->busy = true;
  gm__mutex_unlock(&store->watch->lock);
  if (!entry) return gm__store_missing(&key.name, op, err);
  if (entry->value) status = gm__down_entry(store, entry, &freed, err);
  gm__store_idle(store, entry);
  return status;
}

gm_status gm_store_set_persistent(gm_store *store, const char *text, bool persistent, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_set_persistent";
  gm__store_key key;
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(text, false, &key, op, err);
  if (status) return status;
  gm__mutex_lock(&store->watch->lock);
  gm__store_entry *entry = gm__store_find(store, &key.name);
  if (entry) gm__store_set_persistent(store, entry, persistent);
  gm__mutex_unlock(&store->watch->lock);
  return entry ? GM_OK : gm__store_missing(&key.name, op, err);
}

/* ---- flushing ---- */

/* The image of a busy entry, with a reference for the caller. */
static gm_status demote_image(gm_store *store, gm__store_entry *entry, gm__image **out, gm_error *err) {
  if (entry->value) return gm__image_write(entry->value, NULL, out, err);
  if (!entry->image) return gm__tier_copy_read(store, entry, out, err);
  gm__image_retain(entry->image);
  *out = entry->image;
  return GM_OK;
}

/* Gives a busy entry to the lowest tier, and ends its being busy. */
static gm_status demote_flush_entry(gm_store *store, gm__store_entry *entry, gm_error *err) {
  gm__image *image = NULL;
  gm_status status = demote_image(store, entry, &image, err);
  if (status == GM_ERR_NOT_FOUND) return gm__remove_entry(store, entry, err);
  if (!status) status = gm__tier_copy_put_lowest(store, entry, image, err);
  gm__image_release(image);
  gm__store_idle(store, entry);
  return status;
}

/* The next entry that is due, made busy. NULL: there is none. */
static gm__store_entry *demote_next_due(gm_store *store) {
  gm__store_entry *entry;
  gm__mutex_lock(&store->watch->lock);
  while ((entry = store->due_first) && entry->busy) gm__cond_wait(&store->changed, &store->watch->lock);
  if (entry) entry->busy = true;
  gm__mutex_unlock(&store->watch->lock);
  return entry;
}

/* Values that became due later stand behind in the list. So as many as are due now are enough, and a flush ends. */
gm_status gm_store_flush(gm_store *store, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_flush";
  gm_status status = gm__store_check(store, op, err);
  if (status) return status;
  if (!store->tier_count) return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "the store has no tier");
  gm__mutex_lock(&store->watch->lock);
  uint64_t left = store->due_count;
  gm__mutex_unlock(&store->watch->lock);
  for (gm__store_entry *entry; left > 0 && !status && (entry = demote_next_due(store)); left--) {
    status = demote_flush_entry(store, entry, err);
  }
  return status ? status : gm__tier_copy_flush(store, err);
}
