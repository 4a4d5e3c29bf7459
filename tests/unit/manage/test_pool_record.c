/* A pool in use is recorded: the trace says what happened, in the order in which it happened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gm/advice.h"
#include "gm/native_cpu.h"
#include "gm/tracker.h"
#include "support/record_bench.h"

/* ---- a random run, and what its trace must say ---- */

enum { RUN_STREAMS = 3, RUN_LIVE = 400, RUN_EVENTS = 40000 /* several chunks */ };

typedef struct run_event {
  uint64_t bytes;  /* 0: a free */
  uint32_t block;  /* place in the run's table */
  uint32_t stream; /* 0: the host; else one more than its place */
} run_event;

typedef struct run {
  pool_bench bench;
  gm_stream *streams[RUN_STREAMS];
  gm_block blocks[RUN_LIVE];
  uint64_t sizes[RUN_LIVE]; /* 0: free */
  run_event *events;
  size_t count;
  uint64_t state;
} run;

static uint64_t run_random(run *self, uint64_t below) {
  self->state = self->state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (self->state >> 33) % below;
}

static gm_stream *run_stream(const run *self, uint32_t number) { return number ? self->streams[number - 1] : NULL; }

/* Now and then so large that it has no room in a word of the event buffer. */
static uint64_t run_size(run *self, bool has_memory) {
  if (!has_memory && run_random(self, 100) == 0) return (UINT64_C(1) << 28) + run_random(self, 1 << 20);
  return 1 + run_random(self, run_random(self, 10) ? 5000 : 2 << 20);
}

static void run_step(run *self, bool has_memory) {
  const uint32_t at = (uint32_t)run_random(self, RUN_LIVE), stream = (uint32_t)run_random(self, RUN_STREAMS + 1);
  if (self->sizes[at]) {
    give(&self->bench, &self->blocks[at], run_stream(self, stream));
    self->sizes[at] = 0;
  } else {
    self->sizes[at] = run_size(self, has_memory);
    self->blocks[at] = take(&self->bench, self->sizes[at], run_stream(self, stream));
  }
  self->events[self->count++] = (run_event){self->sizes[at], at, stream};
}

static void run_open(run *self, const char *backend, const gm_pool_params *params) {
  memset(self, 0, sizeof *self);
  self->state = 12345;
  self->events = calloc(RUN_EVENTS, sizeof *self->events);
  assert_non_null(self->events);
  pool_bench_open(&self->bench, backend, strcmp(backend, "null") == 0 ? "null:capacity=1T" : NULL, params);
  for (int i = 0; i < RUN_STREAMS; i++) pool_bench_ok(gm_stream_create(self->bench.device, &self->streams[i], err));
}

static void run_close(run *self) {
  for (int i = 0; i < RUN_LIVE; i++) {
    if (self->sizes[i]) give(&self->bench, &self->blocks[i], NULL);
  }
  for (int i = 0; i < RUN_STREAMS; i++) pool_bench_ok(gm_stream_close(self->streams[i], err));
  pool_bench_close(&self->bench);
  free(self->events);
}

static gm_trace_event next_event(gm_trace *trace) {
  gm_trace_event event = {.struct_size = sizeof event};
  pool_bench_ok(gm_trace_next(trace, &event, err));
  return event;
}

static void expect_mark(gm_trace *trace, const char *label) {
  const gm_trace_event event = next_event(trace);
  assert_int_equal(event.kind, GM_TRACE_MARK);
  assert_string_equal(event.label, label);
}

/* The blocks that were out: `ids` and `streams` get what the trace calls them, sizes must be those before. */
static void check_alive(gm_trace *trace, const uint64_t *sizes, uint64_t alive, uint64_t *ids, uint64_t *bytes) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < alive; i++) {
    const gm_trace_event event = next_event(trace);
    assert_int_equal(event.kind, GM_TRACE_ALLOC);
    sum += event.bytes;
    for (int k = 0; k < RUN_LIVE; k++) { /* which of equal sizes it is nobody can tell: their frees are as good */
      if (sizes[k] != event.bytes || ids[k]) continue;
      ids[k] = event.id;
      break;
    }
  }
  *bytes = sum;
}

/* Numbers of streams are given as they come. */
static uint32_t check_stream(uint32_t *numbers, uint32_t *known, uint32_t stream) {
  if (!stream) return 0;
  if (!numbers[stream]) numbers[stream] = ++*known;
  return numbers[stream];
}

