#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/context/config.h"
#include "core/manage/lifecycle.h"
#include "gm/cleanup.h"
#include "gm/config.h"

/* Keys that a running pool can change. Allocations and frees read what they read before: the bounds are published where
 * the pressure publishes them too (core/heap/keep.c). */

static const char configure_op[] = "gm_pool_configure";

typedef struct configure_value {
  uint64_t number; /* UINT64_MAX: auto */
  double fraction;
  bool flag;
} configure_value;

/* In which pools a key has an effect. */
typedef enum configure_where { IN_ALL, IN_BUCKETS, IN_BEST_FIT } configure_where;

typedef struct configure_key {
  const char *name;
  configure_where where;
  void (*set)(gm_pool *pool, gm__keep *keep, const configure_value *to);  /* REQUIRES: keep lock */
  void (*get)(gm_pool *pool, const gm__keep *keep, configure_value *out); /* REQUIRES: keep lock */
} configure_key;

/* A bound in number that somebody sets holds as it is set: the pressure begins anew. */
#define CONFIGURE_BOUND(member)                                                              \
  static void configure_##member(gm_pool *pool, gm__keep *keep, const configure_value *to) { \
    keep->member = to->number;                                                               \
    keep->scale = 1;                                                                         \
    gm__keep_publish(&pool->heap);                                                           \
  }                                                                                          \
  static void read_##member(gm_pool *pool, const gm__keep *keep, configure_value *out) {     \
    (void)pool;                                                                              \
    out->number = keep->member;                                                              \
  }
CONFIGURE_BOUND(local)
CONFIGURE_BOUND(global)
CONFIGURE_BOUND(all)

#define CONFIGURE_SHARE(noun, member)                                                      \
  static void configure_##noun(gm_pool *pool, gm__keep *keep, const configure_value *to) { \
    (void)pool;                                                                            \
    keep->member = to->fraction;                                                           \
  }                                                                                        \
  static void read_##noun(gm_pool *pool, const gm__keep *keep, configure_value *out) {     \
    (void)pool;                                                                            \
    out->fraction = keep->member;                                                          \
  }
CONFIGURE_SHARE(low, low)
CONFIGURE_SHARE(high, high)
CONFIGURE_SHARE(coalesce, coalesce)
CONFIGURE_SHARE(cleanup, cleanup)
CONFIGURE_SHARE(pressure_medium, pressure.medium)
CONFIGURE_SHARE(pressure_high, pressure.high)
CONFIGURE_SHARE(pressure_critical, pressure.critical)
CONFIGURE_SHARE(pressure_hysteresis, pressure.hysteresis)

static void configure_aggressive(gm_pool *pool, gm__keep *keep, const configure_value *to) {
  atomic_store(&keep->aggressive, to->flag);
  gm__keep_publish(&pool->heap);
}

static void configure_factor(gm_pool *pool, gm__keep *keep, const configure_value *to) {
  keep->factor = to->fraction;
  keep->scale = 1;
  gm__keep_publish(&pool->heap);
}

static void configure_bytes(gm_pool *pool, gm__keep *keep, const configure_value *to) {
  (void)pool;
  atomic_store_explicit(&keep->max_bytes, to->number, memory_order_relaxed);
}

static void configure_age(gm_pool *pool, gm__keep *keep, const configure_value *to) {
  (void)pool;
  keep->max_age_ns = gm__keep_age_ns(to->number);
}

static void configure_bucket(gm_pool *pool, gm__keep *keep, const configure_value *to) {
  (void)keep;
  gm__mutex_lock(&pool->heap.provider.lock);
  pool->heap.dedicated.buckets.most = (uint32_t)gm__min(to->number, UINT32_MAX);
  gm__mutex_unlock(&pool->heap.provider.lock);
}

static void configure_segment(gm_pool *pool, gm__keep *keep, const configure_value *to) {
  (void)keep;
  atomic_store_explicit(&pool->heap.provider.rules.size, to->number, memory_order_relaxed);
}

static void configure_cap(gm_pool *pool, gm__keep *keep, const configure_value *to) {
  (void)keep;
  atomic_store_explicit(&pool->heap.provider.claim.max_bytes, to->number ? to->number : UINT64_MAX,
                        memory_order_relaxed);
}

/* ---- values as they are now ---- */

