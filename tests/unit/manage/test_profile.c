/* A profile of a pool in use says what the profile of its recording says, and costs nothing before and after. */
#include "gm/profile.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/arena/arena.h"
#include "core/pool/pool.h"
#include "core/trace/live_profile.h"
#include "support/random.h"
#include "support/record_bench.h"

#define MIB (UINT64_C(1024) * 1024)

enum { MOST = 64, STEPS = 20000 /* more than a chunk of events has */ };

static gm_trace_profile read_now(gm_pool *pool) {
  gm_trace_profile out = {.struct_size = sizeof out};
  pool_bench_ok(gm_pool_profile_read(pool, &out, err));
  return out;
}

static size_t sizes_now(gm_pool *pool, gm_size_use *out, size_t capacity) {
  size_t count = 99999;
  pool_bench_ok(gm_pool_profile_sizes(pool, out, capacity, &count, err));
  return count;
}

/* Nobody watches the pool's blocks: an allocation takes the short way. */
static void check_unwatched(gm_pool *pool) {
  const gm__arena *arena;
  assert_null(pool->heap.observers.recorder);
  for (uint32_t i = 0; (arena = gm__arena_at(&pool->heap.arenas, i)); i++) {
    assert_null(arena->events);
    assert_true(arena->observed == (arena->ledger.tracker != NULL)); /* debug builds track */
  }
}

/* A run that is the same each time: 40 sizes, three streams. */
static void churn(const pool_bench *bench, gm_stream *const *streams) {
  gm_block blocks[MOST];
  bool out[MOST] = {false};
  uint64_t seed = 7;
  for (int i = 0; i < STEPS; i++) {
    const uint64_t word = test_random(&seed);
    const int at = (int)(word % MOST);
    gm_stream *stream = streams[word / MOST % 3];
    if (out[at]) {
      give(bench, &blocks[at], stream);
    } else {
      blocks[at] = take(bench, (word / 1024 % 40 + 1) * (word / 65536 % 5 ? 1000 : 100000), stream);
    }
    out[at] = !out[at];
  }
  for (int i = 0; i < MOST / 2; i++) {
    if (out[i]) give(bench, &blocks[i], NULL);
    out[i] = false;
  }
}

static void check_run(const gm_pool_params *params) {
  gm_trace_profile recorded = {.struct_size = sizeof recorded}, lived;
  for (int live = 0; live < 2; live++) {
    pool_bench bench;
    gm_stream *streams[3] = {NULL};
    pool_bench_open(&bench, "null", "null:capacity=4G", params);
    for (int i = 1; i < 3; i++) pool_bench_ok(gm_stream_create(bench.device, &streams[i], err));
    if (live) {
      pool_bench_ok(gm_pool_profile_begin(bench.pool, err));
    } else {
      begin(&bench, plain);
    }
    churn(&bench, streams);
    if (live) {
      lived = read_now(bench.pool);
      const gm_trace_profile again = read_now(bench.pool); /* a look takes nothing away */
      assert_memory_equal(&again, &lived, sizeof lived);
      pool_bench_ok(gm_pool_profile_end(bench.pool, err));
      check_unwatched(bench.pool);
    } else {
      end(&bench);
      pool_bench_ok(gm_trace_profile_read(NULL, plain, &recorded, err));
    }
    assert_int_equal(gm_pool_destroy_force(bench.pool, NULL), GM_OK); /* some blocks are out */
    for (int i = 1; i < 3; i++) pool_bench_ok(gm_stream_close(streams[i], err));
    pool_bench_ok(gm_device_close(bench.device, err));
    pool_bench_ok(gm_context_destroy(bench.ctx, err));
  }
  assert_int_equal(recorded.marks, 2);
  recorded.events -= recorded.marks; /* "start" and "recording" */
  recorded.marks = 0;
  assert_true(lived.events > 16384 && lived.brief_allocs > 0 && lived.moved_frees > 0 && lived.streams == 3);
  assert_memory_equal(&recorded, &lived, sizeof lived);
}

static void test_it_says_what_a_recording_says(void **state) {
  (void)state;
  check_run(&arenas);
  check_run(&buckets);
}

