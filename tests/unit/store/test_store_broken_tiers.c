/* A store over a tier that fails, lies about what it did, or is slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "gm/store.h"
#include "support/store_bench.h"

#define MIB (UINT64_C(1) << 20)

/* ---- a tier that fails where the test wants it, over a tier of host memory ---- */

static struct {
  gm_tier *real;
  gm_status put, read, remove;
  gm_status put_after, remove_after; /* what a put or a removal answers although it was done */
  atomic_int opens;
} bad;

static gm_status bad_open(gm_context *ctx, const char *where, const gm_tier_params *params, void **out, gm_error *err) {
  (void)where, (void)params;
  *out = &bad;
  return gm_tier_open(ctx, "host", "behind", NULL, &bad.real, err);
}

static void bad_close(void *tier) {
  (void)tier;
  assert_int_equal(gm_tier_close(bad.real, NULL), GM_OK);
}

static gm_status bad_put(void *tier, const void *key, size_t bytes, const gm_tier_part *parts, size_t count,
                         gm_error *err) {
  (void)tier;
  if (bad.put) return bad.put;
  const gm_status status = gm_tier_put(bad.real, key, bytes, parts, count, err);
  return status ? status : bad.put_after;
}

static gm_status bad_value_open(void *tier, const void *key, size_t bytes, void **out, uint64_t *has, gm_error *err) {
  (void)tier;
  const struct timespec moment = {.tv_nsec = 20000000};
  atomic_fetch_add(&bad.opens, 1);
  nanosleep(&moment, NULL); /* others come meanwhile */
  return gm_tier_value_open(bad.real, key, bytes, (gm_tier_value **)out, has, err);
}

static gm_status bad_value_read(void *tier, void *value, uint64_t offset, void *dst, uint64_t bytes, gm_error *err) {
  (void)tier;
  return bad.read ? bad.read : gm_tier_value_read(value, offset, dst, bytes, err);
}

static void bad_value_close(void *tier, void *value) {
  (void)tier;
  gm_tier_value_close(value);
}

static gm_status bad_remove(void *tier, const void *key, size_t bytes, gm_error *err) {
  (void)tier;
  if (bad.remove) return bad.remove;
  const gm_status status = gm_tier_remove(bad.real, key, bytes, err);
  return status ? status : bad.remove_after;
}

static gm_status bad_list(void *tier, const void *prefix, size_t bytes, gm_tier_visit visit, void *user,
                          gm_error *err) {
  (void)tier;
  return gm_tier_list(bad.real, prefix, bytes, visit, user, err);
}

static gm_status bad_flush(void *tier, gm_error *err) {
  (void)tier, (void)err;
  return GM_OK;
}

static void bad_stats(void *tier, gm_tier_stats *out) {
  (void)tier;
  assert_int_equal(gm_tier_get_stats(bad.real, out, NULL), GM_OK);
}

static gm_tier *open_bad(const pool_bench *bench) {
  static const gm_tier_ops ops = {.struct_size = sizeof ops,
                                  .abi = GM_TIER_ABI,
                                  .name = "bad",
                                  .open = bad_open,
                                  .close = bad_close,
                                  .put = bad_put,
                                  .value_open = bad_value_open,
                                  .value_read = bad_value_read,
                                  .value_close = bad_value_close,
                                  .remove = bad_remove,
                                  .list = bad_list,
                                  .flush = bad_flush,
                                  .stats = bad_stats};
  bad.put = bad.read = bad.remove = bad.put_after = bad.remove_after = GM_OK;
  bad.opens = 0;
  pool_bench_ok(gm_tier_register(bench->ctx, &ops, err));
  return store_open_tier(bench, "bad", "", 0);
}

static void test_a_tier_that_fails_loses_nothing(void **state) {
  (void)state;
  pool_bench bench;
  gm_value *value = NULL;
  store_open_bench(&bench, 1 * MIB);
  gm_tier *tier = open_bad(&bench);
  const gm_store_params params = {
      .tiers = &tier, .tier_count = 1, .max_host_bytes = GM_NO_BYTES, .fallback = GM_FALLBACK_REFUSE};
  gm_store *store = store_open(bench.pool, &params);
  store_put(store, "a", 1, 0, 700 << 10);
  bad.put = GM_ERR_IO;
  assert_int_equal(gm_store_demote_key(store, "a", NULL), GM_ERR_IO);
  assert_int_equal(store_try_put(store, "b", 2, 0, 700 << 10), GM_ERR_OVER_LIMIT);
  assert_int_equal(gm_store_flush(store, NULL), GM_ERR_IO);
  store_expect(store, "a", 1, 0, 700 << 10);
  assert_true(store_stats(store).tier_failures >= 3);
  bad.put = GM_OK;
  store_put(store, "b", 2, 0, 700 << 10);
  bad.read = GM_ERR_DAMAGED;
  assert_int_equal(gm_store_get(store, "a", &value, NULL), GM_ERR_DAMAGED);
  bad.read = GM_OK;
  store_expect(store, "a", 1, 0, 700 << 10);
  bad.remove = GM_ERR_TIMEOUT;
  assert_int_equal(gm_store_delete(store, "a", NULL), GM_ERR_TIMEOUT);
  assert_int_equal(gm_store_clear(store, NULL, NULL), GM_ERR_TIMEOUT);
  store_expect(store, "a", 1, 0, 700 << 10);
  store_expect(store, "b", 2, 0, 700 << 10);
  bad.remove = GM_OK;
  pool_bench_ok(gm_store_delete(store, "a", err));
  store_expect_none(store, "a");
  /* A tier that forgets: the key is there, its value is not. */
  pool_bench_ok(gm_store_demote_key(store, "b", err));
  pool_bench_ok(gm_tier_remove(bad.real, "b", 1, err));
  assert_int_equal(gm_store_get(store, "b", &value, NULL), GM_ERR_DAMAGED);
  pool_bench_ok(gm_store_delete(store, "b", err));
  store_close(store);
  pool_bench_ok(gm_tier_close(tier, err));
  pool_bench_close(&bench);
}

