#include "core/store/tier_copy.h"

#include <stdio.h>
#include <string.h>

#include "core/base/saturate.h"

/* Invariants. A tier's copy is removed only after another place has the value, or to end the key. Among the copies
 * that a new store would find, the nearest is the newest: a put removes older copies that are nearer. A tier that did
 * not answer a put, or the removal of the value of now, may have that value: `maybe`. Such a tier is read only when no
 * other place has the value. Then all older copies are gone: a removal begins with them. */

static uint32_t tier_bit(uint32_t tier) { return UINT32_C(1) << tier; }

static bool tier_is_unanswered(gm_status status) { return status == GM_ERR_TIMEOUT || status == GM_ERR_IO; }

static void tier_copy_note(gm_store *store, gm__store_entry *entry, uint32_t copies, uint32_t fresh, uint32_t maybe) {
  gm__mutex_lock(&store->watch->lock);
  entry->maybe = maybe;
  gm__store_set_tiers(store, entry, copies, fresh);
  gm__mutex_unlock(&store->watch->lock);
}

/* The tier was changed, or may have been. */
static void tier_copy_note_change(gm_store *store, uint32_t tier) {
  gm__mutex_lock(&store->watch->lock);
  store->changes[tier]++;
  gm__mutex_unlock(&store->watch->lock);
}

/* ---- removing ---- */

static gm_status tier_copy_remove_at(gm_store *store, gm__store_entry *entry, uint32_t tier, gm_error *err) {
  const uint32_t bit = tier_bit(tier);
  const gm_status status = gm_tier_remove(store->tiers[tier], entry->head.key, entry->head.key_bytes, err);
  tier_copy_note_change(store, tier);
  if (!status || status == GM_ERR_NOT_FOUND) {
    tier_copy_note(store, entry, entry->copies & ~bit, entry->fresh & ~bit, entry->maybe & ~bit);
    return GM_OK;
  }
  if (tier_is_unanswered(status) && (entry->fresh & bit)) {
    tier_copy_note(store, entry, entry->copies, entry->fresh & ~bit, entry->maybe | bit);
  }
  return status;
}

/* Removes the copies in the tiers of `wanted`. */
static gm_status tier_copy_remove_of(gm_store *store, gm__store_entry *entry, uint32_t wanted, gm_error *err) {
  gm_status status = GM_OK;
  for (uint32_t i = store->tier_count; i-- > 0 && !status;) {
    if (wanted & tier_bit(i)) status = tier_copy_remove_at(store, entry, i, err);
  }
  return status;
}

gm_status gm__tier_copy_remove(gm_store *store, gm__store_entry *entry, gm_error *err) {
  const gm_status status = tier_copy_remove_of(store, entry, (entry->copies | entry->maybe) & ~entry->fresh, err);
  return status ? status : tier_copy_remove_of(store, entry, entry->fresh, err);
}

/* ---- reading ---- */

static gm_status tier_copy_read_at(gm_store *store, const gm__store_entry *entry, uint32_t tier, gm__image **out,
                                   gm_error *err) {
  gm_tier_value *value = NULL;
  uint64_t bytes = 0;
  gm_status status =
      gm_tier_value_open(store->tiers[tier], entry->head.key, entry->head.key_bytes, &value, &bytes, err);
  if (status) return status;
  gm__image *image = gm__image_new(store->ctx, bytes);
  status = image ? gm_tier_value_read(value, 0, image->data, bytes, err)
                 : gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_store_get", "no host memory for a value");
  gm_tier_value_close(value);
  if (status) {
    gm__image_release(image);
    return status;
  }
  *out = image;
  return GM_OK;
}

/* From a tier that has the value for sure. */
static gm_status tier_copy_read_fresh(gm_store *store, const gm__store_entry *entry, uint32_t tier, gm__image **out,
                                      gm_error *err) {
  const gm_status status = tier_copy_read_at(store, entry, tier, out, err);
  if (status != GM_ERR_NOT_FOUND) return status;
  return gm__fail(err, GM_ERR_DAMAGED, "gm_store_get", "a tier lost the value");
}

/* From the tiers that may have the value. Without an answer of each of them, nobody knows that it is gone. */
static gm_status tier_copy_read_maybe(gm_store *store, gm__store_entry *entry, gm__image **out, gm_error *err) {
  gm_status status = GM_ERR_NOT_FOUND;
  for (uint32_t i = 0; i < store->tier_count; i++) {
    const uint32_t bit = tier_bit(i);
    if (!(entry->maybe & bit)) continue;
    const gm_status here = tier_copy_read_at(store, entry, i, out, err);
    if (!here) tier_copy_note(store, entry, entry->copies | bit, entry->fresh | bit, entry->maybe & ~bit);
    if (!here) return GM_OK;
    if (here != GM_ERR_NOT_FOUND) status = here;
  }
  return status;
}

gm_status gm__tier_copy_read(gm_store *store, gm__store_entry *entry, gm__image **out, gm_error *err) {
  gm_status status = GM_ERR_DAMAGED;
  if (!entry->fresh) return tier_copy_read_maybe(store, entry, out, err);
  for (uint32_t i = 0; i < store->tier_count; i++) {
    if (!(entry->fresh & tier_bit(i))) continue;
    status = tier_copy_read_fresh(store, entry, i, out, err);
    if (!status) break;
  }
  return status;
}

/* ---- putting ---- */

static bool tier_copy_move_one(gm_store *store, uint32_t tier);

