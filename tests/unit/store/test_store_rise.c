/* Values of a store that came to host memory because the device was full. They go up when they are used and there is
 * room, while somebody holds them, too. No block that somebody knows changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "support/pinned_card.h"
#include "support/store_bench.h"

enum { BYTES = 1 << 18 };

static const gm_store_params falls = {.fallback = GM_FALLBACK_HOST};

static gm_value *get(gm_store *store, const char *key) {
  gm_value *value = NULL;
  pool_bench_ok(gm_store_get(store, key, &value, err));
  return value;
}

static gm_location where(const gm_value *value) {
  gm_value_info info = {.struct_size = sizeof info};
  pool_bench_ok(gm_value_describe(value, &info, err));
  return info.location;
}

static gm_buffer *buffer_of(const gm_value *value) {
  gm_buffer *buffer = NULL;
  uint64_t offset = 1;
  pool_bench_ok(gm_value_buffer(value, &buffer, &offset, err));
  assert_int_equal(offset, 0);
  return buffer;
}

/* A store with the key "a" on a card that is full. `pinned`: of its memory beside the device. */
static gm_store *open_full(pool_bench *bench, uint64_t pinned) {
  open_card(bench, 0, pinned);
  gm_store *store = store_open(bench->pool, &falls);
  store_put(store, "a", 1, 1, BYTES);
  return store;
}

static void close_full(pool_bench *bench, gm_store *store) {
  store_close(store);
  pool_bench_close(bench);
}

static void test_a_held_value_goes_up_by_its_handle(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_store *store = open_full(&bench, 0);
  gm_value *first = get(store, "a");
  gm_buffer *buffer = buffer_of(first);
  assert_int_equal(where(first), GM_LOCATION_HOST);
  assert_int_equal(gm_buffer_block(buffer, &block, NULL), GM_ERR_NOT_SUPPORTED);
  card.local_left = 64 * MIB;
  gm_value *second = get(store, "a");
  assert_ptr_equal(first, second);
  assert_int_equal(where(first), GM_LOCATION_DEVICE);
  assert_ptr_equal(buffer_of(first), buffer);
  pool_bench_ok(gm_buffer_block(buffer, &block, err));
  assert_true(store_value_is(first, 1, 1, BYTES));
  gm_value_release(first, NULL);
  gm_value_release(second, NULL);
  close_full(&bench, store);
}

static void test_a_block_that_somebody_knows_stays(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block, later;
  gm_store *store = open_full(&bench, 64 * MIB);
  gm_value *holder = get(store, "a");
  assert_int_equal(where(holder), GM_LOCATION_PINNED);
  pool_bench_ok(gm_buffer_block(buffer_of(holder), &block, err));
  card.local_left = 64 * MIB;
  gm_value_release(get(store, "a"), NULL);
  assert_int_equal(where(holder), GM_LOCATION_PINNED);
  pool_bench_ok(gm_buffer_block(buffer_of(holder), &later, err));
  assert_int_equal(block.address, later.address);
  gm_value_release(holder, NULL); /* nobody may use the block from here on */
  holder = get(store, "a");
  assert_int_equal(where(holder), GM_LOCATION_DEVICE);
  assert_true(store_value_is(holder, 1, 1, BYTES));
  gm_value_release(holder, NULL);
  close_full(&bench, store);
}

static void test_a_locked_buffer_stays_until_the_unlock(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_store *store = open_full(&bench, 64 * MIB);
  gm_value *holder = get(store, "a");
  pool_bench_ok(gm_buffer_lock(buffer_of(holder), &block, err));
  card.local_left = 64 * MIB;
  gm_value_release(get(store, "a"), NULL);
  assert_int_equal(where(holder), GM_LOCATION_PINNED);
  pool_bench_ok(gm_buffer_unlock(buffer_of(holder), NULL, err));
  gm_value_release(get(store, "a"), NULL);
  assert_int_equal(where(holder), GM_LOCATION_DEVICE);
  gm_value_release(holder, NULL);
  close_full(&bench, store);
}

/* A buffer that the program keeps beside the value: its block may be known for ever. */
static void test_a_buffer_that_is_kept_beside_the_value_stays(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_store *store = open_full(&bench, 64 * MIB);
  gm_value *value = get(store, "a");
  gm_buffer *buffer = buffer_of(value);
  gm_buffer_retain(buffer);
  pool_bench_ok(gm_buffer_block(buffer, &block, err));
  gm_value_release(value, NULL);
  card.local_left = 64 * MIB;
  gm_value_release(get(store, "a"), NULL);
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_PINNED);
  gm_buffer_release(buffer, NULL);
  value = get(store, "a");
  assert_int_equal(where(value), GM_LOCATION_DEVICE);
  gm_value_release(value, NULL);
  close_full(&bench, store);
}

