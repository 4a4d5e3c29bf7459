#include "core/store/down.h"

#include "core/base/saturate.h"
#include "core/context/config.h"
#include "core/store/tier_copy.h"

/* Invariants. The value leaves the device only after host memory or a tier has it. A busy entry keeps its value, so the
 * thread that made it busy may read it without the lock. */

enum { DOWN_FAILURES_MOST = 4 }; /* then a tier is taken for broken: what it has not leaves no more */

static uint64_t down_bound(const gm_store *store, size_t place) {
  return place == GM__PLACE_PINNED ? store->max_pinned_bytes : store->max_host_bytes;
}

/* ---- from pinned and host memory to the places below ---- */

static void down_to(gm_store *store, gm__store_entry *entry, size_t place, gm__image **image);

/* Gives the image of a busy entry to a place below that of the image. */
static gm_status down_sink(gm_store *store, gm__store_entry *entry) {
  gm__leftover left = {NULL, NULL};
  gm__image *copy = NULL;
  if (gm__image_place(entry->image) == GM__PLACE_PINNED && store->max_host_bytes) {
    copy = gm__image_copy(store->ctx, entry->image);
    const bool made = copy;
    if (made) down_to(store, entry, GM__PLACE_HOST, &copy);
    if (made && !copy) return GM_OK;
    gm__image_release(copy);
  }
  const gm_status status = entry->fresh ? GM_OK : gm__tier_copy_put(store, entry, entry->image, NULL);
  gm__mutex_lock(&store->watch->lock);
  if (!status) gm__store_set_image(store, entry, NULL, &left);
  gm__mutex_unlock(&store->watch->lock);
  gm__leftover_drop(&left);
  return status;
}

/* Moves the first image to go of a place further down. False: none could be moved. */
static bool down_push_image(gm_store *store, size_t place) {
  gm__mutex_lock(&store->watch->lock);
  gm__store_entry *entry = gm__store_leave(store, place, NULL, true);
  gm__mutex_unlock(&store->watch->lock);
  if (!entry) return false;
  const gm_status status = down_sink(store, entry);
  gm__store_left(store, entry, place, status);
  return !status;
}

/* REQUIRES: store lock. */
static bool down_fits(const gm_store *store, size_t place, const gm__image *image) {
  const uint64_t bound = down_bound(store, place), there = store->image_bytes[place];
  return there <= bound && image->bytes <= bound - there;
}

/* Leaves the image with the entry if the place has room, and sets it to NULL. */
static void down_to(gm_store *store, gm__store_entry *entry, size_t place, gm__image **image) {
  gm__leftover left = {NULL, NULL};
  bool more = (*image)->bytes <= down_bound(store, place);
  while (*image && more) {
    gm__mutex_lock(&store->watch->lock);
    if (down_fits(store, place, *image)) {
      gm__store_set_image(store, entry, *image, &left);
      *image = NULL;
    }
    gm__mutex_unlock(&store->watch->lock);
    more = *image && down_push_image(store, place);
  }
  gm__leftover_drop(&left);
}

/* ---- from the device ---- */

static gm_status down_image(gm_store *store, gm_value *value, gm__image **out, gm_error *err) {
  gm_status status;
  do {
    status = gm__image_write(value, NULL, out, err);
  } while (status == GM_ERR_OUT_OF_HOST_MEMORY && down_push_image(store, GM__PLACE_HOST));
  return status;
}

/* False: pinned memory does not take the value. */
static bool down_to_pinned(gm_store *store, gm__store_entry *entry) {
  gm__image *image = NULL;
  if (entry->value->bytes > store->max_pinned_bytes) return false;
  if (gm__image_write(entry->value, store->pinned, &image, NULL) != GM_OK) return false;
  down_to(store, entry, GM__PLACE_PINNED, &image);
  const bool taken = !image;
  gm__image_release(image);
  return taken;
}

/* Gives the value to a place below. */
static gm_status down_copy(gm_store *store, gm__store_entry *entry, gm_error *err) {
  gm__image *image = NULL;
  if (entry->image) return GM_OK;
  if (store->pinned && down_to_pinned(store, entry)) return GM_OK;
  if (entry->fresh && !store->max_host_bytes) return GM_OK;
  gm_status status = down_image(store, entry->value, &image, err);
  if (status) return entry->fresh ? GM_OK : status;
  down_to(store, entry, GM__PLACE_HOST, &image);
  if (image && !entry->fresh) status = gm__tier_copy_put(store, entry, image, err);
  gm__image_release(image);
  return status;
}

gm_status gm__down_entry(gm_store *store, gm__store_entry *entry, uint64_t *out_freed, gm_error *err) {
  gm__leftover left = {NULL, NULL};
  gm_status status = down_copy(store, entry, err);
  if (status) return status;
  gm__mutex_lock(&store->watch->lock);
  if (gm__value_is_held(entry->value)) {
    status = GM_ERR_BUSY;
    gm__store_set_image(store, entry, NULL, &left);
  } else {
    gm__store_set_value(store, entry, NULL, &left);
    store->stats.went_down++;
  }
  gm__mutex_unlock(&store->watch->lock);
  *out_freed = gm__leftover_drop(&left);
  return status ? gm__fail(err, status, "gm_store_demote_key", "somebody holds the value") : GM_OK;
}