/* Counts a failure, and notes its reason; or notes that the tier takes values. */
static void tier_copy_note_answer(gm_store *store, uint32_t tier, gm_status status, const gm_error *why) {
  gm__mutex_lock(&store->watch->lock);
  if (status) store->stats.tier_failures++;
  snprintf(store->refused[tier], GM__STORE_REFUSAL, "%.*s", GM__STORE_REFUSAL - 1, status ? why->message : "");
  gm__mutex_unlock(&store->watch->lock);
}

/* Puts the image, and makes room for it in the tiers below. */
static gm_status tier_copy_try(gm_store *store, const gm__store_entry *entry, uint32_t tier, const gm__image *image,
                               gm_error *err) {
  const gm_tier_part part = {image->data, image->bytes};
  gm_status status;
  do {
    status = gm_tier_put(store->tiers[tier], entry->head.key, entry->head.key_bytes, &part, 1, err);
    tier_copy_note_change(store, tier);
  } while (status == GM_ERR_OVER_LIMIT && tier + 1 < store->tier_count && tier_copy_move_one(store, tier));
  return status;
}

static gm_status tier_copy_put_at(gm_store *store, gm__store_entry *entry, uint32_t tier, const gm__image *image,
                                  gm_error *err) {
  const uint32_t bit = tier_bit(tier);
  gm_error why = {.status = GM_OK};
  gm_status status = tier_copy_try(store, entry, tier, image, &why);
  if (tier_is_unanswered(status)) {
    tier_copy_note(store, entry, entry->copies, entry->fresh, entry->maybe | bit);
  }
  if (!status) {
    tier_copy_note(store, entry, entry->copies | bit, entry->fresh, entry->maybe & ~bit);
    status = tier_copy_remove_of(store, entry, entry->copies & (bit - 1) & ~entry->fresh, &why);
  }
  if (!status) tier_copy_note(store, entry, entry->copies, entry->fresh | bit, entry->maybe);
  tier_copy_note_answer(store, tier, status, &why);
  if (status && err) *err = why;
  return status;
}

static gm_status tier_copy_move(gm_store *store, gm__store_entry *entry, uint32_t tier) {
  gm__image *image = NULL;
  gm_status status = tier_copy_read_fresh(store, entry, tier, &image, NULL);
  if (!status) status = tier_copy_put_at(store, entry, tier + 1, image, NULL);
  if (!status) status = tier_copy_remove_at(store, entry, tier, NULL);
  gm__image_release(image);
  return status;
}

/* Moves the first to go of a tier to the next one. False: none could be moved. */
static bool tier_copy_move_one(gm_store *store, uint32_t tier) {
  const size_t place = GM__PLACE_TIER + tier;
  gm__mutex_lock(&store->watch->lock);
  gm__store_entry *entry = gm__store_leave(store, place, NULL, true);
  gm__mutex_unlock(&store->watch->lock);
  if (!entry) return false;
  const gm_status status = tier_copy_move(store, entry, tier);
  gm__store_left(store, entry, place, status);
  return !status;
}

gm_status gm__tier_copy_put(gm_store *store, gm__store_entry *entry, const gm__image *image, gm_error *err) {
  gm_status status = GM_OK;
  if (!store->tier_count) {
    return gm__fail(err, GM_ERR_OVER_LIMIT, "gm_store", "host memory is full, and the store has no tier");
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

/* ---- flushing ---- */

static gm_status tier_copy_flush_at(gm_store *store, uint32_t tier, gm_error *err) {
  gm__mutex_lock(&store->watch->lock);
  const uint64_t changed = store->changes[tier];
  const bool needless = changed == store->flushed[tier];
  gm__mutex_unlock(&store->watch->lock);
  if (needless) return GM_OK;
  const gm_status status = gm_tier_flush(store->tiers[tier], err);
  gm__mutex_lock(&store->watch->lock);
  if (!status) store->flushed[tier] = gm__max(store->flushed[tier], changed);
  gm__mutex_unlock(&store->watch->lock);
  return status;
}

gm_status gm__tier_copy_flush(gm_store *store, gm_error *err) {
  gm_status status = GM_OK;
  for (uint32_t i = 0; i < store->tier_count; i++) {
    const gm_status here = tier_copy_flush_at(store, i, status ? NULL : err);
    if (!status) status = here;
  }
  return status;
}

/* ---- what is there at the beginning ---- */

typedef struct tier_copy_listing {
  gm_store *store;
  uint32_t tier;
  bool no_memory;
} tier_copy_listing;

static bool tier_copy_found(void *user, const void *text, size_t bytes, uint64_t value_bytes) {
  tier_copy_listing *listing = user;
  gm__store_key key;
  gm__store_name name = {.text = key.text};
  (void)value_bytes;
  if (gm__key_path_normalise(text, bytes, key.text, &name.bytes) || name.bytes != bytes ||
      memcmp(key.text, text, bytes) != 0) {
    return true; /* no key of a store */
  }
  /* without the lock: nobody else knows the store, and the tier may hold a lock of its own */
  gm__store_entry *entry = gm__store_entry_of(listing->store, &name);
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
    store->changes[listing.tier] = 1; /* another store may have left it so */
    status = gm_tier_list(store->tiers[listing.tier], NULL, 0, tier_copy_found, &listing, err);
    if (listing.no_memory) {
      status = gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_store_create", "no host memory for the keys of a tier");
    }
  }
  return status;
}
