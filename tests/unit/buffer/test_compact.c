/* The end that a compaction reaches, in pools of segments. There are buffers of one size, random ones, those beside
 * locks and blocks, in one run or in many with a bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "gm/fragmentation.h"
#include "support/pinned_card.h"
#include "support/relocation_bench.h"

enum { LEFT = (RELOCATION_MOST + 4) / 5, HEAPS = 16, BLOCKS = 12 };

static gm_fragmentation holes_of(gm_pool *pool) {
  gm_fragmentation now = {.struct_size = sizeof now};
  pool_bench_ok(gm_pool_fragmentation(pool, &now, err));
  return now;
}

/* Nothing is left to do. */
static void check_ended(gm_pool *pool) {
  const gm_compact_report again = relocation_compact(pool);
  assert_int_equal(again.moves, 0);
  assert_int_equal(again.freed_bytes, 0);
}

static void release_checked(gm_buffer *buffers[RELOCATION_MOST]) {
  for (int i = 0; i < RELOCATION_MOST; i++) {
    if (buffers[i]) relocation_check(buffers[i]);
    gm_buffer_release(buffers[i], NULL);
  }
}

/* ---- buffers of one size ---- */

/* Four of five buffers of a pool of segments go. */
static void open_scattered(pool_bench *bench, gm_buffer *buffers[RELOCATION_MOST]) {
  open_card(bench, 64 * MIB, 0);
  relocation_fill_pool(bench->pool, buffers);
  relocation_thin(buffers, 5);
}

/* One hole is left, and 5 MiB of buffers hold no more than the 8 MiB of a segment. */
static void check_joined(pool_bench *bench, gm_buffer *buffers[RELOCATION_MOST]) {
  const gm_fragmentation now = holes_of(bench->pool);
  printf("  %d holes in %d KiB\n", (int)now.holes, (int)(now.reserved_bytes >> 10));
  assert_true(now.holes <= 1);
  assert_true(now.reserved_bytes <= 8 * MIB);
  check_ended(bench->pool);
  release_checked(buffers);
  pool_bench_close(bench);
}

static void test_one_run_joins_all_holes(void **state) {
  (void)state;
  pool_bench bench;
  gm_buffer *buffers[RELOCATION_MOST];
  open_scattered(&bench, buffers);
  const gm_compact_report report = relocation_compact(bench.pool);
  printf("  %d moves\n", (int)report.moves);
  assert_true(report.moves <= LEFT);
  check_joined(&bench, buffers);
}

/* Runs with a bound come to the same end, one buffer or a few at a time. */
static void test_runs_with_a_bound_join_all_holes(void **state) {
  (void)state;
  for (uint64_t most = 1; most <= 4; most *= 2) {
    pool_bench bench;
    gm_buffer *buffers[RELOCATION_MOST];
    open_scattered(&bench, buffers);
    const gm_compact_params params = {.struct_size = sizeof params, .max_bytes = most * 256 * RELOCATION_KIB};
    gm_compact_report report = {.struct_size = sizeof report, .moves = 1};
    uint64_t moves = 0;
    for (int run = 0; report.moves && run < 4 * LEFT; run++) {
      pool_bench_ok(gm_pool_compact(bench.pool, &params, &report, err));
      assert_true(report.moved_bytes <= params.max_bytes);
      moves += report.moves;
    }
    printf("  %d moves, %d at a time\n", (int)moves, (int)most);
    assert_int_equal(report.moves, 0);
    assert_true(moves <= 2 * LEFT);
    check_joined(&bench, buffers);
  }
}

/* ---- random heaps ---- */

typedef struct heap {
  pool_bench bench;
  gm_buffer *buffers[RELOCATION_MOST];
  gm_block blocks[BLOCKS]; /* which cannot move */
  bool pages;
  int locks;
} heap;

/* Opens a pool of buffers of all sizes and alignments beside blocks, and drops some. `locks`: one of so many buffers
 * that are left is locked; 0: none is. */
