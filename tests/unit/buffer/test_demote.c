/* A demotion gives back as much as it freed, and leaves what was idle before to the pool's next requests. So does a
 * compaction before a refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/buffer/demote.h"
#include "support/pinned_card.h"
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

/* GM_POOL_NO_TRIM: nothing goes back by itself, not at a shortage of this pool or of another one either. */
static void test_a_shortage_takes_nothing_from_a_pool_without_trims(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool *kept = NULL;
  gm_block block;
  open_card(&bench, 32 * MIB, 0);
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true, .flags = GM_POOL_NO_TRIM};
  const gm_request large = {.bytes = 64 * MIB};
  pool_bench_ok(gm_pool_create(bench.device, &params, &kept, err));
  gm_buffer *buffer = relocation_make(kept, MIB, GM_RELOCATABLE | GM_EVICTABLE);
  relocation_fill(buffer);
  leave_idle(kept);
  gm_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
  assert_int_equal(gm_pool_stats(kept, &before), GM_OK);
  assert_true(before.pooled_bytes >= block_bytes);
  assert_false(gm_acquired(gm_alloc(bench.pool, &large, &block)));
  assert_false(gm_acquired(gm_alloc(kept, &large, &block)));
  assert_int_equal(gm_pool_stats(kept, &after), GM_OK);
  assert_int_equal(after.reserved_bytes, before.reserved_bytes);
  relocation_check(buffer);
  gm_buffer_release(buffer, NULL);
  pool_bench_ok(gm_pool_destroy(kept, err));
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_idle_memory_stays),
                                     cmocka_unit_test(test_a_shortage_takes_nothing_from_a_pool_without_trims)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