/* A server that did not answer may have the value all the same. Deleting the key removes it there. */
static void test_a_put_that_was_done_although_it_failed(void **state) {
  (void)state;
  pool_bench bench;
  gm_tier *tiers[2];
  store_open_bench(&bench, 1 * MIB);
  tiers[0] = open_bad(&bench);
  tiers[1] = store_open_tier(&bench, "host", "far", 0);
  const gm_store_params params = {
      .tiers = tiers, .tier_count = 1, .max_host_bytes = GM_NO_BYTES, .fallback = GM_FALLBACK_REFUSE};
  gm_store *store = store_open(bench.pool, &params);
  store_put(store, "a", 1, 0, 1000);
  bad.put_after = GM_ERR_TIMEOUT;
  assert_int_equal(gm_store_demote_key(store, "a", NULL), GM_ERR_TIMEOUT);
  assert_int_equal(store_tier_values(bad.real), 1);
  bad.remove = GM_ERR_TIMEOUT;
  assert_int_equal(gm_store_delete(store, "a", NULL), GM_ERR_TIMEOUT);
  store_expect(store, "a", 1, 0, 1000);
  bad.remove = GM_OK;
  pool_bench_ok(gm_store_delete(store, "a", err));
  assert_int_equal(store_tier_values(bad.real), 0);
  store_close(store);
  /* The tier below takes the value, and the newer value replaces both. */
  const gm_store_params two = {
      .tiers = tiers, .tier_count = 2, .max_host_bytes = GM_NO_BYTES, .fallback = GM_FALLBACK_REFUSE};
  store = store_open(bench.pool, &two);
  store_put(store, "a", 1, 1, 1000);
  pool_bench_ok(gm_store_demote_key(store, "a", err));
  assert_int_equal(store_tier_values(bad.real) + store_tier_values(tiers[1]), 2);
  store_put(store, "a", 1, 2, 1000);
  pool_bench_ok(gm_store_flush(store, err));
  assert_int_equal(store_tier_values(bad.real), 0); /* else another store would find the older value first */
  pool_bench_ok(gm_store_delete(store, "a", err));
  assert_int_equal(store_tier_values(tiers[1]), 0);
  store_close(store);
  pool_bench_ok(gm_tier_close(tiers[0], err));
  pool_bench_ok(gm_tier_close(tiers[1], err));
  pool_bench_close(&bench);
}

/* A removal without an answer was done, or it was not. So the key has its value, or it is not there. Nothing is
 * damaged, and no value leaves the device for the sake of a copy that may be gone. */