static void read_factor(gm_pool *pool, const gm__keep *keep, configure_value *out) {
  (void)pool;
  out->fraction = keep->factor;
}

static void read_aggressive(gm_pool *pool, const gm__keep *keep, configure_value *out) {
  (void)pool;
  out->flag = atomic_load(&keep->aggressive);
}

static void read_bytes(gm_pool *pool, const gm__keep *keep, configure_value *out) {
  (void)pool;
  out->number = atomic_load_explicit(&keep->max_bytes, memory_order_relaxed);
}

static void read_age(gm_pool *pool, const gm__keep *keep, configure_value *out) {
  (void)pool;
  out->number = keep->max_age_ns == UINT64_MAX ? UINT64_MAX : keep->max_age_ns / 1000000;
}

static void read_bucket(gm_pool *pool, const gm__keep *keep, configure_value *out) {
  (void)keep;
  gm__mutex_lock(&pool->heap.provider.lock);
  out->number = pool->heap.dedicated.buckets.most;
  gm__mutex_unlock(&pool->heap.provider.lock);
}

static void read_segment(gm_pool *pool, const gm__keep *keep, configure_value *out) {
  (void)keep;
  out->number = atomic_load_explicit(&pool->heap.provider.rules.size, memory_order_relaxed);
}

static void read_cap(gm_pool *pool, const gm__keep *keep, configure_value *out) {
  (void)keep;
  const uint64_t most = atomic_load_explicit(&pool->heap.provider.claim.max_bytes, memory_order_relaxed);
  out->number = most == UINT64_MAX ? 0 : most;
}

static const configure_key configure_keys[] = {
    {"cache.stream_local", IN_ALL, configure_local, read_local},
    {"cache.global", IN_BUCKETS, configure_global, read_global},
    {"cache_size", IN_ALL, configure_all, read_all},
    {"cache.max_bytes", IN_ALL, configure_bytes, read_bytes},
    {"cache.max_age", IN_ALL, configure_age, read_age},
    {"scaling.low", IN_ALL, configure_low, read_low},
    {"scaling.high", IN_ALL, configure_high, read_high},
    {"scaling.factor", IN_ALL, configure_factor, read_factor},
    {"max_pooled_per_bucket", IN_BUCKETS, configure_bucket, read_bucket},
    {"max_pool_bytes", IN_ALL, configure_cap, read_cap},
    {"segment_size", IN_BEST_FIT, configure_segment, read_segment},
    {"coalescing_threshold", IN_ALL, configure_coalesce, read_coalesce},
    {"aggressive_coalescing", IN_BEST_FIT, configure_aggressive, read_aggressive},
    {"cleanup.threshold", IN_ALL, configure_cleanup, read_cleanup},
    {"pressure.medium", IN_ALL, configure_pressure_medium, read_pressure_medium},
    {"pressure.high", IN_ALL, configure_pressure_high, read_pressure_high},
    {"pressure.critical", IN_ALL, configure_pressure_critical, read_pressure_critical},
    {"pressure.hysteresis", IN_ALL, configure_pressure_hysteresis, read_pressure_hysteresis},
};

static const configure_key *configure_find(const char *name) {
  for (size_t i = 0; i < sizeof configure_keys / sizeof *configure_keys; i++) {
    if (strcmp(configure_keys[i].name, name) == 0) return &configure_keys[i];
  }
  return NULL;
}

/* Does the pool have a use for the key? `key` NULL: no running pool has. */
static gm_status configure_serves(const gm_pool *pool, const configure_key *key, const char *name, const char *op,
                                  gm_error *err) {
  const gm__heap *heap = &pool->heap;
  const char *why = NULL;
  if (!key)
    why = "a pool reads it when it is created, or not at all";
  else if (key->where == IN_BUCKETS && heap->strategy != GM_STRATEGY_BUCKET)
    why = "it bounds buckets, and this pool is of best_fit: cache.max_bytes and cache.max_age bound it";
  else if (key->where == IN_BEST_FIT && heap->arenas.whole)
    why = "it is for best_fit, and each block of this pool is a driver allocation of its own";
  else if (key->set == configure_segment && heap->provider.pages.usable)
    why = "the pool maps pages, as many as it needs; set the key before the pool is created";
  else if (key->set == configure_bytes && (heap->keep.strict || heap->provider.no_trim))
    why = "`keep_bytes` or `flags` of the pool's parameters say what it keeps";
  else if (key->set == configure_age && heap->provider.no_trim)
    why = "`flags` of the pool's parameters say that it gives nothing back by itself";
  return why ? gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "%s: %s", name, why) : GM_OK;
}

