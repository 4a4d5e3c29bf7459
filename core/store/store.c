#include "core/base/cancel.h"
#include "core/store/entry.h"

#include "core/base/alloc.h"
#include "core/base/sized.h"
#include "core/store/down.h"
#include "core/store/tier_copy.h"
#include "gm/size.h"

/* Invariant: a store counts as a guest of its pool, which therefore outlives it. */

static gm_status store_params_check(const gm_store_params *asked, const char *op, gm_error *err) {
  if ((unsigned)asked->fallback > GM_FALLBACK_HOST) {
    return gm__bad_argument(err, op, "`params->fallback` is %u, none of gm_fallback", (unsigned)asked->fallback);
  }
  if ((unsigned)asked->keep > GM_STORE_KEEP_SHORT) {
    return gm__bad_argument(err, op, "`params->keep` is %u, none of gm_store_keep", (unsigned)asked->keep);
  }
  if (asked->tier_count > GM_STORE_TIERS_MOST) {
    return gm__bad_argument(err, op, "`params->tier_count` is %zu, above %d", asked->tier_count, GM_STORE_TIERS_MOST);
  }
  if (asked->tier_count && !asked->tiers) return gm__bad_argument(err, op, "`params->tiers` is NULL");
  for (uint32_t i = 0; i < asked->tier_count; i++) {
    if (!asked->tiers[i]) return gm__bad_argument(err, op, "`params->tiers[%u]` is NULL", i);
  }
  return GM_OK;
}

static uint64_t store_bound(uint64_t asked) {
  if (asked == GM_NO_BYTES) return 0;
  return asked ? asked : GM_NO_LIMIT;
}

static gm_store *store_new(const gm_store_params *asked) {
  gm_context *ctx = asked->pool->ctx;
  gm_store *store = gm__object_new(ctx, GM__KIND_STORE, sizeof *store);
  gm__value_watch *watch = gm__object_new(ctx, GM__KIND_VALUE_WATCH, sizeof *watch);
  if (!store || !watch) {
    if (watch) gm__object_end(ctx, &watch->head);
    if (store) gm__object_end(ctx, &store->head);
    return NULL;
  }
  store->watch = watch;
  watch->store = store;
  watch->wake = gm__store_wake;
  store->ctx = ctx;
  store->pool = asked->pool;
  store->tier_count = (uint32_t)asked->tier_count; /* checked: at most GM_STORE_TIERS_MOST */
  for (uint32_t i = 0; i < asked->tier_count; i++) store->tiers[i] = asked->tiers[i];
  store->max_device_bytes = store_bound(asked->max_device_bytes);
  store->max_device_values = store_bound(asked->max_device_values);
  store->follows = !asked->max_device_values;
  store->max_pinned_bytes = asked->max_pinned_bytes == GM_NO_BYTES ? 0 : asked->max_pinned_bytes;
  store->max_host_bytes = store_bound(asked->max_host_bytes);
  store->fallback = asked->fallback;
  store->keep = asked->keep;
  gm__mutex_init(&store->watch->lock, GM__RANK_LEAF);
  gm__cond_init(&store->changed);
  gm__key_map_init(&store->entries, gm__context_services(ctx));
  gm__folders_init(&store->folders, gm__context_services(ctx));
  for (int i = 0; i < GM__PLACES; i++) gm__victims_init(&store->places[i], gm__context_services(ctx));
  gm__victims_init(&store->persistent, gm__context_services(ctx));
  atomic_fetch_add(&asked->pool->guests, 1);
  return store;
}

/* ---- the store as an evictor of its device ---- */

enum { STORE_COST = 100000 }; /* nanoseconds for a MiB: a link of about 10 GB a second */

static uint64_t store_evict(void *user, uint64_t bytes) { return gm__down_some(user, bytes).gone; }

static gm_status store_register(gm_store *store, int32_t priority, gm_error *err) {
  const gm_evictor_params params = {.struct_size = sizeof params,
                                    .priority = priority,
                                    .cost = STORE_COST,
                                    .name = "store",
                                    .pool = store->pool,
                                    .evict = store_evict,
                                    .user = store};
  return gm_evictor_register(store->pool->device, &params, &store->evictor, err);
}

