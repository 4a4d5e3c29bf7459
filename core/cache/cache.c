#include "core/cache/cache.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/cache/cache_state.h"
#include "core/context/config.h"
#include "core/context/process.h"

/* Invariants. An entry in the cache is in the map. One that has left the cache has leases, and is in the list `left`.
 * An entry in the cache that nobody holds is in the policy. One that is held may be: the policy gives it up when its
 * turn comes, and gets it back with the last hold. So a lease pays for one step at most. A search meets
 * CACHE_HELD held ones at most: a hold beyond puts its entry aside at once.
 *
 * `release` runs without the lock: what a call lets go is collected first (cache_gone). */

typedef struct gm_cache_lease cache_entry; /* a lease is its entry: all leases of an object are alike */

typedef struct cache_gone {
  cache_entry *first;
} cache_gone;

static const gm_services *cache_services(const gm_cache *cache) { return gm__context_services(cache->ctx); }

static cache_entry *cache_of_turn(gm__cache_entry *turn) {
  return (cache_entry *)(void *)((unsigned char *)turn - offsetof(cache_entry, turn));
}

/* One look at two numbers, unless the system keeps them from nobody or the process was forked. */
static inline bool cache_forked(const gm_cache *cache) {
  const bool same = atomic_load_explicit(cache->generation_at, memory_order_relaxed) == cache->generation;
  return !same && gm__context_forked(cache->ctx);
}

static inline bool cache_held(const cache_entry *entry) { return entry->leases || entry->kept; }

enum {
  CACHE_LOOKS = 1024, /* at entries under the lock, until other threads may enter */
  CACHE_HELD = 1024
};

/* ---- what goes ---- */

static void cache_entry_end(const gm_cache *cache, cache_entry *entry) {
  gm__release(cache_services(cache), entry, sizeof *entry + entry->head.key_bytes);
}

static void cache_go(cache_gone *gone, cache_entry *entry) {
  entry->next = gone->first;
  gone->first = entry;
}

/* REQUIRES: the lock is not held. `forked`: the objects are the parent's. */
static void cache_release(gm_cache *cache, cache_gone *gone, bool forked) {
  for (cache_entry *entry = gone->first, *next; entry; entry = next) {
    next = entry->next;
    if (cache->release && !forked) cache->release(cache->user, entry->object, entry->bytes);
    cache_entry_end(cache, entry);
  }
}

static void cache_left_add(gm_cache *cache, cache_entry *entry) {
  entry->previous = NULL;
  entry->next = cache->left;
  if (cache->left) cache->left->previous = entry;
  cache->left = entry;
}

static void cache_left_take(gm_cache *cache, cache_entry *entry) {
  *(entry->previous ? &entry->previous->next : &cache->left) = entry->next;
  if (entry->next) entry->next->previous = entry->previous;
}

/* An entry leaves the cache. */
static void cache_leave(gm_cache *cache, cache_entry *entry, cache_gone *gone) {
  if (cache_held(entry)) {
    cache->stats.held_entries--;
    cache->stats.held_bytes -= entry->bytes;
    cache->aside -= !entry->turn.place;
  }
  cache->stats.entries--;
  cache->stats.bytes -= entry->bytes;
  gm__cache_policy_remove(&cache->policy, &entry->turn);
  gm__key_map_unlink(&cache->map, &entry->head);
  entry->in_cache = false;
  entry->kept = false;
  if (entry->leases)
    cache_left_add(cache, entry);
  else
    cache_go(gone, entry);
}

/* Has the entries of the next places leave. True: there are no more. An entry that a put adds meanwhile may stay. */
static bool cache_leave_piece(gm_cache *cache, size_t *cursor, cache_gone *gone) {
  for (uint32_t looks = 0; looks < CACHE_LOOKS;) {
    gm__key_entry *entry = gm__key_map_next(&cache->map, cursor, NULL);
    if (!entry) return true;
    for (gm__key_entry *next; entry; entry = next, looks++) {
      next = entry->next;
      cache_leave(cache, (cache_entry *)entry, gone);
    }
  }
  return false;
}

/* ---- holds ---- */

