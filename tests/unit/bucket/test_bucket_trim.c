/* A trim of many driver allocations holds the lock that requests take for a piece of them. Others use the pool in
 * between, played here by the thread itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/bucket/dedicated.h"
#include "core/provider/walk.h"
#include "gm/cleanup.h"
#include "gm/stream.h"
#include "support/pool_bench.h"

enum { BLOCKS = 6000, BYTES = 4096, PIECE = 1024 };

static struct {
  size_t all, piece, most, pieces; /* blocks that a trim settled or let go: in all, since the lock was entered */
  void (*between)(void);
} steps;

static void steps_count(void) {
  steps.all++;
  steps.piece++;
  if (steps.piece > steps.most) steps.most = steps.piece;
}

bool __real_gm__dedicated_settle(gm__dedicated *dedicated, gm__allocation *allocation);
bool __wrap_gm__dedicated_settle(gm__dedicated *dedicated, gm__allocation *allocation);
bool __wrap_gm__dedicated_settle(gm__dedicated *dedicated, gm__allocation *allocation) {
  steps_count();
  return __real_gm__dedicated_settle(dedicated, allocation);
}

void __real_gm__allocation_release(gm__allocation_table *table, gm__allocation *allocation);
void __wrap_gm__allocation_release(gm__allocation_table *table, gm__allocation *allocation);
void __wrap_gm__allocation_release(gm__allocation_table *table, gm__allocation *allocation) {
  steps_count();
  __real_gm__allocation_release(table, allocation);
}

void __wrap_gm__provider_breathe(gm__provider *provider);
void __wrap_gm__provider_breathe(gm__provider *provider) {
  void (*between)(void) = steps.between;
  gm__mutex_unlock(&provider->lock);
  steps.between = NULL; /* what happens in between counts as nothing */
  const size_t most = steps.most;
  if (between) between();
  steps.most = most;
  steps.between = between;
  gm__mutex_lock(&provider->lock);
  steps.piece = 0;
  steps.pieces++;
}

static pool_bench bench;
static gm_block blocks[BLOCKS];
static bool out[BLOCKS];

static void take(int at) {
  const gm_request request = {.bytes = BYTES};
  assert_in_range(gm_alloc(bench.pool, &request, &blocks[at]), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  out[at] = true;
}

static void give(int at, gm_stream *stream) {
  assert_int_equal(gm_free(bench.pool, &blocks[at], stream), GM_OK);
  out[at] = false;
}

static void scene_open(void) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BUCKET};
  pool_bench_open_device(&bench, "null", "null:capacity=1G");
  pool_bench_ok(gm_config_set(bench.ctx, "max_pooled_per_bucket", "100000", err));
  pool_bench_ok(gm_config_set(bench.ctx, "cache_size", "100000", err));
  pool_bench_ok(gm_pool_create(bench.device, &params, &bench.pool, err));
  for (int i = 0; i < BLOCKS; i++) take(i);
}

static void give_all(gm_stream *stream) {
  for (int i = 0; i < BLOCKS; i++) {
    if (out[i]) give(i, stream);
  }
}

/* The newest blocks go out, some for good, and others come back. */
static void churn(void) {
  static int turn;
  for (int i = 0; i < 50; i++) take(turn * 50 % (BLOCKS / 2) + i);
  for (int i = 0; i < 40; i++) give(turn * 50 % (BLOCKS / 2) + i, NULL);
  turn++;
}

static void begin(void (*between)(void)) {
  steps.all = steps.piece = steps.most = steps.pieces = 0;
  steps.between = between;
}

static void end(const char *what) {
  steps.between = NULL;
  printf("  %s: %zu steps in %zu pieces, %zu at once\n", what, steps.all, steps.pieces, steps.most);
  assert_true(steps.all >= BLOCKS / 2);
  assert_true(steps.most <= 2 * PIECE); /* the end of one walk, and a piece of the next */
  assert_true(steps.pieces >= BLOCKS / 2 / PIECE);
}

static void test_a_trim_lets_blocks_go_in_pieces(void **state) {
  (void)state;
  for (int busy = 0; busy < 2; busy++) {
    scene_open();
    give_all(NULL);
    begin(busy ? churn : NULL);
    gm_pool_trim(bench.pool, BYTES * (uint64_t)BLOCKS / 4);
    end("a trim to a quarter");
    give_all(NULL);
    begin(NULL);
    gm_pool_trim(bench.pool, 0);
    steps.between = NULL;
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
    pool_bench_close(&bench);
  }
}

static void test_a_collection_looks_in_pieces(void **state) {
  (void)state;
  gm_stream *stream;
  scene_open();
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  give_all(stream);
  pool_bench_ok(gm_stream_sync(stream, err));
  begin(NULL);
  gm_pool_collect(bench.pool);
  end("a collection");
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_trim_lets_blocks_go_in_pieces),
                                     cmocka_unit_test(test_a_collection_looks_in_pieces)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
