/* How many steps a store's calls take beside many keys: entries, folders and victims that a call looks at are counted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/algo/cache_policy.h"
#include "core/base/key_map.h"
#include "core/store/folder.h"
#include "gm/store.h"
#include "support/store_bench.h"

#define MIB (UINT64_C(1) << 20)

enum { KEYS = 2000, FOLDERS = 40, VALUE_BYTES = 16 };

/* ---- steps, counted by the linker's wraps ---- */

static atomic_size_t steps;

gm__key_entry *__real_gm__key_map_next(const gm__key_map *map, size_t *cursor, const gm__key_entry *entry);
gm__key_entry *__wrap_gm__key_map_next(const gm__key_map *map, size_t *cursor, const gm__key_entry *entry);
gm__key_entry *__wrap_gm__key_map_next(const gm__key_map *map, size_t *cursor, const gm__key_entry *entry) {
  atomic_fetch_add(&steps, 1);
  return __real_gm__key_map_next(map, cursor, entry);
}

gm__folder *__real_gm__folder_next(const gm__folder *top, gm__folder *at);
gm__folder *__wrap_gm__folder_next(const gm__folder *top, gm__folder *at);
gm__folder *__wrap_gm__folder_next(const gm__folder *top, gm__folder *at) {
  atomic_fetch_add(&steps, 1);
  return __real_gm__folder_next(top, at);
}

gm__cache_entry *__real_gm__cache_policy_victim(gm__cache_policy *policy);
gm__cache_entry *__wrap_gm__cache_policy_victim(gm__cache_policy *policy);
gm__cache_entry *__wrap_gm__cache_policy_victim(gm__cache_policy *policy) {
  atomic_fetch_add(&steps, 1);
  return __real_gm__cache_policy_victim(policy);
}

static size_t steps_begin(void) { return atomic_exchange(&steps, 0); }
static size_t steps_end(void) { return atomic_load(&steps); }

/* ---- keys ---- */

static const char *key_of(int id) {
  static _Thread_local char key[32];
  snprintf(key, sizeof key, "f%d/sub/%d", id % FOLDERS, id);
  return key;
}

static void put_all(gm_store *store) {
  for (int i = 0; i < KEYS; i++) store_put(store, key_of(i), (uint64_t)i, 0, VALUE_BYTES);
}

static bool count_visit(void *user, const char *key) {
  (void)key;
  ++*(size_t *)user;
  return true;
}

static size_t list(gm_store *store, const char *prefix) {
  size_t count = 0;
  pool_bench_ok(gm_store_list(store, prefix, count_visit, &count, err));
  return count;
}

static void test_a_list_looks_at_what_it_lists(void **state) {
  (void)state;
  pool_bench bench;
  store_open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  put_all(store);
  steps_begin();
  assert_int_equal(list(store, "f7/sub/7"), 1);
  assert_int_equal(list(store, "none"), 0);
  assert_int_equal(list(store, "f7/s"), 0);
  assert_in_range(steps_end(), 0, 4);
  assert_int_equal(list(store, "f7"), KEYS / FOLDERS);
  assert_int_equal(list(store, "f7/sub"), KEYS / FOLDERS);
  assert_in_range(steps_end(), 1, 16);
  assert_int_equal(list(store, NULL), KEYS);
  steps_begin();
  pool_bench_ok(gm_store_clear(store, "f7/sub/7", err));
  pool_bench_ok(gm_store_clear(store, "f8", err));
  pool_bench_ok(gm_store_clear(store, "none", err));
  assert_in_range(steps_end(), 0, 16);
  assert_int_equal(list(store, "f7"), KEYS / FOLDERS - 1);
  assert_int_equal(list(store, "f8"), 0);
  store_close(store);
  pool_bench_close(&bench);
}

/* ---- prefixes and keys, held against a plain list ---- */

enum { NAMES = 60 };

