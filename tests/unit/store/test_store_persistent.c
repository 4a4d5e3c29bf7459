/* Persistent values of a store: they leave the device after all others, and never before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/store_bench.h"

#define MIB (UINT64_C(1) << 20)

enum { KEYS = 8, BYTES = 256 << 10 };

static const char *name(int i) {
  static char text[16];
  snprintf(text, sizeof text, "k%d", i);
  return text;
}

/* Did the value lie on the device? It does from now on. */
static bool was_there(gm_store *store, int i) {
  gm_value *value = NULL;
  const uint64_t before = store_stats(store).came_back;
  pool_bench_ok(gm_store_get(store, name(i), &value, err));
  gm_value_release(value, NULL);
  return store_stats(store).came_back == before;
}

/* KEYS values, of which the first two are persistent, and used least lately. */
static gm_store *open_keys(pool_bench *bench, const gm_store_params *params) {
  store_open_bench(bench, 4 * MIB);
  gm_store *store = store_open(bench->pool, params);
  for (int i = 0; i < KEYS; i++) {
    store_put(store, name(i), (uint64_t)i, 0, BYTES);
    if (i < 2) pool_bench_ok(gm_store_set_persistent(store, name(i), true, err));
  }
  for (int turn = 0; turn < 3; turn++) {
    for (int i = 2; i < KEYS; i++) store_expect(store, name(i), (uint64_t)i, 0, BYTES);
  }
  return store;
}

static void close_keys(pool_bench *bench, gm_store *store) {
  store_close(store);
  pool_bench_close(bench);
}

static void demote(gm_store *store, uint64_t bytes) {
  uint64_t gone = 0;
  pool_bench_ok(gm_store_demote(store, bytes, &gone, err));
  assert_int_equal(gone, bytes);
}

static void test_they_leave_last(void **state) {
  (void)state;
  pool_bench bench;
  gm_store *store = open_keys(&bench, NULL);
  demote(store, (KEYS - 2) * BYTES);
  assert_int_equal(store_stats(store).device_bytes, 2 * BYTES);
  assert_true(was_there(store, 0) && was_there(store, 1));
  demote(store, 2 * BYTES); /* nothing else is there */
  assert_int_equal(store_stats(store).device_bytes, 0);
  assert_false(was_there(store, 0));
  assert_false(was_there(store, 5));
  demote(store, BYTES); /* it is persistent still after it came back */
  assert_true(was_there(store, 0));
  assert_false(was_there(store, 5));
  close_keys(&bench, store);
}

static void test_others_that_are_held_stay(void **state) {
  (void)state;
  pool_bench bench;
  gm_value *values[KEYS];
  gm_store *store = open_keys(&bench, NULL);
  for (int i = 2; i < KEYS; i++) pool_bench_ok(gm_store_get(store, name(i), &values[i], err));
  demote(store, BYTES);
  for (int i = 2; i < KEYS; i++) {
    assert_true(was_there(store, i));
    gm_value_release(values[i], NULL);
  }
  close_keys(&bench, store);
}

/* A program beside the store takes memory; so the store is asked for it as an evictor. */
static void test_a_neighbour_pushes_out_the_others(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[12];
  gm_store *store = open_keys(&bench, NULL);
  const gm_request request = {.bytes = BYTES};
  for (int i = 0; i < 12; i++) assert_true(gm_acquired(gm_alloc(bench.pool, &request, &blocks[i])));
  assert_true(store_stats(store).went_down > 0);
  for (int i = 0; i < 12; i++) assert_int_equal(gm_free(bench.pool, &blocks[i], NULL), GM_OK);
  assert_true(was_there(store, 0) && was_there(store, 1));
  close_keys(&bench, store);
}

