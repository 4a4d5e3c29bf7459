#include "gm/tensor_sets.h"

#include <stdatomic.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/cache/cache.h"
#include "core/context/config.h"
#include "core/context/object.h"

/* Invariants. A set is in the list `all` until it is released. A set with a lease is the object of that lease in the
 * cache, which counts its users. A set without one has a single user, and is not kept.
 *
 * A flight says that a thread makes the set of a path. Whoever begins one looks into the cache once more: an earlier
 * flight has put its set there before it ended. Neither `make` nor the cache is called under the lock. */

enum { SOURCE_PIECE = 1 << 16 };

/* The parts of a set. */
typedef struct set_source {
  gm__input_file file; /* closed */
  uint64_t checksum;   /* of its bytes; 0 where nobody asked */
} set_source;

struct gm_tensor_set {
  gm_tensor_sets *sets;
  _Atomic(gm_cache_lease *) lease; /* all leases of an object are alike; NULL: the cache did not take it */
  set_source source;               /* as it was when the set was made */
  void *object;
  uint64_t bytes;
  gm_tensor_set *next, *previous;
};

typedef struct set_flight {
  struct set_flight *next;
  const char *path; /* of the caller that makes */
  uint32_t waiting;
  bool ended;
  gm_status status;
  gm_error err;
} set_flight;

struct gm_tensor_sets {
  gm__object head;
  gm_context *ctx;
  gm_tensor_sets_params params;
  gm_cache *cache;
  gm__mutex lock;
  gm__cond ended;
  gm_tensor_set *all;
  set_flight *flights; /* each lies on the stack of its thread, which waits for all that wait for it */
  gm_tensor_sets_stats stats;
};

static const gm_services *sets_services(const gm_tensor_sets *sets) { return gm__context_services(sets->ctx); }

/* ---- one set ---- */

static gm_tensor_set *set_new(gm_tensor_sets *sets, const set_source *source) {
  gm_tensor_set *set = gm__alloc(sets_services(sets), sizeof *set);
  if (!set) return NULL;
  set->sets = sets;
  set->source = *source;
  gm__mutex_lock(&sets->lock);
  set->next = sets->all;
  if (sets->all) sets->all->previous = set;
  sets->all = set;
  gm__mutex_unlock(&sets->lock);
  return set;
}

static void set_end(gm_tensor_set *set) {
  gm_tensor_sets *sets = set->sets;
  gm__mutex_lock(&sets->lock);
  *(set->previous ? &set->previous->next : &sets->all) = set->next;
  if (set->next) set->next->previous = set->previous;
  gm__mutex_unlock(&sets->lock);
  gm__release(sets_services(sets), set, sizeof *set);
}

static void set_release(void *user, void *object, uint64_t bytes) {
  (void)user;
  gm_tensor_set *set = object;
  const gm_tensor_sets_params *params = &set->sets->params;
  if (params->release) params->release(params->user, set->object, bytes);
  set_end(set);
}

void *gm_tensor_set_object(const gm_tensor_set *set) { return set ? set->object : NULL; }

void gm_tensor_set_return(gm_tensor_set *set) {
  GM__UNCANCELLED();
  if (!set || gm__context_forked(set->sets->ctx)) return; /* a child's sets go with gm_tensor_sets_destroy */
  gm_cache_lease *lease = atomic_load(&set->lease);
  if (lease)
    gm_cache_return(lease);
  else
    set_release(NULL, set, set->bytes);
}

/* ---- opening and closing ---- */

/* How many sets are kept, as the configuration says now. */
static uint64_t sets_most(const gm_tensor_sets *sets) {
  if (!gm__config_bool(sets->ctx, "gpu.ast.cache_enabled")) return 0;
  return sets->params.max_sets ? sets->params.max_sets : gm__config_u64(sets->ctx, "gpu.ast.max_cache_size");
}

/* Sets that are in use stay with their users. */
static void sets_bound(gm_tensor_sets *sets, uint64_t changes) {
  const uint64_t most = sets_most(sets);
  gm__cache_bound(sets->cache, most, changes);
  if (!most) (void)gm_cache_clear(sets->cache, NULL);
}

