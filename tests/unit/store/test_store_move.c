/* gm_store_move beside puts of its two keys: what was put and acknowledged is somewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "gm/store.h"
#include "support/store_bench.h"

#define MIB (UINT64_C(1) << 20)

enum { VALUE_BYTES = 1000 };

typedef struct mover {
  gm_store *store;
  const char *from, *to;
  atomic_bool *stop;
} mover;

static void *move_on(void *arg) {
  const mover *mine = arg;
  while (!atomic_load(mine->stop)) {
    (void)gm_store_move(mine->store, mine->from, mine->to, NULL);
    sched_yield();
  }
  return NULL;
}

/* The version of a key. 0: there is none. */
static uint64_t version_of(gm_store *store, const char *key) {
  uint64_t version = 0;
  gm_value *value = NULL;
  if (gm_store_get(store, key, &value, NULL)) return 0;
  pool_bench_ok(gm_value_read(value, 0, &version, sizeof version, NULL, err));
  gm_value_release(value, NULL);
  return version;
}

static void put_version(gm_store *store, const char *key, uint64_t version) {
  const gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = GM_DTYPE_U64};
  pool_bench_ok(gm_store_put_tensor(store, key, &desc, &version, err));
}

/* Two puts, and the source ends: then the target has the second one. */
static void test_threads_that_put_and_move(void **state) {
  enum { ROUNDS = 400 };
  (void)state;
  pool_bench bench;
  pthread_t thread;
  atomic_bool stop = false;
  store_open_bench(&bench, 1 * MIB);
  gm_tier *tier = store_open_tier(&bench, "host", "", 0);
  const gm_store_params params = {.tiers = &tier, .tier_count = 1, .max_host_bytes = GM_NO_BYTES};
  gm_store *store = store_open(bench.pool, &params);
  mover mine = {store, "a", "b", &stop};
  assert_int_equal(pthread_create(&thread, NULL, move_on, &mine), 0);
  for (uint64_t i = 1; i <= ROUNDS; i++) {
    bool there = true;
    put_version(store, "a", 2 * i);
    if (i % 4 == 0) (void)gm_store_demote_key(store, "a", NULL);
    put_version(store, "a", 2 * i + 1);
    if (i % 3 == 0) (void)gm_store_demote_key(store, "a", NULL);
    while (there) {
      sched_yield();
      pool_bench_ok(gm_store_exists(store, "a", &there, err));
    }
    assert_int_equal(version_of(store, "b"), 2 * i + 1);
  }
  atomic_store(&stop, true);
  pthread_join(thread, NULL);
  store_close(store);
  pool_bench_ok(gm_tier_close(tier, err));
  pool_bench_close(&bench);
}

/* One value goes round by three threads: it is always under one key at least, and at the end under one alone. */
static void test_moves_that_cross(void **state) {
  enum { ROUNDS = 2000 };
  (void)state;
  static const char *const keys[3] = {"x", "y", "z"};
  pool_bench bench;
  pthread_t threads[3];
  mover movers[3];
  atomic_bool stop = false;
  store_open_bench(&bench, 1 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  put_version(store, "x", 7);
  for (int i = 0; i < 3; i++) {
    movers[i] = (mover){store, keys[i], keys[(i + 1) % 3], &stop};
    assert_int_equal(pthread_create(&threads[i], NULL, move_on, &movers[i]), 0);
  }
  for (int i = 0; i < ROUNDS; i++) {
    for (int key = 0; key < 3; key++) {
      const uint64_t version = version_of(store, keys[key]);
      assert_true(!version || version == 7);
    }
  }
  atomic_store(&stop, true);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  assert_int_equal(store_stats(store).keys, 1);
  store_close(store);
  pool_bench_close(&bench);
}

static void test_a_move_onto_itself_and_of_nothing(void **state) {
  (void)state;
  pool_bench bench;
  gm_error why = {.status = GM_OK};
  store_open_bench(&bench, 1 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  store_put(store, "a", 1, 1, VALUE_BYTES);
  pool_bench_ok(gm_store_move(store, "a", "/a/", err));
  store_expect(store, "a", 1, 1, VALUE_BYTES);
  assert_int_equal(gm_store_move(store, "none", "a", &why), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(why.message, "none"));
  assert_int_equal(gm_store_move(store, "none", "none", &why), GM_ERR_NOT_FOUND);
  store_expect(store, "a", 1, 1, VALUE_BYTES);
  store_close(store);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_threads_that_put_and_move),
      cmocka_unit_test(test_moves_that_cross),
      cmocka_unit_test(test_a_move_onto_itself_and_of_nothing),
  };
  return cmocka_run_group_tests_name("store_move", tests, NULL, NULL);
}