static void heap_open(heap *self, uint64_t seed, bool pages, int locks) {
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = !pages};
  pool_bench_open_device(&self->bench, "cpu", NULL);
  pool_bench_ok(gm_pool_create(self->bench.device, &params, &self->bench.pool, err));
  for (int i = 0; i < RELOCATION_MOST; i++) {
    const gm_buffer_params wanted = {.struct_size = sizeof wanted,
                                     .request = {.bytes = test_log_uniform(&seed, MIB / 4),
                                                 .align = test_random(&seed) % 5 ? 0 : 1U << (12 + i % 5),
                                                 .flags = GM_RELOCATABLE},
                                     .fallback = GM_FALLBACK_REFUSE};
    pool_bench_ok(gm_buffer_create(self->bench.pool, &wanted, &self->buffers[i], err));
    relocation_fill(self->buffers[i]);
    const gm_request request = {.bytes = test_log_uniform(&seed, MIB / 4)};
    if (locks && i % (RELOCATION_MOST / BLOCKS) == 0) {
      assert_true(gm_acquired(gm_alloc(self->bench.pool, &request, &self->blocks[i / (RELOCATION_MOST / BLOCKS)])));
    }
  }
  relocation_thin(self->buffers, 2 + (int)(seed % 3));
  self->locks = locks;
  for (int i = 0; locks && i < RELOCATION_MOST; i += locks) {
    if (self->buffers[i]) pool_bench_ok(gm_buffer_lock(self->buffers[i], NULL, err));
  }
}

static void heap_close(heap *self) {
  for (int i = 0; self->locks && i < RELOCATION_MOST; i += self->locks) {
    if (self->buffers[i]) pool_bench_ok(gm_buffer_unlock(self->buffers[i], NULL, err));
  }
  for (int i = 0; self->locks && i < BLOCKS; i++) gm_free(self->bench.pool, &self->blocks[i], NULL);
  release_checked(self->buffers);
  pool_bench_close(&self->bench);
}

/* The most that may move: each buffer once. */
static uint64_t heap_bytes(const heap *self, uint64_t *count) {
  uint64_t bytes = 0;
  *count = 0;
  for (int i = 0; i < RELOCATION_MOST; i++) {
    if (!self->buffers[i] || (self->locks && i % self->locks == 0)) continue;
    bytes += gm_buffer_bytes(self->buffers[i]);
    ++*count;
  }
  return bytes;
}

static void test_one_run_of_a_random_heap_is_enough(void **state) {
  (void)state;
  uint64_t freed = 0, moves = 0;
  for (uint64_t seed = 1; seed <= HEAPS; seed++) {
    heap self;
    uint64_t count;
    heap_open(&self, seed, seed % 4 == 3, seed % 2 ? 0 : 2 + (int)(seed % 12));
    gm_pool_clear(self.bench.pool);
    const gm_fragmentation before = holes_of(self.bench.pool);
    const gm_compact_report report = relocation_compact(self.bench.pool);
    const gm_fragmentation after = holes_of(self.bench.pool);
    assert_true(after.scattered_bytes <= before.scattered_bytes);
    assert_true(after.reserved_bytes + report.freed_bytes <= before.reserved_bytes);
    assert_true(report.moved_bytes <= heap_bytes(&self, &count));
    assert_true(report.moves <= count);
    freed += report.freed_bytes;
    moves += report.moves;
    check_ended(self.bench.pool);
    heap_close(&self);
  }
  printf("  %d heaps: %d moves free %d KiB\n", HEAPS, (int)moves, (int)(freed >> 10));
  assert_true(freed > HEAPS * MIB / 4);
}

static void test_runs_with_a_bound_end_a_random_heap(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    heap self;
    heap_open(&self, seed, seed % 4 == 3, seed % 2 ? 0 : 8);
    const gm_compact_params params = {.struct_size = sizeof params, .max_bytes = MIB};
    gm_compact_report report = {.struct_size = sizeof report, .moves = 1};
    for (int run = 0; report.moves && run < 4 * RELOCATION_MOST; run++) {
      pool_bench_ok(gm_pool_compact(self.bench.pool, &params, &report, err));
      assert_true(report.moved_bytes <= MIB);
    }
    assert_int_equal(report.moves, 0);
    check_ended(self.bench.pool);
    heap_close(&self);
  }
}

