/* How many values a store keeps on the device: its own bound, or the key gpu.memory.cache_size where somebody set it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "support/store_bench.h"

#define MIB (UINT64_C(1) << 20)

enum { KEYS = 12, BYTES = 4096 };

static const char *name(int i) {
  static char text[16];
  snprintf(text, sizeof text, "k%d", i);
  return text;
}

static gm_store *open_store(pool_bench *bench, const gm_store_params *params) {
  store_open_bench(bench, 4 * MIB);
  return store_open(bench->pool, params);
}

static void close_store(pool_bench *bench, gm_store *store) {
  store_close(store);
  pool_bench_close(bench);
}

static void put_all(gm_store *store) {
  for (int i = 0; i < KEYS; i++) store_put(store, name(i), (uint64_t)i, 0, BYTES);
}

static uint64_t there(gm_store *store) { return store_stats(store).device_values; }

static bool was_there(gm_store *store, int i) {
  const uint64_t before = store_stats(store).came_back;
  store_expect(store, name(i), (uint64_t)i, 0, BYTES);
  return store_stats(store).came_back == before;
}

static void configure(pool_bench *bench, const char *value) {
  pool_bench_ok(gm_config_set(bench->ctx, "gpu.memory.cache_size", value, err));
}

static void test_values_above_the_bound_go_down(void **state) {
  (void)state;
  pool_bench bench;
  const gm_store_params params = {.max_device_values = 5};
  gm_store *store = open_store(&bench, &params);
  for (int i = 0; i < KEYS; i++) {
    store_put(store, name(i), (uint64_t)i, 0, BYTES);
    assert_int_equal(there(store), i < 5 ? i + 1 : 5);
    assert_int_equal(store_stats(store).device_bytes, there(store) * BYTES);
  }
  for (int i = 0; i < KEYS; i++) store_expect(store, name(i), (uint64_t)i, 0, BYTES); /* none is lost */
  assert_true(there(store) <= 6); /* the caller of the last get held its value */
  store_put(store, name(0), 0, 0, BYTES);
  assert_int_equal(there(store), 5);
  assert_int_equal(store_stats(store).keys, KEYS);
  close_store(&bench, store);
}

/* Above the bound, they go to the tier if host memory takes none. */
static void test_they_go_down_to_a_tier(void **state) {
  (void)state;
  pool_bench bench;
  store_open_bench(&bench, 4 * MIB);
  gm_tier *tier = store_open_tier(&bench, "host", "", 0);
  const gm_store_params params = {
      .max_device_values = 3, .max_host_bytes = GM_NO_BYTES, .tiers = &tier, .tier_count = 1};
  gm_store *store = store_open(bench.pool, &params);
  put_all(store);
  assert_int_equal(there(store), 3);
  assert_int_equal(store_tier_values(tier), KEYS - 3);
  for (int i = 0; i < KEYS; i++) store_expect(store, name(i), (uint64_t)i, 0, BYTES);
  store_close(store);
  pool_bench_ok(gm_tier_close(tier, err));
  pool_bench_close(&bench);
}

static void test_deleted_and_replaced_values_do_not_count(void **state) {
  (void)state;
  pool_bench bench;
  const gm_store_params params = {.max_device_values = 4};
  gm_store *store = open_store(&bench, &params);
  for (int i = 0; i < 4; i++) store_put(store, name(i), (uint64_t)i, 0, BYTES);
  for (int round = 0; round < 3; round++) store_put(store, name(0), 0, 0, BYTES);
  pool_bench_ok(gm_store_delete(store, name(3), err));
  assert_int_equal(there(store), 3);
  store_put(store, name(4), 4, 0, BYTES);
  store_put(store, "nothing", 0, 0, 0); /* has no memory */
  assert_int_equal(there(store), 4);
  assert_int_equal(store_stats(store).went_down, 0);
  close_store(&bench, store);
}

static void test_what_is_held_stays_and_persistent_goes_last(void **state) {
  (void)state;
  pool_bench bench;
  gm_value *held[3];
  const gm_store_params params = {.max_device_values = 4};
  gm_store *store = open_store(&bench, &params);
  for (int i = 0; i < 4; i++) store_put(store, name(i), (uint64_t)i, 0, BYTES);
  pool_bench_ok(gm_store_set_persistent(store, name(3), true, err));
  for (int i = 0; i < 3; i++) pool_bench_ok(gm_store_get(store, name(i), &held[i], err));
  for (int i = 4; i < 8; i++) {
    store_put(store, name(i), (uint64_t)i, 0, BYTES);
    assert_int_equal(there(store), 4); /* the new one goes: others are held, or persistent */
  }
  assert_true(was_there(store, 3));
  for (int i = 0; i < 3; i++) {
    assert_true(store_value_is(held[i], (uint64_t)i, 0, BYTES));
    gm_value_release(held[i], NULL);
  }
  put_all(store);
  assert_int_equal(there(store), 4);
  assert_true(was_there(store, 3));
  close_store(&bench, store);
}