static void test_a_removal_without_an_answer(void **state) {
  (void)state;
  pool_bench bench;
  gm_tier *tiers[2];
  store_open_bench(&bench, 1 * MIB);
  tiers[0] = open_bad(&bench);
  tiers[1] = store_open_tier(&bench, "host", "far", 0);
  for (size_t count = 1; count <= 2; count++) {
    const gm_store_params params = {.tiers = tiers, .tier_count = count, .max_host_bytes = GM_NO_BYTES};
    gm_store *store = store_open(bench.pool, &params);
    /* below alone: done */
    store_put(store, "a", 1, 0, 1000);
    pool_bench_ok(gm_store_demote_key(store, "a", err));
    bad.remove_after = GM_ERR_TIMEOUT;
    assert_int_equal(gm_store_delete(store, "a", NULL), GM_ERR_TIMEOUT);
    bad.remove_after = GM_OK;
    store_expect_none(store, "a");
    assert_int_equal(store_stats(store).keys, 0);
    /* not done */
    store_put(store, "a", 1, 1, 1000);
    pool_bench_ok(gm_store_demote_key(store, "a", err));
    bad.remove = GM_ERR_TIMEOUT;
    assert_int_equal(gm_store_delete(store, "a", NULL), GM_ERR_TIMEOUT);
    bad.remove = GM_OK;
    store_expect(store, "a", 1, 1, 1000);
    pool_bench_ok(gm_store_demote_key(store, "a", err));
    assert_int_equal(store_tier_values(bad.real), 1);
    /* on the device and below: done */
    store_expect(store, "a", 1, 1, 1000);
    bad.remove_after = GM_ERR_IO;
    assert_int_equal(gm_store_delete(store, "a", NULL), GM_ERR_IO);
    bad.remove_after = GM_OK;
    pool_bench_ok(gm_store_demote_key(store, "a", err));
    store_expect(store, "a", 1, 1, 1000);
    /* done, and flushed afterwards; the flush finds nothing to give on */
    pool_bench_ok(gm_store_demote_key(store, "a", err));
    bad.remove_after = GM_ERR_TIMEOUT;
    assert_int_equal(gm_store_delete(store, "a", NULL), GM_ERR_TIMEOUT);
    bad.remove_after = GM_OK;
    pool_bench_ok(gm_store_flush(store, err));
    store_expect_none(store, "a");
    assert_int_equal(store_tier_values(bad.real) + store_tier_values(tiers[1]), 0);
    /* put again: the older one does not come back */
    store_put(store, "a", 1, 2, 1000);
    pool_bench_ok(gm_store_demote_key(store, "a", err));
    bad.remove = GM_ERR_TIMEOUT;
    assert_int_equal(gm_store_delete(store, "a", NULL), GM_ERR_TIMEOUT);
    bad.remove = GM_OK;
    store_put(store, "a", 1, 3, 1000);
    pool_bench_ok(gm_store_flush(store, err));
    store_close(store);
    store = store_open(bench.pool, &params);
    store_expect(store, "a", 1, 3, 1000);
    pool_bench_ok(gm_store_delete(store, "a", err));
    store_close(store);
  }
  for (int i = 0; i < 2; i++) pool_bench_ok(gm_tier_close(tiers[i], err));
  pool_bench_close(&bench);
}

/* A tier that takes nothing does not keep those on the device that it has already. */
static void test_what_a_broken_tier_has_still_leaves(void **state) {
  (void)state;
  pool_bench bench;
  uint64_t gone = 0;
  char key[16];
  store_open_bench(&bench, 1 * MIB);
  gm_tier *tier = open_bad(&bench);
  const gm_store_params params = {
      .tiers = &tier, .tier_count = 1, .max_host_bytes = GM_NO_BYTES, .fallback = GM_FALLBACK_REFUSE};
  gm_store *store = store_open(bench.pool, &params);
  store_put(store, "there", 9, 0, 1000);
  pool_bench_ok(gm_store_flush(store, err));
  for (int i = 0; i < 3; i++) store_expect(store, "there", 9, 0, 1000);
  for (uint64_t i = 0; i < 20; i++) {
    snprintf(key, sizeof key, "k%d", (int)i);
    store_put(store, key, i, 0, 1000);
  }
  bad.put = GM_ERR_IO;
  pool_bench_ok(gm_store_demote(store, 500, &gone, err));
  assert_int_equal(gone, 1000);
  assert_in_range(store_stats(store).tier_failures, 1, 8); /* it is not asked for each value */
  store_expect(store, "there", 9, 0, 1000);
  for (uint64_t i = 0; i < 20; i++) {
    snprintf(key, sizeof key, "k%d", (int)i);
    store_expect(store, key, i, 0, 1000);
  }
  store_close(store);
  pool_bench_ok(gm_tier_close(tier, err));
  pool_bench_close(&bench);
}

static void *get_one(void *store) {
  store_expect(store, "a", 1, 0, 100000);
  return NULL;
}

static void test_one_thread_brings_a_value_back(void **state) {
  (void)state;
  enum { GETTERS = 6 };
  pool_bench bench;
  pthread_t threads[GETTERS];
  store_open_bench(&bench, 1 * MIB);
  gm_tier *tier = open_bad(&bench);
  const gm_store_params params = {.tiers = &tier, .tier_count = 1, .max_host_bytes = GM_NO_BYTES};
  gm_store *store = store_open(bench.pool, &params);
  store_put(store, "a", 1, 0, 100000);
  pool_bench_ok(gm_store_demote_key(store, "a", err));
  for (int i = 0; i < GETTERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, get_one, store), 0);
  for (int i = 0; i < GETTERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_int_equal(bad.opens, 1);
  assert_int_equal(store_stats(store).came_back, 1);
  store_close(store);
  pool_bench_ok(gm_tier_close(tier, err));
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_tier_that_fails_loses_nothing),
                                     cmocka_unit_test(test_a_put_that_was_done_although_it_failed),
                                     cmocka_unit_test(test_a_removal_without_an_answer),
                                     cmocka_unit_test(test_what_a_broken_tier_has_still_leaves),
                                     cmocka_unit_test(test_one_thread_brings_a_value_back)};
  return cmocka_run_group_tests_name("store_broken_tiers", tests, NULL, NULL);
}
