/* Calls that look at all blocks of a pool look at a piece of them at a time. Between two pieces they leave the lock
 * that requests take. The chunks of one piece are counted. Other threads use the pool in between, played here by the
 * thread itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "backends/null/null_backend.h"
#include "core/arena/free_walk.h"
#include "core/arena/walk.h"
#include "core/base/thread_here.h"
#include "core/device/stream.h"
#include "core/order/late.h"
#include "core/provider/walk.h"
#include "gm/advice.h"
#include "gm/explain.h"
#include "gm/fragmentation.h"
#include "gm/profile.h"
#include "gm/quota.h"
#include "gm/tracker.h"
#include "support/record_bench.h"

enum { BLOCKS = 12000, BYTES = 1024, PIECE = 1024, TURNS = 8 };

/* ---- what is counted ---- */

static struct {
  uint32_t all, piece, most, pieces; /* chunks looked at: by the call, in this piece, in the largest one */
  void (*between)(void);             /* what other threads do; NULL: nothing */
} looks;

typedef struct counted {
  size_t all, piece, most; /* as `looks` */
} counted;

static counted forgets, lates; /* blocks that forget a stream; free pieces whose streams are asked for */

uint32_t __real_gm__arena_walk(gm__arena *arena, uint32_t number);
uint32_t __wrap_gm__arena_walk(gm__arena *arena, uint32_t number);
uint32_t __wrap_gm__arena_walk(gm__arena *arena, uint32_t number) {
  looks.all++;
  looks.piece = number ? looks.piece + 1 : 1; /* a walk over another arena has its own lock */
  if (looks.piece > looks.most) looks.most = looks.piece;
  return __real_gm__arena_walk(arena, number);
}

uint32_t __real_gm__free_walk_next(gm__arena *arena, gm__free_walk *walk);
uint32_t __wrap_gm__free_walk_next(gm__arena *arena, gm__free_walk *walk);
uint32_t __wrap_gm__free_walk_next(gm__arena *arena, gm__free_walk *walk) {
  const bool counts = !walk->by_number; /* the others are counted above */
  looks.all += counts;
  if (counts && !walk->looks) looks.piece = 0; /* another arena has its own lock */
  looks.piece += counts;
  const uint32_t found = __real_gm__free_walk_next(arena, walk);
  if (looks.piece > looks.most) looks.most = looks.piece;
  return found;
}

void __real_gm__bias_breathe(gm__bias_lock *lock, const void *self);
void __wrap_gm__bias_breathe(gm__bias_lock *lock, const void *self);
void __wrap_gm__bias_breathe(gm__bias_lock *lock, const void *self) {
  void (*between)(void) = looks.between;
  looks.piece = 0;
  forgets.piece = lates.piece = 0;
  looks.pieces++;
  if (!between) {
    __real_gm__bias_breathe(lock, self);
    return;
  }
  gm__bias_lock_out(lock);
  between();
  gm__bias_lock_in(lock, self);
}

gm__allocation *__real_gm__allocation_next(const gm__allocation_table *table, uint32_t *cursor);
gm__allocation *__wrap_gm__allocation_next(const gm__allocation_table *table, uint32_t *cursor);
gm__allocation *__wrap_gm__allocation_next(const gm__allocation_table *table, uint32_t *cursor) {
  looks.all++;
  looks.piece = *cursor ? looks.piece + 1 : 1;
  if (looks.piece > looks.most) looks.most = looks.piece;
  return __real_gm__allocation_next(table, cursor);
}

void __real_gm__provider_breathe(gm__provider *provider);
void __wrap_gm__provider_breathe(gm__provider *provider);
void __wrap_gm__provider_breathe(gm__provider *provider) {
  looks.piece = 0;
  forgets.piece = lates.piece = 0;
  looks.pieces++;
  if (!looks.between) {
    __real_gm__provider_breathe(provider);
    return;
  }
  gm__mutex_unlock(&provider->lock);
  looks.between();
  gm__mutex_lock(&provider->lock);
}

void __real_gm__order_forget_use(gm__order *order, gm__last_use *use, int slot);
void __wrap_gm__order_forget_use(gm__order *order, gm__last_use *use, int slot);
void __wrap_gm__order_forget_use(gm__order *order, gm__last_use *use, int slot) {
  forgets.all++;
  forgets.piece++;
  if (forgets.piece > forgets.most) forgets.most = forgets.piece;
  __real_gm__order_forget_use(order, use, slot);
}

