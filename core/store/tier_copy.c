#include "core/store/tier_copy.h"

#include <string.h>

/* Invariants. A tier's copy is removed only after another place has the value, or to end the key. Of the copies that a
 * new store would find, the nearest is the newest: a put removes older copies that are nearer. A tier that did not
 * answer a put may have the value, which is then no older one. It counts as a copy once the value is replaced. */

static uint32_t tier_bit(uint32_t tier) { return UINT32_C(1) << tier; }

static void tier_copy_note(gm_store *store, gm__store_entry *entry, uint32_t copies, uint32_t fresh) {
  gm__mutex_lock(&store->lock);
  gm__store_set_tiers(store, entry, copies, fresh);
  gm__mutex_unlock(&store->lock);
}

static void tier_copy_note_maybe(gm_store *store, gm__store_entry *entry, uint32_t maybe) {
  gm__mutex_lock(&store->lock);
  entry->maybe = maybe;
  gm__mutex_unlock(&store->lock);
}

/* ---- removing ---- */

static gm_status tier_copy_remove_at(gm_store *store, gm__store_entry *entry, uint32_t tier, gm_error *err) {
  const gm_status status = gm_tier_remove(store->tiers[tier], entry->head.key, entry->head.key_bytes, err);
  if (status && status != GM_ERR_NOT_FOUND) return status;
  tier_copy_note(store, entry, entry->copies & ~tier_bit(tier), entry->fresh & ~tier_bit(tier));
  return GM_OK;
}

/* Removes the copies in the tiers of `wanted`. */
static gm_status tier_copy_remove_of(gm_store *store, gm__store_entry *entry, uint32_t wanted, gm_error *err) {
  gm_status status = GM_OK;
  for (uint32_t i = store->tier_count; i-- > 0 && !status;) {
    if (entry->copies & wanted & tier_bit(i)) status = tier_copy_remove_at(store, entry, i, err);
  }
  return status;
}

gm_status gm__tier_copy_remove(gm_store *store, gm__store_entry *entry, gm_error *err) {
  tier_copy_note(store, entry, entry->copies | entry->maybe, entry->fresh);
  tier_copy_note_maybe(store, entry, 0);
  const gm_status status = tier_copy_remove_of(store, entry, ~entry->fresh, err);
  return status ? status : tier_copy_remove_of(store, entry, UINT32_MAX, err);
}

/* ---- reading ---- */

static gm_status tier_copy_read_at(gm_store *store, gm__store_entry *entry, uint32_t tier, gm__image **out,
                                   gm_error *err) {
  gm_tier_value *value = NULL;
  uint64_t bytes = 0;
  gm_status status =
      gm_tier_value_open(store->tiers[tier], entry->head.key, entry->head.key_bytes, &value, &bytes, err);
  if (status == GM_ERR_NOT_FOUND) return gm__fail(err, GM_ERR_DAMAGED, 0, "gm_store_get", "a tier lost the value");
  if (status) return status;
  gm__image *image = gm__image_new(store->ctx, bytes);
  status = image ? gm_tier_value_read(value, 0, image->data, bytes, err)
                 : gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_store_get", "no host memory for a value");
  gm_tier_value_close(value);
  if (status) {
    gm__image_release(image);
    return status;
  }
  *out = image;
  return GM_OK;
}

gm_status gm__tier_copy_read(gm_store *store, gm__store_entry *entry, gm__image **out, gm_error *err) {
  gm_status status = GM_ERR_DAMAGED;
  for (uint32_t i = 0; i < store->tier_count; i++) {
    if (!(entry->fresh & tier_bit(i))) continue;
    status = tier_copy_read_at(store, entry, i, out, err);
    if (!status) break;
  }
  return status;
}

/* ---- putting ---- */

static bool tier_copy_move_one(gm_store *store, uint32_t tier);

static void tier_copy_count_failure(gm_store *store) {
  gm__mutex_lock(&store->lock);
  store->stats.tier_failures++;
  gm__mutex_unlock(&store->lock);
}

