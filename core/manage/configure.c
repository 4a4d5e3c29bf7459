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
  void (*set)(gm_pool *pool, gm__keep *keep, const configure_value *to); /* REQUIRES: keep lock */
} configure_key;

/* A bound in number that somebody sets holds as it is set: the pressure begins anew. */
#define CONFIGURE_BOUND(member)                                                              \
  static void configure_##member(gm_pool *pool, gm__keep *keep, const configure_value *to) { \
    keep->member = to->number;                                                               \
    keep->scale = 1;                                                                         \
    gm__keep_publish(&pool->heap);                                                           \
  }
CONFIGURE_BOUND(local)
CONFIGURE_BOUND(global)
CONFIGURE_BOUND(all)

#define CONFIGURE_SHARE(noun, member)                                                      \
  static void configure_##noun(gm_pool *pool, gm__keep *keep, const configure_value *to) { \
    (void)pool;                                                                            \
    keep->member = to->fraction;                                                           \
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
  atomic_store_explicit(&pool->heap.provider.budget.max_bytes, to->number ? to->number : UINT64_MAX,
                        memory_order_relaxed);
}

static const configure_key configure_keys[] = {
    {"cache.stream_local", IN_ALL, configure_local},
    {"cache.global", IN_BUCKETS, configure_global},
    {"cache_size", IN_ALL, configure_all},
    {"cache.max_bytes", IN_ALL, configure_bytes},
    {"cache.max_age", IN_ALL, configure_age},
    {"scaling.low", IN_ALL, configure_low},
    {"scaling.high", IN_ALL, configure_high},
    {"scaling.factor", IN_ALL, configure_factor},
    {"max_pooled_per_bucket", IN_BUCKETS, configure_bucket},
    {"max_pool_bytes", IN_ALL, configure_cap},
    {"segment_size", IN_BEST_FIT, configure_segment},
    {"coalescing_threshold", IN_ALL, configure_coalesce},
    {"aggressive_coalescing", IN_BEST_FIT, configure_aggressive},
    {"cleanup.threshold", IN_ALL, configure_cleanup},
    {"pressure.medium", IN_ALL, configure_pressure_medium},
    {"pressure.high", IN_ALL, configure_pressure_high},
    {"pressure.critical", IN_ALL, configure_pressure_critical},
    {"pressure.hysteresis", IN_ALL, configure_pressure_hysteresis},
};

static const configure_key *configure_find(const char *name) {
  for (size_t i = 0; i < sizeof configure_keys / sizeof *configure_keys; i++) {
    if (strcmp(configure_keys[i].name, name) == 0) return &configure_keys[i];
  }
  return NULL;
}

/* Does the pool have a use for the key? `key` NULL: no running pool has. */
static gm_status configure_serves(const gm_pool *pool, const configure_key *key, const char *name, gm_error *err) {
  const gm__heap *heap = &pool->heap;
  const char *why = NULL;
  if (!key)
    why = "a pool reads it when it is created, or not at all";
  else if (key->where == IN_BUCKETS && heap->strategy != GM_STRATEGY_BUCKET)
    why = "it bounds buckets, and this pool is of best_fit: cache.max_bytes and cache.max_age bound it";
  else if (key->where == IN_BEST_FIT && heap->strategy == GM_STRATEGY_BUCKET)
    why = "it is for best_fit, and each block of this pool's buckets is a driver allocation of its own";
  else if (key->set == configure_segment && heap->provider.pages.usable)
    why = "the pool maps pages, as many as it needs; set the key before the pool is created";
  else if (key->set == configure_bytes && (heap->keep.strict || heap->provider.no_trim))
    why = "`keep_bytes` or `flags` of the pool's parameters say what it keeps";
  else if (key->set == configure_age && heap->provider.no_trim)
    why = "`flags` of the pool's parameters say that it gives nothing back by itself";
  return why ? gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, configure_op, "%s: %s", name, why) : GM_OK;
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
  if (!status) status = configure_serves(pool, key, name, err);
  if (status) return status;
  const configure_value value = configure_read(name, text);
  status = configure_set(pool, key, &value, err);
  if (status) return status;
  if (key->set == configure_aggressive && value.flag) (void)gm__heap_collect(&pool->heap);
  if (key->set == configure_aggressive || key->set == configure_bytes) gm__keep_hold_bytes(&pool->heap);
  return GM_OK;
}