bool __real_gm__late_lets(const gm__order *order, const gm__last_use *use, int slot, bool insert, gm__late *late);
bool __wrap_gm__late_lets(const gm__order *order, const gm__last_use *use, int slot, bool insert, gm__late *late);
bool __wrap_gm__late_lets(const gm__order *order, const gm__last_use *use, int slot, bool insert, gm__late *late) {
  lates.all++;
  lates.piece++;
  if (lates.piece > lates.most) lates.most = lates.piece;
  return __real_gm__late_lets(order, use, slot, insert, late);
}

static void looks_begin(void) { looks.all = looks.piece = looks.most = looks.pieces = 0; }

/* `few`: the call looks at no more than a piece. */
static void looks_end(const char *what, bool few) {
  printf("  %s: %u chunks in %u pieces, %u at once\n", what, looks.all, looks.pieces, looks.most);
  assert_true(looks.most <= PIECE);
  if (few) assert_true(looks.all <= PIECE);
  if (few) return;
  assert_true(looks.all >= BLOCKS);
  assert_true(looks.pieces >= BLOCKS / PIECE);
}

/* ---- the pool ---- */

static pool_bench bench;
static gm_block blocks[BLOCKS];
static bool out[BLOCKS];
static uint64_t live, bytes; /* of all that is out */

static void take_one(int at) {
  blocks[at] = take(&bench, BYTES + (uint64_t)at % 7 * 256, NULL);
  out[at] = true;
  live++;
  bytes += BYTES + (uint64_t)at % 7 * 256;
}

static void give_one(int at) {
  give(&bench, &blocks[at], NULL);
  out[at] = false;
  live--;
  bytes -= BYTES + (uint64_t)at % 7 * 256;
}

static void *fill(void *unused) {
  for (int i = 0; i < BLOCKS; i++) take_one(i);
  return unused;
}