/* REQUIRES: a text that gm__config_check took. */
static configure_value configure_read(const char *name, const char *text) {
  configure_value value = {.number = UINT64_MAX};
  (void)gm__text_u64(name, text, &value.number, NULL);
  (void)gm__text_double(name, text, &value.fraction, NULL);
  (void)gm__text_bool(name, text, &value.flag, NULL);
  return value;
}

/* Sets the value, unless the pool's thresholds would be out of order then. */
static gm_status configure_set(gm_pool *pool, const configure_key *key, const configure_value *value, gm_error *err) {
  gm__keep *keep = &pool->heap.keep;
  gm_status status = GM_OK;
  gm__mutex_lock(&keep->lock);
  const gm_pressure_thresholds before = keep->pressure;
  key->set(pool, keep, value);
  if (strncmp(key->name, "pressure.", 9) == 0) status = gm__keep_check_pressure(&pool->heap, err);
  if (status) keep->pressure = before;
  gm__mutex_unlock(&keep->lock);
  return status;
}

gm_status gm_pool_configure(gm_pool *pool, const char *name, const char *text, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__pool_alive(pool, configure_op, err);
  if (status) return status;
  if (!name || !text) return gm__bad_argument(err, configure_op, "`%s` is NULL", name ? "value" : "key");
  status = gm__config_check(name, text, configure_op, err);
  const configure_key *key = configure_find(name);
  if (!status) status = configure_serves(pool, key, name, configure_op, err);
  if (status) return status;
  const configure_value value = configure_read(name, text);
  status = configure_set(pool, key, &value, err);
  if (status) return status;
  if (key->set == configure_aggressive && value.flag) (void)gm__heap_collect(&pool->heap);
  if (key->set == configure_aggressive || key->set == configure_bytes) gm__keep_hold_bytes(&pool->heap);
  return GM_OK;
}

/* ---- reading ---- */

static const gm_config_key *configure_describe(const char *name) {
  const gm_config_key *key;
  for (size_t i = 0; (key = gm_config_key_at(i)) && strcmp(key->name, name) != 0; i++) continue;
  return key;
}

/* The value as gm_pool_configure takes it. False: it does not fit. */
static bool configure_write(const configure_value *value, const char *type, char *text, size_t capacity) {
  int length;
  if (strcmp(type, "bool") == 0) {
    length = snprintf(text, capacity, "%s", value->flag ? "true" : "false");
  } else if (strcmp(type, "fraction") == 0) {
    length = snprintf(text, capacity, "%.15g", value->fraction);
  } else if (value->number == UINT64_MAX) {
    length = snprintf(text, capacity, "auto");
  } else {
    length = snprintf(text, capacity, "%" PRIu64, value->number);
  }
  return length >= 0 && (size_t)length < capacity;
}

static configure_value configure_now(gm_pool *pool, const configure_key *key) {
  gm__keep *keep = &pool->heap.keep;
  configure_value now = {.number = 0};
  gm__mutex_lock(&keep->lock);
  key->get(pool, keep, &now);
  gm__mutex_unlock(&keep->lock);
  if (now.fraction < 0) now.fraction = gm__config_fraction(pool->ctx, key->name); /* the pool has none of its own */
  return now;
}

gm_status gm_pool_get_config(gm_pool *pool, const char *name, char *text, size_t capacity, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_get_config";
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (!name || !text) return gm__bad_argument(err, op, "`%s` is NULL", name ? "text" : "key");
  const gm_config_key *described = configure_describe(name);
  if (!described) return gm__bad_argument(err, op, "there is no key \"%s\"", name);
  const configure_key *key = configure_find(name);
  status = configure_serves(pool, key, name, op, err);
  if (status) return status;
  const configure_value now = configure_now(pool, key);
  if (configure_write(&now, described->type, text, capacity)) return GM_OK;
  return gm__bad_argument(err, op, "`capacity` is too small for the value of %s", name);
}
