/* A cache of device tensors gives way when a request of its pool would fail, and so do tensor sets. Objects
 * that somebody uses stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gm/cache.h"
#include "gm/tensor_sets.h"
#include "support/pool_bench.h"
#include "support/temp_folder.h"

#define MIB (UINT64_C(1) << 20)

enum { TENSORS = 15, TENSOR_MIB = 4, CAP_MIB = 64 };

typedef struct tensor {
  gm_pool *pool;
  gm_block block;
} tensor;

static int released;

static void tensor_release(void *user, void *object, uint64_t bytes) {
  tensor *t = object;
  (void)user, (void)bytes;
  assert_int_equal(gm_free(t->pool, &t->block, NULL), GM_OK);
  free(t);
  released++;
}

static tensor *tensor_new(gm_pool *pool) {
  const gm_request request = {.bytes = TENSOR_MIB * MIB};
  tensor *t = calloc(1, sizeof *t);
  assert_non_null(t);
  t->pool = pool;
  assert_true(gm_acquired(gm_alloc(pool, &request, &t->block)));
  return t;
}

static gm_cache *open_full(pool_bench *bench, gm_cache_policy policy) {
  const gm_pool_params capped = {.struct_size = sizeof capped, .max_bytes = CAP_MIB * MIB};
  pool_bench_open(bench, "null", NULL, &capped);
  const gm_cache_params params = {
      .struct_size = sizeof params, .policy = policy, .release = tensor_release, .pool = bench->pool};
  gm_cache *cache = NULL;
  assert_int_equal(gm_cache_create(bench->ctx, &params, &cache, NULL), GM_OK);
  released = 0;
  for (int i = 0; i < TENSORS; i++) {
    assert_int_equal(gm_cache_put(cache, &i, sizeof i, tensor_new(bench->pool), TENSOR_MIB * MIB, NULL, NULL), GM_OK);
  }
  return cache;
}

static gm_acquire ask(gm_pool *pool, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes};
  return gm_alloc(pool, &request, out);
}

static void test_unused_tensors_give_way(void **state) {
  (void)state;
  for (int policy = GM_CACHE_S3FIFO; policy <= GM_CACHE_LRU; policy++) {
    pool_bench bench;
    gm_block block;
    gm_cache *cache = open_full(&bench, (gm_cache_policy)policy);
    assert_true(gm_acquired(ask(bench.pool, 16 * MIB, &block)));
    assert_true(released >= 3 && released < TENSORS); /* what is missing, and not all */
    gm_cache_stats stats = {.struct_size = sizeof stats};
    assert_int_equal(gm_cache_get_stats(cache, &stats, NULL), GM_OK);
    assert_int_equal(stats.evictions, released);
    assert_int_equal(stats.entries, TENSORS - released);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    assert_int_equal(gm_pool_destroy(bench.pool, NULL), GM_ERR_BUSY);
    assert_int_equal(gm_cache_destroy(cache, NULL), GM_OK);
    assert_int_equal(released, TENSORS);
    pool_bench_close(&bench);
  }
}

static void test_used_tensors_stay(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_cache_lease *leases[TENSORS];
  gm_cache *cache = open_full(&bench, GM_CACHE_LRU);
  for (int i = 0; i < TENSORS; i++) {
    assert_int_equal(gm_cache_get(cache, &i, sizeof i, &leases[i], NULL, NULL), GM_OK);
  }
  assert_int_equal(ask(bench.pool, 16 * MIB, &block), GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(released, 0);
  for (int i = 0; i < 5; i++) gm_cache_return(leases[i]);
  assert_true(gm_acquired(ask(bench.pool, 16 * MIB, &block)));
  assert_true(released >= 3 && released <= 5);
  for (int i = 5; i < TENSORS; i++) {
    const tensor *t = gm_cache_lease_object(leases[i]);
    assert_int_equal(t->block.bytes, TENSOR_MIB * MIB);
    gm_cache_return(leases[i]);
  }
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  assert_int_equal(gm_cache_destroy(cache, NULL), GM_OK);
  assert_int_equal(released, TENSORS);
  pool_bench_close(&bench);
}

static gm_status set_make(void *user, const char *path, void **out_set, uint64_t *out_bytes, gm_error *err) {
  (void)path, (void)err;
  *out_set = tensor_new(user);
  *out_bytes = TENSOR_MIB * MIB;
  return GM_OK;
}

static void set_release(void *user, void *set, uint64_t bytes) {
  (void)user;
  tensor_release(NULL, set, bytes);
}

static void test_tensor_sets_give_way(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_tensor_sets *sets = NULL;
  gm_tensor_set *set = NULL;
  temp_folder folder;
  const gm_pool_params capped = {.struct_size = sizeof capped, .max_bytes = 6 * MIB};
  pool_bench_open(&bench, "null", NULL, &capped);
  const gm_tensor_sets_params params = {
      .struct_size = sizeof params, .make = set_make, .release = set_release, .user = bench.pool, .pool = bench.pool};
  assert_int_equal(gm_tensor_sets_create(bench.ctx, &params, &sets, NULL), GM_OK);
  released = 0;
  temp_folder_make(&folder);
  const char *path = temp_folder_write(&folder, "source", "x", 1);
  assert_int_equal(gm_tensor_sets_get(sets, path, &set, NULL), GM_OK);
  assert_int_equal(ask(bench.pool, 4 * MIB, &block), GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(released, 0);
  gm_tensor_set_return(set);
  assert_true(gm_acquired(ask(bench.pool, 4 * MIB, &block)));
  assert_int_equal(released, 1);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  assert_int_equal(gm_tensor_sets_destroy(sets, NULL), GM_OK);
  temp_folder_remove(&folder);
  pool_bench_close(&bench);
}

static void test_a_pool_of_another_context_is_refused(void **state) {
  (void)state;
  pool_bench bench, other;
  gm_cache *cache = NULL;
  pool_bench_open(&bench, "null", NULL, NULL);
  pool_bench_open(&other, "null", NULL, NULL);
  const gm_cache_params params = {.struct_size = sizeof params, .pool = other.pool};
  assert_int_equal(gm_cache_create(bench.ctx, &params, &cache, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_null(cache);
  pool_bench_close(&other);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_unused_tensors_give_way),
      cmocka_unit_test(test_used_tensors_stay),
      cmocka_unit_test(test_tensor_sets_give_way),
      cmocka_unit_test(test_a_pool_of_another_context_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
