/* The end of a pool whose blocks callers still map: each of them is looked at a few times, whatever their number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/base/map.h"
#include "core/provider/allocation.h"
#include "gm/copy.h"
#include "support/pool_bench.h"

enum { BLOCKS = 2000, LOOKS = 8 };

static size_t steps;

bool __real_gm__map_next(const gm__map *map, size_t *cursor, uint64_t *out_key, uint64_t *out_value);
bool __wrap_gm__map_next(const gm__map *map, size_t *cursor, uint64_t *out_key, uint64_t *out_value);
bool __wrap_gm__map_next(const gm__map *map, size_t *cursor, uint64_t *out_key, uint64_t *out_value) {
  steps++;
  return __real_gm__map_next(map, cursor, out_key, out_value);
}

gm__allocation *__real_gm__allocation_next(const gm__allocation_table *table, uint32_t *cursor);
gm__allocation *__wrap_gm__allocation_next(const gm__allocation_table *table, uint32_t *cursor);
gm__allocation *__wrap_gm__allocation_next(const gm__allocation_table *table, uint32_t *cursor) {
  steps++;
  return __real_gm__allocation_next(table, cursor);
}

/* Every block is mapped twice. */
static void check_force(gm_strategy strategy) {
  pool_bench bench;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy};
  const gm_request request = {.bytes = 4096, .flags = GM_HOST_VISIBLE};
  gm_block block;
  void *pointer;
  pool_bench_open(&bench, "cpu", "", &params);
  for (int i = 0; i < BLOCKS; i++) {
    assert_in_range(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    pool_bench_ok(gm_block_map(bench.pool, &block, 0, 10, GM_MAP_WRITE, NULL, &pointer, err));
    pool_bench_ok(gm_block_map(bench.pool, &block, 20, 10, GM_MAP_WRITE, NULL, &pointer, err));
  }
  steps = 0;
  pool_bench_ok(gm_pool_destroy_force(bench.pool, err));
  printf("  %zu steps over %d mapped blocks\n", steps, BLOCKS);
  assert_true(steps >= BLOCKS && steps <= LOOKS * BLOCKS);
  pool_bench_ok(gm_device_close(bench.device, err));
  pool_bench_ok(gm_context_destroy(bench.ctx, err));
  counted_services_check(&bench.host);
}

static void test_mapped_blocks_are_looked_at_a_few_times(void **state) {
  (void)state;
  check_force(GM_STRATEGY_BEST_FIT);
  check_force(GM_STRATEGY_BUCKET);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_mapped_blocks_are_looked_at_a_few_times)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