static void cache_put_aside(gm_cache *cache, cache_entry *entry) {
  gm__cache_policy_pause(&cache->policy, &entry->turn);
  cache->aside++;
}

static void cache_hold_begins(gm_cache *cache, cache_entry *entry) {
  cache->stats.held_entries++;
  cache->stats.held_bytes += entry->bytes;
  if (__builtin_expect(cache->stats.held_entries - cache->aside > CACHE_HELD, 0)) cache_put_aside(cache, entry);
}

static void cache_hold_ends(gm_cache *cache, cache_entry *entry) {
  cache->stats.held_entries--;
  cache->stats.held_bytes -= entry->bytes;
  if (entry->turn.place) return;
  cache->aside--;
  gm__cache_policy_resume(&cache->policy, &entry->turn);
}

static void cache_lease(gm_cache *cache, cache_entry *entry) {
  if (!cache_held(entry)) cache_hold_begins(cache, entry);
  entry->leases++;
  cache->stats.leases++;
}

static void cache_set_kept(gm_cache *cache, cache_entry *entry, bool keep) {
  const bool held = cache_held(entry);
  entry->kept = keep;
  if (held == cache_held(entry)) return;
  if (keep)
    cache_hold_begins(cache, entry);
  else
    cache_hold_ends(cache, entry);
}

static void cache_give_back(gm_cache *cache, cache_entry *entry, cache_gone *gone) {
  entry->leases--;
  cache->stats.leases--;
  if (cache_held(entry)) return;
  if (entry->in_cache) {
    cache_hold_ends(cache, entry);
    return;
  }
  cache_left_take(cache, entry);
  cache_go(gone, entry);
}

/* ---- room ---- */

/* Would `bytes` more fit beside what is held, if `earlier` (NULL: none) goes? */
static bool cache_fits(const gm_cache *cache, const cache_entry *earlier, uint64_t bytes) {
  const bool held = earlier && cache_held(earlier);
  const uint64_t entries = cache->stats.held_entries - held;
  const uint64_t held_bytes = cache->stats.held_bytes - (held ? earlier->bytes : 0);
  return entries < cache->max_entries && bytes <= cache->max_bytes - held_bytes;
}

/* The next victim; what is held before it is put aside. NULL: no look is left, or all that is left is held. REQUIRES:
 * the lock. */
static gm__cache_entry *cache_victim(gm_cache *cache, uint32_t *looks) {
  for (gm__cache_entry *turn; *looks && (turn = gm__cache_policy_seek(&cache->policy, looks)); --*looks) {
    if (!cache_held(cache_of_turn(turn))) return *looks ? turn : NULL;
    gm__cache_policy_remove(&cache->policy, turn);
    cache->aside++;
  }
  return NULL;
}

/* Puts aside what is held, until the next victim is not. False: no look is left. REQUIRES: the lock. */
static bool cache_sift(gm_cache *cache) {
  uint32_t looks = CACHE_LOOKS;
  cache_victim(cache, &looks);
  return looks != 0;
}

/* False: no look is left, or all that is left is held. REQUIRES: the lock. */
static bool cache_evict_one(gm_cache *cache, cache_gone *gone, uint32_t *looks) {
  gm__cache_entry *turn = cache_victim(cache, looks);
  if (!turn) return false;
  cache_entry *entry = cache_of_turn(turn);
  --*looks;
  cache->stats.evictions++;
  cache->stats.evicted_bytes += entry->bytes;
  gm__cache_policy_evict(&cache->policy, turn);
  cache_leave(cache, entry, gone);
  return true;
}

/* The object that is to come in. */
typedef struct cache_need {
  uint64_t entries, bytes;
} cache_need;

static bool cache_has_room(const gm_cache *cache, const cache_need *need) {
  return gm__add_sat(cache->stats.entries, need->entries) <= cache->max_entries &&
         need->bytes <= cache->max_bytes - cache->stats.bytes;
}

/* Evicts until there is room, or until all that is left is held. False: no look is left. REQUIRES: the lock. */
static bool cache_make_room(gm_cache *cache, const cache_need *need, cache_gone *gone, uint32_t looks) {
  while (!cache_has_room(cache, need)) {
    if (!cache_evict_one(cache, gone, &looks)) return looks != 0;
  }
  return true;
}

