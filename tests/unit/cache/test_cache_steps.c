/* How many objects a put looks at while it holds the cache's lock, beside many that are leased. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/algo/cache_policy.h"
#include "core/base/thread.h"
#include "gm/cache.h"
#include "support/pool_bench.h"

enum { OBJECTS = 10000, PIECE = 1024, MORE = 16 };

static struct { size_t all, piece, most; /* objects put aside: in all, since the lock was entered, at most */ } aside;

void __real_gm__cache_policy_remove(gm__cache_policy *policy, gm__cache_entry *entry);
void __wrap_gm__cache_policy_remove(gm__cache_policy *policy, gm__cache_entry *entry);
void __wrap_gm__cache_policy_remove(gm__cache_policy *policy, gm__cache_entry *entry) {
  aside.all++;
  aside.piece++;
  if (aside.piece > aside.most) aside.most = aside.piece;
  __real_gm__cache_policy_remove(policy, entry);
}

void __real_gm__mutex_lock(gm__mutex *mutex);
void __wrap_gm__mutex_lock(gm__mutex *mutex);
void __wrap_gm__mutex_lock(gm__mutex *mutex) {
  aside.piece = 0;
  __real_gm__mutex_lock(mutex);
}

static void put(gm_cache *cache, int id) { pool_bench_ok(gm_cache_put(cache, &id, sizeof id, NULL, 1, NULL, err)); }

static void check_put(gm_cache_policy policy) {
  static gm_cache_lease *leases[OBJECTS];
  pool_bench bench;
  gm_cache *cache;
  const gm_cache_params params = {.struct_size = sizeof params, .max_entries = OBJECTS + 1, .policy = policy};
  pool_bench_open(&bench, "null", NULL, NULL);
  pool_bench_ok(gm_cache_create(bench.ctx, &params, &cache, err));
  for (int i = 0; i < OBJECTS; i++) put(cache, i);
  for (int i = 0; i < OBJECTS; i++) {
    pool_bench_ok(gm_cache_get(cache, &i, sizeof i, &leases[i], NULL, err));
  }
  put(cache, OBJECTS);
  aside.all = aside.most = 0;
  put(cache, OBJECTS + 1); /* the object before it is the only one that may go */
  printf("  %zu objects put aside, %zu at once\n", aside.all, aside.most);
  assert_true(aside.all >= OBJECTS / 2); /* or the put met few of them */
  assert_true(aside.most <= PIECE + MORE);
  gm_cache_stats stats = {.struct_size = sizeof stats};
  pool_bench_ok(gm_cache_get_stats(cache, &stats, err));
  assert_int_equal(stats.entries, OBJECTS + 1);
  assert_int_equal(stats.evictions, 1);
  aside.all = 0;
  put(cache, OBJECTS + 2);
  assert_true(aside.all <= MORE); /* they are put aside once */
  for (int i = 0; i < OBJECTS; i++) gm_cache_return(leases[i]);
  pool_bench_ok(gm_cache_destroy(cache, err));
  pool_bench_close(&bench);
}

static void test_a_put_beside_leases_looks_at_a_piece(void **state) {
  (void)state;
  check_put(GM_CACHE_S3FIFO);
  check_put(GM_CACHE_LRU);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_put_beside_leases_looks_at_a_piece)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
