/* Promises on a card whose memory comes at its first use. Memory that a pool has taken and nobody has touched is still
 * free by the card's figure. The stranger stands for another process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "gm/relocation.h"
#include "support/promise_folder.h"

static const gm_pool_params kinds[] = {{.struct_size = sizeof kinds[0]},
                                       {.struct_size = sizeof kinds[0], .no_vmm = true},
                                       {.struct_size = sizeof kinds[0], .strategy = GM_STRATEGY_BUCKET}};

enum { KINDS = sizeof kinds / sizeof kinds[0], HELD = 48, TAKEN = 32 /* MiB */ };

static int set_up(void **state) {
  const int status = promise_folder_set_up(state);
  shared_card->lazy = true;
  return status;
}

static gm_reservation *pool_holds(pool_bench *bench, const gm_pool_params *params) {
  gm_reservation *held = NULL;
  shared_card_open(bench, params);
  pool_bench_ok(gm_pool_reserve(bench->pool, HELD * MIB, &held, err));
  return held;
}

static gm_reservation_info info_of(const gm_reservation *held) {
  gm_reservation_info info = {.struct_size = sizeof info};
  pool_bench_ok(gm_reservation_read(held, &info, err));
  return info;
}

static void close_all(pool_bench *bench, gm_reservation *held, gm_block *block) {
  if (block) assert_int_equal(gm_free(bench->pool, block, NULL), GM_OK);
  gm_reservation_cancel(held);
  assert_int_equal(stranger_sees(bench), 0);
  pool_bench_close(bench);
}

static const pool_bench *watched;
static uint64_t watched_touches;

/* At each moment the card has used or promised what was held. */
static void watch(uint64_t bytes) {
  (void)bytes;
  watched_touches++;
  assert_true(atomic_load(&shared_card->used) + stranger_sees(watched) >= HELD * MIB);
}

/* Memory that the pool takes is there at once, and is promised until then. Nobody else is ever told that it is
 * free. */
static void test_what_is_taken_is_touched(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    pool_bench bench;
    gm_block block;
    const gm_request request = {.bytes = TAKEN * MIB};
    atomic_store(&shared_card->used, 0);
    gm_reservation *held = pool_holds(&bench, &kinds[i]);
    watched = &bench;
    watched_touches = 0;
    shared_card->touching = watch;
    assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
    shared_card->touching = NULL;
    const gm_reservation_info info = info_of(held);
    assert_true(watched_touches > 0 && info.taken_bytes >= TAKEN * MIB);
    assert_true(atomic_load(&shared_card->used) == info.taken_bytes);
    assert_true(stranger_sees(&bench) == info.left_bytes);
    close_all(&bench, held, &block);
  }
}

/* Nothing is touched for a pool without a promise. */
static void test_who_has_no_promise_touches_nothing(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    pool_bench bench;
    gm_block block;
    const gm_request request = {.bytes = TAKEN * MIB};
    shared_card_open(&bench, &kinds[i]);
    assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
    assert_true(atomic_load(&shared_card->used) == 0);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    pool_bench_close(&bench);
  }
}

/* Where gm cannot touch, others may not have the bytes until the reservation ends. */
static void test_without_a_way_to_touch(void **state) {
  (void)state;
  shared_card->stuck = true;
  pool_bench bench;
  gm_block block;
  const gm_request request = {.bytes = TAKEN * MIB};
  gm_reservation *held = pool_holds(&bench, &kinds[0]);
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
  assert_true(info_of(held).taken_bytes >= TAKEN * MIB);
  assert_true(stranger_sees(&bench) == HELD * MIB);
  close_all(&bench, held, &block);
}

/* The card has less than its figure says. The request fails, and the promise is as it was. */
static void test_what_cannot_be_touched_stays_promised(void **state) {
  (void)state;
  for (int i = 0; i < KINDS; i++) {
    pool_bench bench;
    gm_block block;
    const gm_request request = {.bytes = TAKEN * MIB};
    atomic_store(&shared_card->used, 0);
    gm_reservation *held = pool_holds(&bench, &kinds[i]);
    atomic_store(&shared_card->fail, 1 << 20);
    assert_false(gm_acquired(gm_alloc(bench.pool, &request, &block)));
    atomic_store(&shared_card->fail, 0);
    assert_true(info_of(held).left_bytes == HELD * MIB && stranger_sees(&bench) == HELD * MIB);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
    assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
    assert_true(atomic_load(&shared_card->used) == info_of(held).taken_bytes);
    close_all(&bench, held, &block);
  }
}

static void fail_from_now_on(uint64_t bytes) {
  (void)bytes;
  atomic_store(&shared_card->fail, 1 << 20);
}

/* The first part of a large growth was touched and has left the promise. The growth fails, and its memory goes back. */
static void test_what_was_touched_is_promised_again(void **state) {
  (void)state;
  enum { LARGE = 1024, WANTED = 600 }; /* MiB; parts have 256 */
  for (int i = 0; i < KINDS; i++) {
    pool_bench bench;
    gm_block block;
    gm_reservation *held = NULL;
    const gm_request request = {.bytes = WANTED * MIB};
    shared_card->capacity = 2 * LARGE * MIB;
    atomic_store(&shared_card->used, 0);
    shared_card_open(&bench, &kinds[i]);
    pool_bench_ok(gm_pool_reserve(bench.pool, LARGE * MIB, &held, err));
    shared_card->touching = fail_from_now_on;
    assert_false(gm_acquired(gm_alloc(bench.pool, &request, &block)));
    shared_card->touching = NULL;
    atomic_store(&shared_card->fail, 0);
    assert_true(atomic_load(&shared_card->used) > 0);
    assert_true(info_of(held).left_bytes == LARGE * MIB && stranger_sees(&bench) == LARGE * MIB);
    close_all(&bench, held, NULL);
  }
}

/* A pool that wakes takes its pages of the promise, too. */
static void test_a_pool_that_wakes(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  const gm_request request = {.bytes = TAKEN * MIB};
  gm_reservation *held = NULL;
  shared_card_open(&bench, &kinds[0]);
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
  pool_bench_ok(gm_pool_sleep_whole(bench.pool, false, NULL, NULL, err));
  pool_bench_ok(gm_pool_reserve(bench.pool, HELD * MIB, &held, err));
  pool_bench_ok(gm_pool_wake(bench.pool, NULL, err));
  const uint64_t taken = info_of(held).taken_bytes;
  assert_true(taken >= TAKEN * MIB && atomic_load(&shared_card->used) == taken);
  assert_true(stranger_sees(&bench) == HELD * MIB - taken);
  close_all(&bench, held, &block);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, promise_folder_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_what_is_taken_is_touched),
                                     TEST(test_who_has_no_promise_touches_nothing),
                                     TEST(test_without_a_way_to_touch),
                                     TEST(test_what_cannot_be_touched_stays_promised),
                                     TEST(test_what_was_touched_is_promised_again),
                                     TEST(test_a_pool_that_wakes)};
  return cmocka_run_group_tests(tests, promise_folder_make, promise_folder_remove);
}
