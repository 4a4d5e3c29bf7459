/* A store on a pool, with values whose bytes tell which key and version they are of. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_STORE_BENCH_H
#define GM_TESTS_SUPPORT_STORE_BENCH_H

#include <stdlib.h>

#include "gm/size.h"
#include "gm/store.h"
#include "support/pool_bench.h"
#include "support/random.h"
#include "support/temp_folder.h"

static inline gm_tensor_desc store_bytes_desc(uint64_t bytes) {
  return (gm_tensor_desc){.struct_size = sizeof(gm_tensor_desc), .dtype = GM_DTYPE_U8, .rank = 1, .shape = {bytes}};
}

/* The bytes of a key in a version, to be freed. */
static inline unsigned char *store_contents(uint64_t key, uint64_t version, uint64_t bytes) {
  unsigned char *out = malloc((size_t)bytes + 1);
  uint64_t seed = key * 1000003 + version;
  assert_non_null(out);
  for (uint64_t at = 0; at < bytes; at += 8) {
    const uint64_t word = test_random(&seed);
    memcpy(out + at, &word, (size_t)(bytes - at < 8 ? bytes - at : 8));
  }
  return out;
}

static inline gm_status store_try_put(gm_store *store, const char *key, uint64_t id, uint64_t version, uint64_t bytes) {
  const gm_tensor_desc desc = store_bytes_desc(bytes);
  unsigned char *data = store_contents(id, version, bytes);
  const gm_status status = gm_store_put_tensor(store, key, &desc, data, NULL);
  free(data);
  return status;
}

static inline void store_put(gm_store *store, const char *key, uint64_t id, uint64_t version, uint64_t bytes) {
  assert_int_equal(store_try_put(store, key, id, version, bytes), GM_OK);
}

static inline bool store_value_is(gm_value *value, uint64_t id, uint64_t version, uint64_t bytes) {
  gm_value_info info = {.struct_size = sizeof info};
  unsigned char *wanted = store_contents(id, version, bytes), *has = malloc((size_t)bytes + 1);
  assert_non_null(has);
  pool_bench_ok(gm_value_describe(value, &info, err));
  bool is = info.form == GM_VALUE_TENSOR && info.dtype == GM_DTYPE_U8 && info.bytes == bytes;
  if (is) pool_bench_ok(gm_value_read(value, 0, has, bytes, NULL, err));
  is = is && memcmp(wanted, has, (size_t)bytes) == 0;
  free(wanted);
  free(has);
  return is;
}

static inline void store_expect(gm_store *store, const char *key, uint64_t id, uint64_t version, uint64_t bytes) {
  gm_value *value = NULL;
  pool_bench_ok(gm_store_get(store, key, &value, err));
  assert_true(store_value_is(value, id, version, bytes));
  gm_value_release(value, NULL);
}

static inline void store_expect_none(gm_store *store, const char *key) {
  gm_value *value = NULL;
  bool there = true;
  assert_int_equal(gm_store_get(store, key, &value, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_store_exists(store, key, &there, NULL), GM_OK);
  assert_false(there);
  assert_null(value);
}

static inline gm_store_stats store_stats(gm_store *store) {
  gm_store_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_store_get_stats(store, &stats, NULL), GM_OK);
  return stats;
}

static inline gm_store *store_open(gm_pool *pool, const gm_store_params *asked) {
  gm_store *store = NULL;
  gm_store_params params = asked ? *asked : (gm_store_params){.pool = NULL};
  params.struct_size = sizeof params;
  params.pool = pool;
  pool_bench_ok(gm_store_create(&params, &store, err));
  return store;
}

static inline void store_close(gm_store *store) { pool_bench_ok(gm_store_destroy(store, err)); }

/* A pool of the CPU, bounded, that keeps nothing. */
static inline void store_open_bench(pool_bench *bench, uint64_t max_bytes) {
  const gm_pool_params params = {
      .struct_size = sizeof params, .checked = true, .no_vmm = true, .max_bytes = max_bytes, .keep_bytes = GM_NO_BYTES};
  pool_bench_open(bench, "cpu", NULL, &params);
}

