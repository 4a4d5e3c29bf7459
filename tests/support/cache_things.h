/* Things for a gm_cache, which count how often they were released. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_CACHE_THINGS_H
#define GM_TESTS_SUPPORT_CACHE_THINGS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/cache.h"

typedef struct thing {
  uint64_t bytes;
  atomic_uint released;
} thing;

static inline void thing_release(void *user, void *object, uint64_t bytes) {
  thing *t = object;
  if (user) atomic_fetch_add((atomic_uint *)user, 1);
  if (t && t->bytes != bytes) atomic_fetch_add(&t->released, 100);
  if (t) atomic_fetch_add(&t->released, 1);
}

static inline gm_context *open_context(const gm_services *services) {
  gm_context *ctx = NULL;
  const gm_context_params params = {.struct_size = sizeof params, .services = services, .ignore_environment = true};
  assert_int_equal(gm_context_create(&params, &ctx, NULL), GM_OK);
  return ctx;
}

static inline gm_cache *open_cache(gm_context *ctx, gm_cache_policy policy, uint64_t entries, uint64_t bytes,
                                   void *user) {
  gm_cache *cache = NULL;
  const gm_cache_params params = {.struct_size = sizeof params,
                                  .policy = policy,
                                  .max_entries = entries,
                                  .max_bytes = bytes,
                                  .release = thing_release,
                                  .user = user};
  assert_int_equal(gm_cache_create(ctx, &params, &cache, NULL), GM_OK);
  return cache;
}

static inline void close_all(gm_context *ctx, gm_cache *cache) {
  assert_int_equal(gm_cache_destroy(cache, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static inline gm_cache_stats stats_of(gm_cache *cache) {
  gm_cache_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_cache_get_stats(cache, &stats, NULL), GM_OK);
  return stats;
}

static inline size_t released(const thing *things, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; i < count; i++) sum += things[i].released;
  return sum;
}

#endif