static void sets_follow(gm_tensor_sets *sets) {
  const uint64_t changes = gm__config_changes(sets->ctx);
  if (gm__cache_is_behind(sets->cache, changes)) sets_bound(sets, changes);
}

static gm_status sets_open_cache(gm_tensor_sets *sets, gm_error *err) {
  const gm_cache_params params = {.struct_size = sizeof params,
                                  .max_entries = UINT64_MAX,
                                  .max_bytes = sets->params.max_bytes,
                                  .pool = sets->params.pool,
                                  .release = set_release};
  const gm_status status = gm_cache_create(sets->ctx, &params, &sets->cache, err);
  if (!status) sets_follow(sets);
  return status;
}

gm_status gm_tensor_sets_create(gm_context *ctx, const gm_tensor_sets_params *params, gm_tensor_sets **out,
                                gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_tensor_sets_create";
  gm_tensor_sets_params asked;
  gm_status status = gm__context_check(ctx, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  status = gm__sized_in(&asked, sizeof asked, params, op, "params", err);
  if (status) return status;
  if (!asked.make) return gm__bad_argument(err, op, "`params->make` is NULL");
  gm_tensor_sets *sets = gm__object_new(ctx, GM__KIND_TENSOR_SETS, sizeof *sets);
  if (!sets) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for tensor sets");
  sets->ctx = ctx;
  sets->params = asked;
  gm__mutex_init(&sets->lock, GM__RANK_LEAF);
  gm__cond_init(&sets->ended);
  status = sets_open_cache(sets, err);
  if (status) {
    gm__cond_destroy(&sets->ended);
    gm__mutex_destroy(&sets->lock);
    gm__object_end(ctx, &sets->head);
    return status;
  }
  atomic_fetch_add(&ctx->children, 1);
  *out = sets;
  return GM_OK;
}

static gm_status sets_check(const gm_tensor_sets *sets, const char *op, gm_error *err) {
  if (!sets) return gm__bad_argument(err, op, "`sets` is NULL");
  if (!gm__object_is(&sets->head, GM__KIND_TENSOR_SETS)) return gm__bad_argument(err, op, "`sets` is destroyed");
  return gm__context_check(sets->ctx, op, err);
}

/* Is a set in use that the cache does not know, or is one being made? */
static bool sets_busy(gm_tensor_sets *sets) {
  gm__mutex_lock(&sets->lock);
  bool busy = sets->flights != NULL;
  for (const gm_tensor_set *set = sets->all; set && !busy; set = set->next) busy = !atomic_load(&set->lease);
  gm__mutex_unlock(&sets->lock);
  return busy;
}

gm_status gm_tensor_sets_destroy(gm_tensor_sets *sets, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_tensor_sets_destroy";
  if (!sets) return GM_OK;
  gm_status status = sets_check(sets, op, err);
  if (status == GM_ERR_INVALID_ARGUMENT) return status;
  const bool forked = status == GM_ERR_FORKED;
  if (!forked && sets_busy(sets)) return gm__fail(err, GM_ERR_BUSY, op, "sets are in use");
  status = gm_cache_destroy(sets->cache, err);
  if (status) return status;
  for (gm_tensor_set *set = sets->all, *next; set; set = next) { /* in a forked child alone there are some */
    next = set->next;
    gm__release(sets_services(sets), set, sizeof *set);
  }
  if (!forked) {
    gm__cond_destroy(&sets->ended);
    gm__mutex_destroy(&sets->lock);
  }
  gm_context *ctx = sets->ctx;
  gm__object_end(ctx, &sets->head);
  atomic_fetch_sub(&ctx->children, 1);
  return GM_OK;
}

/* ---- flights ---- */

/* Begins the flight of a path: true. Another thread has begun one: false, when it has ended, with its answer. */
static bool flight_begin(gm_tensor_sets *sets, set_flight *mine, gm_status *out_status, gm_error *err) {
  gm__mutex_lock(&sets->lock);
  set_flight *flight = sets->flights;
  while (flight && strcmp(flight->path, mine->path) != 0) flight = flight->next;
  if (flight) {
    sets->stats.waits++;
    flight->waiting++;
    while (!flight->ended) gm__cond_wait(&sets->ended, &sets->lock);
    *out_status = flight->status;
    if (flight->status && err) *err = flight->err;
    if (!--flight->waiting) gm__cond_broadcast(&sets->ended);
  } else {
    mine->next = sets->flights;
    sets->flights = mine;
  }
  gm__mutex_unlock(&sets->lock);
  return !flight;
}

static void flight_end(gm_tensor_sets *sets, set_flight *mine, gm_status status) {
  gm__mutex_lock(&sets->lock);
  set_flight **at = &sets->flights;
  while (*at != mine) at = &(*at)->next;
  *at = mine->next;
  mine->status = status;
  mine->ended = true;
  gm__cond_broadcast(&sets->ended);
  while (mine->waiting) gm__cond_wait(&sets->ended, &sets->lock);
  gm__mutex_unlock(&sets->lock);
}

/* ---- getting a set ---- */

static void sets_count(gm_tensor_sets *sets, uint64_t *figure) {
  gm__mutex_lock(&sets->lock);
  ++*figure;
  gm__mutex_unlock(&sets->lock);
}

/* Lets go a set that its file does not match any more. */
static void sets_drop_stale(gm_tensor_sets *sets, const char *path) {
  if (!gm_cache_remove(sets->cache, path, strlen(path), NULL)) sets_count(sets, &sets->stats.stale);
}

static gm_status source_sum(const gm_tensor_sets *sets, const char *path, set_source *source, gm_error *err) {
  const uint64_t bytes = source->file.bytes;
  const size_t room = (size_t)gm__min(bytes, SOURCE_PIECE);
  unsigned char *piece = room ? gm__alloc(sets_services(sets), room) : NULL;
  gm_status status = GM_OK;
  if (!room) return GM_OK;
  if (!piece) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tensor_sets_get", "no host memory to read a file");
  }
  for (uint64_t at = 0; at < bytes && !status; at += room) {
    const uint64_t count = gm__min(bytes - at, room);
    status = gm__input_file_read_at(&source->file, path, at, piece, count, err);
    if (!status) source->checksum = gm__checksum(piece, count, source->checksum);
  }
  gm__release(sets_services(sets), piece, room);
  return status;
}

