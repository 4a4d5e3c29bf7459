/* Threads are recorded together: their events are in the order in which they happened, and a recording begins and ends
 * while they go on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "gm/advice.h"
#include "gm/tracker.h"
#include "support/record_bench.h"

enum { THREADS = 8, TURNS = 4000 };

/* One block at a time is alive, wherever it was allocated: the trace must say so, too. */
typedef struct baton {
  const pool_bench *bench;
  pthread_mutex_t lock;
  gm_block block;
  bool held;
} baton;

static void *baton_run(void *user) {
  baton *self = user;
  for (int i = 0; i < TURNS; i++) {
    pthread_mutex_lock(&self->lock);
    if (self->held) give(self->bench, &self->block, NULL);
    self->held = i % 3 != 0;
    if (self->held) self->block = take(self->bench, 4096, NULL);
    pthread_mutex_unlock(&self->lock);
  }
  return NULL;
}

static void check_baton(const gm_pool_params *params) {
  pool_bench bench;
  pthread_t threads[THREADS];
  baton self = {.bench = &bench, .lock = PTHREAD_MUTEX_INITIALIZER};
  pool_bench_open(&bench, "null", NULL, params);
  begin(&bench, plain);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, baton_run, &self), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  const gm_recording recording = end(&bench);
  assert_int_equal(recording.allocs, recording.frees + self.held);
  gm_trace_profile profile = {.struct_size = sizeof profile};
  pool_bench_ok(gm_trace_profile_read(NULL, plain, &profile, err));
  assert_int_equal(profile.peak_live_blocks, 1);
  if (self.held) give(&bench, &self.block, NULL);
  pool_bench_close(&bench);
}

static void test_threads_are_in_order(void **state) {
  (void)state;
  check_baton(&arenas);
  check_baton(&buckets);
}

typedef struct crowd {
  const pool_bench *bench;
  atomic_bool stop;
  _Atomic uint64_t bytes; /* alive, at the end */
} crowd;

static void *crowd_run(void *user) {
  crowd *self = user;
  enum { LIVE = 16 };
  gm_block blocks[LIVE];
  uint64_t sizes[LIVE];
  for (int i = 0; i < LIVE; i++) blocks[i] = take(self->bench, sizes[i] = 512u * (unsigned)(i + 1), NULL);
  for (uint32_t i = 0; !atomic_load(&self->stop); i++) {
    give(self->bench, &blocks[i % LIVE], NULL);
    blocks[i % LIVE] = take(self->bench, sizes[i % LIVE] = 100 + i % 5000, NULL);
    if (i % 64 == 0) usleep(100);
  }
  for (int i = 0; i < LIVE; i++) {
    if (i % 2) {
      give(self->bench, &blocks[i], NULL);
    } else {
      atomic_fetch_add(&self->bytes, sizes[i]);
    }
  }
  return NULL;
}

static void free_all(const pool_bench *bench) {
  gm_tracker *tracker = gm_pool_tracker(bench->pool);
  gm_track_entry entries[THREADS * 16];
  const size_t count = gm_tracker_find_old(tracker, 0, entries, THREADS * 16);
  assert_in_range(count, 1, THREADS * 16);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(gm_free_ptr(bench->pool, (void *)(uintptr_t)entries[i].address, 0, NULL), GM_OK);
  }
}

/* Begun and ended while threads allocate: each trace is whole by itself. */
static void check_crowd(const gm_pool_params *of) {
  pool_bench bench;
  pthread_t threads[THREADS];
  crowd self = {.bench = &bench};
  gm_pool_params params = *of;
  params.track = true;
  pool_bench_open(&bench, "null", "null:capacity=4G", &params);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, crowd_run, &self), 0);
  for (int turn = 0; turn < 6; turn++) {
    gm_trace_profile profile = {.struct_size = sizeof profile};
    begin(&bench, plain);
    usleep(2000);
    pool_bench_ok(gm_pool_record_mark(bench.pool, "turn", err));
    if (turn == 5) atomic_store(&self.stop, true);
    for (int i = 0; turn == 5 && i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    const gm_recording recording = end(&bench);
    pool_bench_ok(gm_trace_profile_read(NULL, plain, &profile, err));
    assert_int_equal(profile.end_live_blocks, recording.allocs - recording.frees);
    assert_in_range(profile.peak_live_blocks, 0, THREADS * 16);
    if (turn == 5) assert_int_equal(profile.end_live_bytes, atomic_load(&self.bytes));
  }
  free_all(&bench);
  pool_bench_close(&bench);
}

static void test_on_and_off_while_threads_allocate(void **state) {
  (void)state;
  check_crowd(&arenas);
  check_crowd(&buckets);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_threads_are_in_order),
      cmocka_unit_test(test_on_and_off_while_threads_allocate),
  };
  return cmocka_run_group_tests(tests, record_make_folder, record_drop_folder);
}
