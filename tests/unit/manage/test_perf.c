/* Performance scopes tell what a plain model counted: nested and in any order, of a pool and of a context, beside other
 * threads. */
#include "gm/perf.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "gm/debug.h"
#include "support/random.h"
#include "support/record_bench.h"

enum { BLOCKS = 40, STEPS = 1200, OPEN = 9, THREADS = 4 };

static gm_perf_report ended(gm_perf_scope *scope) {
  gm_perf_report report = {.struct_size = sizeof report};
  pool_bench_ok(gm_perf_end(scope, &report, err));
  assert_int_equal(scope->number, 0);
  assert_int_equal(report.allocs, report.local_cache_hits + report.global_cache_hits + report.misses);
  assert_in_range(report.in_use_bytes, report.requested_bytes, report.reserved_bytes);
  assert_in_range(report.peak_in_use_bytes, report.peak_requested_bytes, report.peak_reserved_bytes);
  return report;
}

/* ---- the model ---- */

typedef struct figures {
  uint64_t allocs, frees, requested, in_use;
} figures;

typedef struct model_scope {
  gm_perf_scope scope;
  figures begin;
  uint64_t peak_requested, peak_in_use, peak_reserved;
} model_scope;

typedef struct model {
  pool_bench bench;
  gm_block blocks[BLOCKS];
  uint64_t asked[BLOCKS]; /* 0: the place is free */
  figures now;
  model_scope open[OPEN];
  size_t count;
  uint64_t peak_requested, peak_in_use;
  uint64_t seed;
} model;

static void model_raise(uint64_t *value, uint64_t to) {
  if (*value < to) *value = to;
}

static void model_look(model *m) {
  const gm_stats stats = pool_bench_stats(&m->bench);
  model_raise(&m->peak_requested, m->now.requested);
  model_raise(&m->peak_in_use, m->now.in_use);
  assert_int_equal(stats.in_use_bytes, m->now.in_use);
  assert_int_equal(stats.peak_in_use_bytes, m->peak_in_use); /* of all times, whatever scopes there are */
  assert_int_equal(stats.peak_requested_bytes, m->peak_requested);
  for (size_t i = 0; i < m->count; i++) {
    model_raise(&m->open[i].peak_requested, m->now.requested);
    model_raise(&m->open[i].peak_in_use, m->now.in_use);
    model_raise(&m->open[i].peak_reserved, stats.reserved_bytes);
  }
}

static void model_turn(model *m, size_t at, uint64_t most) {
  if (m->asked[at]) {
    give(&m->bench, &m->blocks[at], NULL);
    m->now.frees++;
    m->now.requested -= m->asked[at];
    m->now.in_use -= m->blocks[at].bytes;
    m->asked[at] = 0;
  } else {
    m->asked[at] = test_log_uniform(&m->seed, most);
    m->blocks[at] = take(&m->bench, m->asked[at], NULL);
    m->now.allocs++;
    m->now.requested += m->asked[at];
    m->now.in_use += m->blocks[at].bytes;
  }
}

static void model_free_all(model *m) {
  for (size_t i = 0; i < BLOCKS; i++) {
    if (m->asked[i]) model_turn(m, i, 0);
  }
}

static void model_begin(model *m) {
  if (m->count == OPEN) return;
  model_scope *scope = &m->open[m->count];
  *scope = (model_scope){.begin = m->now};
  pool_bench_ok(gm_perf_begin(m->bench.pool, NULL, &scope->scope, err));
  m->count++;
}

static void model_end(model *m, size_t at) {
  model_scope *scope = &m->open[at];
  const gm_perf_report report = ended(&scope->scope);
  assert_int_equal(report.depth, at);
  assert_int_equal(report.allocs, m->now.allocs - scope->begin.allocs);
  assert_int_equal(report.frees, m->now.frees - scope->begin.frees);
  assert_int_equal(report.held_bytes, (int64_t)(m->now.requested - scope->begin.requested));
  assert_int_equal(report.in_use_bytes, m->now.in_use);
  assert_int_equal(report.peak_requested_bytes, scope->peak_requested);
  assert_int_equal(report.peak_in_use_bytes, scope->peak_in_use);
  assert_true(report.peak_reserved_bytes >= scope->peak_reserved);
  if (!report.peak_reserved_bytes) assert_true(report.peak_unused == 0);
  memmove(scope, scope + 1, (--m->count - at) * sizeof *scope);
}