/* Nobody began a profile: the blocks that live are told, and nothing stays behind. */
static void test_a_pool_that_is_not_profiled(void **state) {
  (void)state;
  static const gm_pool_params *const params[] = {&arenas, &buckets};
  for (int p = 0; p < 2; p++) {
    pool_bench bench;
    gm_block blocks[10];
    gm_size_use sizes[3] = {{0}};
    pool_bench_open(&bench, "null", "null:capacity=1G", params[p]);
    assert_int_equal(read_now(bench.pool).allocs, 0);
    assert_int_equal(read_now(bench.pool).streams, 0);
    assert_int_equal(sizes_now(bench.pool, NULL, 0), 0);
    for (int i = 0; i < 10; i++) blocks[i] = take(&bench, i < 3 ? 5000 : i < 9 ? 700 : 3 * MIB, NULL);
    give(&bench, &blocks[8], NULL);
    const gm_trace_profile now = read_now(bench.pool);
    assert_int_equal(now.allocs, 9);
    assert_int_equal(now.frees, 0);
    assert_int_equal(now.distinct_sizes, 3);
    assert_int_equal(now.repeats, 6);
    assert_int_equal(now.small_allocs, 8);
    assert_int_equal(now.end_live_bytes, 3 * 5000 + 5 * 700 + 3 * MIB);
    assert_int_equal(sizes_now(bench.pool, sizes, 3), 3);
    assert_true(sizes[0].bytes == 700 && sizes[0].allocs == 5 && sizes[0].live == 5);
    assert_true(sizes[1].bytes == 5000 && sizes[1].allocs == 3);
    assert_true(sizes[2].bytes == 3 * MIB && sizes[2].allocs == 1);
    check_unwatched(bench.pool);
    for (int i = 0; i < 10; i++) {
      if (i != 8) give(&bench, &blocks[i], NULL);
    }
    pool_bench_close(&bench);
  }
}

static void test_sizes_and_those_that_live(void **state) {
  (void)state;
  pool_bench bench;
  gm_size_use sizes[3] = {{0}};
  pool_bench_open(&bench, "null", "null:capacity=1G", &arenas);
  const gm_block early = take(&bench, 4096, NULL); /* it lives when the profile begins */
  pool_bench_ok(gm_pool_profile_begin(bench.pool, err));
  for (int i = 0; i < 5; i++) {
    const gm_block block = take(&bench, 100, NULL);
    give(&bench, &block, NULL);
  }
  const gm_block late = take(&bench, 100, NULL), other = take(&bench, 200, NULL);
  give(&bench, &early, NULL);
  assert_int_equal(sizes_now(bench.pool, sizes, 2), 3);
  assert_true(sizes[0].bytes == 100 && sizes[0].allocs == 6 && sizes[0].live == 1);
  assert_true(sizes[1].bytes == 4096 && sizes[1].allocs == 1 && sizes[1].live == 0); /* of equals the larger one */
  assert_int_equal(sizes[2].bytes, 0);                                               /* beyond the capacity */
  assert_int_equal(read_now(bench.pool).frees, 6);
  give(&bench, &late, NULL);
  give(&bench, &other, NULL);
  pool_bench_close(&bench); /* and that ends the profile */
}

/* A pool in use is told what to set, which took a trace before. */
static void test_advice_without_a_file(void **state) {
  (void)state;
  pool_bench bench;
  gm_block blocks[4];
  gm_advice advice;
  pool_bench_open(&bench, "null", "null:capacity=1G", &buckets);
  pool_bench_ok(gm_pool_profile_begin(bench.pool, err));
  for (int i = 0; i < 4; i++) blocks[i] = take(&bench, MIB << (i / 3), NULL);
  const gm_stats stats = pool_bench_stats(&bench);
  const gm_trace_profile profile = read_now(bench.pool);
  assert_int_equal(gm_advise(&stats, &profile, &advice, 1), 1);
  assert_int_equal(advice.kind, GM_ADVICE_WARM_UP);
  assert_string_equal(advice.setting, "warmup = 2M:1,1M:3");
  for (int i = 0; i < 4; i++) give(&bench, &blocks[i], NULL);
  pool_bench_close(&bench);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 3000 };

typedef struct worker {
  pool_bench *bench;
  uint64_t bytes;
} worker;

static void *work(void *user) {
  const worker *self = user;
  gm_block last = take(self->bench, self->bytes, NULL);
  for (int i = 1; i < ROUNDS; i++) {
    const gm_block block = take(self->bench, i % 2 ? self->bytes : 64, NULL);
    give(self->bench, &last, NULL);
    last = block;
  }
  give(self->bench, &last, NULL);
  return NULL;
}

static void test_threads_and_looks_meanwhile(void **state) {
  (void)state;
  pool_bench bench;
  pthread_t threads[THREADS];
  worker workers[THREADS];
  gm_size_use sizes[THREADS + 1];
  uint64_t before = 0;
  pool_bench_open(&bench, "null", "null:capacity=1G", &arenas);
  pool_bench_ok(gm_pool_profile_begin(bench.pool, err));
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){&bench, 1000 * ((uint64_t)i + 1)};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < 20; i++) {
    const gm_trace_profile now = read_now(bench.pool);
    assert_true(now.allocs >= before && now.allocs - now.frees == now.end_live_blocks);
    assert_true(now.end_live_blocks <= 2 * THREADS && now.repeats == now.allocs - now.distinct_sizes);
    before = now.allocs;
  }
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  const gm_trace_profile all = read_now(bench.pool);
  assert_int_equal(all.allocs, THREADS * ROUNDS);
  assert_int_equal(all.frees, THREADS * ROUNDS);
  assert_int_equal(all.distinct_sizes, THREADS + 1); /* 64 is one size, whoever asks */
  assert_int_equal(sizes_now(bench.pool, sizes, THREADS + 1), THREADS + 1);
  assert_true(sizes[0].bytes == 64 && sizes[0].allocs == THREADS * (ROUNDS / 2 - 1 + ROUNDS % 2));
  pool_bench_ok(gm_pool_profile_end(bench.pool, err));
  pool_bench_close(&bench);
}