static void test_it_is_the_keys(void **state) {
  (void)state;
  pool_bench bench;
  gm_store *store = open_keys(&bench, NULL);
  store_put(store, name(0), 0, 1, BYTES); /* replaced: persistent still */
  pool_bench_ok(gm_store_move(store, name(1), "moved", err));
  pool_bench_ok(gm_store_copy(store, name(0), "copied", err));
  demote(store, (KEYS - 1) * BYTES); /* all but the value of the first key, which "copied" has, too */
  assert_in_range(store_stats(store).device_bytes, BYTES, 2 * BYTES);
  assert_true(was_there(store, 0));
  pool_bench_ok(gm_store_delete(store, name(0), err));
  store_put(store, name(0), 0, 2, BYTES); /* another key of that name */
  store_put(store, name(2), 2, 1, BYTES);
  pool_bench_ok(gm_store_set_persistent(store, name(2), true, err));
  demote(store, BYTES);
  assert_true(was_there(store, 2));
  assert_false(was_there(store, 0));
  close_keys(&bench, store);
}

static void test_it_is_taken_back(void **state) {
  (void)state;
  pool_bench bench;
  gm_store *store = open_keys(&bench, NULL);
  pool_bench_ok(gm_store_set_persistent(store, name(0), true, err)); /* twice */
  pool_bench_ok(gm_store_set_persistent(store, name(0), false, err));
  demote(store, (KEYS - 1) * BYTES);
  assert_true(was_there(store, 1));
  assert_false(was_there(store, 0));
  demote(store, 2 * BYTES);
  pool_bench_ok(gm_store_set_persistent(store, name(0), true, err)); /* while it lies lower */
  assert_false(was_there(store, 1) || was_there(store, 0) || was_there(store, 2));
  pool_bench_ok(gm_store_set_persistent(store, name(1), false, err));
  demote(store, 2 * BYTES);
  assert_true(was_there(store, 0));
  close_keys(&bench, store);
}

static void test_keep_short_leaves_them(void **state) {
  (void)state;
  pool_bench bench;
  const gm_store_params params = {.keep = GM_STORE_KEEP_SHORT};
  store_open_bench(&bench, 4 * MIB);
  gm_store *store = store_open(bench.pool, &params);
  store_put(store, name(0), 0, 0, BYTES);
  pool_bench_ok(gm_store_set_persistent(store, name(0), true, err));
  for (int i = 1; i < 4; i++) {
    store_put(store, name(i), 1, 0, BYTES); /* it leaves at the next call */
    assert_int_equal(store_stats(store).device_bytes, 2 * BYTES);
    assert_true(was_there(store, 0));
  }
  demote(store, 2 * BYTES);
  assert_int_equal(store_stats(store).device_bytes, 0);
  close_keys(&bench, store);
}

static void test_the_bound_holds_for_them(void **state) {
  (void)state;
  pool_bench bench;
  const gm_store_params params = {.max_device_bytes = 3 * BYTES};
  gm_store *store = open_keys(&bench, &params);
  assert_int_equal(store_stats(store).device_bytes, 3 * BYTES);
  assert_true(was_there(store, 0) && was_there(store, 1));
  for (int i = 2; i < 4; i++) pool_bench_ok(gm_store_set_persistent(store, name(i), true, err));
  assert_false(was_there(store, 2) && was_there(store, 3));
  assert_int_equal(store_stats(store).device_bytes, 3 * BYTES);
  close_keys(&bench, store);
}

static void test_arguments(void **state) {
  (void)state;
  pool_bench bench;
  gm_error why;
  gm_store *store = open_keys(&bench, NULL);
  assert_int_equal(gm_store_set_persistent(NULL, "k0", true, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_store_set_persistent(store, NULL, true, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_store_set_persistent(store, "..", true, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_store_set_persistent(store, "none", true, &why), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(why.message, "none"));
  close_keys(&bench, store);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_they_leave_last),
      cmocka_unit_test(test_others_that_are_held_stay),
      cmocka_unit_test(test_a_neighbour_pushes_out_the_others),
      cmocka_unit_test(test_it_is_the_keys),
      cmocka_unit_test(test_it_is_taken_back),
      cmocka_unit_test(test_keep_short_leaves_them),
      cmocka_unit_test(test_the_bound_holds_for_them),
      cmocka_unit_test(test_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