static void model_step(model *m) {
  const uint64_t draw = test_random(&m->seed);
  const size_t at = (size_t)(draw >> 8) % BLOCKS;
  if (draw % 16 < 12) {
    model_turn(m, at, 300000);
  } else if (draw % 16 == 12 || !m->count) {
    model_begin(m);
  } else if (draw % 16 == 13) {
    model_end(m, at % m->count); /* in any order */
  } else {
    model_end(m, m->count - 1);
  }
  if (draw % 500 == 0) gm_pool_trim(m->bench.pool, 0);
  model_look(m);
}

static void check_model(const char *backend, const gm_pool_params *params) {
  model m = {.seed = 20261129};
  pool_bench_open(&m.bench, backend, NULL, params);
  for (int i = 0; i < STEPS; i++) model_step(&m);
  while (m.count) model_end(&m, 0);
  model_free_all(&m);
  pool_bench_close(&m.bench);
}

static void test_random_scopes_are_as_the_model(void **state) {
  (void)state;
  check_model("null", &arenas);
  check_model("null", &buckets);
}

/* The statistics after random requests. The pool takes and keeps segments by what it had in use at most. */
static gm_stats stats_after(bool scopes) {
  gm_perf_scope scope;
  const gm_pool_params segments = {.struct_size = sizeof segments, .no_vmm = true};
  model m = {.seed = 7};
  pool_bench_open(&m.bench, "null", "null:capacity=256G", &segments);
  for (int i = 0; i < 1500; i++) {
    const size_t at = test_random(&m.seed) % BLOCKS;
    if (i % 300 == 299) model_free_all(&m);
    if (scopes) pool_bench_ok(gm_perf_begin(m.bench.pool, NULL, &scope, err));
    model_turn(&m, at, UINT64_C(1) << (22 + i / 300 * 2));
    if (scopes) ended(&scope);
  }
  gm_stats stats = pool_bench_stats(&m.bench);
  stats.driver_ns = 0;
  model_free_all(&m);
  pool_bench_close(&m.bench);
  return stats;
}

static void test_scopes_change_nothing(void **state) {
  (void)state;
  char one[2048], other[2048];
  const gm_stats without = stats_after(false), with = stats_after(true);
  assert_true(without.driver_frees > 0);
  gm_stats_format(&without, one, sizeof one);
  gm_stats_format(&with, other, sizeof other);
  assert_string_equal(one, other);
}

static void test_driver_calls_and_refusals_of_a_scope(void **state) {
  (void)state;
  pool_bench bench;
  gm_perf_scope outer, inner;
  pool_bench_open(&bench, "null", "null:capacity=64M", &buckets);
  const gm_block before = take(&bench, 4 << 20, NULL);
  pool_bench_ok(gm_perf_begin(bench.pool, "outer", &outer, err));
  give(&bench, &before, NULL);
  pool_bench_ok(gm_perf_begin(bench.pool, "inner", &inner, err));
  const gm_stats then = pool_bench_stats(&bench);
  const gm_block again = take(&bench, 4 << 20, NULL), fresh = take(&bench, 8 << 20, NULL);
  gm_block none;
  assert_true(gm_alloc(bench.pool, &(gm_request){.bytes = 128 << 20}, &none) > GM_ACQUIRE_FRESH);
  gm_perf_report report = ended(&inner);
  assert_int_equal(report.misses, 1);
  assert_int_equal(report.local_cache_hits + report.global_cache_hits, 1);
  assert_int_equal(report.failures + report.over_limit, 1);
  const gm_stats now = pool_bench_stats(&bench);
  assert_int_equal(report.driver_allocs, now.driver_allocs - then.driver_allocs);
  assert_int_equal(report.driver_ns, now.driver_ns - then.driver_ns);
  assert_true(report.driver_allocs >= 1);
  assert_int_equal(report.peak_in_use_bytes, 12 << 20);
  assert_true(report.peak_unused == 0);
  give(&bench, &again, NULL);
  give(&bench, &fresh, NULL);
  gm_pool_trim(bench.pool, 0);
  report = ended(&outer);
  assert_int_equal(report.frees, 3);
  assert_int_equal(report.held_bytes, -(4 << 20));
  assert_true(report.driver_frees >= 2 && report.reserved_bytes == 0);
  assert_int_equal(report.peak_reserved_bytes, 12 << 20);
  pool_bench_close(&bench);
}

/* ---- threads ---- */

typedef struct worker {
  const pool_bench *bench;
  int turns;
  bool scopes; /* it opens scopes of its own, too */
} worker;