static void check_run(const run *self, const char *path, const uint64_t *before, uint64_t alive) {
  gm_trace *trace;
  uint64_t ids[RUN_LIVE] = {0}, bytes = 0, sum = 0;
  uint32_t blocks_of[RUN_LIVE] = {0};
  pool_bench_ok(gm_trace_open(NULL, path, &trace, err));
  expect_mark(trace, "start");
  for (int i = 0; i < RUN_LIVE; i++) sum += before[i];
  check_alive(trace, before, alive, ids, &bytes);
  assert_int_equal(bytes, sum);
  expect_mark(trace, "recording");
  for (size_t i = 0; i < self->count; i++) {
    const run_event *said = &self->events[i];
    const gm_trace_event event = next_event(trace);
    if (said->bytes) {
      assert_int_equal(event.kind, GM_TRACE_ALLOC);
      assert_int_equal(event.bytes, said->bytes);
      ids[said->block] = event.id;
      blocks_of[said->block] = 1;
    } else {
      assert_int_equal(event.kind, GM_TRACE_FREE);
      if (blocks_of[said->block]) assert_int_equal(event.id, ids[said->block]);
    }
  }
  assert_int_equal(next_event(trace).kind, GM_TRACE_END);
  gm_trace_close(trace);
}

/* The stream of each event, of blocks that were allocated inside the recording. */
static void check_streams(const run *self, const char *path, uint64_t alive) {
  gm_trace *trace;
  uint32_t numbers[RUN_STREAMS + 1] = {0}, known = 0;
  pool_bench_ok(gm_trace_open(NULL, path, &trace, err));
  expect_mark(trace, "start");
  for (uint64_t i = 0; i < alive; i++) assert_int_equal(next_event(trace).stream, 0);
  expect_mark(trace, "recording");
  for (size_t i = 0; i < self->count; i++) {
    const gm_trace_event event = next_event(trace);
    assert_int_equal(event.stream, check_stream(numbers, &known, self->events[i].stream));
  }
  gm_trace_close(trace);
}

static void check_round_trip(const char *backend, const gm_pool_params *params, const char *path) {
  static run self;
  uint64_t before[RUN_LIVE], alive = 0;
  const bool has_memory = strcmp(backend, "null") != 0;
  run_open(&self, backend, params);
  for (int i = 0; i < RUN_LIVE; i += 3, alive++) {
    self.sizes[i] = 100 + (uint64_t)i;
    self.blocks[i] = take(&self.bench, self.sizes[i], NULL);
  }
  memcpy(before, self.sizes, sizeof before);
  begin(&self.bench, path);
  while (self.count < RUN_EVENTS) run_step(&self, has_memory);
  const gm_recording recording = end(&self.bench);
  assert_int_equal(recording.already_alive, alive);
  assert_int_equal(recording.allocs + recording.frees, RUN_EVENTS + alive);
  assert_int_equal(recording.marks, 2);
  assert_int_equal(recording.streams, RUN_STREAMS + 1);
  assert_int_equal(recording.file_bytes, file_bytes(path));
  check_run(&self, path, before, alive);
  check_streams(&self, path, alive);
  gm_trace_profile profile = {.struct_size = sizeof profile};
  pool_bench_ok(gm_trace_profile_read(NULL, path, &profile, err));
  assert_int_equal(profile.end_live_bytes, pool_bench_stats(&self.bench).requested_bytes);
  run_close(&self);
}

static void test_arenas_round_trip(void **state) {
  (void)state;
  check_round_trip("null", &arenas, plain);
  check_round_trip("cpu", &arenas, plain);
}

static void test_buckets_round_trip(void **state) {
  (void)state;
  check_round_trip("null", &buckets, plain);
  check_round_trip("cpu", &buckets, plain);
}

static void test_packed_round_trip(void **state) {
  (void)state;
#ifdef GM_HAVE_ZLIB
  check_round_trip("null", &arenas, packed);
  check_round_trip("null", &arenas, plain);
  assert_true(file_bytes(packed) * 2 < file_bytes(plain));
#else
  pool_bench bench;
  gm_error failure;
  pool_bench_open(&bench, "null", NULL, &arenas);
  assert_int_equal(gm_pool_record_begin(bench.pool, packed, &failure), GM_ERR_NOT_SUPPORTED);
  pool_bench_close(&bench);
#endif
}

/* ---- marks, and blocks that are none of the pool's ---- */