/* ---- failures ---- */

static void test_failures(void **state) {
  (void)state;
  pool_bench bench;
  size_t count = 0;
  gm_trace_profile out = {.struct_size = sizeof out}, small = {.struct_size = 8};
  pool_bench_open(&bench, "null", "null:capacity=64M", &arenas);
  assert_int_equal(gm_pool_profile_end(bench.pool, NULL), GM_ERR_NOT_FOUND);
  begin(&bench, plain);
  assert_int_equal(gm_pool_profile_begin(bench.pool, NULL), GM_ERR_BUSY);
  assert_int_equal(gm_pool_profile_read(bench.pool, &out, NULL), GM_ERR_BUSY);
  assert_int_equal(gm_pool_profile_sizes(bench.pool, NULL, 0, &count, NULL), GM_ERR_BUSY);
  assert_int_equal(gm_pool_profile_end(bench.pool, NULL), GM_ERR_NOT_FOUND);
  end(&bench);
  pool_bench_ok(gm_pool_profile_begin(bench.pool, err));
  assert_int_equal(gm_pool_profile_begin(bench.pool, NULL), GM_ERR_BUSY);
  assert_int_equal(gm_pool_record_begin(bench.pool, plain, NULL), GM_ERR_BUSY);
  assert_int_equal(gm_pool_record_end(bench.pool, NULL, NULL), GM_ERR_NOT_FOUND); /* and the profile goes on */
  assert_int_equal(gm_pool_record_mark(bench.pool, "step", NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_pool_profile_read(bench.pool, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_profile_read(bench.pool, &small, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_profile_sizes(bench.pool, NULL, 1, &count, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_profile_sizes(bench.pool, NULL, 0, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_pool_profile_end(bench.pool, err));
  assert_int_equal(gm_pool_profile_begin(NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_profile_read(NULL, &out, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_pool_profile_begin(bench.pool, err));
  pool_bench_ok(gm_pool_destroy_force(bench.pool, err));
  pool_bench_ok(gm_device_close(bench.device, err));
  pool_bench_ok(gm_context_destroy(bench.ctx, err));
  counted_services_check(&bench.host);
}

/* A profile that lost an event for want of host memory says so, and never tells half of it. */
static void test_every_lack_of_host_memory_is_told(void **state) {
  (void)state;
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  for (size_t n = 1; status; n++) {
    pool_bench bench;
    gm_block blocks[3];
    gm_size_use sizes[3];
    gm_trace_profile out = {.struct_size = sizeof out};
    gm_error err = {.status = GM_OK};
    size_t count = 0;
    pool_bench_open(&bench, "null", "null:capacity=64M", n % 2 ? &arenas : &buckets);
    for (int i = 0; i < 3; i++) blocks[i] = take(&bench, 100u << i, NULL);
    bench.host.fail_at = bench.host.calls + (n + 1) / 2;
    bench.host.fail_count = 1;
    status = gm_pool_profile_begin(bench.pool, &err);
    if (!status) status = gm_pool_profile_read(bench.pool, &out, &err);
    if (!status) status = gm_pool_profile_sizes(bench.pool, sizes, 3, &count, &err);
    bench.host.fail_at = 0;
    assert_int_equal(err.status, status);
    if (status) assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
    if (!status) assert_true(n > 10 && out.allocs == 3 && count == 3);
    gm_pool_profile_end(bench.pool, NULL);
    for (int i = 0; i < 3; i++) give(&bench, &blocks[i], NULL);
    pool_bench_close(&bench);
  }
}

/* All that a sum keeps is the host program's memory. */
static void test_a_sum_asks_the_host_program(void **state) {
  (void)state;
  counted_services host;
  gm__profile_sum sum;
  counted_services_init(&host);
  gm__profile_sum_begin(&sum, &host.services);
  gm__map *const maps[] = {&sum.allocs, &sum.live, &sum.streams};
  for (unsigned i = 0; i < sizeof maps / sizeof *maps; i++) {
    assert_int_equal(gm__map_insert(maps[i], 7, 1), GM_OK);
    assert_int_equal(host.calls, i + 1);
  }
  gm__profile_sum_end(&sum);
  counted_services_check(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_it_says_what_a_recording_says),     cmocka_unit_test(test_a_pool_that_is_not_profiled),
      cmocka_unit_test(test_sizes_and_those_that_live),         cmocka_unit_test(test_advice_without_a_file),
      cmocka_unit_test(test_threads_and_looks_meanwhile),       cmocka_unit_test(test_failures),
      cmocka_unit_test(test_every_lack_of_host_memory_is_told), cmocka_unit_test(test_a_sum_asks_the_host_program),
  };
  return cmocka_run_group_tests(tests, record_make_folder, record_drop_folder);
}
