/* A growth takes the card's turn once, however many handles it makes, and reads the file of promises only while
 * somebody promises something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "gm/relocation.h"
#include "support/promise_folder.h"

enum { GROWTH = 40 /* MiB */ };

/* A growth in many handles. `counted` has its calls alone. */
static void grow(pool_bench *bench, gm_block *block) {
  const gm_request request = {.bytes = GROWTH * MIB};
  memset(&counted, 0, sizeof counted);
  atomic_store(&shared_card->calls, 0);
  assert_int_equal(gm_alloc(bench->pool, &request, block), GM_ACQUIRE_FRESH);
  assert_true(atomic_load(&shared_card->calls) >= 10);
}

static void shrink(pool_bench *bench, gm_block *block) {
  assert_int_equal(gm_free(bench->pool, block, NULL), GM_OK);
  gm_pool_trim(bench->pool, 0);
}

/* Nobody ever promised anything: the name is asked for once. */
static void test_without_a_file(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  shared_card_open(&bench, NULL);
  grow(&bench, &block);
  assert_int_equal(counted.opens, 1);
  assert_int_equal(counted.reads + counted.writes + counted.locks + counted.queries, 0);
  assert_int_equal(access(promise_path, F_OK), -1);
  shrink(&bench, &block);
  pool_bench_close(&bench);
}

static void test_while_nobody_promises(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  shared_card_open(&bench, NULL);
  stranger_promises(&bench, MIB);
  stranger_promises(&bench, 0);
  grow(&bench, &block);
  assert_int_equal(counted.opens, 1);
  assert_int_equal(counted.locks, 1);
  assert_int_equal(counted.queries, 1);
  assert_int_equal(counted.reads + counted.writes, 0);
  shrink(&bench, &block);
  pool_bench_close(&bench);
}

static void test_beside_a_promise(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  shared_card_open(&bench, NULL);
  stranger_promises(&bench, 8 * MIB);
  grow(&bench, &block);
  assert_int_equal(counted.opens, 1);
  assert_int_equal(counted.locks, 1);
  assert_int_equal(counted.queries, 2); /* does somebody promise; does the one who wrote the record live */
  assert_int_equal(counted.reads, 1);
  assert_int_equal(counted.writes, 0);
  shrink(&bench, &block);
  pool_bench_close(&bench);
}

/* The bytes that the pool takes of its own promise are told once, at the end. */
static void test_of_a_promise(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_reservation *held = NULL;
  shared_card_open(&bench, NULL);
  pool_bench_ok(gm_pool_reserve(bench.pool, 60 * MIB, &held, err));
  assert_true(stranger_sees(&bench) == 60 * MIB);
  grow(&bench, &block);
  assert_int_equal(counted.opens, 1);
  assert_int_equal(counted.reads, 1);
  assert_int_equal(counted.writes, 1);
  gm_reservation_info info = {.struct_size = sizeof info};
  pool_bench_ok(gm_reservation_read(held, &info, err));
  assert_true(info.taken_bytes >= GROWTH * MIB && stranger_sees(&bench) == info.left_bytes);
  gm_reservation_cancel(held);
  shrink(&bench, &block);
  pool_bench_close(&bench);
}

/* A driver that refuses in the middle of a growth: what it gave serves the next try, and nothing is left behind. */
static void test_a_driver_that_refuses_in_between(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  const gm_request request = {.bytes = GROWTH * MIB};
  shared_card_open(&bench, NULL);
  for (int at = 0; at < 12; at++) {
    for (int often = 1; often < 4; often++) {
      atomic_store(&shared_card->calls, -at);
      atomic_store(&shared_card->refuse_from, often);
      const gm_acquire answer = gm_alloc(bench.pool, &request, &block);
      atomic_store(&shared_card->refuse_from, 0);
      if (gm_acquired(answer)) assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
      gm_pool_trim(bench.pool, 0);
      assert_true(atomic_load(&shared_card->used) == 0);
    }
  }
  pool_bench_close(&bench);
}

