/* How much pools of segments take, and for whom: in proportion to what is used. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/thread.h"
#include "support/pool_blocks.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static void bench_open(pool_bench *bench) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BEST_FIT, .no_vmm = true};
  pool_bench_open(bench, "null", "null:capacity=80G", &params);
}

/* ---- a large pool, and little for somebody new ---- */

enum { BLOCKS = 256, NEW = 8 };

static void fill(pool_bench *bench, gm_block *blocks) {
  for (int i = 0; i < BLOCKS; i++) blocks[i] = take(bench, 32 * MIB, NULL, GM_ACQUIRE_FRESH);
}

static void empty(pool_bench *bench, const gm_block *blocks) {
  for (int i = 0; i < BLOCKS; i++) give(bench, &blocks[i], NULL);
  pool_bench_close(bench);
}

typedef struct new_thread {
  gm_pool *pool;
  atomic_int *arrived;
  gm_acquire answer;
  gm_block block;
} new_thread;

/* All are there at once: none takes over what another one left. */
static void take_little(void *argument) {
  new_thread *self = argument;
  const gm_request request = {.bytes = 4096};
  self->answer = gm_alloc(self->pool, &request, &self->block);
  for (atomic_fetch_add(self->arrived, 1); atomic_load(self->arrived) < NEW;) sched_yield();
}

static void test_a_new_thread_takes_little_of_a_large_pool(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[BLOCKS];
  gm__thread threads[NEW];
  new_thread news[NEW];
  atomic_int arrived = 0;
  bench_open(&bench);
  fill(&bench, blocks);
  const uint64_t reserved = pool_bench_stats(&bench).reserved_bytes;
  for (int i = 0; i < NEW; i++) {
    news[i] = (new_thread){.pool = bench.pool, .arrived = &arrived};
    pool_bench_ok(gm__thread_create(&threads[i], "new", take_little, &news[i], err));
  }
  for (int i = 0; i < NEW; i++) gm__thread_join(&threads[i]);
  assert_in_range(pool_bench_stats(&bench).reserved_bytes, reserved, reserved + NEW * 2 * MIB);
  for (int i = 0; i < NEW; i++) {
    assert_int_equal(news[i].answer, GM_ACQUIRE_FRESH);
    give(&bench, &news[i].block, NULL);
  }
  empty(&bench, blocks);
}

static void test_a_new_kind_takes_little_of_a_large_pool(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[BLOCKS], little[NEW];
  bench_open(&bench);
  fill(&bench, blocks);
  const uint64_t reserved = pool_bench_stats(&bench).reserved_bytes;
  for (uint32_t i = 0; i < NEW; i++) {
    const gm_request request = {.bytes = 256, .align = UINT32_C(8192) << i};
    assert_true(gm_alloc(bench.pool, &request, &little[i]) <= GM_ACQUIRE_FRESH);
  }
  assert_in_range(pool_bench_stats(&bench).reserved_bytes, reserved, reserved + NEW * 2 * MIB);
  for (int i = 0; i < NEW; i++) give(&bench, &little[i], NULL);
  empty(&bench, blocks);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_new_thread_takes_little_of_a_large_pool),
      cmocka_unit_test(test_a_new_kind_takes_little_of_a_large_pool),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
