/* gm_explain names the cause of a refusal, and the change that helps. Where the change can be made, it is made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gm/quota.h"
#include "gm/reserve.h"
#include "gm/tracker.h"
#include "support/causes.h"
#include "support/fake_backend.h"
#include "support/pool_bench.h"

enum { MANY = 64 };

static void give_all(gm_pool *pool, const gm_block *blocks, int count, int from, int step) {
  for (int i = from; i < count; i += step) assert_int_equal(gm_free(pool, &blocks[i], NULL), GM_OK);
}

static void test_nothing_was_refused(void **state) {
  (void)state;
  pool_bench bench;
  const gm_request request = {.bytes = MIB};
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  const gm_explanation why = explained(bench.pool, &request);
  assert_int_equal(why.cause, GM_CAUSE_NONE);
  assert_int_equal(why.change, GM_CHANGE_NONE);
  assert_null(strstr(why.text, "Cause"));
  pool_bench_close(&bench);
}

/* Those at even places first. */
static int by_place(const void *one, const void *other) {
  const uint64_t a = ((const gm_block *)one)->address / MIB, b = ((const gm_block *)other)->address / MIB;
  return a % 2 != b % 2 ? (a % 2 ? 1 : -1) : (a > b) - (a < b);
}

/* Each second block is free: half of the memory, and no two beside each other. */
static void test_fragmentation(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true};
  pool_bench bench;
  gm_block blocks[MANY];
  gm_request request = {.bytes = MIB};
  pool_bench_open_device(&bench, "null", "null:capacity=64M");
  pool_bench_ok(gm_config_set(bench.ctx, "segment_size", "64M", err));
  pool_bench_ok(gm_pool_create(bench.device, &params, &bench.pool, err));
  for (int i = 0; i < MANY; i++) blocks[i] = served(bench.pool, &request);
  qsort(blocks, MANY, sizeof *blocks, by_place);
  give_all(bench.pool, blocks, MANY / 2, 0, 1);
  request.bytes = 2 * MIB;
  const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_FRAGMENTATION, GM_CHANGE_SPLIT);
  assert_true(why.ever_fits);
  assert_true(why.change_bytes == MIB && why.largest_pooled_bytes == MIB);
  assert_true(why.fragmentation > 0.9);
  request.bytes = why.change_bytes;
  blocks[0] = served(bench.pool, &request);
  give_all(bench.pool, blocks, 1, 0, 1);
  request = (gm_request){.bytes = 2 * MIB, .flags = GM_ALLOW_SPANS};
  blocks[0] = served(bench.pool, &request);
  give_all(bench.pool, blocks, 1, 0, 1);
  give_all(bench.pool, blocks, MANY, MANY / 2, 1);
  pool_bench_close(&bench);
}

static void test_pool_cap(void **state) {
  (void)state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};
  for (size_t s = 0; s < 2; s++) {
    const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategies[s], .max_bytes = 8 * MIB};
    pool_bench bench;
    const gm_request request = {.bytes = 4 * MIB};
    pool_bench_open(&bench, "null", "null:capacity=64M", &params);
    const gm_block one = served(bench.pool, &request), two = served(bench.pool, &request);
    const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_POOL_CAP, GM_CHANGE_RAISE_CAP);
    assert_true(why.change_bytes == 4 * MIB && why.ever_fits);
    pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 8 * MIB + why.change_bytes - 1, err));
    assert_int_equal(refused_as(bench.pool, &request, GM_CAUSE_POOL_CAP, GM_CHANGE_RAISE_CAP).change_bytes, 1);
    pool_bench_ok(gm_pool_set_max_bytes(bench.pool, 8 * MIB + why.change_bytes, err));
    const gm_block three = served(bench.pool, &request);
    assert_int_equal(gm_free(bench.pool, &one, NULL), GM_OK);
    assert_int_equal(gm_free(bench.pool, &two, NULL), GM_OK);
    assert_int_equal(gm_free(bench.pool, &three, NULL), GM_OK);
    pool_bench_close(&bench);
  }
}