/* A driver that has less than its figures say: the request fails, and the promise is as it was. */
static void test_a_promise_outlives_a_growth_that_fails(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_reservation *held = NULL;
  const gm_request request = {.bytes = GROWTH * MIB};
  gm_reservation_info info = {.struct_size = sizeof info};
  shared_card_open(&bench, NULL);
  pool_bench_ok(gm_pool_reserve(bench.pool, 60 * MIB, &held, err));
  for (int at = 0; at < 8; at++) {
    atomic_store(&shared_card->calls, -at);
    atomic_store(&shared_card->refuse_from, 1 << 20);
    assert_false(gm_acquired(gm_alloc(bench.pool, &request, &block)));
    atomic_store(&shared_card->refuse_from, 0);
    assert_true(atomic_load(&shared_card->used) == 0);
    pool_bench_ok(gm_reservation_read(held, &info, err));
    assert_true(info.left_bytes == 60 * MIB && stranger_sees(&bench) == 60 * MIB);
  }
  gm_reservation_cancel(held);
  assert_true(stranger_sees(&bench) == 0);
  pool_bench_close(&bench);
}

/* A pool that wakes takes one turn for all its handles, in all its ranges. */
static void test_a_waking(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block, small;
  const gm_request few = {.bytes = 4096};
  shared_card_open(&bench, NULL);
  stranger_promises(&bench, 8 * MIB);
  grow(&bench, &block);
  assert_true(gm_acquired(gm_alloc(bench.pool, &few, &small)));
  const uint64_t used = atomic_load(&shared_card->used);
  pool_bench_ok(gm_pool_sleep_whole(bench.pool, false, NULL, NULL, err));
  assert_true(atomic_load(&shared_card->used) == 0);
  memset(&counted, 0, sizeof counted);
  atomic_store(&shared_card->calls, 0);
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  assert_true(atomic_load(&shared_card->calls) >= 10);
  assert_true(atomic_load(&shared_card->used) == used);
  assert_int_equal(counted.opens, 1);
  assert_int_equal(counted.locks, 1);
  assert_int_equal(counted.reads, 1);
  assert_int_equal(gm_free(bench.pool, &small, NULL), GM_OK);
  shrink(&bench, &block);
  pool_bench_close(&bench);
}

/* Whichever call of the driver fails, the pool sleeps on, holds nothing, and can be woken later. */
static void test_a_waking_that_fails(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_error failure;
  gm_reservation *held = NULL;
  shared_card_open(&bench, NULL);
  pool_bench_ok(gm_pool_reserve(bench.pool, 60 * MIB, &held, err));
  grow(&bench, &block);
  const uint64_t used = atomic_load(&shared_card->used);
  for (int at = 0; at < 12; at++) {
    pool_bench_ok(gm_pool_sleep_whole(bench.pool, false, NULL, NULL, err));
    const uint64_t promised = stranger_sees(&bench);
    atomic_store(&shared_card->calls, -at);
    atomic_store(&shared_card->refuse_from, 1 << 20);
    assert_int_equal(gm_pool_wake(bench.pool, NULL, &failure), GM_ERR_OUT_OF_DEVICE_MEMORY);
    atomic_store(&shared_card->refuse_from, 0);
    assert_true(atomic_load(&shared_card->used) == 0 && stranger_sees(&bench) == promised);
    pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
    assert_true(atomic_load(&shared_card->used) == used);
  }
  gm_reservation_cancel(held);
  shrink(&bench, &block);
  pool_bench_close(&bench);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, promise_folder_set_up, promise_folder_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_without_a_file),
                                     TEST(test_while_nobody_promises),
                                     TEST(test_beside_a_promise),
                                     TEST(test_of_a_promise),
                                     TEST(test_a_driver_that_refuses_in_between),
                                     TEST(test_a_promise_outlives_a_growth_that_fails),
                                     TEST(test_a_waking),
                                     TEST(test_a_waking_that_fails)};
  return cmocka_run_group_tests(tests, promise_folder_make, promise_folder_remove);
}
