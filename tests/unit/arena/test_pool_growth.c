/* How much pools take, and for whom: in proportion to what is used. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/thread.h"
#include "gm/copy.h"
#include "support/pool_blocks.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static void bench_open(pool_bench *bench) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BEST_FIT, .no_vmm = true};
  pool_bench_open(bench, "null", "null:capacity=80G", &params);
}

/* ---- a large pool, and little for somebody new ---- */

enum { BLOCKS = 256, NEW = 8, MOST_NEW = 64 };

static void fill(pool_bench *bench, gm_block *blocks) {
  for (int i = 0; i < BLOCKS; i++) blocks[i] = take(bench, 32 * MIB, NULL, GM_ACQUIRE_FRESH);
}

static void empty(pool_bench *bench, const gm_block *blocks) {
  for (int i = 0; i < BLOCKS; i++) give(bench, &blocks[i], NULL);
  pool_bench_close(bench);
}

typedef struct crowd {
  int count;
  atomic_int arrived;
} crowd;

typedef struct new_thread {
  gm_pool *pool;
  crowd *all;
  gm_acquire answer;
  gm_block block;
} new_thread;

/* All are there at once: none takes over what another one left. */
static void take_little(void *argument) {
  new_thread *self = argument;
  const gm_request request = {.bytes = 4096};
  self->answer = gm_alloc(self->pool, &request, &self->block);
  for (atomic_fetch_add(&self->all->arrived, 1); atomic_load(&self->all->arrived) < self->all->count;) sched_yield();
}

/* The bytes that the pool has more when so many threads have taken little. */
static uint64_t measure_new_threads(pool_bench *bench, int count) {
  gm__thread threads[MOST_NEW];
  new_thread news[MOST_NEW];
  crowd all = {.count = count};
  const uint64_t before = pool_bench_stats(bench).reserved_bytes;
  for (int i = 0; i < count; i++) {
    news[i] = (new_thread){.pool = bench->pool, .all = &all};
    pool_bench_ok(gm__thread_create(&threads[i], "new", take_little, &news[i], err));
  }
  for (int i = 0; i < count; i++) gm__thread_join(&threads[i]);
  const uint64_t after = pool_bench_stats(bench).reserved_bytes;
  for (int i = 0; i < count; i++) {
    assert_in_range(news[i].answer, GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    give(bench, &news[i].block, NULL);
  }
  return after - before;
}

static void test_a_new_thread_takes_little_of_a_large_pool(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[BLOCKS];
  bench_open(&bench);
  fill(&bench, blocks);
  assert_in_range(measure_new_threads(&bench, NEW), NEW * 4096, NEW * 2 * MIB);
  empty(&bench, blocks);
}

static void test_many_threads_take_little(void **state) {
  (void)state;
  for (int no_vmm = 0; no_vmm < 2; no_vmm++) {
    const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = no_vmm};
    pool_bench bench;
    pool_bench_open(&bench, "null", "null:capacity=80G", &params);
    assert_in_range(measure_new_threads(&bench, MOST_NEW), MOST_NEW * 4096, MOST_NEW * 2 * MIB);
    pool_bench_close(&bench);
  }
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

/* ---- requests that grow ---- */

/* One block after the other, each a little larger; `first`: the next is taken before the last is freed. */
static gm_stats grow(pool_bench *bench, bool first) {
  gm_block block = take(bench, MIB, NULL, GM_ACQUIRE_FRESH), next;
  for (uint64_t bytes = MIB; bytes < GIB; bytes += bytes / 100) {
    const gm_request request = {.bytes = bytes};
    if (!first) give(bench, &block, NULL);
    assert_true(gm_alloc(bench->pool, &request, &next) <= GM_ACQUIRE_FRESH);
    if (first) give(bench, &block, NULL);
    block = next;
  }
  const gm_stats stats = pool_bench_stats(bench);
  give(bench, &block, NULL);
  return stats;
}

static void test_a_request_that_grows_leaves_little_behind(void **state) {
  (void)state;
  for (int first = 0; first < 2; first++) {
    pool_bench bench;
    bench_open(&bench);
    const gm_stats stats = grow(&bench, first);
    assert_in_range(stats.peak_reserved_bytes, GIB - GIB / 100, 2 * stats.peak_in_use_bytes);
    assert_in_range(stats.driver_allocs, 10, 200); /* of 690 requests */
    check_trim_to_nothing(&bench);
    pool_bench_close(&bench);
  }
}

/* The work of a stream is in none that goes back. */
static void test_what_a_stream_uses_stays(void **state) {
  (void)state;
  enum { STEPS = 20 };
  pool_bench bench;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BEST_FIT, .no_vmm = true};
  gm_stream *stream;
  pool_bench_open(&bench, "null", "null:capacity=80G,latency=1000000000", &params);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < STEPS; i++) {
    gm_point point;
    const gm_block block = take(&bench, (100 + i) * MIB, stream, GM_ACQUIRE_FRESH);
    pool_bench_ok(gm_block_fill(bench.pool, &block, 0, block.bytes, "w", 1, stream, &point, err));
    gm_point_release(bench.device, &point);
    give(&bench, &block, stream);
    bytes += block.bytes;
  }
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, bytes);
  pool_bench_ok(gm_stream_close(stream, err));
  check_trim_to_nothing(&bench);
  pool_bench_close(&bench);
}