static void name_of(uint64_t id, char out[64]) {
  static const char *const parts[] = {"a", "b", "ab", "c"};
  size_t used = 0;
  for (uint64_t rest = id + 1; rest; rest /= 4) {
    used += (size_t)snprintf(out + used, 64 - used, "%s%s", used ? "/" : "", parts[rest % 4]);
  }
}

static bool is_below(const char *key, const char *prefix) {
  const size_t bytes = strlen(prefix);
  return strncmp(key, prefix, bytes) == 0 && (key[bytes] == '\0' || key[bytes] == '/');
}

typedef struct expected {
  char keys[NAMES][64];
  size_t count, at;
} expected;

static int name_order(const void *a, const void *b) { return strcmp(a, b); }

static bool expect_visit(void *user, const char *key) {
  expected *want = user;
  assert_true(want->at < want->count);
  assert_string_equal(key, want->keys[want->at++]);
  return true;
}

static void check_lists(gm_store *store, const bool there[NAMES], const bool declared[NAMES], const char *prefix) {
  for (int kind = 0; kind < 2; kind++) {
    expected want = {.count = 0};
    for (uint64_t i = 0; i < NAMES; i++) {
      name_of(i, want.keys[want.count]);
      want.count += (kind ? declared : there)[i] && is_below(want.keys[want.count], prefix);
    }
    qsort(want.keys, want.count, sizeof want.keys[0], name_order);
    if (kind == 0) pool_bench_ok(gm_store_list(store, prefix, expect_visit, &want, err));
    if (kind == 1) pool_bench_ok(gm_store_list_prefixes(store, prefix, expect_visit, &want, err));
    assert_int_equal(want.at, want.count);
  }
}

static void test_lists_are_their_model(void **state) {
  enum { STEPS = 1200 };
  (void)state;
  pool_bench bench;
  bool there[NAMES] = {false}, declared[NAMES] = {false};
  uint64_t seed = 17;
  store_open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  for (int step = 0; step < STEPS; step++) {
    char name[64], other[64];
    const uint64_t id = test_random(&seed) % NAMES;
    name_of(id, name);
    switch (test_random(&seed) % 8) {
      case 0:
        pool_bench_ok(gm_store_declare_prefix(store, name, err));
        declared[id] = true;
        break;
      case 1:
        pool_bench_ok(gm_store_clear(store, name, err));
        for (uint64_t i = 0; i < NAMES; i++) {
          name_of(i, other);
          if (is_below(other, name)) there[i] = declared[i] = false;
        }
        break;
      case 2:
      case 3:
        assert_int_equal(gm_store_delete(store, name, NULL), there[id] ? GM_OK : GM_ERR_NOT_FOUND);
        there[id] = false;
        break;
      default: store_put(store, name, id, 0, VALUE_BYTES); there[id] = true;
    }
    check_lists(store, there, declared, name);
  }
  store_close(store);
  pool_bench_close(&bench);
}

/* ---- values that are held ---- */

static void hold_all(gm_store *store, gm_value **values) {
  for (int i = 0; i < KEYS; i++) pool_bench_ok(gm_store_get(store, key_of(i), &values[i], err));
}

/* A store at its bound, and each value is held. The search for one that may go looks at each once, and not again until
 * a holder has gone. */