static void test_quota(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  const gm_request request = {.bytes = 3 * MIB, .tag = gm_tag(bench.ctx, "kv")};
  pool_bench_ok(gm_pool_set_quota(bench.pool, request.tag, 5 * MIB, 0, 0, err));
  const gm_block one = served(bench.pool, &request);
  const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_QUOTA, GM_CHANGE_RAISE_QUOTA);
  assert_int_equal(why.change_tag, request.tag);
  assert_true(why.change_bytes == MIB && why.ever_fits);
  pool_bench_ok(gm_pool_set_quota(bench.pool, request.tag, 6 * MIB - 1, 0, 0, err));
  assert_int_equal(refused_as(bench.pool, &request, GM_CAUSE_QUOTA, GM_CHANGE_RAISE_QUOTA).change_bytes, 1);
  pool_bench_ok(gm_pool_set_quota(bench.pool, request.tag, 6 * MIB, 0, 0, err));
  const gm_block two = served(bench.pool, &request);
  assert_int_equal(gm_free(bench.pool, &one, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &two, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* A tag that may borrow: the sum of all quotas is what refuses. */
static void test_quota_of_several_tags(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  const uint32_t other = gm_tag(bench.ctx, "weights");
  const gm_request request = {.bytes = 4 * MIB, .tag = gm_tag(bench.ctx, "kv")};
  pool_bench_ok(gm_pool_set_quota(bench.pool, request.tag, 2 * MIB, GM_QUOTA_BORROW, 0, err));
  pool_bench_ok(gm_pool_set_quota(bench.pool, other, 4 * MIB, GM_QUOTA_BORROW, 0, err));
  const gm_block one = served(bench.pool, &request);
  const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_QUOTA, GM_CHANGE_RAISE_QUOTA);
  assert_true(why.change_bytes == 2 * MIB);
  pool_bench_ok(gm_pool_set_quota(bench.pool, request.tag, 4 * MIB, GM_QUOTA_BORROW, 0, err));
  const gm_block two = served(bench.pool, &request);
  assert_int_equal(gm_free(bench.pool, &one, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &two, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_reserve(void **state) {
  (void)state;
  const gm_pool_params half = {.struct_size = sizeof half, .memory_fraction = 0.5},
                       keeps = {.struct_size = sizeof keeps, .min_free_bytes = 24 * MIB};
  pool_bench bench;
  gm_pool *pool;
  const gm_request request = {.bytes = 24 * MIB};
  pool_bench_open(&bench, "null", "null:capacity=64M", &half);
  gm_block one = served(bench.pool, &request);
  gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_RESERVE, GM_CHANGE_LOWER_RESERVE);
  assert_true(why.change_bytes == 16 * MIB && why.ever_fits);
  assert_int_equal(why.rungs[GM_RUNG_DRIVER].count, 0); /* the device was not asked */
  pool_bench_ok(gm_pool_create(bench.device, &keeps, &pool, err));
  why = refused_as(pool, &request, GM_CAUSE_RESERVE, GM_CHANGE_LOWER_RESERVE); /* 40 MiB free, 24 of them to stay */
  assert_true(why.change_bytes == 8 * MIB);
  pool_bench_ok(gm_pool_destroy(pool, err));
  assert_int_equal(gm_free(bench.pool, &one, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* Other reservations are in the way; the pool's own one is not. */
static void test_promised(void **state) {
  (void)state;
  pool_bench bench;
  gm_reservation *held = NULL, *own = NULL;
  gm_request request = {.bytes = 40 * MIB};
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = 32 * MIB};
  pool_bench_ok(gm_reserve(bench.device, &params, &held, err));
  pool_bench_ok(gm_pool_reserve(bench.pool, 16 * MIB, &own, err));
  gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_PROMISED, GM_CHANGE_CANCEL);
  assert_true(why.change_bytes == 8 * MIB && why.ever_fits);
  gm_reservation_cancel(held);
  gm_block one = served(bench.pool, &request);
  assert_int_equal(gm_free(bench.pool, &one, NULL), GM_OK);
  gm_reservation_cancel(own);
  pool_bench_close(&bench);
}

static void test_device_full_and_too_large(void **state) {
  (void)state;
  pool_bench bench;
  gm_request request = {.bytes = 48 * MIB};
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  const gm_block one = served(bench.pool, &request);
  gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_DEVICE_FULL, GM_CHANGE_FREE);
  assert_true(why.change_bytes == 32 * MIB && why.ever_fits);
  request.bytes = 65 * MIB;
  why = refused_as(bench.pool, &request, GM_CAUSE_TOO_LARGE, GM_CHANGE_ASK_LESS);
  assert_true(why.change_bytes == 49 * MIB && !why.ever_fits && !why.change_at_least); /* 16 MiB are free */
  request.bytes -= why.change_bytes;
  const gm_block two = served(bench.pool, &request);
  assert_int_equal(gm_free(bench.pool, &two, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &one, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_single_allocation(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = true};
  pool_bench bench;
  gm_request request = {.bytes = 24 * MIB};
  pool_bench_open(&bench, "null", "null:capacity=64M,max_alloc=16M", &params);
  const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_SINGLE_ALLOCATION, GM_CHANGE_SPLIT);
  assert_true(why.change_bytes == 16 * MIB && !why.ever_fits);
  request.bytes = why.change_bytes;
  const gm_block block = served(bench.pool, &request);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  request = (gm_request){.bytes = 24 * MIB, .flags = GM_ALLOW_SPANS};
  const gm_block spans = served(bench.pool, &request);
  assert_int_equal(gm_free(bench.pool, &spans, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* A tag leaves one block behind in each step. Another one holds as much, from before the first step. */
static void test_leak_by_tag(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 32 * MIB, .track = true};
  pool_bench bench;
  gm_block weights[12], left[12];
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  gm_request request = {.bytes = MIB, .tag = gm_tag(bench.ctx, "weights")};
  for (int i = 0; i < 12; i++) weights[i] = served(bench.pool, &request);
  request.tag = gm_tag(bench.ctx, "activations");
  for (int i = 0; i < 12; i++) {
    gm_tracker_mark(gm_pool_tracker(bench.pool));
    left[i] = served(bench.pool, &request);
    const gm_block passing = served(bench.pool, &request);
    assert_int_equal(gm_free(bench.pool, &passing, NULL), GM_OK);
  }
  request = (gm_request){.bytes = 10 * MIB};
  const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_LEAK_BY_TAG, GM_CHANGE_FREE);
  assert_int_equal(why.change_tag, gm_tag(bench.ctx, "activations"));
  assert_true(why.change_bytes == 2 * MIB);
  assert_int_equal(why.tag_count, 2);
  assert_true(why.tags[0].bytes == 12 * MIB && why.tags[0].count == 12);
  assert_int_equal(why.tags[0].tag + why.tags[1].tag, gm_tag(bench.ctx, "weights") + gm_tag(bench.ctx, "activations"));
  give_all(bench.pool, left, 12, 0, 1);
  for (int i = 0; i < 12; i++) left[i] = served(bench.pool, &(gm_request){.bytes = MIB}); /* all in this step */
  refused_as(bench.pool, &request, GM_CAUSE_POOL_CAP, GM_CHANGE_RAISE_CAP);
  give_all(bench.pool, left, 12, 0, 1);
  give_all(bench.pool, weights, 12, 0, 1);
  pool_bench_close(&bench);
}

/* ---- a scripted driver ---- */

static void open_fake(pool_bench *bench, const gm_pool_params *params) {
  const gm_context_params context = {.struct_size = sizeof context, .ignore_environment = true};
  pool_bench_ok(gm_context_create(&context, &bench->ctx, err));
  pool_bench_ok(gm_config_set(bench->ctx, "memory_fraction", "1", err));
  pool_bench_ok(gm_config_set(bench->ctx, "min_free_bytes", "0", err));
  pool_bench_ok(gm_backend_register(bench->ctx, &fake_ops, err));
  pool_bench_ok(gm_device_open_index(bench->ctx, "fake", 0, &bench->device, err));
  pool_bench_ok(gm_pool_create(bench->device, params, &bench->pool, err));
}

static void close_fake(pool_bench *bench) {
  pool_bench_ok(gm_pool_destroy(bench->pool, err));
  pool_bench_ok(gm_device_close(bench->device, err));
  pool_bench_ok(gm_context_destroy(bench->ctx, err));
}

/* Others hold 900 of 1000 MiB. */
static void test_other_process(void **state) {
  (void)state;
  pool_bench bench;
  gm_request request = {.bytes = 160 * MIB};
  fake_backend_reset();
  fake.free_bytes[0] = 100 * MIB;
  open_fake(&bench, NULL);
  gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_OTHER_PROCESS, GM_CHANGE_FREE_ELSEWHERE);
  assert_true(why.change_bytes == 60 * MIB && why.used_by_others_bytes == 900 * MIB && why.ever_fits);
  fake.free_bytes[0] = 159 * MIB;
  why = refused_as(bench.pool, &request, GM_CAUSE_OTHER_PROCESS, GM_CHANGE_FREE_ELSEWHERE);
  assert_true(why.change_bytes == MIB);
  close_fake(&bench);
}

static void test_device_lost(void **state) {
  (void)state;
  pool_bench bench;
  const gm_request request = {.bytes = 160 * MIB};
  fake_backend_reset();
  open_fake(&bench, NULL);
  fake.type_status[0] = GM_ERR_DEVICE_LOST;
  const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_DEVICE_LOST, GM_CHANGE_REOPEN);
  assert_true(why.ever_fits);
  assert_int_equal(why.rungs[GM_RUNG_DRIVER].count, 1);
  assert_int_equal(why.rungs[GM_RUNG_TRIM].count, 0);
  close_fake(&bench);
}

static void test_driver_and_its_pieces(void **state) {
  (void)state;
  pool_bench bench;
  const gm_request request = {.bytes = 160 * MIB};
  fake_backend_reset();
  open_fake(&bench, NULL);
  fake.type_status[0] = GM_ERR_DRIVER;
  refused_as(bench.pool, &request, GM_CAUSE_DRIVER, GM_CHANGE_NONE);
  fake.type_status[0] = GM_ERR_OUT_OF_DEVICE_MEMORY; /* with 900 MiB free */
  const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_FRAGMENTATION, GM_CHANGE_SPLIT);
  assert_int_equal(why.rungs[GM_RUNG_DRIVER].count, 1);
  assert_int_equal(why.rungs[GM_RUNG_MOVE].count, 1);
  assert_int_equal(why.rungs[GM_RUNG_BUSY].count, 1);
  assert_int_equal(why.rungs[GM_RUNG_TRIM].count, 1);
  assert_int_equal(why.rungs[GM_RUNG_POOLS].count, 1);
  assert_int_equal(why.rungs[GM_RUNG_EVICTORS].count, 0);
  assert_int_equal(why.all_rungs[GM_RUNG_DRIVER].count, 2);
  assert_int_equal(why.all_rungs[GM_RUNG_TRIM].count, 1);
  fake.type_status[0] = GM_OK;
  const gm_block block = served(bench.pool, &request);
  const gm_explanation now = explained(bench.pool, &request);
  assert_int_equal(now.rungs[GM_RUNG_DRIVER].count, 1); /* of the refusal before */
  assert_int_equal(now.all_rungs[GM_RUNG_DRIVER].count, 3);
  assert_true(now.all_rungs[GM_RUNG_DRIVER].ns >= why.all_rungs[GM_RUNG_DRIVER].ns);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  close_fake(&bench);
}

static void test_pooled_only(void **state) {
  (void)state;
  pool_bench bench;
  gm_request request = {.bytes = MIB, .flags = GM_POOLED_ONLY};
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  refused_as(bench.pool, &request, GM_CAUSE_POOLED_ONLY, GM_CHANGE_ALLOW_FRESH);
  request.flags = 0;
  const gm_block block = served(bench.pool, &request);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* A part of a block of several memories that is refused is told as the whole, with its rungs. */
static void test_spans_are_a_rung(void **state) {
  (void)state;
  pool_bench bench;
  const gm_request request = {.bytes = 40 * MIB, .flags = GM_ALLOW_SPANS};
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  const gm_block one = served(bench.pool, &request);
  const gm_explanation why = refused_as(bench.pool, &request, GM_CAUSE_DEVICE_FULL, GM_CHANGE_FREE);
  assert_true(why.change_bytes == 16 * MIB);
  assert_int_equal(gm_free(bench.pool, &one, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_names(void **state) {
  (void)state;
  assert_string_equal(gm_refusal_cause_name(GM_CAUSE_HOST_OVERCOMMIT), "host_overcommit");
  assert_string_equal(gm_change_name(GM_CHANGE_RAISE_CAP), "raise_cap");
  assert_string_equal(gm_rung_name(GM_RUNG_POOLS), "pools");
  assert_string_equal(gm_refusal_cause_name((gm_refusal_cause)99), "?");
  assert_string_equal(gm_change_name((gm_change)99), "?");
  assert_string_equal(gm_rung_name((gm_rung)99), "?");
  assert_in_range(GM_RUNG_WAIT, 0, GM_EXPLAINED_RUNGS - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_was_refused),
                                     cmocka_unit_test(test_fragmentation),
                                     cmocka_unit_test(test_pool_cap),
                                     cmocka_unit_test(test_quota),
                                     cmocka_unit_test(test_quota_of_several_tags),
                                     cmocka_unit_test(test_reserve),
                                     cmocka_unit_test(test_promised),
                                     cmocka_unit_test(test_device_full_and_too_large),
                                     cmocka_unit_test(test_single_allocation),
                                     cmocka_unit_test(test_leak_by_tag),
                                     cmocka_unit_test(test_other_process),
                                     cmocka_unit_test(test_device_lost),
                                     cmocka_unit_test(test_driver_and_its_pieces),
                                     cmocka_unit_test(test_pooled_only),
                                     cmocka_unit_test(test_spans_are_a_rung),
                                     cmocka_unit_test(test_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