/* Leaves the lock for a moment. */
static void cache_breathe(gm_cache *cache) {
  gm__mutex_unlock(&cache->lock);
  gm__mutex_lock(&cache->lock);
}

/* Enters the lock for a put of so many bytes. Held objects before the next victim are put aside in pieces. */
static void cache_enter_lock(gm_cache *cache, uint64_t bytes) {
  const cache_need need = {1, bytes};
  gm__mutex_lock(&cache->lock);
  while (!cache_has_room(cache, &need) && !cache_sift(cache)) cache_breathe(cache);
}

uint64_t gm__cache_evictable(void *user) {
  gm_cache_stats now = {.struct_size = sizeof now};
  return gm_cache_get_stats(user, &now, NULL) ? 0 : now.bytes - now.held_bytes;
}

/* Evicts up to so many bytes. False: no look is left. REQUIRES: the lock. */
static bool cache_evict_piece(gm_cache *cache, uint64_t bytes, cache_gone *gone, uint64_t *evicted) {
  uint32_t looks = CACHE_LOOKS;
  const uint64_t before = cache->stats.bytes, wanted = bytes - *evicted;
  while (before - cache->stats.bytes < wanted && cache->stats.bytes > cache->stats.held_bytes &&
         cache_evict_one(cache, gone, &looks)) {}
  *evicted += before - cache->stats.bytes;
  return looks != 0;
}

uint64_t gm__cache_evict(void *user, uint64_t bytes) {
  gm_cache *cache = user;
  uint64_t evicted = 0;
  bool over = false;
  while (!over && evicted < bytes) {
    cache_gone gone = {NULL};
    gm__mutex_lock(&cache->lock);
    over = cache_evict_piece(cache, bytes, &gone, &evicted);
    gm__mutex_unlock(&cache->lock);
    cache_release(cache, &gone, false);
  }
  return evicted;
}

bool gm__cache_is_behind(const gm_cache *cache, uint64_t changes) { return atomic_load(&cache->followed) < changes; }

void gm__cache_bound(gm_cache *cache, uint64_t max_entries, uint64_t changes) {
  const cache_need nothing = {0, 0};
  for (bool over = false; !over;) {
    cache_gone gone = {NULL};
    gm__mutex_lock(&cache->lock);
    if (gm__cache_is_behind(cache, changes)) {
      cache->max_entries = max_entries;
      atomic_store(&cache->followed, changes);
    }
    over = cache_make_room(cache, &nothing, &gone, CACHE_LOOKS);
    gm__mutex_unlock(&cache->lock);
    cache_release(cache, &gone, false);
  }
}

/* REQUIRES: the lock is not held. */
static void cache_follow(gm_cache *cache) {
  const uint64_t changes = gm__config_changes(cache->ctx);
  if (!cache->follows || !gm__cache_is_behind(cache, changes)) return;
  gm__cache_bound(cache, gm__config_u64(cache->ctx, "gpu.memory.cache_size"), changes);
}

/* ---- closing ---- */

void gm__cache_empty(gm_cache *cache, bool forked) {
  cache_gone gone = {NULL};
  size_t cursor = 0;
  while (!cache_leave_piece(cache, &cursor, &gone)) continue;
  for (cache_entry *entry = cache->left, *next; forked && entry; entry = next) {
    next = entry->next;
    cache_go(&gone, entry);
  }
  cache_release(cache, &gone, forked);
}

/* ---- objects ---- */

gm_status gm__cache_check(const gm_cache *cache, const char *op, gm_error *err) {
  if (!cache) return gm__bad_argument(err, op, "`cache` is NULL");
  if (!gm__object_is(&cache->head, GM__KIND_CACHE)) return gm__bad_argument(err, op, "`cache` is destroyed");
  return gm__context_check(cache->ctx, op, err);
}

static gm_status cache_key_fault(const gm_cache *cache, const void *key, size_t key_bytes, const char *op,
                                 gm_error *err) {
  const gm_status status = gm__cache_check(cache, op, err);
  if (status) return status;
  if (!key) return gm__bad_argument(err, op, "`key` is NULL");
  return gm__bad_argument(err, op, "`key_bytes` is %zu, not 1 to %d", key_bytes, GM_CACHE_KEY_MOST);
}

