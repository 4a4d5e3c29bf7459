/* Threads that share a scope: they fill it and clear it, and nothing is lost or released twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/thread.h"
#include "gm/scope.h"
#include "support/pool_bench.h"

enum { THREADS = 4, TURNS = 200 };

static const gm_request thousand = {.bytes = 1000};
static const gm_buffer_params a_buffer = {.struct_size = sizeof a_buffer, .request = {.bytes = 1000}};

static atomic_int calls, released;

/* Every other call refuses, and is repeated later. */
static gm_status count_release(void *object, gm_stream *stream) {
  (void)object, (void)stream;
  if (atomic_fetch_add(&calls, 1) % 2 == 0) return GM_ERR_BUSY;
  atomic_fetch_add(&released, 1);
  return GM_OK;
}

static atomic_int failed;

static void fill_and_clear(void *arg) {
  gm_scope *scope = arg;
  gm_buffer *buffer = NULL;
  gm_block block;
  for (int i = 0; i < TURNS; i++) {
    const bool fine = gm_scope_alloc(scope, NULL, &thousand, &block, NULL) == GM_OK &&
                      gm_scope_buffer(scope, &a_buffer, &buffer, NULL) == GM_OK &&
                      gm_scope_defer(scope, count_release, NULL, NULL) == GM_OK;
    if (!fine) atomic_fetch_add(&failed, 1);
    if (i % 10 == 9) gm_scope_clear(scope, NULL, NULL);
  }
}

static void test_threads_share_a_scope(void **state) {
  (void)state;
  pool_bench bench;
  gm_scope *scope = NULL;
  gm__thread threads[THREADS];
  gm_status left = GM_ERR_BUSY;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  pool_bench_ok(gm_scope_create(bench.pool, &scope, err));
  for (int i = 0; i < THREADS; i++) pool_bench_ok(gm__thread_create(&threads[i], "scope", fill_and_clear, scope, err));
  for (int i = 0; i < THREADS; i++) gm__thread_join(&threads[i]);
  assert_int_equal(atomic_load(&failed), 0);
  for (int i = 0; left && i < 1 + THREADS * TURNS; i++) left = gm_scope_clear(scope, NULL, NULL);
  assert_int_equal(left, GM_OK);
  assert_int_equal(pool_bench_stats(&bench).active, 0);
  assert_int_equal(atomic_load(&released), THREADS * TURNS);
  gm_scope_end(scope, NULL);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_share_a_scope)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
