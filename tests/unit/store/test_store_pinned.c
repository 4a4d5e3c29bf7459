/* The pinned place of a store, which is a pool of its own: bounds, shortage, failures, evictors, a forked child. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/great_many.h"
#include "support/pinned_card.h"
#include "support/store_bench.h"

enum { KEYS = 12, BYTES = 200 << 10 };

static const char *name(int i) {
  static char text[16];
  snprintf(text, sizeof text, "k%d", i);
  return text;
}

static gm_store *open_keys(pool_bench *bench, uint64_t local, uint64_t pinned) {
  const gm_store_params params = {.max_pinned_bytes = 4 * BYTES + 4096, .fallback = GM_FALLBACK_REFUSE};
  open_card(bench, local, pinned);
  gm_store *store = store_open(bench->pool, &params);
  for (int i = 0; i < KEYS; i++) store_put(store, name(i), (uint64_t)i, 0, BYTES);
  return store;
}

static void expect_keys(gm_store *store) {
  for (int i = 0; i < KEYS; i++) store_expect(store, name(i), (uint64_t)i, 0, BYTES);
}

static void close_keys(pool_bench *bench, gm_store *store) {
  store_close(store);
  pool_bench_close(bench);
}

static void test_it_is_filled_to_its_bound(void **state) {
  (void)state;
  pool_bench bench;
  gm_store *store = open_keys(&bench, 64 * MIB, 64 * MIB);
  pool_bench_ok(gm_store_demote(store, UINT64_MAX, NULL, err));
  gm_store_stats stats = store_stats(store);
  assert_in_range(stats.pinned_bytes, 3 * BYTES, 4 * BYTES + 4096);
  assert_true(stats.host_bytes >= (KEYS - 5) * BYTES);
  expect_keys(store);
  assert_int_equal(store_stats(store).pinned_bytes, 0);
  const uint64_t left = card.pinned_left; /* kept for the next value that goes down */
  for (int round = 0; round < 3; round++) {
    pool_bench_ok(gm_store_demote(store, UINT64_MAX, NULL, err));
    expect_keys(store);
    assert_int_equal(card.pinned_left, left);
  }
  assert_true(64 * MIB - left <= 8 * BYTES); /* and no more than it may need */
  close_keys(&bench, store);
  assert_int_equal(card.pinned_left, 64 * MIB);
}

static void test_the_driver_pins_less(void **state) {
  (void)state;
  pool_bench bench;
  for (uint64_t pinned = 0; pinned <= 5 * BYTES; pinned += BYTES / 2) {
    gm_store *store = open_keys(&bench, 64 * MIB, pinned);
    for (int round = 0; round < 2; round++) {
      pool_bench_ok(gm_store_demote(store, UINT64_MAX, NULL, err));
      assert_int_equal(store_stats(store).device_bytes, 0);
      assert_true(store_stats(store).pinned_bytes <= pinned);
      expect_keys(store);
    }
    close_keys(&bench, store);
  }
}

/* A request of the program runs short, and the store gives way to it: into pinned memory, in the middle of that
 * request. */
static void test_a_neighbour_needs_the_device(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_store *store = open_keys(&bench, 16 * MIB, 64 * MIB);
  const gm_request request = {.bytes = 13 * MIB};
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  assert_true(store_stats(store).went_down > 0);
  assert_true(store_stats(store).pinned_bytes > 0);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  expect_keys(store);
  close_keys(&bench, store);
}

static void test_each_host_allocation_may_fail(void **state) {
  (void)state;
  pool_bench bench;
  size_t n = 0;
  bool through = false;
  while (!through) {
    gm_store *store = open_keys(&bench, 64 * MIB, 64 * MIB);
    n += great_many(1) ? 1 : 7; /* a seventh of them under valgrind */
    bench.host.fail_at = atomic_load(&bench.host.calls) + n;
    bench.host.fail_count = 1;
    pool_bench_ok(gm_store_demote(store, UINT64_MAX, NULL, err));
    through = atomic_load(&bench.host.calls) < bench.host.fail_at;
    bench.host.fail_at = 0;
    expect_keys(store);
    close_keys(&bench, store);
  }
  assert_true(n > 10);
}

static bool ends_in_child(pool_bench *bench, gm_store *store) {
  return !gm_store_destroy(store, NULL) && !gm_pool_destroy(bench->pool, NULL) &&
         !gm_device_close(bench->device, NULL) && !gm_context_destroy(bench->ctx, NULL);
}

static void test_a_forked_child_ends_it(void **state) {
  (void)state;
  pool_bench bench;
  int how = 0;
  gm_store *store = open_keys(&bench, 64 * MIB, 64 * MIB);
  pool_bench_ok(gm_store_demote(store, UINT64_MAX, NULL, err));
  const pid_t child = fork();
  if (child == 0) _exit(ends_in_child(&bench, store) ? 0 : 1);
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
  expect_keys(store);
  close_keys(&bench, store);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_it_is_filled_to_its_bound),    cmocka_unit_test(test_the_driver_pins_less),
      cmocka_unit_test(test_a_neighbour_needs_the_device), cmocka_unit_test(test_each_host_allocation_may_fail),
      cmocka_unit_test(test_a_forked_child_ends_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