/* A get takes a few hundred instructions, so the checks that all pass are in one place without a call. */
static inline gm_status cache_key_check(const gm_cache *cache, const void *key, size_t key_bytes, const char *op,
                                        gm_error *err) {
  const bool fine = cache && key && key_bytes - 1 < GM_CACHE_KEY_MOST && gm__object_is(&cache->head, GM__KIND_CACHE);
  return fine && !cache_forked(cache) ? GM_OK : cache_key_fault(cache, key, key_bytes, op, err);
}

/* REQUIRES: the lock. */
static cache_entry *cache_find(const gm_cache *cache, const void *key, size_t key_bytes) {
  return (cache_entry *)gm__key_map_find(&cache->map, key, key_bytes);
}

static gm_status cache_none(const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_NOT_FOUND, op, "the cache has no object of that key");
}

/* REQUIRES: the lock. Links a prepared entry, and lets go what it pushes out. */
static void cache_enter(gm_cache *cache, cache_entry *entry, cache_entry *earlier, cache_gone *gone) {
  const bool kept = earlier && earlier->kept;
  if (earlier) cache_leave(cache, earlier, gone);
  cache_make_room(cache, &(cache_need){1, entry->bytes}, gone, UINT32_MAX);
  gm__key_map_link(&cache->map, &entry->head);
  entry->turn.hash = entry->head.hash;
  entry->turn.weight = cache->max_bytes == UINT64_MAX ? 1 : entry->bytes;
  entry->in_cache = true;
  cache->stats.entries++;
  cache->stats.bytes += entry->bytes;
  cache->stats.puts++;
  gm__cache_policy_insert(&cache->policy, &entry->turn);
  if (kept) cache_set_kept(cache, entry, true);
}

/* REQUIRES: the lock. False: not yet, because the victims are many, or the earlier object was one of them. */
static bool cache_put(gm_cache *cache, cache_entry *entry, bool lease, cache_gone *gone, gm_status *status) {
  cache_entry *earlier = cache_find(cache, entry->key, entry->head.key_bytes);
  const bool fits = cache_fits(cache, earlier, entry->bytes);
  *status = GM_ERR_OVER_LIMIT;
  if (!fits) cache->stats.refused++;
  if (!fits) return true;
  *status = GM_ERR_OUT_OF_HOST_MEMORY;
  if (!gm__key_map_prepare_own(&cache->map, &entry->head)) return true;
  const cache_need need = {earlier ? 0 : 1, earlier ? gm__sub_sat(entry->bytes, earlier->bytes) : entry->bytes};
  if (!cache_make_room(cache, &need, gone, CACHE_LOOKS) || (earlier && !earlier->in_cache)) return false;
  *status = GM_OK;
  cache_enter(cache, entry, earlier, gone);
  if (lease) cache_lease(cache, entry);
  return true;
}

gm_status gm_cache_put(gm_cache *cache, const void *key, size_t key_bytes, void *object, uint64_t bytes,
                       gm_cache_lease **out_lease, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_cache_put";
  cache_gone gone = {NULL};
  gm_status status = cache_key_check(cache, key, key_bytes, op, err);
  if (status) return status;
  cache_entry *entry = gm__alloc(cache_services(cache), sizeof *entry + key_bytes);
  if (!entry) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for an entry");
  entry->head.key = memcpy(entry->key, key, key_bytes);
  entry->head.key_bytes = key_bytes;
  entry->cache = cache;
  entry->object = object;
  entry->bytes = bytes;
  cache_follow(cache);
  cache_enter_lock(cache, bytes);
  while (!cache_put(cache, entry, out_lease != NULL, &gone, &status)) cache_breathe(cache);
  const uint64_t held = cache->stats.held_entries, held_bytes = cache->stats.held_bytes;
  gm__mutex_unlock(&cache->lock);
  if (status)
    cache_entry_end(cache, entry);
  else if (out_lease)
    *out_lease = entry;
  cache_release(cache, &gone, false);
  if (status == GM_ERR_OUT_OF_HOST_MEMORY) return gm__fail(err, status, op, "no host memory for a key");
  if (!status) return GM_OK;
  return gm__fail(err, status, op,
                  "%" PRIu64 " bytes do not fit: %" PRIu64 " of %" PRIu64 " entries and %" PRIu64 " of %" PRIu64
                  " bytes are leased or kept",
                  bytes, held, cache->max_entries, held_bytes, cache->max_bytes);
}