static inline gm_tier *store_open_tier(const pool_bench *bench, const char *kind, const char *where,
                                       uint64_t max_bytes) {
  gm_tier *tier = NULL;
  const gm_tier_params params = {.struct_size = sizeof params, .max_bytes = max_bytes};
  pool_bench_ok(gm_tier_open(bench->ctx, kind, where, &params, &tier, err));
  return tier;
}

static inline uint64_t store_tier_values(gm_tier *tier) {
  gm_tier_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_tier_get_stats(tier, &stats, NULL), GM_OK);
  return stats.values;
}

/* Values of four times the pool's memory go through the store, in an order of their own each round, and come back to
 * the byte. Some are replaced and some are trees. Nothing may fall back: room is made. */
enum { STORE_FOUR_KEYS = 32 };

static inline void store_four_times(gm_pool *pool, gm_tier *tier, uint64_t pool_bytes, uint64_t max_host_bytes,
                                    int rounds) {
  const uint64_t bytes = pool_bytes * 4 / STORE_FOUR_KEYS;
  const gm_store_params params = {.tiers = &tier,
                                  .tier_count = tier ? 1 : 0,
                                  .max_host_bytes = max_host_bytes,
                                  .fallback = GM_FALLBACK_REFUSE,
                                  .keep = GM_STORE_KEEP_LONG};
  gm_store *store = store_open(pool, &params);
  uint64_t versions[STORE_FOUR_KEYS] = {0}, seed = 11;
  char key[32];
  for (uint64_t i = 0; i < STORE_FOUR_KEYS; i++) {
    snprintf(key, sizeof key, "layer/%d", (int)i);
    store_put(store, key, i, 0, bytes - i);
  }
  for (int i = 0; i < rounds * STORE_FOUR_KEYS; i++) {
    const uint64_t at = test_random(&seed) % STORE_FOUR_KEYS;
    snprintf(key, sizeof key, "layer/%d", (int)at);
    if (test_random(&seed) % 8 == 0) store_put(store, key, at, ++versions[at], bytes - at);
    store_expect(store, key, at, versions[at], bytes - at);
  }
  const gm_store_stats stats = store_stats(store);
  assert_int_equal(stats.keys, STORE_FOUR_KEYS);
  assert_true(stats.came_back > 0);
  assert_true(stats.went_down > STORE_FOUR_KEYS / 2);
  assert_int_equal(stats.tier_failures, 0);
  assert_true(stats.peak_reserved_bytes <= pool_bytes);
  if (max_host_bytes == GM_NO_BYTES) assert_int_equal(stats.host_bytes, 0);
  pool_bench_ok(gm_store_clear(store, NULL, err));
  assert_int_equal(store_stats(store).keys, 0);
  assert_int_equal(store_stats(store).device_bytes, 0);
  store_close(store);
}

/* Four times a pool's memory on the first device of a backend, with a file below and a little host memory between. */
static inline void store_on_device(const char *backend, const gm_context_params *context) {
  enum { POOL_BYTES = 8 << 20 };
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_tier *tier = NULL;
  temp_folder folder;
  temp_folder_make(&folder);
  const gm_pool_params params = {.struct_size = sizeof params,
                                 .checked = true,
                                 .no_vmm = true,
                                 .max_bytes = POOL_BYTES,
                                 .keep_bytes = GM_NO_BYTES};
  pool_bench_ok(gm_context_create(context, &ctx, err));
  pool_bench_ok(gm_device_open_index(ctx, backend, 0, &device, err));
  pool_bench_ok(gm_pool_create(device, &params, &pool, err));
  pool_bench_ok(gm_tier_open(ctx, "disk", temp_folder_join(&folder, "file"), NULL, &tier, err));
  store_four_times(pool, tier, POOL_BYTES, 3 << 20, 2);
  pool_bench_ok(gm_tier_close(tier, err));
  pool_bench_ok(gm_pool_destroy(pool, err));
  pool_bench_ok(gm_device_close(device, err));
  pool_bench_ok(gm_context_destroy(ctx, err));
  temp_folder_remove(&folder);
}

#endif
