#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/store/down.h"
#include "core/store/tier_copy.h"

/* Values go down because the host program says so. */

gm_status gm_store_demote(gm_store *store, uint64_t bytes, uint64_t *out_bytes, gm_error *err) {
  GM__UNCANCELLED();
  const gm_status status = gm__store_check(store, "gm_store_demote", err);
  if (status) return status;
  const uint64_t gone = gm__down_some(store, bytes);
  if (out_bytes) *out_bytes = gone;
  return GM_OK;
}

gm_status gm_store_demote_key(gm_store *store, const char *text, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_demote_key";
  gm__store_key key;
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(text, false, &key, op, err);
  if (status) return status;
  gm__mutex_lock(&store->lock);
  gm__store_entry *entry = gm__store_find_idle(store, &key);
  if (entry) entry->busy = true;
  gm__mutex_unlock(&store->lock);
  if (!entry) return gm__store_missing(&key, op, err);
  if (entry->value) status = gm__down_entry(store, entry, err);
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
  gm__mutex_lock(&store->lock);
  gm__store_entry *entry = gm__store_find(store, &key);
  if (entry) gm__store_set_persistent(store, entry, persistent);
  gm__mutex_unlock(&store->lock);
  return entry ? GM_OK : gm__store_missing(&key, op, err);
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

static gm_status demote_flush_entry(gm_store *store, gm__store_entry *entry, gm_error *err) {
  gm__image *image = NULL;
  gm_status status = demote_image(store, entry, &image, err);
  if (!status) status = gm__tier_copy_put_lowest(store, entry, image, err);
  gm__image_release(image);
  return status;
}

/* Keys that the lowest tier has not got. Entries come and go meanwhile, so the list is of keys. */
static gm__store_key *demote_missing(gm_store *store, size_t *out_count, size_t *out_room) {
  const uint32_t bit = UINT32_C(1) << (store->tier_count - 1);
  size_t cursor = 0, count = 0;
  gm__mutex_lock(&store->lock);
  const size_t room = store->entries.count;
  gm__store_key *keys = gm__alloc_array(gm__context_services(store->ctx), room, sizeof *keys);
  for (gm__key_entry *at = NULL; keys && (at = gm__key_map_next(&store->entries, &cursor, at));) {
    const gm__store_entry *entry = (const gm__store_entry *)at;
    if (entry->fresh & bit) continue;
    memcpy(keys[count].text, at->key, at->key_bytes);
    keys[count++].bytes = at->key_bytes;
  }
  gm__mutex_unlock(&store->lock);
  *out_count = count;
  *out_room = room;
  return keys;
}

static gm_status demote_flush_key(gm_store *store, const gm__store_key *key, gm_error *err) {
  const uint32_t bit = UINT32_C(1) << (store->tier_count - 1);
  gm__mutex_lock(&store->lock);
  gm__store_entry *entry = gm__store_find_idle(store, key);
  if (entry && (entry->fresh & bit)) entry = NULL;
  if (entry) entry->busy = true;
  gm__mutex_unlock(&store->lock);
  if (!entry) return GM_OK;
  const gm_status status = demote_flush_entry(store, entry, err);
  gm__store_idle(store, entry);
  return status;
}

gm_status gm_store_flush(gm_store *store, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_flush";
  size_t count = 0, room = 0;
  gm_status status = gm__store_check(store, op, err);
  if (status) return status;
  if (!store->tier_count) return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, op, "the store has no tier");
  gm__store_key *keys = demote_missing(store, &count, &room);
  if (!keys) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, op, "no host memory for the keys");
  for (size_t i = 0; i < count && !status; i++) status = demote_flush_key(store, &keys[i], err);
  gm__release(gm__context_services(store->ctx), keys, room * sizeof *keys);
  return status ? status : gm_tier_flush(store->tiers[store->tier_count - 1], err);
}
