#include "core/store/look.h"

#include <string.h>

#include "core/store/entry.h"
#include "core/store/remove.h"
#include "core/store/tier_copy.h"

/* Invariant: an entry is in the same places afterwards, and as far from leaving them. */

gm_status gm__store_look_prefix(const gm_store *store, const char *prefix, char *out, const char *op, gm_error *err) {
  gm__store_key key;
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(prefix, true, &key, op, err);
  if (!status) memcpy(out, key.text, key.name.bytes + 1);
  return status;
}

const gm_services *gm__store_look_services(const gm_store *store) { return gm__context_services(store->ctx); }

static gm_status look_tensor(void *user, const gm_tensor_desc *desc, uint64_t bytes, const gm__transfer *from,
                             gm_value **out, gm_error *err) {
  (void)bytes;
  return gm_value_tensor_on_host(user, desc, from->src, out, err);
}

static gm_status look_at_image(const gm_store *store, gm__image *image, gm_value **out, gm_error *err) {
  const gm__image_maker maker = {look_tensor, store->ctx};
  const gm_status status = gm__image_read(store->ctx, image, &maker, out, err);
  gm__image_release(image);
  return status;
}

/* REQUIRES: the entry is busy. */
static gm_status look_in_tier(gm_store *store, gm__store_entry *entry, const gm__store_name *key, gm__image **out,
                              gm_error *err) {
  const gm_status status = gm__tier_copy_read(store, entry, out, err);
  return gm__remove_lost(store, entry, status, key, "gm_store", err);
}

/* The value or its image, retained. Neither: the entry is busy for the caller. */
static gm__store_entry *look_begin(gm_store *store, const gm__store_name *key, gm_value **out, gm__image **out_image) {
  gm__mutex_lock(&store->watch->lock);
  gm__store_entry *entry = gm__store_find_settled(store, key);
  if (entry && entry->value) {
    gm_value_retain(entry->value);
    *out = entry->value;
  } else if (entry && entry->image) {
    gm__image_retain(entry->image);
    *out_image = entry->image;
  } else if (entry) {
    entry->busy = true;
  }
  gm__mutex_unlock(&store->watch->lock);
  return entry;
}

gm_status gm__store_look(gm_store *store, const char *key, gm_value **out, gm_error *err) {
  static const char op[] = "gm_store";
  gm__store_key name;
  gm__image *image = NULL;
  gm_value *value = NULL;
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__store_key_read(key, false, &name, op, err);
  if (status) return status;
  gm__store_entry *entry = look_begin(store, &name.name, &value, &image);
  if (!entry) return gm__store_missing(&name.name, op, err);
  if (!value && !image) status = look_in_tier(store, entry, &name.name, &image, err);
  if (!status && !value) status = look_at_image(store, image, &value, err);
  if (!status) *out = value;
  return status;
}