static bool source_same(const gm_tensor_sets *sets, const set_source *a, const set_source *b) {
  if (!sets->params.by_content) return gm__input_file_same(&a->file, &b->file);
  return a->file.bytes == b->file.bytes && a->checksum == b->checksum;
}

/* The file as it is now. When it cannot be read, its set goes. */
static gm_status sets_look(gm_tensor_sets *sets, const char *path, set_source *source, gm_error *err) {
  source->checksum = 0;
  gm_status status = gm__input_file_open(path, &source->file, err);
  if (!status) {
    if (sets->params.by_content) status = source_sum(sets, path, source, err);
    gm__input_file_close(&source->file);
  }
  if (status && status != GM_ERR_OUT_OF_HOST_MEMORY) sets_drop_stale(sets, path);
  return status;
}

/* The set that is kept, leased. NULL: there is none of the file as it is now. */
static gm_tensor_set *sets_kept(gm_tensor_sets *sets, const char *path, const set_source *source) {
  gm_cache_lease *lease;
  void *object;
  if (gm_cache_get(sets->cache, path, strlen(path), &lease, &object, NULL)) return NULL;
  gm_tensor_set *set = object;
  atomic_store(&set->lease, lease); /* perhaps before the thread that made it has */
  if (source_same(sets, &set->source, source)) {
    sets_count(sets, &sets->stats.hits);
    return set;
  }
  gm_cache_return(lease);
  return NULL;
}

/* A set that has no room in the cache serves this caller alone. */
static gm_status sets_keep(gm_tensor_sets *sets, const char *path, gm_tensor_set *set, gm_tensor_set **out,
                           gm_error *err) {
  gm_cache_lease *lease = NULL;
  const gm_status status = gm_cache_put(sets->cache, path, strlen(path), set, set->bytes, &lease, err);
  if (status && status != GM_ERR_OVER_LIMIT) {
    set_release(NULL, set, set->bytes);
    return status;
  }
  if (lease) atomic_store(&set->lease, lease);
  *out = set;
  return GM_OK;
}