/* ---- life ---- */

gm_status gm_store_create(const gm_store_params *params, gm_store **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_store_create";
  gm_store_params asked;
  gm_status status = gm__sized_in(&asked, sizeof asked, params, op, "params", err);
  if (!status) status = gm__pool_alive(asked.pool, op, err);
  if (!status) status = store_params_check(&asked, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  gm_store *store = store_new(&asked);
  if (!store) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a store");
  if (store->max_pinned_bytes) {
    status = gm__image_pool(store->pool->device, store->max_pinned_bytes, &store->pinned, err);
  }
  if (!status) status = gm__tier_copy_list(store, err);
  if (!status) status = store_register(store, asked.priority, err);
  if (status) {
    (void)gm_store_destroy(store, NULL);
    return status;
  }
  *out = store;
  return GM_OK;
}

/* A holder of a value that was watched may be on the way to the watch, and finds that the value is not watched. In a
 * child that was forked there is none. */
static void store_end_watch(gm_store *store, bool forked) {
  gm__value_watch *watch = store->watch;
  if (!forked && !watch->used) gm__mutex_destroy(&watch->lock);
  if (!forked && watch->used)
    gm__object_keep(store->ctx, &watch->head);
  else
    gm__object_end(store->ctx, &watch->head);
}

/* No other thread knows the store now, so this takes no lock: in a forked child another thread may hold it. */
gm_status gm_store_destroy(gm_store *store, gm_error *err) {
  GM__UNCANCELLED();
  size_t cursor = 0;
  if (!store) return GM_OK;
  const gm_status status = gm__store_check(store, "gm_store_destroy", err);
  if (status == GM_ERR_INVALID_ARGUMENT) return status;
  (void)gm_evictor_unregister(store->evictor, NULL);
  for (gm__key_entry *entry = gm__key_map_next(&store->entries, &cursor, NULL), *next; entry; entry = next) {
    gm__leftover left = {NULL, NULL};
    next = gm__key_map_next(&store->entries, &cursor, entry);
    gm__store_entry_end(store, (gm__store_entry *)entry, &left);
    gm__leftover_drop(&left);
  }
  (void)gm_pool_destroy(store->pinned, NULL);
  gm__folder_forget(&store->folders, &store->folders.root);
  gm__key_map_clear(&store->entries);
  gm__folders_clear(&store->folders);
  for (int i = 0; i < GM__PLACES; i++) gm__victims_drop(&store->places[i]);
  gm__victims_drop(&store->persistent);
  if (status != GM_ERR_FORKED) gm__cond_destroy(&store->changed);
  store_end_watch(store, status == GM_ERR_FORKED);
  atomic_fetch_sub(&store->pool->guests, 1);
  gm__object_end(store->ctx, &store->head);
  return GM_OK;
}

gm_status gm_store_get_stats(gm_store *store, gm_store_stats *out, gm_error *err) {
  static const char op[] = "gm_store_get_stats";
  gm_stats pool = {.struct_size = sizeof pool};
  gm_status status = gm__store_check(store, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  gm_pool_stats(store->pool, &pool);
  gm__mutex_lock(&store->watch->lock);
  gm_store_stats now = store->stats;
  now.keys = store->entries.count;
  now.device_bytes = store->device_bytes;
  now.device_values = store->device_values;
  now.host_bytes = store->image_bytes[GM__PLACE_HOST];
  now.pinned_bytes = store->image_bytes[GM__PLACE_PINNED];
  gm__mutex_unlock(&store->watch->lock);
  now.struct_size = sizeof now;
  now.allocated_bytes = pool.in_use_bytes;
  now.reserved_bytes = pool.reserved_bytes;
  now.peak_reserved_bytes = pool.peak_reserved_bytes;
  gm__sized_out(out, &now, sizeof now);
  return GM_OK;
}