/* Many small blocks, then a large one, and so on: from the second turn on the driver is not called. */
static void test_what_comes_again_is_not_given_back(void **state) {
  (void)state;
  enum { SMALL = 100 };
  pool_bench bench;
  gm_block blocks[SMALL];
  uint64_t calls = 0;
  bench_open(&bench);
  for (int turn = 0; turn < 3; turn++) {
    for (int i = 0; i < SMALL; i++) {
      const gm_request request = {.bytes = 8 * MIB};
      assert_true(gm_alloc(bench.pool, &request, &blocks[i]) <= GM_ACQUIRE_FRESH);
    }
    for (int i = 0; i < SMALL; i++) give(&bench, &blocks[i], NULL);
    const gm_block large = take(&bench, 900 * MIB, NULL, turn ? GM_ACQUIRE_OK : GM_ACQUIRE_FRESH);
    give(&bench, &large, NULL);
    const gm_stats stats = pool_bench_stats(&bench);
    if (turn) assert_int_equal(stats.driver_allocs + stats.driver_frees, calls);
    calls = stats.driver_allocs + stats.driver_frees;
  }
  check_trim_to_nothing(&bench);
  pool_bench_close(&bench);
}

/* ---- pages of another thread's arena ---- */

#define PIECE (24 * MIB)

typedef struct borrower {
  pool_bench *bench;
  gm_block block;
} borrower;

static void borrow(void *argument) {
  borrower *self = argument;
  const gm_request request = {.bytes = PIECE};
  assert_true(gm_alloc(self->bench->pool, &request, &self->block) <= GM_ACQUIRE_FRESH);
}

/* Takes a block on another thread, whose arena lacks pages; each such thread takes over the arena of the last one. True
 * when the pool took no more for it. */
static bool borrow_idle(pool_bench *bench, gm_block *out) {
  borrower self = {.bench = bench};
  gm__thread thread;
  const uint64_t before = pool_bench_stats(bench).reserved_bytes;
  pool_bench_ok(gm__thread_create(&thread, "borrow", borrow, &self, err));
  gm__thread_join(&thread);
  *out = self.block;
  return pool_bench_stats(bench).reserved_bytes == before;
}

/* An arena that lent all its idle pages is not asked again before it has freed 32 blocks. */
static void test_who_lent_all_is_left_alone(void **state) {
  (void)state;
  enum { ASK_AFTER = 32 };
  pool_bench bench;
  gm_block lent[3];
  int frees = 0;
  pool_bench_open(&bench, "null", "null:capacity=80G", NULL);
  for (int i = 0; i < 3; i++) {
    do { /* this thread's arena has a free page */
      const gm_block own = take(&bench, PIECE, NULL, frees < 2 ? GM_ACQUIRE_FRESH : GM_ACQUIRE_OK);
      give(&bench, &own, NULL);
    } while (++frees <= ASK_AFTER && i == 2);
    assert_int_equal(borrow_idle(&bench, &lent[i]), i != 1);
  }
  for (int i = 0; i < 3; i++) give(&bench, &lent[i], NULL);
  check_trim_to_nothing(&bench);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_new_thread_takes_little_of_a_large_pool),
      cmocka_unit_test(test_many_threads_take_little),
      cmocka_unit_test(test_a_new_kind_takes_little_of_a_large_pool),
      cmocka_unit_test(test_a_request_that_grows_leaves_little_behind),
      cmocka_unit_test(test_what_a_stream_uses_stays),
      cmocka_unit_test(test_what_comes_again_is_not_given_back),
      cmocka_unit_test(test_who_lent_all_is_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