static gm_status sets_make(gm_tensor_sets *sets, const char *path, const set_source *source, gm_tensor_set **out,
                           gm_error *err) {
  gm_tensor_set *set = set_new(sets, source);
  if (!set) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tensor_sets_get", "no host memory for a tensor set");
  }
  if (err) err->status = GM_OK;
  sets_count(sets, &sets->stats.makes);
  const gm_status status = sets->params.make(sets->params.user, path, &set->object, &set->bytes, err);
  if (status) {
    sets_count(sets, &sets->stats.failures);
    set_end(set);
    if (!err || err->status == status) return status;
    return gm__fail(err, status, "gm_tensor_sets_get", "`make` gives no reason");
  }
  return sets_keep(sets, path, set, out, err);
}

/* In a flight of the path's: the file is looked at again, since it may have changed while others flew. */
static gm_status sets_fly(gm_tensor_sets *sets, const char *path, gm_tensor_set **out, gm_error *err) {
  set_source source;
  const gm_status status = sets_look(sets, path, &source, err);
  if (status) return status;
  *out = sets_kept(sets, path, &source);
  if (*out) return GM_OK;
  sets_drop_stale(sets, path);
  return sets_make(sets, path, &source, out, err);
}

static gm_status sets_path_check(const gm_tensor_sets *sets, const char *path, const char *op, gm_error *err) {
  const gm_status status = sets_check(sets, op, err);
  if (status) return status;
  if (!path) return gm__bad_argument(err, op, "`path` is NULL");
  if (*path && strnlen(path, GM_CACHE_KEY_MOST + 1) <= GM_CACHE_KEY_MOST) return GM_OK;
  return gm__bad_argument(err, op, "`path` has not 1 to %d bytes", GM_CACHE_KEY_MOST);
}

gm_status gm_tensor_sets_get(gm_tensor_sets *sets, const char *path, gm_tensor_set **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_tensor_sets_get";
  gm_status status = sets_path_check(sets, path, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  sets_follow(sets);
  for (;;) {
    set_source source;
    status = sets_look(sets, path, &source, err);
    if (status) return status;
    gm_tensor_set *set = sets_kept(sets, path, &source);
    set_flight flight = {.path = path, .err = {.status = GM_OK}};
    if (!set && flight_begin(sets, &flight, &status, err)) {
      status = sets_fly(sets, path, &set, &flight.err);
      if (status && err) *err = flight.err;
      flight_end(sets, &flight, status);
    }
    if (status) return status;
    if (!set) continue; /* another thread made it: now it is there */
    *out = set;
    return GM_OK;
  }
}

gm_status gm_tensor_sets_find(gm_tensor_sets *sets, const char *path, gm_tensor_set **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_tensor_sets_find";
  set_source source;
  gm_status status = sets_path_check(sets, path, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  sets_follow(sets);
  status = sets_look(sets, path, &source, err);
  if (status) return status;
  gm_tensor_set *set = sets_kept(sets, path, &source);
  if (!set) return gm__fail(err, GM_ERR_NOT_FOUND, op, "%.300s: no set is kept of the file as it is now", path);
  *out = set;
  return GM_OK;
}

/* ---- all sets ---- */

gm_status gm_tensor_sets_clear(gm_tensor_sets *sets, const char *path, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_tensor_sets_clear";
  const gm_status status = path ? sets_path_check(sets, path, op, err) : sets_check(sets, op, err);
  if (status) return status;
  if (!path) return gm_cache_clear(sets->cache, err);
  if (!gm_cache_remove(sets->cache, path, strlen(path), NULL)) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_FOUND, op, "%.300s: no set is kept", path);
}

gm_status gm_tensor_sets_get_stats(gm_tensor_sets *sets, gm_tensor_sets_stats *out, gm_error *err) {
  static const char op[] = "gm_tensor_sets_get_stats";
  gm_cache_stats kept = {.struct_size = sizeof kept};
  gm_status status = sets_check(sets, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (!status) status = gm_cache_get_stats(sets->cache, &kept, err);
  if (status) return status;
  gm__mutex_lock(&sets->lock);
  gm_tensor_sets_stats now = sets->stats;
  gm__mutex_unlock(&sets->lock);
  now.struct_size = sizeof now;
  now.kept = kept.entries;
  now.kept_bytes = kept.bytes;
  now.evictions = kept.evictions;
  gm__sized_out(out, &now, sizeof now);
  return GM_OK;
}