static void test_held_values_are_looked_at_once(void **state) {
  enum { PUTS = 50 };
  (void)state;
  static gm_value *values[KEYS];
  pool_bench bench;
  store_open_bench(&bench, 16 * MIB);
  const gm_store_params params = {.max_device_bytes = KEYS * VALUE_BYTES, .keep = GM_STORE_KEEP_LONG};
  gm_store *store = store_open(bench.pool, &params);
  put_all(store);
  hold_all(store, values);
  store_put(store, "first", 1, 0, VALUE_BYTES);
  steps_begin();
  for (int i = 0; i < PUTS; i++) store_put(store, "more", 2, (uint64_t)i, VALUE_BYTES);
  assert_in_range(steps_end(), PUTS, 6 * PUTS);
  pool_bench_ok(gm_store_demote(store, UINT64_MAX, NULL, err));
  /* One that is let go is found, wherever it stood. */
  for (int i = 0; i < KEYS; i += KEYS / 10) {
    const uint64_t before = store_stats(store).came_back;
    gm_value_release(values[i], NULL);
    steps_begin();
    uint64_t gone = 0;
    pool_bench_ok(gm_store_demote(store, UINT64_MAX, &gone, err));
    assert_in_range(steps_end(), 1, 8);
    assert_int_equal(gone, VALUE_BYTES);
    pool_bench_ok(gm_store_get(store, key_of(i), &values[i], err));
    assert_int_equal(store_stats(store).came_back, before + 1);
  }
  for (int i = 0; i < KEYS; i++) gm_value_release(values[i], NULL);
  pool_bench_ok(gm_store_demote(store, UINT64_MAX, NULL, err));
  assert_int_equal(store_stats(store).device_bytes, 0);
  for (int i = 0; i < KEYS; i += 97) store_expect(store, key_of(i), (uint64_t)i, 0, VALUE_BYTES);
  store_close(store);
  pool_bench_close(&bench);
}

/* Values that are held end in every way: replaced, deleted, copied, moved, made persistent, and with their store. */
static void test_held_values_that_end(void **state) {
  (void)state;
  static gm_value *values[KEYS];
  pool_bench bench;
  uint64_t gone = 0;
  store_open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  put_all(store);
  hold_all(store, values);
  pool_bench_ok(gm_store_copy(store, key_of(0), "copy", err));
  pool_bench_ok(gm_store_demote(store, UINT64_MAX, &gone, err)); /* all are put aside */
  assert_int_equal(gone, 0);
  store_put(store, key_of(1), 1, 1, VALUE_BYTES);
  pool_bench_ok(gm_store_delete(store, key_of(2), err));
  pool_bench_ok(gm_store_move(store, key_of(3), "moved", err));
  pool_bench_ok(gm_store_set_persistent(store, key_of(4), true, err));
  pool_bench_ok(gm_store_delete(store, key_of(0), err));
  gm_value_release(values[0], NULL); /* "copy" has it alone now */
  pool_bench_ok(gm_store_demote(store, UINT64_MAX, &gone, err));
  assert_int_equal(gone, 2 * VALUE_BYTES); /* "copy", and what replaced the second one */
  for (int i = 1; i < 6; i++) gm_value_release(values[i], NULL);
  pool_bench_ok(gm_store_demote(store, UINT64_MAX, &gone, err));
  assert_int_equal(gone, 3 * VALUE_BYTES);
  store_expect(store, "copy", 0, 0, VALUE_BYTES);
  store_expect(store, "moved", 3, 0, VALUE_BYTES);
  store_expect(store, key_of(4), 4, 0, VALUE_BYTES);
  store_close(store);
  for (int i = 6; i < KEYS; i++) gm_value_release(values[i], NULL); /* after their store */
  pool_bench_close(&bench);
}

/* A value of two stores, of which both want it to go. */
static void test_a_held_value_of_two_stores(void **state) {
  (void)state;
  pool_bench bench;
  gm_value *value = NULL;
  uint64_t gone = 0;
  store_open_bench(&bench, 16 * MIB);
  gm_store *stores[2] = {store_open(bench.pool, NULL), store_open(bench.pool, NULL)};
  store_put(stores[0], "k", 1, 0, VALUE_BYTES);
  pool_bench_ok(gm_store_get(stores[0], "k", &value, err));
  pool_bench_ok(gm_store_put(stores[1], "k", value, err));
  for (int i = 0; i < 2; i++) pool_bench_ok(gm_store_demote(stores[i], UINT64_MAX, &gone, err));
  assert_int_equal(gone, 0);
  gm_value_release(value, NULL);
  pool_bench_ok(gm_store_demote(stores[1], UINT64_MAX, &gone, err));
  assert_int_equal(store_stats(stores[1]).device_bytes, 0);
  pool_bench_ok(gm_store_demote(stores[0], UINT64_MAX, &gone, err));
  assert_int_equal(gone, VALUE_BYTES);
  for (int i = 0; i < 2; i++) store_expect(stores[i], "k", 1, 0, VALUE_BYTES);
  for (int i = 0; i < 2; i++) store_close(stores[i]);
  pool_bench_close(&bench);
}