/* A run with a bound has ended within the pool. One without a bound begins anew all the same. */
static void test_one_run_after_a_part_is_enough(void **state) {
  (void)state;
  enum { MANY = 10000 };
  static gm_buffer *buffers[MANY];
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true};
  const gm_compact_params part = {.struct_size = sizeof part, .max_bytes = 1};
  pool_bench bench;
  uint64_t seed = 3;
  pool_bench_open(&bench, "null", NULL, &params);
  for (int i = 0; i < MANY; i++) {
    buffers[i] = relocation_make(bench.pool, 256 + test_random(&seed) % (60 * RELOCATION_KIB), GM_RELOCATABLE);
  }
  for (int i = 0; i < MANY; i++) {
    if (test_random(&seed) % 3 == 0) continue;
    gm_buffer_release(buffers[i], NULL);
    buffers[i] = NULL;
  }
  pool_bench_ok(gm_pool_compact(bench.pool, &part, NULL, err));
  const gm_compact_report report = relocation_compact(bench.pool);
  printf("  %d moves free %d KiB\n", (int)report.moves, (int)(report.freed_bytes >> 10));
  assert_true(report.moves > 0);
  check_ended(bench.pool);
  for (int i = 0; i < MANY; i++) gm_buffer_release(buffers[i], NULL);
  pool_bench_close(&bench);
}

/* ---- several threads' parts of a pool ---- */

typedef struct maker {
  gm_pool *pool;
  gm_buffer **buffers;
} maker;

static void *maker_run(void *user) {
  const maker *self = user;
  for (int i = 0; i < RELOCATION_MOST / 2; i++) {
    self->buffers[i] = relocation_make(self->pool, 256 * RELOCATION_KIB, GM_RELOCATABLE);
    relocation_fill(self->buffers[i]);
  }
  return NULL;
}

/* Each thread's part is thinned. The caller has a part of its own, and joins what is left of all. */
static void test_the_parts_of_threads_are_joined(void **state) {
  (void)state;
  pool_bench bench;
  gm_buffer *buffers[RELOCATION_MOST];
  pthread_t threads[2];
  maker makers[2];
  open_card(&bench, 64 * MIB, 0);
  for (int i = 0; i < 2; i++) {
    makers[i] = (maker){bench.pool, &buffers[i * (RELOCATION_MOST / 2)]};
    assert_int_equal(pthread_create(&threads[i], NULL, maker_run, &makers[i]), 0);
    assert_int_equal(pthread_join(threads[i], NULL), 0);
  }
  relocation_thin(buffers, 5);
  relocation_compact(bench.pool);
  check_joined(&bench, buffers);
}

/* ---- what changes under a run ---- */

/* The copies of a run end on a stream, and what they leave serves the run's next move. */
static void test_a_run_on_a_stream_ends_as_well(void **state) {
  (void)state;
  pool_bench bench;
  gm_buffer *buffers[RELOCATION_MOST];
  gm_stream *stream = NULL;
  open_scattered(&bench, buffers);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  const gm_compact_params params = {.struct_size = sizeof params, .stream = stream};
  pool_bench_ok(gm_pool_compact(bench.pool, &params, NULL, err));
  pool_bench_ok(gm_stream_close(stream, err));
  check_joined(&bench, buffers);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_run_joins_all_holes),
      cmocka_unit_test(test_runs_with_a_bound_join_all_holes),
      cmocka_unit_test(test_one_run_of_a_random_heap_is_enough),
      cmocka_unit_test(test_runs_with_a_bound_end_a_random_heap),
      cmocka_unit_test(test_one_run_after_a_part_is_enough),
      cmocka_unit_test(test_the_parts_of_threads_are_joined),
      cmocka_unit_test(test_a_run_on_a_stream_ends_as_well),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