static void test_a_tree_goes_up_in_parts(void **state) {
  (void)state;
  pool_bench bench;
  gm_value *items[2], *list, *low;
  gm_block block;
  open_card(&bench, 0, 64 * MIB);
  gm_store *store = store_open(bench.pool, &falls);
  for (uint64_t i = 0; i < 2; i++) {
    unsigned char *bytes = store_contents(i, 0, BYTES);
    const gm_tensor_desc desc = store_bytes_desc(BYTES);
    pool_bench_ok(gm_value_tensor_on_host(bench.ctx, &desc, bytes, &items[i], err));
    free(bytes);
  }
  pool_bench_ok(gm_value_list(bench.ctx, items, 2, &list, err));
  pool_bench_ok(gm_store_put(store, "tree", list, err));
  for (int i = 0; i < 2; i++) gm_value_release(items[i], NULL);
  gm_value_release(list, NULL);
  list = get(store, "tree");
  pool_bench_ok(gm_value_at(list, 0, NULL, &low, err));
  pool_bench_ok(gm_buffer_block(buffer_of(low), &block, err));
  card.local_left = 64 * MIB;
  gm_value_release(get(store, "tree"), NULL);
  assert_int_equal(where(low), GM_LOCATION_PINNED);
  pool_bench_ok(gm_value_at(list, 1, NULL, &low, err));
  assert_int_equal(where(low), GM_LOCATION_DEVICE);
  gm_value_release(list, NULL);
  list = get(store, "tree");
  assert_int_equal(where(list), GM_LOCATION_DEVICE);
  gm_value_release(list, NULL);
  close_full(&bench, store);
}

static void test_it_stays_low_without_room(void **state) {
  (void)state;
  pool_bench bench;
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 4 * BYTES, .no_vmm = true};
  pool_bench_open(&bench, "cpu", NULL, &params);
  gm_store *store = store_open(bench.pool, &falls);
  store_put(store, "most", 7, 1, 7 * BYTES / 2);
  gm_value *most = get(store, "most");
  store_put(store, "a", 1, 1, BYTES);
  gm_value *value = get(store, "a");
  assert_int_not_equal(where(value), GM_LOCATION_DEVICE); /* the other one is held */
  gm_value_release(most, NULL);
  gm_value_release(get(store, "a"), NULL);
  assert_int_not_equal(where(value), GM_LOCATION_DEVICE); /* nobody goes down for it */
  assert_int_equal(store_stats(store).went_down, 0);
  pool_bench_ok(gm_store_delete(store, "most", err));
  gm_value_release(get(store, "a"), NULL);
  assert_int_equal(where(value), GM_LOCATION_DEVICE);
  assert_true(store_value_is(value, 1, 1, BYTES));
  gm_value_release(value, NULL);
  close_full(&bench, store);
}

static void test_a_copy_that_fails_leaves_it_where_it_was(void **state) {
  (void)state;
  pool_bench bench;
  gm_store *store = open_full(&bench, 0);
  card.local_left = 64 * MIB;
  card.break_copies = true;
  gm_value *value = get(store, "a");
  assert_int_equal(where(value), GM_LOCATION_HOST);
  assert_true(store_value_is(value, 1, 1, BYTES));
  card.break_copies = false;
  gm_value_release(get(store, "a"), NULL);
  assert_int_equal(where(value), GM_LOCATION_DEVICE);
  gm_value_release(value, NULL);
  close_full(&bench, store);
}

/* Two keys have parts in common, and the device has no room for the bytes in one piece. */
static void test_parts_in_common(void **state) {
  (void)state;
  pool_bench bench;
  gm_store *store = open_full(&bench, 0);
  gm_value *value = get(store, "a"), *list;
  pool_bench_ok(gm_value_list(bench.ctx, &value, 1, &list, err));
  pool_bench_ok(gm_store_put(store, "list", list, err));
  pool_bench_ok(gm_store_copy(store, "a", "b", err));
  gm_value_release(list, NULL);
  gm_value_release(value, NULL);
  gm_value_release(get(store, "b"), NULL);
  card.local_left = 64 * MIB;
  value = get(store, "list");
  assert_int_equal(where(value), GM_LOCATION_DEVICE);
  gm_value_release(value, NULL);
  store_expect(store, "b", 1, 1, BYTES);
  close_full(&bench, store);
}

/* ---- threads ---- */

enum { THREADS = 4, GETS = 5, SCENES = 20 };

static void *run_gets(void *user) {
  gm_store *store = user;
  for (int i = 0; i < GETS; i++) {
    gm_block block, later;
    gm_value *value = get(store, "a");
    gm_buffer *buffer = buffer_of(value);
    const gm_status status = gm_buffer_block(buffer, &block, NULL);
    assert_true(store_value_is(value, 1, 1, BYTES));
    if (!status) {
      pool_bench_ok(gm_buffer_block(buffer, &later, err));
      assert_int_equal(block.address, later.address);
    }
    gm_value_release(value, NULL);
  }
  return NULL;
}

static void test_threads_get_while_it_goes_up(void **state) {
  (void)state;
  for (int scene = 0; scene < SCENES; scene++) {
    pool_bench bench;
    pthread_t threads[THREADS];
    gm_store *store = open_full(&bench, scene % 2 ? 64 * MIB : 0);
    card.local_left = 64 * MIB;
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_gets, store), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    gm_value *value = get(store, "a");
    assert_int_equal(where(value), GM_LOCATION_DEVICE);
    gm_value_release(value, NULL);
    close_full(&bench, store);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_held_value_goes_up_by_its_handle),
      cmocka_unit_test(test_a_block_that_somebody_knows_stays),
      cmocka_unit_test(test_a_locked_buffer_stays_until_the_unlock),
      cmocka_unit_test(test_a_buffer_that_is_kept_beside_the_value_stays),
      cmocka_unit_test(test_a_tree_goes_up_in_parts),
      cmocka_unit_test(test_it_stays_low_without_room),
      cmocka_unit_test(test_a_copy_that_fails_leaves_it_where_it_was),
      cmocka_unit_test(test_parts_in_common),
      cmocka_unit_test(test_threads_get_while_it_goes_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
