/* Tracking of a pool in use begins and ends. Live blocks are entered, and entered blocks are forgotten. Other threads
 * go on meanwhile. A failure leaves the pool as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "gm/buffer.h"
#include "gm/tracker.h"
#include "support/pool_bench.h"

static const gm_pool_params arenas = {.struct_size = sizeof arenas, .strategy = GM_STRATEGY_BEST_FIT, .checked = true};
static const gm_pool_params buckets = {.struct_size = sizeof buckets, .strategy = GM_STRATEGY_BUCKET, .checked = true};

/* Debug builds track every pool unless they are told not to. */
static void open_untracked(pool_bench *bench, const char *backend, const gm_pool_params *params) {
  pool_bench_open_device(bench, backend, "null:capacity=4G");
  pool_bench_ok(gm_config_set(bench->ctx, "track_allocations", "false", err));
  pool_bench_ok(gm_pool_create(bench->device, params, &bench->pool, err));
}

static gm_block take(const pool_bench *bench, uint64_t bytes, uint32_t tag, gm_stream *stream) {
  const gm_request request = {.bytes = bytes, .tag = tag, .stream = stream};
  gm_block block = {0};
  assert_true(gm_alloc(bench->pool, &request, &block) <= GM_ACQUIRE_FRESH);
  return block;
}

static void give(const pool_bench *bench, const gm_block *block, gm_stream *stream) {
  assert_int_equal(gm_free(bench->pool, block, stream), GM_OK);
}

static void set_tracking(const pool_bench *bench, bool on) {
  pool_bench_ok(gm_pool_set_tracking(bench->pool, on, err));
}

/* ---- what is entered, and what is forgotten ---- */

static void check_entry(gm_tracker *tracker, const gm_block *block, uint64_t bytes, uint32_t tag, uint64_t stream) {
  gm_track_entry entries[8];
  const size_t count = gm_tracker_find_old(tracker, 0, entries, 8);
  assert_in_range(count, 1, 8);
  for (size_t i = 0; i < count; i++) {
    if (entries[i].address != block->address) continue;
    assert_int_equal(entries[i].bytes, bytes);
    assert_int_equal(entries[i].tag, tag);
    assert_int_equal(entries[i].stream, stream);
    assert_int_equal(entries[i].elements, 0);
    assert_true(entries[i].id != 0 && entries[i].born_ns != 0);
    return;
  }
  fail_msg("the block is not tracked");
}

