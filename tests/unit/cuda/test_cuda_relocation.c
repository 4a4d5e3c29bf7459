/* Compaction, moves and sleep of buffers on the simulated CUDA driver, to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/cuda_fixture.h"
#include "support/relocation_bench.h"

static void test_buffers_move(void **state) {
  (void)state;
  const gm_context_params params = {.struct_size = sizeof params}; /* GM_CUDA_LIBRARY */
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  relocation_on_device("cuda", &params);
}

enum { EVICTED_MOST = 8 };

static int count_at(gm_buffer *const *buffers, gm_location where) {
  int count = 0;
  for (int i = 0; i < EVICTED_MOST; i++) count += gm_buffer_location(buffers[i]) == where;
  return count;
}

/* A card of 64 MiB is full of evictable buffers for its half, and a request takes the most of it. */
static void demote_on_a_full_card(const char *pinned, bool pages, int least_pinned, int most_pinned) {
  const uint64_t mib = RELOCATION_KIB * RELOCATION_KIB;
  const gm_pool_params shape = {.struct_size = sizeof shape, .no_vmm = !pages};
  pool_bench bench;
  gm_buffer *buffers[EVICTED_MOST];
  gm_block block;
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  cuda_say("set TOTAL 64m");
  cuda_say(pinned);
  pool_bench_open(&bench, "cuda", NULL, &shape);
  for (int i = 0; i < EVICTED_MOST; i++) {
    const gm_buffer_params params = {.struct_size = sizeof params,
                                     .request = {.bytes = 4 * mib, .flags = GM_EVICTABLE | GM_RELOCATABLE},
                                     .fallback = GM_FALLBACK_HOST};
    pool_bench_ok(gm_buffer_create(bench.pool, &params, &buffers[i], err));
    relocation_fill(buffers[i]);
  }
  assert_int_equal(count_at(buffers, GM_LOCATION_DEVICE), EVICTED_MOST);
  const gm_request large = {.bytes = 40 * mib};
  assert_true(gm_acquired(gm_alloc(bench.pool, &large, &block)));
  const int there = count_at(buffers, GM_LOCATION_PINNED);
  assert_true(there >= least_pinned && there <= most_pinned);
  assert_true(count_at(buffers, GM_LOCATION_DEVICE) <= 5);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  gm_pool_trim(bench.pool, 0);
  const gm_promote_params params = {.struct_size = sizeof params, .wait_ns = 1};
  pool_bench_ok(gm_pool_promote(bench.pool, &params, NULL, err));
  for (int i = 0; i < EVICTED_MOST; i++) {
    relocation_check(buffers[i]);
    gm_buffer_release(buffers[i], NULL);
  }
  pool_bench_close(&bench);
  cuda_say("reload");
}

static void test_evicted_buffers_go_to_pinned_memory(void **state) {
  (void)state;
  for (int pages = 0; pages < 2; pages++) {
    demote_on_a_full_card("set PINNED 0", pages, 3, 8); /* no bound */
    demote_on_a_full_card("set PINNED 6m", pages, 1, 1);
    demote_on_a_full_card("set PINNED 1m", pages, 0, 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_buffers_move),
                                     cmocka_unit_test(test_evicted_buffers_go_to_pinned_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
