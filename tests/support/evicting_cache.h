/* A cache of the program that an evictor empties, and pools to ask. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_EVICTING_CACHE_H
#define GM_TESTS_SUPPORT_EVICTING_CACHE_H

#include "gm/evictor.h"
#include "support/pool_blocks.h"

#define MIB (UINT64_C(1) << 20)

enum { BLOCKS = 16 };

static const gm_pool_params kinds[] = {
    {.struct_size = sizeof(gm_pool_params), .name = "pages"},
    {.struct_size = sizeof(gm_pool_params), .name = "segments", .no_vmm = true},
    {.struct_size = sizeof(gm_pool_params), .name = "buckets", .strategy = GM_STRATEGY_BUCKET},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* A cache of blocks of one MiB, and what was asked of it. */
typedef struct cache {
  gm_pool *pool;
  gm_stream *stream; /* of its frees */
  gm_evictor *evictor;
  gm_block blocks[BLOCKS];
  uint32_t count;
  uint32_t calls;
  uint64_t wanted[8];                /* of each call */
  uint32_t *clock, at;               /* which call of all caches the last one was */
  void (*extra)(struct cache *self); /* NULL, or done in each call */
  void *extra_of;
  uint64_t lie; /* claimed beside what it frees */
} cache;

static inline uint64_t cache_evictable(void *user) { return ((cache *)user)->count * MIB; }

static inline uint64_t cache_evict(void *user, uint64_t bytes) {
  cache *self = user;
  uint64_t freed = 0;
  if (self->calls < 8) self->wanted[self->calls] = bytes;
  self->calls++;
  if (self->clock) self->at = ++*self->clock;
  if (self->extra) self->extra(self);
  for (; self->count && freed < bytes; freed += MIB) {
    assert_int_equal(gm_free(self->pool, &self->blocks[--self->count], self->stream), GM_OK);
  }
  return freed + self->lie;
}

static inline void cache_fill(cache *self, gm_pool *pool, uint32_t count) {
  const gm_request request = {.bytes = MIB, .stream = self->stream};
  self->pool = pool;
  for (; self->count < count; self->count++) {
    assert_true(gm_acquired(gm_alloc(pool, &request, &self->blocks[self->count])));
  }
}

static inline void cache_register(cache *self, gm_device *device, int32_t priority, uint64_t cost) {
  const gm_evictor_params params = {.struct_size = sizeof params,
                                    .priority = priority,
                                    .cost = cost,
                                    .name = "cache",
                                    .evictable = cache_evictable,
                                    .evict = cache_evict,
                                    .user = self};
  pool_bench_ok(gm_evictor_register(device, &params, &self->evictor, err));
}

static inline void cache_end(cache *self) {
  while (self->count) {
    assert_int_equal(gm_free(self->pool, &self->blocks[--self->count], self->stream), GM_OK);
  }
  pool_bench_ok(gm_evictor_unregister(self->evictor, err));
}

static inline gm_acquire ask(gm_pool *pool, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes};
  return gm_alloc(pool, &request, out);
}

/* Frees nothing. `user`: a uint32_t that counts the calls. */
static inline uint64_t never(void *user, uint64_t bytes) {
  (void)bytes;
  ++*(uint32_t *)user;
  return 0;
}

#endif