/* Half of the values go before the store, half after it. */
static bool ends_in_child(pool_bench *bench, gm_store *store, gm_value **values) {
  for (int i = 0; i < KEYS / 2; i++) gm_value_release(values[i], NULL);
  if (gm_store_destroy(store, NULL)) return false;
  for (int i = KEYS / 2; i < KEYS; i++) gm_value_release(values[i], NULL);
  return !gm_pool_destroy(bench->pool, NULL) && !gm_device_close(bench->device, NULL) &&
         !gm_context_destroy(bench->ctx, NULL);
}

/* A child that was forked lets go of what the parent held, and ends its copies. */
static void test_held_values_in_a_child(void **state) {
  (void)state;
  static gm_value *values[KEYS];
  pool_bench bench;
  int how = 0;
  store_open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  put_all(store);
  hold_all(store, values);
  pool_bench_ok(gm_store_demote(store, UINT64_MAX, NULL, err));
  const pid_t child = fork();
  if (child == 0) _exit(ends_in_child(&bench, store, values) ? 0 : 1);
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  for (int i = 0; i < KEYS; i++) gm_value_release(values[i], NULL);
  store_close(store);
  pool_bench_close(&bench);
}

/* ---- threads that hold and let go while others search ---- */

enum { FEW = 12, THREADS = 3, ROUNDS = 1500 };

static void *hold_and_let_go(void *store) {
  uint64_t seed = (uint64_t)(uintptr_t)&seed;
  for (int i = 0; i < ROUNDS; i++) {
    const int id = (int)(test_random(&seed) % FEW);
    gm_value *value = NULL;
    assert_int_equal(gm_store_get(store, key_of(id), &value, NULL), GM_OK);
    gm_value_retain(value);
    gm_value_release(value, NULL);
    gm_value_release(value, NULL);
  }
  return NULL;
}

static void test_threads_that_hold_and_let_go(void **state) {
  (void)state;
  pool_bench bench;
  pthread_t threads[THREADS];
  store_open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  for (int i = 0; i < FEW; i++) store_put(store, key_of(i), (uint64_t)i, 0, VALUE_BYTES);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, hold_and_let_go, store), 0);
  for (int i = 0; i < ROUNDS; i++) {
    pool_bench_ok(gm_store_demote(store, FEW / 2 * VALUE_BYTES, NULL, err));
    if (i % 16 == 0) store_put(store, key_of(i % FEW), (uint64_t)(i % FEW), 0, VALUE_BYTES);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  pool_bench_ok(gm_store_demote(store, UINT64_MAX, NULL, err));
  assert_int_equal(store_stats(store).device_bytes, 0); /* none is taken for held that is not */
  for (int i = 0; i < FEW; i++) store_expect(store, key_of(i), (uint64_t)i, 0, VALUE_BYTES);
  store_close(store);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_list_looks_at_what_it_lists),  cmocka_unit_test(test_lists_are_their_model),
      cmocka_unit_test(test_held_values_are_looked_at_once), cmocka_unit_test(test_held_values_that_end),
      cmocka_unit_test(test_a_held_value_of_two_stores),     cmocka_unit_test(test_held_values_in_a_child),
      cmocka_unit_test(test_threads_that_hold_and_let_go),
  };
  return cmocka_run_group_tests_name("store_steps", tests, NULL, NULL);
}