static void *worker_run(void *user) {
  const worker *self = user;
  for (int i = 0; i < self->turns; i++) {
    gm_perf_scope scope;
    if (self->scopes && gm_perf_begin(self->bench->pool, NULL, &scope, NULL)) return user;
    const gm_block block = take(self->bench, 4096, NULL);
    if (i % 8 == 0) {
      const gm_block other = take(self->bench, 10000, NULL);
      give(self->bench, &other, NULL);
    }
    give(self->bench, &block, NULL);
    gm_perf_report report = {.struct_size = sizeof report};
    if (!self->scopes) continue;
    if (gm_perf_end(&scope, &report, NULL)) return user;
    if (report.allocs < 1 || report.frees < 1 || report.peak_in_use_bytes < 4096) return user;
  }
  return NULL;
}

static void run_workers(worker *work) {
  pthread_t threads[THREADS];
  void *failed;
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, worker_run, work), 0);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_join(threads[i], &failed), 0);
    assert_null(failed);
  }
}

/* Each inner scope has the calls of all threads in its time, so together they have those of the outer one. */
static void check_threads(const gm_pool_params *params) {
  pool_bench bench;
  gm_perf_scope outer, inner;
  uint64_t allocs = 0, peak = 0;
  pool_bench_open(&bench, "null", NULL, params);
  pool_bench_ok(gm_perf_begin(bench.pool, NULL, &outer, err));
  for (int i = 1; i <= 3; i++) {
    worker work = {.bench = &bench, .turns = 64 * i};
    pool_bench_ok(gm_perf_begin(bench.pool, NULL, &inner, err));
    run_workers(&work);
    const gm_perf_report report = ended(&inner);
    assert_int_equal(report.allocs, THREADS * 72 * i);
    assert_int_equal(report.held_bytes, 0);
    allocs += report.allocs;
    model_raise(&peak, report.peak_in_use_bytes);
  }
  const gm_perf_report report = ended(&outer);
  assert_int_equal(report.allocs, allocs);
  assert_int_equal(report.frees, allocs);
  assert_int_equal(report.peak_in_use_bytes, peak);
  pool_bench_close(&bench);
}

static void test_all_threads_count(void **state) {
  (void)state;
  check_threads(&arenas);
  check_threads(&buckets);
}

static void test_scopes_of_many_threads_at_once(void **state) {
  (void)state;
  pool_bench bench;
  gm_perf_scope whole;
  worker work = {.bench = &bench, .turns = 200, .scopes = true};
  pool_bench_open(&bench, "null", NULL, &arenas);
  pool_bench_ok(gm_perf_begin_context(bench.ctx, NULL, &whole, err));
  run_workers(&work);
  const gm_perf_report report = ended(&whole);
  const gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(report.allocs, THREADS * 225);
  assert_in_range(report.peak_in_use_bytes, 14096, stats.peak_in_use_bytes); /* one thread's, and all threads' */
  assert_int_equal(report.peak_reserved_bytes, stats.peak_reserved_bytes);
  pool_bench_close(&bench);
}

/* ---- contexts ---- */

static gm_pool *pool_of(pool_bench *bench) {
  gm_pool *pool;
  pool_bench_ok(gm_pool_create(bench->device, &buckets, &pool, err));
  return pool;
}

static void use_pool(const pool_bench *bench, gm_pool *pool, uint64_t bytes) {
  const pool_bench other = {.device = bench->device, .pool = pool};
  const gm_block block = take(&other, bytes, NULL);
  give(&other, &block, NULL);
}

static void test_a_context_has_pools_that_come_and_go(void **state) {
  (void)state;
  pool_bench bench;
  gm_perf_scope outer, inner, own;
  pool_bench_open(&bench, "null", NULL, &buckets);
  gm_pool *old = pool_of(&bench);
  use_pool(&bench, old, 32 << 20); /* before: no scope sees it */
  gm_pool_trim(old, 0);
  pool_bench_ok(gm_perf_begin_context(bench.ctx, "outer", &outer, err));
  use_pool(&bench, bench.pool, 1 << 20);
  use_pool(&bench, old, 2 << 20);
  pool_bench_ok(gm_perf_begin(bench.pool, NULL, &own, err)); /* it hides no peak from the context's scopes */
  pool_bench_ok(gm_perf_begin_context(bench.ctx, "inner", &inner, err));
  use_pool(&bench, old, 8 << 20);
  pool_bench_ok(gm_pool_destroy(old, err));
  gm_pool *young = pool_of(&bench);
  use_pool(&bench, young, 4 << 20);
  gm_perf_report report = ended(&inner);
  assert_int_equal(report.allocs, 2);
  assert_int_equal(report.frees, 2);
  assert_int_equal(report.peak_in_use_bytes, 12 << 20); /* a sum: nobody knows that they were one after the other */
  assert_int_equal(ended(&own).allocs, 0);
  use_pool(&bench, bench.pool, 1 << 20);
  report = ended(&outer);
  assert_int_equal(report.allocs, 5);
  assert_int_equal(report.held_bytes, 0);
  assert_int_equal(report.peak_in_use_bytes, 13 << 20);
  pool_bench_ok(gm_pool_destroy(young, err));
  pool_bench_close(&bench);
}