gm_status gm_cache_get(gm_cache *cache, const void *key, size_t key_bytes, gm_cache_lease **out_lease,
                       void **out_object, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_cache_get";
  const gm_status status = cache_key_check(cache, key, key_bytes, op, err);
  if (status) return status;
  if (!out_lease) return gm__bad_argument(err, op, "`out_lease` is NULL");
  gm__mutex_lock(&cache->lock);
  cache_entry *entry = cache_find(cache, key, key_bytes);
  if (entry) {
    gm__cache_policy_touch(&cache->policy, &entry->turn);
    cache_lease(cache, entry);
    cache->stats.hits++;
  } else {
    cache->stats.misses++;
  }
  gm__mutex_unlock(&cache->lock);
  if (!entry) return cache_none(op, err);
  *out_lease = entry;
  if (out_object) *out_object = entry->object;
  return GM_OK;
}

void *gm_cache_lease_object(const gm_cache_lease *lease) { return lease ? lease->object : NULL; }

void gm_cache_return(gm_cache_lease *lease) {
  GM__UNCANCELLED();
  if (!lease) return;
  cache_gone gone = {NULL};
  gm_cache *cache = lease->cache;
  const bool forked = cache_forked(cache);
  if (!forked) gm__mutex_lock(&cache->lock);
  cache_give_back(cache, lease, &gone);
  if (!forked) gm__mutex_unlock(&cache->lock);
  cache_release(cache, &gone, forked);
}

gm_status gm_cache_keep(gm_cache *cache, const void *key, size_t key_bytes, bool keep, gm_error *err) {
  GM__UNCANCELLED();
  const gm_status status = cache_key_check(cache, key, key_bytes, "gm_cache_keep", err);
  if (status) return status;
  gm__mutex_lock(&cache->lock);
  cache_entry *entry = cache_find(cache, key, key_bytes);
  if (entry) cache_set_kept(cache, entry, keep);
  gm__mutex_unlock(&cache->lock);
  return entry ? GM_OK : cache_none("gm_cache_keep", err);
}

gm_status gm_cache_remove(gm_cache *cache, const void *key, size_t key_bytes, gm_error *err) {
  GM__UNCANCELLED();
  cache_gone gone = {NULL};
  const gm_status status = cache_key_check(cache, key, key_bytes, "gm_cache_remove", err);
  if (status) return status;
  gm__mutex_lock(&cache->lock);
  cache_entry *entry = cache_find(cache, key, key_bytes);
  if (entry) cache_leave(cache, entry, &gone);
  gm__mutex_unlock(&cache->lock);
  cache_release(cache, &gone, false);
  return entry ? GM_OK : cache_none("gm_cache_remove", err);
}

gm_status gm_cache_clear(gm_cache *cache, gm_error *err) {
  GM__UNCANCELLED();
  size_t cursor = 0;
  const gm_status status = gm__cache_check(cache, "gm_cache_clear", err);
  if (status) return status;
  for (bool over = false; !over;) {
    cache_gone gone = {NULL};
    gm__mutex_lock(&cache->lock);
    over = cache_leave_piece(cache, &cursor, &gone);
    gm__mutex_unlock(&cache->lock);
    cache_release(cache, &gone, false);
  }
  return GM_OK;
}

gm_status gm_cache_get_stats(gm_cache *cache, gm_cache_stats *out, gm_error *err) {
  static const char op[] = "gm_cache_get_stats";
  gm_status status = gm__cache_check(cache, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  gm__mutex_lock(&cache->lock);
  gm_cache_stats now = cache->stats;
  gm__mutex_unlock(&cache->lock);
  now.struct_size = sizeof now;
  gm__sized_out(out, &now, sizeof now);
  return GM_OK;
}