/* ---- victims ---- */

/* Which values may leave the device, of those that nobody holds. */
typedef bool (*down_choice)(const gm__store_entry *entry);

/* The goal of a run: so many bytes are free, or, with `above`, the bounds hold again. */
typedef struct down_goal {
  uint64_t bytes;
  down_choice may; /* NULL: all */
  bool (*above)(const gm_store *store);
} down_goal;

/* A tier has the value already. */
static bool down_needs_no_put(const gm__store_entry *entry) { return entry->fresh; }

static bool down_is_short(const gm__store_entry *entry) { return !entry->persistent; }

/* The next entry whose value may leave the device, made busy. NULL: there is none, or none has to. */
static gm__store_entry *down_begin(gm_store *store, const down_goal *goal, down_choice may, uint64_t *out_bytes) {
  gm__store_entry *entry = NULL;
  gm__mutex_lock(&store->watch->lock);
  if (!goal->above || goal->above(store)) {
    entry = gm__store_leave(store, GM__PLACE_DEVICE, may, may != down_is_short);
  }
  if (entry) {
    *out_bytes = entry->value->bytes;
    store->going_bytes += *out_bytes;
    store->going_down++;
  }
  gm__mutex_unlock(&store->watch->lock);
  return entry;
}

static void down_end(gm_store *store, gm__store_entry *entry, uint64_t bytes, bool failed) {
  gm__mutex_lock(&store->watch->lock);
  store->going_bytes -= bytes;
  store->going_down--;
  gm__mutex_unlock(&store->watch->lock);
  gm__store_left(store, entry, GM__PLACE_DEVICE, failed);
}

static gm__down_result down_until(gm_store *store, const down_goal *goal) {
  gm__down_result result = {.gone = 0};
  uint64_t has = 0, freed = 0;
  while (result.gone < goal->bytes && result.failures < 2 * DOWN_FAILURES_MOST) {
    const down_choice may = result.failures < DOWN_FAILURES_MOST ? goal->may : down_needs_no_put;
    gm__store_entry *entry = down_begin(store, goal, may, &has);
    if (!entry) break;
    const gm_status status = gm__down_entry(store, entry, &freed, NULL);
    down_end(store, entry, has, status);
    if (status) result.failures++;
    if (!status) result.gone += freed;
  }
  return result;
}

gm__down_result gm__down_some(gm_store *store, uint64_t bytes) {
  return down_until(store, &(down_goal){.bytes = bytes});
}

bool gm__down_for(gm_store *store, uint64_t bytes, bool *out_held) {
  const gm__down_result result = gm__down_some(store, bytes);
  *out_held = !result.failures;
  if (result.gone) return true;
  gm__mutex_lock(&store->watch->lock);
  const bool others = store->going_down;
  if (others) gm__cond_wait(&store->changed, &store->watch->lock);
  gm__mutex_unlock(&store->watch->lock);
  return others;
}

/* ---- without any need for memory ---- */

static bool down_keeps(const gm_store *store) {
  if (store->keep != GM_STORE_KEEP_CONFIG) return store->keep == GM_STORE_KEEP_LONG;
  return gm__config_bool(store->ctx, "gpu.memory.keep_in_vram");
}

/* The key bounds a store only where somebody set it: its default would keep an engine's weights from the device. */
static void down_follow(gm_store *store) {
  static const char key[] = "gpu.memory.cache_size";
  const uint64_t changes = gm__config_changes(store->ctx);
  if (!store->follows || atomic_load(&store->followed) >= changes) return;
  const uint64_t bound = gm__config_is_set(store->ctx, key) ? gm__config_u64(store->ctx, key) : UINT64_MAX;
  gm__mutex_lock(&store->watch->lock);
  if (store->followed < changes) {
    store->max_device_values = bound;
    atomic_store(&store->followed, changes);
  }
  gm__mutex_unlock(&store->watch->lock);
}

/* Bytes that other threads take down count as gone, so that no value goes in vain. Each thread looks again when its
 * value is down. */
static bool down_is_above(const gm_store *store) {
  return gm__sub_sat(store->device_bytes, store->going_bytes) > store->max_device_bytes ||
         gm__sub_sat(store->device_values, store->going_down) > store->max_device_values;
}

void gm__down_unused(gm_store *store) {
  if (!down_keeps(store)) (void)down_until(store, &(down_goal){.bytes = UINT64_MAX, .may = down_is_short});
}

void gm__down_to_bounds(gm_store *store) {
  down_follow(store);
  (void)down_until(store, &(down_goal){.bytes = UINT64_MAX, .above = down_is_above});
}
