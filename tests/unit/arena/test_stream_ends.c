/* A stream closes. That looks at the free memory that the stream used, and not at what is alive. The blocks that it
 * asked for outlive it, and none of them is taken for a later stream's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/arena/free_chunks.h"
#include "core/device/stream.h"
#include "core/pool/pool.h"
#include "gm/stream.h"
#include "gm/tracker.h"
#include "support/pool_bench.h"

enum { BLOCKS = 8000, BYTES = 4096, FREED = 100, USED = 10, MORE = 16 };

static size_t forgets, pieces; /* blocks that forget the stream; how often the lock was left */

void __real_gm__order_forget_use(gm__order *order, gm__last_use *use, int slot);
void __wrap_gm__order_forget_use(gm__order *order, gm__last_use *use, int slot);
void __wrap_gm__order_forget_use(gm__order *order, gm__last_use *use, int slot) {
  forgets++;
  __real_gm__order_forget_use(order, use, slot);
}

void __real_gm__bias_breathe(gm__bias_lock *lock, const void *self);
void __wrap_gm__bias_breathe(gm__bias_lock *lock, const void *self);
void __wrap_gm__bias_breathe(gm__bias_lock *lock, const void *self) {
  pieces++;
  __real_gm__bias_breathe(lock, self);
}

static pool_bench bench;
static gm_block blocks[BLOCKS];
static bool out[BLOCKS];

static void take(int at, gm_stream *stream) {
  const gm_request request = {.bytes = BYTES, .stream = stream};
  assert_in_range(gm_alloc(bench.pool, &request, &blocks[at]), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  out[at] = true;
}

static void give(int at, gm_stream *stream) {
  assert_int_equal(gm_free(bench.pool, &blocks[at], stream), GM_OK);
  out[at] = false;
}

static gm_stream *open_stream(void) {
  gm_stream *stream;
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  return stream;
}

static void scene_open(bool no_vmm) {
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = no_vmm, .max_bytes = BLOCKS * (uint64_t)BYTES};
  pool_bench_open_device(&bench, "null", "null:capacity=1G");
  pool_bench_ok(gm_config_set(bench.ctx, "segment_size", "32000K", err));
  pool_bench_ok(gm_config_set(bench.ctx, "track_allocations", "false", err));
  pool_bench_ok(gm_pool_create(bench.device, &params, &bench.pool, err));
}

/* All memory of the pool comes together again, and goes. */
static void scene_close(void) {
  for (int i = 0; i < BLOCKS; i++) {
    if (out[i]) give(i, NULL);
  }
  gm_pool_trim(bench.pool, 0);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
  pool_bench_close(&bench);
}

/* How many of the blocks that are out were asked for on a stream of that id. */
static size_t asked_on(uint64_t stream) {
  static gm_track_entry entries[BLOCKS];
  size_t found = 0;
  pool_bench_ok(gm_pool_set_tracking(bench.pool, true, err));
  const size_t count = gm_tracker_find_old(gm_pool_tracker(bench.pool), 0, entries, BLOCKS);
  for (size_t i = 0; i < count; i++) found += entries[i].stream == stream;
  pool_bench_ok(gm_pool_set_tracking(bench.pool, false, err));
  return found;
}

/* Each second of the first blocks is free on the stream. Some others were used there, or freed on two streams. */
static void use_stream(gm_stream *stream, gm_stream *other) {
  for (int i = 0; i < 2 * FREED; i += 2) give(i, stream);
  for (int i = 1; i < 2 * USED; i += 2) assert_int_equal(gm_use_on(bench.pool, &blocks[i], stream), GM_OK);
  for (int i = 2 * FREED + 1; i < 2 * FREED + 2 * USED; i += 2) {
    assert_int_equal(gm_use_on(bench.pool, &blocks[i], stream), GM_OK);
    give(i, other);
  }
}

static void close_one(bool no_vmm) {
  scene_open(no_vmm);
  gm_stream *stream = open_stream(), *other = open_stream();
  for (int i = 0; i < BLOCKS; i++) take(i, stream);
  const int slot = gm__order_find(&gm__arena_at(&bench.pool->heap.arenas, 0)->order, stream);
  use_stream(stream, other);
  pool_bench_ok(gm_stream_sync(stream, err));
  forgets = pieces = 0;
  pool_bench_ok(gm_stream_close(stream, err));
  printf("  %zu blocks forget a stream, in %zu pieces\n", forgets, pieces);
  assert_in_range(forgets, FREED, FREED + 2 * USED + MORE);
  assert_true(pieces <= 1);
  gm_stream *next = open_stream();
  for (int i = 0; i < USED; i++) take(2 * i, next);
  assert_int_equal(gm__order_find(&gm__arena_at(&bench.pool->heap.arenas, 0)->order, next), slot);
  assert_int_equal(asked_on(next->id), USED);
  assert_int_equal(asked_on(0), BLOCKS - FREED - USED);
  for (int i = BLOCKS / 2; i < BLOCKS; i++) give(i, i % 2 ? next : other);
  pool_bench_ok(gm_stream_close(next, err));
  pool_bench_ok(gm_stream_close(other, err));
  scene_close();
}

static void test_a_close_looks_at_what_the_stream_freed(void **state) {
  (void)state;
  close_one(false);
  close_one(true);
}

/* More streams than an arena can tell apart in one slot. */
static void test_a_block_is_of_no_later_stream(void **state) {
  enum { STREAMS = 1100 };
  (void)state;
  scene_open(false);
  gm_stream *first = open_stream();
  const uint64_t id = first->id;
  take(0, first);
  assert_int_equal(asked_on(id), 1);
  pool_bench_ok(gm_stream_close(first, err));
  for (int i = 0; i < STREAMS; i++) {
    gm_stream *next = open_stream();
    take(1, next);
    if (asked_on(next->id) != 1) fail_msg("stream %d has another's block", i);
    give(1, next);
    pool_bench_ok(gm_stream_close(next, err));
  }
  assert_int_equal(asked_on(0), 1);
  scene_close();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_close_looks_at_what_the_stream_freed),
      cmocka_unit_test(test_a_block_is_of_no_later_stream),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
