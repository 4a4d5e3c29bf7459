/* A stream closes. That looks at the free memory that the stream used, and not at what is alive. The blocks that it
 * asked for outlive it, and none of them is taken for a later stream's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/arena/free_chunks.h"
#include "core/arena/walk.h"
#include "core/device/stream.h"
#include "core/pool/pool.h"
#include "core/provider/walk.h"
#include "gm/stream.h"
#include "gm/tracker.h"
#include "support/mute_backend.h"

enum { BLOCKS = 8000, BYTES = 4096, FREED = 100, USED = 10, MORE = 16 };

static size_t forgets, pieces; /* blocks that forget the stream; how often the lock was left */

/* Looks at last uses and at driver allocations, and the most of them inside one lock. */
typedef struct look_count {
  size_t all, most, now;
} look_count;

static look_count looks;

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
  looks.now = 0;
  __real_gm__bias_breathe(lock, self);
}

static void note_look(void) {
  looks.all++;
  if (++looks.now > looks.most) looks.most = looks.now;
}

gm__last_use __real_gm__arena_last_use(const gm__arena *arena, uint32_t number);
gm__last_use __wrap_gm__arena_last_use(const gm__arena *arena, uint32_t number);
gm__last_use __wrap_gm__arena_last_use(const gm__arena *arena, uint32_t number) {
  note_look();
  return __real_gm__arena_last_use(arena, number);
}

gm__allocation *__real_gm__allocation_next(const gm__allocation_table *table, uint32_t *cursor);
gm__allocation *__wrap_gm__allocation_next(const gm__allocation_table *table, uint32_t *cursor);
gm__allocation *__wrap_gm__allocation_next(const gm__allocation_table *table, uint32_t *cursor) {
  note_look();
  return __real_gm__allocation_next(table, cursor);
}

void __real_gm__provider_breathe(gm__provider *provider);
void __wrap_gm__provider_breathe(gm__provider *provider);
void __wrap_gm__provider_breathe(gm__provider *provider) {
  looks.now = 0;
  __real_gm__provider_breathe(provider);
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

/* ---- a stream of which gm is told nothing, and whose memory was freed at the engine's points ---- */

/* A second of virtual work, and the point behind it. */
static gm_point work(gm_stream *stream) {
  const gm_memory nowhere = {.handle = 1, .bytes = 64};
  gm_backend_point done;
  gm_point point;
  void *device = bench.device->handle;
  assert_int_equal(gm__null_backend.fill(device, stream->handle, &nowhere, 0, 64, "", 1, &done, NULL), GM_OK);
  gm__null_backend.point_release(device, &done, GM_CLOSE_NORMAL);
  pool_bench_ok(gm_stream_record(stream, &point, err));
  return point;
}

/* In a pool of buckets each block is a driver allocation. */
static look_count close_given(gm_strategy strategy, int given) {
  gm_error why = {.status = GM_OK};
  mute_open(&bench, GM_STREAM_FIFO, strategy);
  gm_stream *stream = open_stream();
  for (int i = 0; i < BLOCKS; i++) take(i, NULL);
  gm_point point = work(stream);
  mute(stream, true);
  for (int i = 0; i < 2 * given; i += 2) {
    pool_bench_ok(gm_free_at(bench.pool, &blocks[i], &point, err));
    out[i] = false;
  }
  assert_int_equal(gm_stream_close(stream, &why), GM_ERR_BUSY);
  gm__null_advance(bench.device->handle, UINT64_C(2000000000));
  memset(&looks, 0, sizeof looks);
  pool_bench_ok(gm_stream_close(stream, err));
  const look_count found = looks;
  printf("  %d blocks freed at a point: %zu looks, %zu inside one lock\n", given, found.all, found.most);
  gm_point_release(bench.device, &point);
  for (int i = 0; i < BLOCKS; i++) {
    if (out[i]) give(i, NULL);
  }
  mute_close(&bench);
  return found;
}

static void test_a_close_looks_at_what_points_freed(void **state) {
  (void)state;
  assert_in_range(close_given(GM_STRATEGY_BEST_FIT, FREED).all, FREED, 8 * FREED);
  assert_true(close_given(GM_STRATEGY_BEST_FIT, BLOCKS / 2).most <= GM__ARENA_PIECE + MORE);
  assert_true(close_given(GM_STRATEGY_BUCKET, BLOCKS / 2).most <= GM__PROVIDER_PIECE + MORE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_close_looks_at_what_the_stream_freed),
      cmocka_unit_test(test_a_block_is_of_no_later_stream),
      cmocka_unit_test(test_a_close_looks_at_what_points_freed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
