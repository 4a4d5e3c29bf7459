/* A demotion gives back as much as it freed, and leaves what was idle before to the pool's next requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/buffer/demote.h"
#include "support/relocation_bench.h"

enum { IDLE = 8, BUFFERS = 2 };

static const uint64_t block_bytes = UINT64_C(2) << 20;

static void leave_idle(gm_pool *pool) {
  const gm_request request = {.bytes = block_bytes};
  gm_block blocks[IDLE];
  for (int i = 0; i < IDLE; i++) assert_true(gm_acquired(gm_alloc(pool, &request, &blocks[i])));
  for (int i = 0; i < IDLE; i++) assert_int_equal(gm_free(pool, &blocks[i], NULL), GM_OK);
}

static void demote_one_by_one(const gm_pool_params *params) {
  pool_bench bench;
  gm_buffer *buffers[BUFFERS];
  pool_bench_open(&bench, "cpu", NULL, params);
  for (int i = 0; i < BUFFERS; i++) {
    buffers[i] = relocation_make(bench.pool, block_bytes, GM_EVICTABLE);
    relocation_fill(buffers[i]);
  }
  leave_idle(bench.pool);
  const gm_stats before = pool_bench_stats(&bench);
  assert_true(before.pooled_bytes >= IDLE * block_bytes);
  for (uint64_t i = 1; i <= BUFFERS; i++) {
    assert_int_equal(gm__demote(bench.pool, 1), block_bytes);
    const gm_stats now = pool_bench_stats(&bench);
    assert_int_equal(now.pooled_bytes, before.pooled_bytes);
    assert_int_equal(now.reserved_bytes, before.reserved_bytes - i * block_bytes);
  }
  assert_int_equal(gm__demote(bench.pool, 1), 0); /* nobody is left to go, and nothing goes back */
  assert_int_equal(pool_bench_stats(&bench).pooled_bytes, before.pooled_bytes);
  for (int i = 0; i < BUFFERS; i++) {
    relocation_check(buffers[i]);
    gm_buffer_release(buffers[i], NULL);
  }
  pool_bench_close(&bench);
}

static void test_idle_memory_stays(void **state) {
  (void)state;
  const gm_pool_params pages = {.struct_size = sizeof pages},
                       buckets = {.struct_size = sizeof buckets, .strategy = GM_STRATEGY_BUCKET};
  demote_one_by_one(&buckets);
  demote_one_by_one(&pages);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_idle_memory_stays)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