static void check_on_and_off(const gm_pool_params *params) {
  pool_bench bench;
  gm_stream *stream;
  open_untracked(&bench, "null", params);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  assert_null(gm_pool_tracker(bench.pool));
  const gm_block before = take(&bench, 1000, 3, stream), gone = take(&bench, 500, 4, NULL);
  give(&bench, &gone, NULL);
  set_tracking(&bench, true);
  gm_tracker *tracker = gm_pool_tracker(bench.pool);
  assert_non_null(tracker);
  assert_int_equal(gm_tracker_count(tracker), 1);
  check_entry(tracker, &before, 1000, 3, gm_stream_id(stream));
  const gm_block since = take(&bench, 2000, 5, NULL);
  set_tracking(&bench, true); /* as it is: nothing is entered twice */
  assert_int_equal(gm_tracker_count(tracker), 2);
  assert_int_equal(gm_tracker_total_bytes(tracker), 3000);
  check_entry(tracker, &since, 2000, 5, 0);
  give(&bench, &before, stream);
  assert_int_equal(gm_tracker_total_bytes(tracker), 2000);
  const gm_track_entry own = {.bytes = 7};
  const uint64_t id = gm_tracker_track(tracker, &own);
  set_tracking(&bench, false);
  assert_null(gm_pool_tracker(bench.pool));
  assert_int_equal(gm_tracker_count(tracker), 1); /* the engine's own */
  assert_int_equal(gm_tracker_peak_bytes(tracker), 7);
  const gm_block unseen = take(&bench, 10, 5, NULL);
  give(&bench, &since, NULL);
  set_tracking(&bench, false);
  set_tracking(&bench, true);
  assert_ptr_equal(gm_pool_tracker(bench.pool), tracker);
  assert_int_equal(gm_tracker_total_bytes(tracker), 17);
  assert_int_equal(gm_tracker_peak_bytes(tracker), 17);
  gm_tag_total totals[8];
  assert_in_range(gm_tracker_by_tag(tracker, totals, 8), 2, 8);
  assert_int_equal(totals[0].tag, 5);
  assert_int_equal(totals[0].bytes, 10);
  assert_int_equal(totals[0].peak_bytes, 10);
  give(&bench, &unseen, NULL);
  assert_int_equal(gm_tracker_untrack(tracker, id), GM_OK);
  assert_int_equal(gm_tracker_count(tracker), 0);
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

static void test_arenas_on_and_off(void **state) {
  (void)state;
  check_on_and_off(&arenas);
}

static void test_buckets_on_and_off(void **state) {
  (void)state;
  check_on_and_off(&buckets);
}

static void test_a_pool_made_to_track_can_stop(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool_params params = arenas;
  params.track = true;
  pool_bench_open(&bench, "null", "null:capacity=1G", &params);
  gm_tracker *tracker = gm_pool_tracker(bench.pool);
  const gm_block block = take(&bench, 1000, 1, NULL);
  set_tracking(&bench, false);
  assert_int_equal(gm_tracker_count(tracker), 0);
  assert_int_equal(gm_tracker_find_old(tracker, 0, NULL, 0), 0);
  give(&bench, &block, NULL);
  pool_bench_close(&bench);
}

static void test_wrong_arguments(void **state) {
  (void)state;
  gm_error err;
  assert_int_equal(gm_pool_set_tracking(NULL, true, &err), GM_ERR_INVALID_ARGUMENT);
}

/* A freed block that a guard still holds is nobody's, and its release later is no second end. */
static void check_held_blocks(const gm_pool_params *of) {
  pool_bench bench;
  gm_pool_params params = *of;
  params.debug = GM_DEBUG_CHECK_FREED;
  params.red_zone_bytes = 64;
  open_untracked(&bench, "cpu", &params);
  const gm_block held = take(&bench, 1000, 1, NULL), out = take(&bench, 300, 1, NULL);
  give(&bench, &held, NULL);
  set_tracking(&bench, true);
  assert_int_equal(gm_tracker_count(gm_pool_tracker(bench.pool)), 1);
  assert_int_equal(gm_tracker_total_bytes(gm_pool_tracker(bench.pool)), 300);
  give(&bench, &out, NULL);
  assert_int_equal(gm_tracker_count(gm_pool_tracker(bench.pool)), 0);
  pool_bench_close(&bench);
}

static void test_blocks_that_a_guard_holds(void **state) {
  (void)state;
  check_held_blocks(&arenas);
  check_held_blocks(&buckets);
}

/* Host memory in place of the device's is tracked from its creation or not at all. */
static void test_a_fallback_is_forgotten(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool_params params = arenas;
  params.track = true;
  pool_bench_open(&bench, "null", "null:capacity=1M", &params);
  gm_tracker *tracker = gm_pool_tracker(bench.pool);
  const gm_buffer_params large = {
      .struct_size = sizeof large, .request = {.bytes = 4 << 20}, .fallback = GM_FALLBACK_HOST};
  gm_buffer *first, *second;
  pool_bench_ok(gm_buffer_create(bench.pool, &large, &first, err));
  assert_int_equal(gm_tracker_count(tracker), 1);
  set_tracking(&bench, false);
  assert_int_equal(gm_tracker_count(tracker), 0);
  pool_bench_ok(gm_buffer_create(bench.pool, &large, &second, err));
  set_tracking(&bench, true);
  assert_int_equal(gm_tracker_count(tracker), 0);
  gm_buffer_release(first, NULL);
  gm_buffer_release(second, NULL);
  pool_bench_close(&bench);
}

/* ---- without host memory ---- */

static void check_host_failures(const gm_pool_params *params) {
  pool_bench bench;
  gm_block blocks[300];
  gm_error err;
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  open_untracked(&bench, "null", params);
  for (uint32_t i = 0; i < 300; i++) blocks[i] = take(&bench, 1000 + i, i, NULL);
  for (size_t n = 1; status; n++) {
    bench.host.fail_at = atomic_load(&bench.host.calls) + n;
    bench.host.fail_count = 1;
    status = gm_pool_set_tracking(bench.pool, true, &err);
    bench.host.fail_at = 0;
    if (!status) break;
    assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
    assert_null(gm_pool_tracker(bench.pool));
    give(&bench, &blocks[n % 300], NULL);
    blocks[n % 300] = take(&bench, 1000, 1, NULL);
  }
  assert_int_equal(gm_tracker_count(gm_pool_tracker(bench.pool)), 300);
  for (uint32_t i = 0; i < 300; i++) give(&bench, &blocks[i], NULL);
  assert_int_equal(gm_tracker_count(gm_pool_tracker(bench.pool)), 0);
  assert_int_equal(gm_tracker_total_bytes(gm_pool_tracker(bench.pool)), 0);
  pool_bench_close(&bench);
}

static void test_without_host_memory_it_is_not_tracked(void **state) {
  (void)state;
  check_host_failures(&arenas);
  check_host_failures(&buckets);
}

/* ---- while other threads allocate ---- */

enum { RACE_THREADS = 4, RACE_TURNS = 300, RACE_LIVE = 20 };

typedef struct race_worker {
  const pool_bench *bench;
  const atomic_bool *stop;
  uint32_t tag;
  gm_block blocks[RACE_LIVE]; /* alive at the end */
} race_worker;

static void *race_work(void *user) {
  race_worker *self = user;
  for (uint32_t i = 0; i < RACE_LIVE; i++) self->blocks[i] = take(self->bench, 4096, self->tag, NULL);
  for (uint32_t i = 0; !atomic_load(self->stop); i++) {
    gm_block *block = &self->blocks[i % RACE_LIVE];
    give(self->bench, block, NULL);
    *block = take(self->bench, 4096 + i % 5 * 512, self->tag, NULL);
  }
  return NULL;
}

static void check_race(const gm_pool_params *params) {
  pool_bench bench;
  pthread_t threads[RACE_THREADS];
  static race_worker workers[RACE_THREADS];
  atomic_bool stop = false;
  open_untracked(&bench, "null", params);
  for (uint32_t i = 0; i < RACE_THREADS; i++) {
    workers[i] = (race_worker){.bench = &bench, .stop = &stop, .tag = i + 1};
    assert_int_equal(pthread_create(&threads[i], NULL, race_work, &workers[i]), 0);
  }
  for (int turn = 0; turn < RACE_TURNS; turn++) {
    set_tracking(&bench, turn % 2 == 0);
    gm_tracker *tracker = gm_pool_tracker(bench.pool);
    /* a thread may be about to tell the tracker of a block that another one has by now */
    if (tracker) assert_in_range(gm_tracker_count(tracker), 0, (size_t)RACE_THREADS * (RACE_LIVE + 1));
  }
  set_tracking(&bench, true);
  atomic_store(&stop, true);
  for (int i = 0; i < RACE_THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  gm_tracker *tracker = gm_pool_tracker(bench.pool);
  assert_int_equal(gm_tracker_count(tracker), RACE_THREADS * RACE_LIVE);
  assert_int_equal(gm_tracker_total_bytes(tracker), pool_bench_stats(&bench).requested_bytes);
  for (int i = 0; i < RACE_THREADS; i++) {
    for (int k = 0; k < RACE_LIVE; k++) give(&bench, &workers[i].blocks[k], NULL);
  }
  assert_int_equal(gm_tracker_count(tracker), 0);
  assert_int_equal(gm_tracker_total_bytes(tracker), 0);
  pool_bench_close(&bench);
}

static void test_arenas_race(void **state) {
  (void)state;
  check_race(&arenas);
}

static void test_buckets_race(void **state) {
  (void)state;
  check_race(&buckets);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_arenas_on_and_off),
      cmocka_unit_test(test_buckets_on_and_off),
      cmocka_unit_test(test_a_pool_made_to_track_can_stop),
      cmocka_unit_test(test_wrong_arguments),
      cmocka_unit_test(test_blocks_that_a_guard_holds),
      cmocka_unit_test(test_a_fallback_is_forgotten),
      cmocka_unit_test(test_without_host_memory_it_is_not_tracked),
      cmocka_unit_test(test_arenas_race),
      cmocka_unit_test(test_buckets_race),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
