/* Quotas of tags: never exceeded, borrowed by priority, given back on every way a block goes. */
#include "gm/quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/thread.h"
#include "gm/debug.h"
#include "support/explained.h"
#include "support/pool_bench.h"
#include "support/random.h"

#define KIB UINT64_C(1024)

static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

static void open_with(pool_bench *bench, gm_strategy strategy) {
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy};
  pool_bench_open(bench, "null", "null:capacity=256M", &params);
}

static gm_acquire take(gm_pool *pool, uint32_t tag, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes, .tag = tag};
  return gm_alloc(pool, &request, out);
}

static gm_quota quota_of(gm_pool *pool, uint32_t tag) {
  gm_quota quota = {.struct_size = sizeof quota};
  pool_bench_ok(gm_pool_quota(pool, tag, &quota, err));
  return quota;
}

static void test_a_tag_holds_no_more_than_its_quota(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_block a, b, other;
    open_with(&bench, strategies[s]);
    uint32_t kv = gm_tag(bench.ctx, "kv"), act = gm_tag(bench.ctx, "act");
    pool_bench_ok(gm_pool_set_quota(bench.pool, kv, 100 * KIB, 0, 0, err));
    assert_in_range(take(bench.pool, kv, 60 * KIB, &a), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    assert_int_equal(take(bench.pool, kv, 40 * KIB + 1, &b), GM_ACQUIRE_OVER_LIMIT);
    assert_in_range(take(bench.pool, kv, 40 * KIB, &b), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    assert_int_equal(take(bench.pool, kv, 1, &other), GM_ACQUIRE_OVER_LIMIT);
    assert_in_range(take(bench.pool, act, 400 * KIB, &other), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    assert_int_equal(quota_of(bench.pool, kv).used_bytes, 100 * KIB);
    assert_int_equal(pool_bench_stats(&bench).over_limit, 2);
    assert_int_equal(gm_free(bench.pool, &a, NULL), GM_OK);
    assert_int_equal(gm_free(bench.pool, &a, NULL), GM_ERR_INVALID_ARGUMENT); /* gives nothing back twice */
    assert_int_equal(quota_of(bench.pool, kv).used_bytes, 40 * KIB);
    assert_int_equal(gm_free_ptr(bench.pool, (void *)(uintptr_t)b.address, 0, NULL), GM_OK);
    assert_int_equal(quota_of(bench.pool, kv).used_bytes, 0);
    assert_int_equal(gm_free(bench.pool, &other, NULL), GM_OK);
    pool_bench_close(&bench);
  }
}

static void test_what_is_held_already_counts_and_stays(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_block held, more;
    open_with(&bench, strategies[s]);
    uint32_t kv = gm_tag(bench.ctx, "kv");
    assert_in_range(take(bench.pool, kv, 100 * KIB, &held), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    pool_bench_ok(gm_pool_set_quota(bench.pool, kv, 50 * KIB, 0, 0, err));
    assert_int_equal(quota_of(bench.pool, kv).used_bytes, 100 * KIB);
    assert_int_equal(take(bench.pool, kv, 1, &more), GM_ACQUIRE_OVER_LIMIT);
    assert_int_equal(gm_free(bench.pool, &held, NULL), GM_OK);
    assert_in_range(take(bench.pool, kv, 50 * KIB, &held), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    pool_bench_ok(gm_pool_set_quota(bench.pool, kv, GM_NO_QUOTA, 0, 0, err));
    assert_in_range(take(bench.pool, kv, KIB, &more), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    assert_int_equal(gm_free(bench.pool, &held, NULL), GM_OK);
    assert_int_equal(gm_free(bench.pool, &more, NULL), GM_OK);
    assert_int_equal(quota_of(bench.pool, kv).used_bytes, 0);
    pool_bench_close(&bench);
  }
}

static void test_who_may_borrows_from_its_priority_and_below(void **state) {
  (void)state;
  pool_bench bench;
  gm_block low, mid, high;
  open_with(&bench, GM_STRATEGY_BEST_FIT);
  uint32_t cache = gm_tag(bench.ctx, "cache"), kv = gm_tag(bench.ctx, "kv"), weights = gm_tag(bench.ctx, "weights");
  pool_bench_ok(gm_pool_set_quota(bench.pool, cache, 100 * KIB, GM_QUOTA_BORROW, 0, err));
  pool_bench_ok(gm_pool_set_quota(bench.pool, kv, 100 * KIB, GM_QUOTA_BORROW, 1, err));
  pool_bench_ok(gm_pool_set_quota(bench.pool, weights, 100 * KIB, 0, 2, err));
  assert_int_equal(take(bench.pool, cache, 101 * KIB, &low), GM_ACQUIRE_OVER_LIMIT); /* nobody is below it */
  assert_int_equal(take(bench.pool, kv, 201 * KIB, &mid), GM_ACQUIRE_OVER_LIMIT);
  assert_in_range(take(bench.pool, kv, 150 * KIB, &mid), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  assert_int_equal(take(bench.pool, cache, 51 * KIB, &low), GM_ACQUIRE_OVER_LIMIT); /* it has lent that */
  assert_in_range(take(bench.pool, cache, 50 * KIB, &low), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  assert_int_equal(take(bench.pool, weights, 101 * KIB, &high), GM_ACQUIRE_OVER_LIMIT);
  assert_in_range(take(bench.pool, weights, 100 * KIB, &high), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH); /* nobody lends it */
  assert_int_equal(gm_free(bench.pool, &mid, NULL), GM_OK);
  assert_in_range(take(bench.pool, cache, 50 * KIB, &mid), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH); /* it came back */
  assert_int_equal(gm_free(bench.pool, &low, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &mid, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &high, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_a_refusal_is_explained(void **state) {
  (void)state;
  pool_bench bench;
  open_with(&bench, GM_STRATEGY_BEST_FIT);
  const gm_request request = {.bytes = 20 * KIB, .tag = gm_tag(bench.ctx, "kv")};
  pool_bench_ok(gm_pool_set_quota(bench.pool, request.tag, 10 * KIB, 0, 0, err));
  gm_block block;
  assert_int_equal(explained_alloc(bench.pool, &request, &block), GM_ACQUIRE_OVER_LIMIT);
  const gm_request other = {.bytes = 30 * KIB, .tag = request.tag}; /* whatever is asked, the last refusal is told */
  const gm_explanation why = explained(bench.pool, &other);
  assert_int_equal(why.last_failure.status, GM_ERR_OVER_LIMIT);
  assert_non_null(strstr(why.text,
                         "last refused 20 KiB: gm_alloc: the quota of tag \"kv\" has no room for 20480 bytes: it "
                         "holds 0 of 10240; free blocks of the tag, or raise its quota."));
  assert_null(strstr(strstr(why.text, "the quota of tag") + 1, "the quota of tag"));
  pool_bench_close(&bench);
}

/* Freed blocks that a guard holds back are their owner's no more, whether the quota was there when they were freed or
 * not. */
static void test_what_a_guard_holds_back_does_not_count(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_block blocks[4];
    const gm_pool_params params = {
        .struct_size = sizeof params, .strategy = strategies[s], .debug = GM_DEBUG_CHECK_FREED};
    pool_bench_open(&bench, "cpu", NULL, &params);
    uint32_t kv = gm_tag(bench.ctx, "kv");
    for (int i = 0; i < 4; i++) assert_in_range(take(bench.pool, kv, 10 * KIB, &blocks[i]), 0, GM_ACQUIRE_FRESH);
    for (int i = 0; i < 3; i++) assert_int_equal(gm_free(bench.pool, &blocks[i], NULL), GM_OK);
    pool_bench_ok(gm_pool_set_quota(bench.pool, kv, 20 * KIB, 0, 0, err));
    assert_int_equal(quota_of(bench.pool, kv).used_bytes, 10 * KIB);
    assert_in_range(take(bench.pool, kv, 10 * KIB, &blocks[0]), 0, GM_ACQUIRE_FRESH);
    assert_int_equal(gm_free(bench.pool, &blocks[0], NULL), GM_OK);
    assert_int_equal(gm_free(bench.pool, &blocks[0], NULL), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(quota_of(bench.pool, kv).used_bytes, 10 * KIB);
    *(unsigned char *)(uintptr_t)blocks[0].address ^= 1; /* after its free: nobody gets it any more */
    assert_int_equal(gm_pool_check(bench.pool, NULL, NULL), GM_ERR_DAMAGED);
    assert_int_equal(quota_of(bench.pool, kv).used_bytes, 10 * KIB);
    assert_int_equal(gm_free(bench.pool, &blocks[3], NULL), GM_OK);
    assert_int_equal(quota_of(bench.pool, kv).used_bytes, 0);
    pool_bench_close(&bench);
  }
}

/* A request that found no memory holds nothing. */
static void test_a_failure_claims_nothing(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_block block;
    open_with(&bench, strategies[s]);
    uint32_t kv = gm_tag(bench.ctx, "kv");
    pool_bench_ok(gm_pool_set_quota(bench.pool, kv, 1024 * 1024 * KIB, 0, 0, err));
    assert_true(take(bench.pool, kv, 512 * 1024 * KIB, &block) > GM_ACQUIRE_NEEDS_BARRIER);
    assert_int_equal(quota_of(bench.pool, kv).used_bytes, 0);
    pool_bench_close(&bench);
  }
}

/* This is so of a tag that has no quota, too, for which every size is within it. */
static void test_a_request_that_no_sum_can_hold_claims_nothing(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_block held, more;
    open_with(&bench, strategies[s]);
    uint32_t kv = gm_tag(bench.ctx, "kv"), act = gm_tag(bench.ctx, "act");
    pool_bench_ok(gm_pool_set_quota(bench.pool, kv, 100 * KIB, 0, 0, err));
    assert_in_range(take(bench.pool, act, 60 * KIB, &held), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    assert_in_range(take(bench.pool, act, UINT64_MAX, &more), GM_ACQUIRE_EXHAUSTED, GM_ACQUIRE_OVER_LIMIT);
    assert_int_equal(quota_of(bench.pool, act).used_bytes, 60 * KIB);
    pool_bench_ok(gm_pool_set_quota(bench.pool, act, 100 * KIB, GM_QUOTA_BORROW, 0, err));
    assert_int_equal(take(bench.pool, act, UINT64_MAX, &more), GM_ACQUIRE_OVER_LIMIT);
    assert_int_equal(quota_of(bench.pool, act).used_bytes, 60 * KIB);
    assert_int_equal(gm_free(bench.pool, &held, NULL), GM_OK);
    assert_int_equal(quota_of(bench.pool, act).used_bytes, 0);
    pool_bench_close(&bench);
  }
}

static void test_bad_arguments(void **state) {
  (void)state;
  pool_bench bench;
  gm_quota quota = {.struct_size = 3};
  open_with(&bench, GM_STRATEGY_BUCKET);
  assert_int_equal(gm_pool_set_quota(NULL, 1, 1, 0, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_set_quota(bench.pool, 1, 1, 2, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_set_quota(bench.pool, GM_QUOTA_TAGS, 1, 0, 0, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_pool_quota(bench.pool, 1, &quota, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_quota(bench.pool, 1, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_true(quota_of(bench.pool, 7).bytes == GM_NO_QUOTA);
  bench.host.fail_at = atomic_load(&bench.host.calls) + 1;
  assert_int_equal(gm_pool_set_quota(bench.pool, 1, 1, 0, 0, NULL), GM_ERR_OUT_OF_HOST_MEMORY);
  bench.host.fail_at = 0;
  pool_bench_close(&bench);
}

enum { THREADS = 8, TURNS = 3000, HELD = 4, QUOTA = 20 * 1024 };

typedef struct racer {
  gm_pool *pool;
  uint32_t tag;
  uint64_t random;
  _Atomic uint64_t *held; /* of all threads: what they know that they have */
  uint64_t beyond, refused;
} racer;

static void race(void *argument) {
  racer *r = argument;
  gm_block blocks[HELD] = {{0}};
  uint64_t sizes[HELD] = {0};
  for (int turn = 0; turn < TURNS; turn++) {
    const uint64_t i = test_random(&r->random) % HELD;
    if (sizes[i]) {
      atomic_fetch_sub(r->held, sizes[i]);
      gm_free(r->pool, &blocks[i], NULL);
      sizes[i] = 0;
      continue;
    }
    const uint64_t bytes = 1 + test_random(&r->random) % 9000;
    if (take(r->pool, r->tag, bytes, &blocks[i]) > GM_ACQUIRE_NEEDS_BARRIER) {
      r->refused++;
      continue;
    }
    sizes[i] = bytes;
    if (atomic_fetch_add(r->held, bytes) + bytes > QUOTA) r->beyond++;
  }
  for (int i = 0; i < HELD; i++) {
    if (!sizes[i]) continue;
    atomic_fetch_sub(r->held, sizes[i]);
    gm_free(r->pool, &blocks[i], NULL);
  }
}

static void test_never_exceeded_by_racing_threads(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm__thread threads[THREADS];
    racer racers[THREADS];
    _Atomic uint64_t held = 0;
    uint64_t refused = 0;
    open_with(&bench, strategies[s]);
    uint32_t kv = gm_tag(bench.ctx, "kv");
    pool_bench_ok(gm_pool_set_quota(bench.pool, kv, QUOTA, 0, 0, err));
    for (unsigned i = 0; i < THREADS; i++) {
      racers[i] = (racer){.pool = bench.pool, .tag = kv, .random = i, .held = &held};
      pool_bench_ok(gm__thread_create(&threads[i], "race", race, &racers[i], err));
    }
    for (int i = 0; i < THREADS; i++) {
      gm__thread_join(&threads[i]);
      assert_int_equal(racers[i].beyond, 0);
      refused += racers[i].refused;
    }
    assert_true(refused > 0);
    assert_int_equal(quota_of(bench.pool, kv).used_bytes, 0);
    pool_bench_close(&bench);
  }
}

/* ---- the first quota of a living pool ---- */

enum { EARLY_THREADS = 4, EARLY_ROUNDS = 8, EARLY_TURNS = 600, EARLY_BLOCKS = 3 };
#define EARLY_KEPT UINT64_C(700)

typedef struct early {
  gm_pool *pool;
  uint32_t tag;
  atomic_bool *go;
  gm_block kept;
  uint64_t wrong;
} early;

/* Takes and gives back, by block and by pointer, and keeps one. */
static void allocate_early(void *argument) {
  early *e = argument;
  gm_block blocks[EARLY_BLOCKS];
  while (!atomic_load(e->go)) {}
  for (int turn = 0; turn < EARLY_TURNS; turn++) {
    void *untagged = gm_malloc(e->pool, 512, NULL);
    for (uint32_t i = 0; i < EARLY_BLOCKS; i++) e->wrong += take(e->pool, e->tag, 100 + i * 300, &blocks[i]) > 1;
    for (int i = 0; i < EARLY_BLOCKS - 1; i++) e->wrong += gm_free(e->pool, &blocks[i], NULL) != GM_OK;
    e->wrong += gm_free_ptr(e->pool, (void *)(uintptr_t)blocks[EARLY_BLOCKS - 1].address, 0, NULL) != GM_OK;
    e->wrong += !untagged || gm_free_ptr(e->pool, untagged, 512, NULL) != GM_OK;
    if (turn == EARLY_TURNS / 2) e->wrong += take(e->pool, e->tag, EARLY_KEPT, &e->kept) > 1;
  }
}

static void set_early(gm_strategy strategy, uint32_t debug) {
  pool_bench bench;
  gm__thread threads[EARLY_THREADS];
  early all[EARLY_THREADS];
  gm_block more;
  atomic_bool go = false;
  const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategy, .debug = debug};
  pool_bench_open(&bench, "cpu", NULL, &params);
  const uint32_t tag = gm_tag(bench.ctx, "kv");
  for (int i = 0; i < EARLY_THREADS; i++) {
    all[i] = (early){.pool = bench.pool, .tag = tag, .go = &go};
    pool_bench_ok(gm__thread_create(&threads[i], "early", allocate_early, &all[i], err));
  }
  atomic_store(&go, true);
  while (pool_bench_stats(&bench).frees < EARLY_TURNS) {}
  pool_bench_ok(gm_pool_set_quota(bench.pool, tag, 1 << 30, 0, 0, err));
  for (int i = 0; i < EARLY_THREADS; i++) {
    gm__thread_join(&threads[i]);
    assert_int_equal(all[i].wrong, 0);
  }
  assert_int_equal(quota_of(bench.pool, 0).used_bytes, 0);
  assert_int_equal(quota_of(bench.pool, tag).used_bytes, EARLY_THREADS * EARLY_KEPT);
  pool_bench_ok(gm_pool_set_quota(bench.pool, tag, EARLY_THREADS * EARLY_KEPT, 0, 0, err));
  assert_int_equal(take(bench.pool, tag, 1, &more), GM_ACQUIRE_OVER_LIMIT);
  for (int i = 0; i < EARLY_THREADS; i++) assert_int_equal(gm_free(bench.pool, &all[i].kept, NULL), GM_OK);
  assert_int_equal(quota_of(bench.pool, tag).used_bytes, 0);
  pool_bench_close(&bench);
}

static void test_the_first_one_may_come_while_threads_allocate(void **state) {
  (void)state;
  for (int round = 0; round < EARLY_ROUNDS; round++) {
    for (size_t s = 0; s < 2; s++) set_early(strategies[s], 0);
  }
  for (size_t s = 0; s < 2; s++) set_early(strategies[s], GM_DEBUG_POISON);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_tag_holds_no_more_than_its_quota),
      cmocka_unit_test(test_what_is_held_already_counts_and_stays),
      cmocka_unit_test(test_who_may_borrows_from_its_priority_and_below),
      cmocka_unit_test(test_a_refusal_is_explained),
      cmocka_unit_test(test_what_a_guard_holds_back_does_not_count),
      cmocka_unit_test(test_a_failure_claims_nothing),
      cmocka_unit_test(test_a_request_that_no_sum_can_hold_claims_nothing),
      cmocka_unit_test(test_bad_arguments),
      cmocka_unit_test(test_never_exceeded_by_racing_threads),
      cmocka_unit_test(test_the_first_one_may_come_while_threads_allocate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