static void test_marks(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  char longest[300];
  gm_pool_params params = arenas;
  params.track = true;
  pool_bench_open(&bench, "null", NULL, &params);
  begin(&bench, plain);
  memset(longest, 'x', sizeof longest);
  longest[255] = '\0';
  pool_bench_ok(gm_pool_record_mark(bench.pool, "step\n1", err));
  for (int i = 0; i < 3000; i++) pool_bench_ok(gm_pool_record_mark(bench.pool, longest, err));
  assert_int_equal(gm_tracker_mark(gm_pool_tracker(bench.pool)), 1);
  longest[255] = 'x';
  longest[256] = '\0';
  assert_int_equal(gm_pool_record_mark(bench.pool, longest, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_record_mark(bench.pool, "", &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_record_mark(bench.pool, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(end(&bench).marks, 3004);
  longest[255] = '\0';
  gm_trace *trace;
  pool_bench_ok(gm_trace_open(NULL, plain, &trace, err));
  expect_mark(trace, "start");
  expect_mark(trace, "recording");
  expect_mark(trace, "step?1");
  for (int i = 0; i < 3000; i++) expect_mark(trace, longest);
  expect_mark(trace, "mark 1");
  assert_int_equal(next_event(trace).kind, GM_TRACE_END);
  gm_trace_close(trace);
  pool_bench_close(&bench);
}

static void test_lent_memory_is_not_recorded(void **state) {
  (void)state;
  pool_bench bench;
  static char memory[4096], more[4096];
  gm_block lent, before;
  const gm_cpu_memory native = {.head = {sizeof native, GM_API_CPU}, .pointer = memory, .bytes = sizeof memory};
  const gm_cpu_memory other = {.head = native.head, .pointer = more, .bytes = sizeof more};
  pool_bench_open(&bench, "cpu", NULL, &arenas);
  pool_bench_ok(gm_block_wrap(bench.pool, &native.head, &before, err));
  begin(&bench, plain);
  pool_bench_ok(gm_block_wrap(bench.pool, &other.head, &lent, err));
  pool_bench_ok(gm_pool_record_allocation(bench.pool, 100, err));
  give(&bench, &lent, NULL);
  give(&bench, &before, NULL);
  pool_bench_ok(gm_pool_record_allocation(bench.pool, -100, err));
  const gm_recording recording = end(&bench);
  assert_int_equal(recording.allocs + recording.frees + recording.already_alive, 0);
  pool_bench_close(&bench);
}

/* A guard frees a block when its owner has long done so: the owner's free is the one that counts. */
static void check_guarded(const gm_pool_params *of) {
  pool_bench bench;
  gm_pool_params params = *of;
  params.debug = GM_DEBUG_CHECK_FREED;
  params.red_zone_bytes = 64;
  pool_bench_open(&bench, "cpu", NULL, &params);
  const gm_block held = take(&bench, 1000, NULL), out = take(&bench, 300, NULL);
  give(&bench, &held, NULL);
  begin(&bench, plain);
  for (int i = 0; i < 100; i++) {
    const gm_block block = take(&bench, 500, NULL);
    give(&bench, &block, NULL);
  }
  give(&bench, &out, NULL);
  const gm_recording recording = end(&bench);
  assert_int_equal(recording.already_alive, 1);
  assert_int_equal(recording.allocs, 101);
  assert_int_equal(recording.frees, 101);
  pool_bench_close(&bench);
}

static void test_guarded_blocks(void **state) {
  (void)state;
  check_guarded(&arenas);
  check_guarded(&buckets);
}

static void test_tracked_and_recorded(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", NULL, &arenas);
  pool_bench_ok(gm_pool_set_tracking(bench.pool, true, err));
  begin(&bench, plain);
  const gm_block block = take(&bench, 1000, NULL);
  pool_bench_ok(gm_pool_set_tracking(bench.pool, false, err));
  give(&bench, &block, NULL);
  pool_bench_ok(gm_pool_set_tracking(bench.pool, true, err));
  const gm_block other = take(&bench, 1000, NULL);
  assert_int_equal(end(&bench).allocs, 2);
  assert_int_equal(gm_tracker_count(gm_pool_tracker(bench.pool)), 1);
  give(&bench, &other, NULL);
  assert_int_equal(gm_tracker_count(gm_pool_tracker(bench.pool)), 0);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_arenas_round_trip),           cmocka_unit_test(test_buckets_round_trip),
      cmocka_unit_test(test_packed_round_trip),           cmocka_unit_test(test_marks),
      cmocka_unit_test(test_lent_memory_is_not_recorded), cmocka_unit_test(test_guarded_blocks),
      cmocka_unit_test(test_tracked_and_recorded),
  };
  return cmocka_run_group_tests(tests, record_make_folder, record_drop_folder);
}