static void scene_open(gm_strategy strategy) {
  pthread_t thread;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy};
  live = bytes = 0;
  pool_bench_open_device(&bench, "null", "null:capacity=1G,latency=1000000000");
  pool_bench_ok(gm_config_set(bench.ctx, "track_allocations", "false", err));
  pool_bench_ok(gm_pool_create(bench.device, &params, &bench.pool, err));
  assert_int_equal(pthread_create(&thread, NULL, fill, NULL), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

static void scene_close(void) {
  looks.between = NULL;
  for (int i = 0; i < BLOCKS; i++) {
    if (out[i]) give_one(i);
  }
  pool_bench_close(&bench);
}

/* ---- pieces ---- */

static void explain(void) {
  gm_explanation why = {.struct_size = sizeof why};
  gm_block block;
  const gm_request request = {.bytes = UINT64_C(2) << 30};
  assert_true(gm_alloc(bench.pool, &request, &block) > GM_ACQUIRE_FRESH);
  looks_begin();
  pool_bench_ok(gm_explain(bench.pool, &request, &why, err));
  assert_int_not_equal(why.cause, GM_CAUSE_NONE);
}

static void look_at_free(bool few) {
  gm_fragmentation found = {.struct_size = sizeof found};
  looks_begin();
  pool_bench_ok(gm_pool_fragmentation(bench.pool, &found, err));
  looks_end("fragmentation", few);
  explain();
  looks_end("explain", few);
}

static void look_at_all(gm_strategy strategy) {
  gm_track_entry entries[4];
  scene_open(strategy);
  look_at_free(strategy == GM_STRATEGY_BEST_FIT);
  looks_begin();
  pool_bench_ok(gm_pool_set_tracking(bench.pool, true, err));
  looks_end("start of tracking", false);
  if (strategy == GM_STRATEGY_BEST_FIT) {
    looks_begin();
    assert_int_equal(gm_tracker_find_old(gm_pool_tracker(bench.pool), 0, entries, 4), BLOCKS);
    looks_end("the oldest blocks", false);
  }
  looks_begin();
  begin(&bench, plain);
  looks_end("start of a recording", false);
  end(&bench);
  looks_begin();
  pool_bench_ok(gm_pool_set_quota(bench.pool, 0, UINT64_C(1) << 30, 0, 0, err));
  looks_end("first quota", false);
  scene_close();
}

/* The figures do not change, whichever way the free chunks are found. `freed`: so many blocks, none beside another. */
static void find_holes(int freed) {
  gm_fragmentation found = {.struct_size = sizeof found};
  uint64_t all = 0, largest = 0;
  scene_open(GM_STRATEGY_BEST_FIT);
  for (int i = 1; i < 2 * freed; i += 2) {
    const uint64_t whole = blocks[i].bytes;
    all += whole;
    largest = whole > largest ? whole : largest;
    give_one(i);
  }
  look_at_free(freed < PIECE / 2);
  pool_bench_ok(gm_pool_fragmentation(bench.pool, &found, err));
  const uint64_t more = found.holes - (uint64_t)freed, rest = found.hole_bytes - all;
  printf("  %d holes of blocks, %ju more of %ju bytes\n", freed, (uintmax_t)more, (uintmax_t)rest);
  assert_true(more <= 2); /* what is left of the memory that was taken last, in two areas */
  assert_true(found.largest_hole_bytes >= largest);
  assert_int_equal(found.hole_bytes + found.idle_bytes, found.reserved_bytes - pool_bench_stats(&bench).in_use_bytes);
  scene_close();
}

static void test_holes_are_found_whatever_is_alive(void **state) {
  (void)state;
  find_holes(100);
  find_holes(BLOCKS / 2 - 1);
}

static void test_a_walk_holds_the_lock_for_a_piece(void **state) {
  (void)state;
  look_at_all(GM_STRATEGY_BEST_FIT);
  look_at_all(GM_STRATEGY_BUCKET);
}

/* Half of the blocks were freed on the stream. Each second one of the others was used on it, too. */
static void close_stream(gm_strategy strategy) {
  gm_stream *stream = NULL;
  scene_open(strategy);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  for (int i = 0; i < BLOCKS; i++) {
    if (i % 2) {
      give(&bench, &blocks[i], stream);
      out[i] = false;
    } else if (i % 4) {
      assert_int_equal(gm_use_on(bench.pool, &blocks[i], stream), GM_OK);
    }
  }
  pool_bench_ok(gm_stream_sync(stream, err));
  looks_begin();
  memset(&forgets, 0, sizeof forgets);
  pool_bench_ok(gm_stream_close(stream, err));
  printf("  close of a stream: %zu blocks forget it, %zu at once; %u chunks, %u at once\n", forgets.all, forgets.most,
         looks.all, looks.most);
  assert_true(forgets.all >= BLOCKS / 4 * 3);
  assert_true(forgets.most <= PIECE + 1); /* some forget nothing */
  assert_true(looks.most <= PIECE);
  assert_true(looks.pieces >= BLOCKS / 2 / PIECE); /* a bucket has half of the blocks */
  scene_close();
}

static void test_a_stream_closes_in_pieces(void **state) {
  (void)state;
  close_stream(GM_STRATEGY_BEST_FIT);
  close_stream(GM_STRATEGY_BUCKET);
}

/* A second of work, which ends when the time is moved on. */
static void begin_work(const gm_stream *stream) {
  const gm_memory nowhere = {.handle = 1, .bytes = 64};
  gm_backend_point point;
  pool_bench_ok(gm__null_backend.fill(bench.device->handle, stream->handle, &nowhere, 0, 64, "", 1, &point, err));
}

/* All memory is free, and no two neighbours wait for the same stream. */
static void test_a_row_is_walked_in_pieces(void **state) {
  (void)state;
  gm_stream *streams[2];
  gm_fragmentation found = {.struct_size = sizeof found};
  scene_open(GM_STRATEGY_BEST_FIT);
  for (int i = 0; i < 2; i++) pool_bench_ok(gm_stream_create(bench.device, &streams[i], err));
  for (int i = 0; i < 2; i++) begin_work(streams[i]);
  for (int i = 0; i < BLOCKS; i++) {
    give(&bench, &blocks[i], streams[i % 2]);
    out[i] = false;
  }
  looks_begin();
  pool_bench_ok(gm_pool_fragmentation(bench.pool, &found, err));
  printf("  fragmentation of a row: %u pieces\n", looks.pieces);
  assert_true(looks.pieces >=
              3 * (BLOCKS / PIECE - 1)); /* a chunk is settled, found by its number, and seen in the row */
  explain();
  printf("  explain of a row: %zu free chunks, %zu at once\n", lates.all, lates.most);
  assert_true(lates.all >= BLOCKS - PIECE && lates.most <= PIECE);
  gm__null_advance(bench.device->handle, UINT64_C(10000000000));
  for (int i = 0; i < 2; i++) pool_bench_ok(gm_stream_close(streams[i], err));
  scene_close();
}

/* ---- blocks that come and go between pieces ---- */

/* Blocks with low and with high numbers go, and others come. */
static void churn(void) {
  if (looks.pieces > TURNS) return;
  const int low = (int)looks.pieces * 100, high = BLOCKS - low;
  for (int i = 0; i < 20; i++) {
    if (out[low + i]) give_one(low + i);
    if (out[high + i]) give_one(high + i);
  }
  for (int i = 0; i < 10; i++) {
    take_one(low + i);
    take_one(high + i);
  }
}

static void churn_begin(gm_strategy strategy) {
  scene_open(strategy);
  looks_begin();
  looks.between = churn;
}

static void churn_end(void) {
  assert_true(looks.pieces > TURNS);
  looks.between = NULL;
}

static void test_a_tracker_that_comes_knows_each_block_once(void **state) {
  (void)state;
  churn_begin(GM_STRATEGY_BEST_FIT);
  pool_bench_ok(gm_pool_set_tracking(bench.pool, true, err));
  churn_end();
  gm_tracker *tracker = gm_pool_tracker(bench.pool);
  assert_int_equal(gm_tracker_count(tracker), live);
  assert_int_equal(gm_tracker_total_bytes(tracker), bytes);
  assert_int_equal(gm_tracker_find_old(tracker, 0, NULL, 0), live);
  pool_bench_ok(gm_pool_set_tracking(bench.pool, false, err));
  assert_int_equal(gm_tracker_count(tracker), 0);
  pool_bench_ok(gm_pool_set_tracking(bench.pool, true, err));
  assert_int_equal(gm_tracker_count(tracker), live);
  scene_close();
}

static void record_beside(gm_strategy strategy) {
  gm_trace_profile profile = {.struct_size = sizeof profile};
  churn_begin(strategy);
  begin(&bench, plain);
  churn_end();
  for (int i = 0; i < BLOCKS / 2; i++) {
    if (out[i]) give_one(i);
  }
  const gm_recording recording = end(&bench);
  assert_int_equal(recording.allocs - recording.frees, live);
  pool_bench_ok(gm_trace_profile_read(NULL, plain, &profile, err));
  assert_int_equal(profile.end_live_blocks, live);
  assert_int_equal(profile.end_live_bytes, bytes);
  scene_close();
}

static void test_a_recording_that_comes_tells_each_block_once(void **state) {
  (void)state;
  record_beside(GM_STRATEGY_BEST_FIT);
  record_beside(GM_STRATEGY_BUCKET);
}

static void count_beside(gm_strategy strategy) {
  gm_quota quota = {.struct_size = sizeof quota};
  churn_begin(strategy);
  pool_bench_ok(gm_pool_set_quota(bench.pool, 0, UINT64_C(1) << 30, 0, 0, err));
  churn_end();
  pool_bench_ok(gm_pool_quota(bench.pool, 0, &quota, err));
  assert_int_equal(quota.used_bytes, bytes);
  for (int i = 0; i < BLOCKS; i++) {
    if (out[i]) give_one(i);
  }
  pool_bench_ok(gm_pool_quota(bench.pool, 0, &quota, err));
  assert_int_equal(quota.used_bytes, 0);
  scene_close();
}

static void test_a_quota_that_comes_counts_each_block_once(void **state) {
  (void)state;
  count_beside(GM_STRATEGY_BEST_FIT);
  count_beside(GM_STRATEGY_BUCKET);
}

static void test_figures_beside_others_are_sane(void **state) {
  (void)state;
  gm_fragmentation found = {.struct_size = sizeof found};
  churn_begin(GM_STRATEGY_BEST_FIT);
  looks.between = NULL;
  for (int i = 1; i < BLOCKS; i += 2) give_one(i);
  looks_begin();
  looks.between = churn;
  pool_bench_ok(gm_pool_fragmentation(bench.pool, &found, err));
  churn_end();
  assert_true(found.holes > 0 && found.scattered_bytes <= found.hole_bytes);
  assert_true(found.hole_bytes + found.idle_bytes <= found.reserved_bytes);
  scene_close();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_walk_holds_the_lock_for_a_piece),
      cmocka_unit_test(test_holes_are_found_whatever_is_alive),
      cmocka_unit_test(test_a_stream_closes_in_pieces),
      cmocka_unit_test(test_a_row_is_walked_in_pieces),
      cmocka_unit_test(test_a_tracker_that_comes_knows_each_block_once),
      cmocka_unit_test(test_a_recording_that_comes_tells_each_block_once),
      cmocka_unit_test(test_a_quota_that_comes_counts_each_block_once),
      cmocka_unit_test(test_figures_beside_others_are_sane),
  };
  return cmocka_run_group_tests(tests, record_make_folder, record_drop_folder);
}