static void test_held_values_above_the_bound_go_when_they_are_released(void **state) {
  (void)state;
  pool_bench bench;
  gm_value *held[KEYS];
  const gm_store_params params = {.max_device_values = 4};
  gm_store *store = open_store(&bench, &params);
  for (int i = 0; i < KEYS; i++) {
    store_put(store, name(i), (uint64_t)i, 0, BYTES);
    pool_bench_ok(gm_store_get(store, name(i), &held[i], err));
  }
  assert_int_equal(there(store), KEYS);
  for (int i = 0; i < KEYS; i++) {
    assert_true(store_value_is(held[i], (uint64_t)i, 0, BYTES));
    gm_value_release(held[i], NULL);
  }
  store_put(store, name(0), 0, 0, BYTES);
  assert_int_equal(there(store), 4);
  close_store(&bench, store);
}

static void test_the_key_bounds_a_store_where_somebody_set_it(void **state) {
  (void)state;
  pool_bench bench;
  char key[16];
  gm_store *store = open_store(&bench, NULL);
  for (int i = 0; i < 120; i++) { /* the key's default bounds no store */
    snprintf(key, sizeof key, "many/%d", i);
    store_put(store, key, 1, 0, 16);
  }
  assert_int_equal(there(store), 120);
  configure(&bench, "7");
  store_put(store, name(0), 0, 0, BYTES);
  assert_int_equal(there(store), 7);
  configure(&bench, "9");
  put_all(store);
  assert_int_equal(there(store), 9);
  configure(&bench, "0");
  store_put(store, name(0), 0, 0, BYTES);
  assert_int_equal(there(store), 0);
  store_expect(store, name(5), 5, 0, BYTES);
  close_store(&bench, store);
}

static void test_the_program_s_bound_stands_above_the_key(void **state) {
  (void)state;
  pool_bench bench;
  const gm_store_params six = {.max_device_values = 6}, all = {.max_device_values = GM_NO_LIMIT},
                        none = {.max_device_values = GM_NO_BYTES};
  store_open_bench(&bench, 4 * MIB);
  configure(&bench, "2");
  const struct {
    const gm_store_params *params;
    uint64_t most;
  } rows[] = {{&six, 6}, {&all, KEYS}, {&none, 0}, {NULL, 2}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    gm_store *store = store_open(bench.pool, rows[i].params);
    put_all(store);
    assert_int_equal(there(store), rows[i].most);
    store_close(store);
  }
  pool_bench_close(&bench);
}

/* A place below that fails keeps nothing from the device, and the bound is tried again. */
static void test_a_value_that_nothing_below_takes_stays(void **state) {
  (void)state;
  pool_bench bench;
  const gm_store_params params = {.max_device_values = 2, .max_host_bytes = 2 * BYTES + 1024};
  gm_store *store = open_store(&bench, &params);
  put_all(store);
  assert_true(there(store) > 2);
  for (int i = 0; i < KEYS; i++) store_expect(store, name(i), (uint64_t)i, 0, BYTES);
  pool_bench_ok(gm_store_clear(store, NULL, err));
  assert_int_equal(there(store), 0);
  close_store(&bench, store);
}

/* ---- threads ---- */

enum { THREADS = 4, PUTS = 60 };

typedef struct putter {
  gm_store *store;
  int number;
} putter;

static void *put_own(void *user) {
  const putter *p = user;
  char key[32];
  for (int i = 0; i < PUTS; i++) {
    snprintf(key, sizeof key, "%d/%d", p->number, i);
    store_put(p->store, key, (uint64_t)(p->number * PUTS + i), 0, 64);
  }
  return NULL;
}

/* A value that one thread takes down, another one does not take down again. */
static void test_threads_take_down_what_is_above_and_no_more(void **state) {
  (void)state;
  pool_bench bench;
  pthread_t threads[THREADS];
  putter putters[THREADS];
  char key[32];
  const gm_store_params params = {.max_device_values = 16};
  gm_store *store = open_store(&bench, &params);
  for (int i = 0; i < THREADS; i++) {
    putters[i] = (putter){store, i};
    assert_int_equal(pthread_create(&threads[i], NULL, put_own, &putters[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_int_equal(there(store), 16);
  assert_int_equal(store_stats(store).went_down, THREADS * PUTS - 16);
  for (int i = 0; i < THREADS * PUTS; i++) {
    snprintf(key, sizeof key, "%d/%d", i / PUTS, i % PUTS);
    store_expect(store, key, (uint64_t)i, 0, 64);
  }
  close_store(&bench, store);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values_above_the_bound_go_down),
      cmocka_unit_test(test_they_go_down_to_a_tier),
      cmocka_unit_test(test_deleted_and_replaced_values_do_not_count),
      cmocka_unit_test(test_what_is_held_stays_and_persistent_goes_last),
      cmocka_unit_test(test_held_values_above_the_bound_go_when_they_are_released),
      cmocka_unit_test(test_the_key_bounds_a_store_where_somebody_set_it),
      cmocka_unit_test(test_the_program_s_bound_stands_above_the_key),
      cmocka_unit_test(test_a_value_that_nothing_below_takes_stays),
      cmocka_unit_test(test_threads_take_down_what_is_above_and_no_more),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
