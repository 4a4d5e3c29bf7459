/* Reservations of the host's memory. The machine is written as files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include "support/reserve_scene.h"
#include "support/tree.h"

static void test_contexts_share_the_promises_of_the_host(void **state) {
  temp_folder *root = *state;
  tree_put(root, "/proc/meminfo", "MemTotal: 131072 kB\nMemFree: 131072 kB\nMemAvailable: 131072 kB\n");
  reserve_scene_holds("cpu", NULL, root->path, UINT64_C(80) << 20);
}

/* How many pages of the block have memory. */
static uint64_t pages_there(const gm_block *block, uint64_t bytes) {
  static unsigned char there[32 << 20 >> 12];
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = block->address & ~(page - 1);
  uint64_t count = 0;
  assert_true(bytes / page <= sizeof there);
  assert_int_equal(mincore((void *)(uintptr_t)first, bytes, there), 0);
  for (uint64_t i = 0; i < bytes / page; i++) count += there[i] & 1;
  return count * page;
}

/* The host gives pages at their first use. Memory that a pool takes of its promise is there at once; without a promise
 * none is. */
static void test_what_is_taken_of_a_promise_is_there(void **state) {
  temp_folder *root = *state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BEST_FIT, GM_STRATEGY_BUCKET};
  const uint64_t bytes = UINT64_C(16) << 20;
  tree_put(root, "/proc/meminfo", "MemTotal: 131072 kB\nMemFree: 131072 kB\nMemAvailable: 131072 kB\n");
  for (int i = 0; i < 4; i++) {
    const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategies[i / 2]};
    const gm_request request = {.bytes = bytes};
    pool_bench bench;
    gm_pool *pool = NULL;
    gm_block block;
    gm_reservation *held = NULL;
    reserve_scene_open(&bench, "cpu", NULL, root->path);
    pool_bench_ok(gm_pool_create(bench.device, &params, &pool, err));
    if (i % 2) pool_bench_ok(gm_pool_reserve(pool, 2 * bytes, &held, err));
    assert_int_equal(gm_alloc(pool, &request, &block), GM_ACQUIRE_FRESH);
    assert_int_equal(pages_there(&block, bytes), held ? bytes : 0);
    assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
    gm_reservation_cancel(held);
    pool_bench_ok(gm_pool_destroy(pool, err));
    pool_bench_close(&bench);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_contexts_share_the_promises_of_the_host, tree_set_up, tree_tear_down),
      cmocka_unit_test_setup_teardown(test_what_is_taken_of_a_promise_is_there, tree_set_up, tree_tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