static gm_status tier_copy_put_at(gm_store *store, gm__store_entry *entry, uint32_t tier, const gm__image *image,
                                  gm_error *err) {
  const gm_tier_part part = {image->data, image->bytes};
  const uint32_t bit = tier_bit(tier);
  gm_status status;
  do {
    status = gm_tier_put(store->tiers[tier], entry->head.key, entry->head.key_bytes, &part, 1, err);
  } while (status == GM_ERR_OVER_LIMIT && tier + 1 < store->tier_count && tier_copy_move_one(store, tier));
  const bool unanswered = status == GM_ERR_TIMEOUT || status == GM_ERR_IO;
  if (!status || unanswered) tier_copy_note_maybe(store, entry, status ? entry->maybe | bit : entry->maybe & ~bit);
  if (!status) {
    tier_copy_note(store, entry, entry->copies | bit, entry->fresh);
    status = tier_copy_remove_of(store, entry, (bit - 1) & ~entry->fresh, err);
  }
  if (status) {
    tier_copy_count_failure(store);
  } else {
    tier_copy_note(store, entry, entry->copies, entry->fresh | bit);
  }
  return status;
}

static gm_status tier_copy_move(gm_store *store, gm__store_entry *entry, uint32_t tier) {
  gm__image *image = NULL;
  gm_status status = tier_copy_read_at(store, entry, tier, &image, NULL);
  if (!status) status = tier_copy_put_at(store, entry, tier + 1, image, NULL);
  if (!status) status = tier_copy_remove_at(store, entry, tier, NULL);
  gm__image_release(image);
  return status;
}

/* Moves the first to go of a tier to the next one. False: none could be moved. */
static bool tier_copy_move_one(gm_store *store, uint32_t tier) {
  const size_t place = GM__PLACE_TIER + tier;
  gm__mutex_lock(&store->lock);
  gm__store_entry *entry = gm__store_leave(store, place, NULL);
  gm__mutex_unlock(&store->lock);
  if (!entry) return false;
  const gm_status status = tier_copy_move(store, entry, tier);
  gm__store_left(store, entry, place, status);
  return !status;
}

gm_status gm__tier_copy_put(gm_store *store, gm__store_entry *entry, const gm__image *image, gm_error *err) {
  gm_status status = GM_OK;
  if (!store->tier_count) {
    return gm__fail(err, GM_ERR_OVER_LIMIT, 0, "gm_store", "host memory is full, and the store has no tier");
  }
  for (uint32_t i = 0; i < store->tier_count; i++) {
    status = tier_copy_put_at(store, entry, i, image, err);
    if (!status) break;
  }
  return status;
}

gm_status gm__tier_copy_put_lowest(gm_store *store, gm__store_entry *entry, const gm__image *image, gm_error *err) {
  return tier_copy_put_at(store, entry, store->tier_count - 1, image, err);
}

/* ---- what is there at the beginning ---- */

typedef struct tier_copy_listing {
  gm_store *store;
  uint32_t tier;
  bool no_memory;
} tier_copy_listing;

static bool tier_copy_found(void *user, const void *text, size_t bytes, uint64_t value_bytes) {
  tier_copy_listing *listing = user;
  gm__store_key key = {.bytes = 0};
  (void)value_bytes;
  if (gm__key_path_normalise(text, bytes, key.text, &key.bytes) || key.bytes != bytes ||
      memcmp(key.text, text, bytes) != 0) {
    return true; /* no key of a store */
  }
  /* without the lock: nobody else knows the store, and the tier may hold a lock of its own */
  gm__store_entry *entry = gm__store_entry_of(listing->store, &key);
  if (entry) {
    const uint32_t bit = tier_bit(listing->tier);
    gm__store_set_tiers(listing->store, entry, entry->copies | bit, entry->fresh ? entry->fresh : bit);
  }
  listing->no_memory = !entry;
  return entry;
}

gm_status gm__tier_copy_list(gm_store *store, gm_error *err) {
  tier_copy_listing listing = {.store = store};
  gm_status status = GM_OK;
  for (; listing.tier < store->tier_count && !status; listing.tier++) {
    status = gm_tier_list(store->tiers[listing.tier], NULL, 0, tier_copy_found, &listing, err);
    if (listing.no_memory) {
      status = gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_store_create", "no host memory for the keys of a tier");
    }
  }
  return status;
}