static void test_names_are_marks_of_a_recording(void **state) {
  (void)state;
  char text[4096];
  pool_bench bench;
  gm_perf_scope scope, all, unnamed;
  pool_bench_open(&bench, "null", NULL, &arenas);
  begin(&bench, plain);
  pool_bench_ok(gm_perf_begin_context(bench.ctx, "step 7", &all, err));
  pool_bench_ok(gm_perf_begin(bench.pool, "attention", &scope, err));
  pool_bench_ok(gm_perf_begin(bench.pool, NULL, &unnamed, err));
  use_pool(&bench, bench.pool, 4096);
  ended(&unnamed);
  ended(&scope);
  ended(&all);
  assert_int_equal(end(&bench).marks, 6);
  FILE *file = fopen(plain, "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  assert_non_null(strstr(text, "m begin step 7\nm begin attention\n"));
  assert_non_null(strstr(text, "m end attention\nm end step 7\n"));
  pool_bench_close(&bench);
}

/* ---- bad input ---- */

static void refuse(gm_status want, gm_status got) { assert_int_equal(got, want); }

static void test_bad_input_is_refused(void **state) {
  (void)state;
  pool_bench bench;
  gm_perf_scope scope, none = {0};
  gm_perf_report report = {.struct_size = 3};
  char name[GM_PERF_NAME_SIZE + 1] = "";
  memset(name, 'n', GM_PERF_NAME_SIZE);
  pool_bench_open(&bench, "null", NULL, NULL);
  refuse(GM_ERR_INVALID_ARGUMENT, gm_perf_begin(NULL, NULL, &scope, NULL));
  refuse(GM_ERR_INVALID_ARGUMENT, gm_perf_begin(bench.pool, NULL, NULL, NULL));
  refuse(GM_ERR_INVALID_ARGUMENT, gm_perf_begin(bench.pool, "", &scope, NULL));
  refuse(GM_ERR_INVALID_ARGUMENT, gm_perf_begin(bench.pool, name, &scope, NULL));
  refuse(GM_ERR_INVALID_ARGUMENT, gm_perf_begin_context(NULL, NULL, &scope, NULL));
  refuse(GM_ERR_INVALID_ARGUMENT, gm_perf_end(NULL, NULL, NULL));
  refuse(GM_ERR_INVALID_ARGUMENT, gm_perf_end(&none, NULL, NULL));
  none = (gm_perf_scope){.number = 1, .pool = bench.pool, .ctx = bench.ctx};
  refuse(GM_ERR_INVALID_ARGUMENT, gm_perf_end(&none, NULL, NULL)); /* the pool never had one */
  none.pool = NULL;
  refuse(GM_ERR_INVALID_ARGUMENT, gm_perf_end(&none, NULL, NULL));
  name[GM_PERF_NAME_SIZE - 1] = 0;
  pool_bench_ok(gm_perf_begin(bench.pool, name, &scope, err));
  refuse(GM_ERR_INVALID_ARGUMENT, gm_perf_end(&scope, &report, NULL));
  none = scope;
  pool_bench_ok(gm_perf_end(&scope, NULL, err));
  refuse(GM_ERR_INVALID_ARGUMENT, gm_perf_end(&scope, NULL, NULL));
  refuse(GM_ERR_INVALID_ARGUMENT, gm_perf_end(&none, NULL, NULL)); /* a copy */
  pool_bench_close(&bench);
}

static void test_no_more_than_the_most(void **state) {
  (void)state;
  pool_bench bench;
  gm_perf_scope scopes[GM_PERF_DEPTH_MOST], none;
  pool_bench_open(&bench, "null", NULL, NULL);
  for (int i = 0; i < GM_PERF_DEPTH_MOST; i++) pool_bench_ok(gm_perf_begin(bench.pool, NULL, &scopes[i], err));
  refuse(GM_ERR_OVER_LIMIT, gm_perf_begin(bench.pool, NULL, &none, NULL));
  use_pool(&bench, bench.pool, 4096);
  for (int i = GM_PERF_DEPTH_MOST; i-- > 0;) assert_int_equal(ended(&scopes[i]).allocs, 1);
  for (int i = 0; i < GM_PERF_DEPTH_MOST; i++) pool_bench_ok(gm_perf_begin_context(bench.ctx, NULL, &scopes[i], err));
  refuse(GM_ERR_OVER_LIMIT, gm_perf_begin_context(bench.ctx, NULL, &none, NULL));
  for (int i = 0; i < GM_PERF_DEPTH_MOST; i++) assert_int_equal(ended(&scopes[i]).allocs, 0);
  pool_bench_close(&bench);
}

static void test_nothing_is_destroyed_under_a_scope(void **state) {
  (void)state;
  pool_bench bench;
  gm_perf_scope scope, all;
  gm_error why;
  pool_bench_open(&bench, "null", NULL, NULL);
  gm_pool *forced = pool_of(&bench);
  pool_bench_ok(gm_perf_begin(bench.pool, "open", &scope, err));
  assert_int_equal(gm_pool_destroy(bench.pool, &why), GM_ERR_BUSY);
  assert_non_null(strstr(why.message, "1 buffers, scopes"));
  ended(&scope);
  pool_bench_ok(gm_perf_begin(forced, "open", &scope, err));
  pool_bench_ok(gm_perf_begin_context(bench.ctx, "open", &all, err));
  pool_bench_ok(gm_pool_destroy_force(forced, err));
  refuse(GM_ERR_INVALID_ARGUMENT, gm_perf_end(&scope, NULL, NULL));
  pool_bench_ok(gm_pool_destroy(bench.pool, err));
  pool_bench_ok(gm_device_close(bench.device, err));
  assert_int_equal(gm_context_destroy(bench.ctx, &why), GM_ERR_BUSY);
  assert_non_null(strstr(why.message, "1 devices, trackers, watches or scopes"));
  ended(&all);
  pool_bench_ok(gm_context_destroy(bench.ctx, err));
  counted_services_check(&bench.host);
}

static void test_a_forked_child_ends_no_scope(void **state) {
  (void)state;
  pool_bench bench;
  gm_perf_scope scope, all, none;
  pool_bench_open(&bench, "null", NULL, NULL);
  pool_bench_ok(gm_perf_begin(bench.pool, "open", &scope, err));
  pool_bench_ok(gm_perf_begin_context(bench.ctx, "open", &all, err));
  const pid_t child = fork();
  if (!child) {
    const bool refused = gm_perf_begin(bench.pool, NULL, &none, NULL) == GM_ERR_FORKED &&
                         gm_perf_end(&scope, NULL, NULL) == GM_ERR_FORKED &&
                         gm_perf_end(&all, NULL, NULL) == GM_ERR_FORKED && !all.number;
    pool_bench_close(&bench); /* all host memory is given back */
    _exit(refused ? 0 : 1);
  }
  int answer = -1;
  assert_int_equal(waitpid(child, &answer, 0), child);
  assert_int_equal(answer, 0);
  ended(&all);
  ended(&scope);
  pool_bench_close(&bench);
}

/* Each request for host memory of the first scope fails once. */
static void check_host_memory(pool_bench *bench, bool of_context) {
  gm_perf_scope scope;
  gm_status status;
  size_t n = 0;
  do {
    bench->host.fail_at = atomic_load(&bench->host.calls) + ++n;
    bench->host.fail_count = 1;
    status = of_context ? gm_perf_begin_context(bench->ctx, NULL, &scope, NULL)
                        : gm_perf_begin(bench->pool, NULL, &scope, NULL);
  } while (status == GM_ERR_OUT_OF_HOST_MEMORY);
  assert_int_equal(status, GM_OK);
  assert_int_equal(n, 3); /* the list, and a place in it */
  ended(&scope);
}

static void test_without_host_memory_nothing_begins(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", NULL, NULL);
  check_host_memory(&bench, false);
  check_host_memory(&bench, true);
  bench.host.fail_at = 0;
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_scopes_are_as_the_model),
                                     cmocka_unit_test(test_scopes_change_nothing),
                                     cmocka_unit_test(test_driver_calls_and_refusals_of_a_scope),
                                     cmocka_unit_test(test_all_threads_count),
                                     cmocka_unit_test(test_scopes_of_many_threads_at_once),
                                     cmocka_unit_test(test_a_context_has_pools_that_come_and_go),
                                     cmocka_unit_test(test_names_are_marks_of_a_recording),
                                     cmocka_unit_test(test_bad_input_is_refused),
                                     cmocka_unit_test(test_no_more_than_the_most),
                                     cmocka_unit_test(test_nothing_is_destroyed_under_a_scope),
                                     cmocka_unit_test(test_a_forked_child_ends_no_scope),
                                     cmocka_unit_test(test_without_host_memory_nothing_begins)};
  return cmocka_run_group_tests(tests, record_make_folder, record_drop_folder);
}
