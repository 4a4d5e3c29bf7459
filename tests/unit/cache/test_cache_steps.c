/* How many objects a call looks at while it holds the cache's lock, beside many that are leased, or that all go. */
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

void __real_gm__cache_policy_pause(gm__cache_policy *policy, gm__cache_entry *entry);
void __wrap_gm__cache_policy_pause(gm__cache_policy *policy, gm__cache_entry *entry);
void __wrap_gm__cache_policy_pause(gm__cache_policy *policy, gm__cache_entry *entry) {
  aside.all++;
  aside.piece++;
  if (aside.piece > aside.most) aside.most = aside.piece;
  __real_gm__cache_policy_pause(policy, entry);
}

void __real_gm__mutex_lock(gm__mutex *mutex);
void __wrap_gm__mutex_lock(gm__mutex *mutex);
void __wrap_gm__mutex_lock(gm__mutex *mutex) {
  aside.piece = 0;
  __real_gm__mutex_lock(mutex);
}

static void put(gm_cache *cache, int id) { pool_bench_ok(gm_cache_put(cache, &id, sizeof id, NULL, 1, NULL, err)); }

static uint64_t touched_seeks; /* objects that puts met and spared */

gm__cache_entry *__real_gm__cache_policy_seek(gm__cache_policy *policy, uint32_t *looks);
gm__cache_entry *__wrap_gm__cache_policy_seek(gm__cache_policy *policy, uint32_t *looks);
gm__cache_entry *__wrap_gm__cache_policy_seek(gm__cache_policy *policy, uint32_t *looks) {
  const uint32_t before = *looks;
  gm__cache_entry *found = __real_gm__cache_policy_seek(policy, looks);
  touched_seeks += before - *looks;
  return found;
}

/* Leases come from gets, or the objects are kept. */
static void hold(gm_cache *cache, int id, bool keep, gm_cache_lease **out) {
  if (keep) {
    pool_bench_ok(gm_cache_keep(cache, &id, sizeof id, true, err));
  } else {
    pool_bench_ok(gm_cache_get(cache, &id, sizeof id, out, NULL, err));
  }
}

static void check_put(gm_cache_policy policy, bool keep) {
  static gm_cache_lease *leases[OBJECTS];
  pool_bench bench;
  gm_cache *cache;
  const gm_cache_params params = {.struct_size = sizeof params, .max_entries = OBJECTS + 1, .policy = policy};
  pool_bench_open(&bench, "null", NULL, NULL);
  pool_bench_ok(gm_cache_create(bench.ctx, &params, &cache, err));
  for (int i = 0; i < OBJECTS; i++) put(cache, i);
  aside.most = 0;
  for (int i = 0; i < OBJECTS; i++) hold(cache, i, keep, &leases[i]);
  assert_true(aside.most <= 1); /* each hold pays for itself */
  put(cache, OBJECTS);
  aside.all = aside.most = touched_seeks = 0;
  put(cache, OBJECTS + 1); /* the object before it is the only one that may go */
  printf("  %zu objects put aside, %zu at once, %ju spared\n", aside.all, aside.most, (uintmax_t)touched_seeks);
  assert_true(aside.all > PIECE / 2); /* or the put met few of them */
  assert_true(aside.all <= PIECE + MORE);
  assert_true(touched_seeks <= PIECE + MORE);
  gm_cache_stats stats = {.struct_size = sizeof stats};
  pool_bench_ok(gm_cache_get_stats(cache, &stats, err));
  assert_int_equal(stats.entries, OBJECTS + 1);
  assert_int_equal(stats.evictions, 1);
  aside.all = 0;
  put(cache, OBJECTS + 2);
  assert_true(aside.all <= MORE); /* they are put aside once */
  for (int i = 0; i < OBJECTS && !keep; i++) gm_cache_return(leases[i]);
  pool_bench_ok(gm_cache_destroy(cache, err));
  pool_bench_close(&bench);
}

static void test_a_put_beside_leases_looks_at_a_piece(void **state) {
  (void)state;
  check_put(GM_CACHE_S3FIFO, false);
  check_put(GM_CACHE_S3FIFO, true);
  check_put(GM_CACHE_LRU, false);
}

/* Each object was used, and would move on in place of going. */
static void test_a_put_beside_used_objects_spares_some(void **state) {
  pool_bench bench;
  gm_cache *cache;
  gm_cache_stats stats = {.struct_size = sizeof stats};
  const gm_cache_params params = {.struct_size = sizeof params, .max_entries = OBJECTS};
  (void)state;
  pool_bench_open(&bench, "null", NULL, NULL);
  pool_bench_ok(gm_cache_create(bench.ctx, &params, &cache, err));
  for (int i = 0; i < OBJECTS; i++) put(cache, i);
  for (int i = 0; i < OBJECTS; i++) {
    gm_cache_lease *lease;
    pool_bench_ok(gm_cache_get(cache, &i, sizeof i, &lease, NULL, err));
    gm_cache_return(lease);
  }
  for (int i = 0; i < 4; i++) {
    touched_seeks = 0;
    put(cache, OBJECTS + i);
    printf("  a put spares %ju objects\n", (uintmax_t)touched_seeks);
    assert_true(touched_seeks <= GM__CACHE_SPARED + MORE);
  }
  pool_bench_ok(gm_cache_get_stats(cache, &stats, err));
  assert_int_equal(stats.evictions, 4);
  assert_int_equal(stats.entries, OBJECTS);
  pool_bench_ok(gm_cache_destroy(cache, err));
  pool_bench_close(&bench);
}

/* ---- all objects go ---- */

static pool_bench bench;
static gm_cache *cache;
static uint64_t released;
static bool gives_way; /* the next cache is an evictor of the pool */

static gm_acquire ask(uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes};
  return gm_alloc(bench.pool, &request, out);
}

static void note_released(void *user, void *object, uint64_t bytes) {
  (void)user, (void)object, (void)bytes;
  released++;
}

static void open_full(const char *size, gm_cache_params params) {
  const gm_pool_params capped = {.struct_size = sizeof capped, .max_bytes = 16 << 20};
  pool_bench_open(&bench, "null", NULL, &capped);
  pool_bench_ok(gm_config_set(bench.ctx, "gpu.memory.cache_size", size, err));
  params.struct_size = sizeof params;
  params.release = note_released;
  params.pool = gives_way ? bench.pool : NULL;
  pool_bench_ok(gm_cache_create(bench.ctx, &params, &cache, err));
  for (int i = 0; i < OBJECTS; i++) {
    pool_bench_ok(gm_cache_put(cache, &i, sizeof i, NULL, 1024, NULL, err));
  }
  released = aside.all = aside.most = 0;
}

/* `left`: objects that the cache still has. */
static void close_emptied(const char *what, uint64_t left) {
  gm_cache_stats stats = {.struct_size = sizeof stats};
  printf("  %s: %zu objects go, %zu at once\n", what, aside.all, aside.most);
  pool_bench_ok(gm_cache_get_stats(cache, &stats, err));
  assert_int_equal(stats.entries, left);
  assert_true(released >= OBJECTS - left);
  assert_true(aside.all >= OBJECTS - left && aside.most <= PIECE + MORE);
  pool_bench_ok(gm_cache_destroy(cache, err));
  pool_bench_close(&bench);
}

static void test_objects_go_in_pieces(void **state) {
  (void)state;
  const int key = OBJECTS;
  const uint64_t all = (uint64_t)OBJECTS * 1024;
  gm_block most, block;
  open_full("100000", (gm_cache_params){.max_entries = OBJECTS});
  pool_bench_ok(gm_cache_clear(cache, err));
  close_emptied("a clear", 0);
  open_full("100000", (gm_cache_params){.max_bytes = all});
  pool_bench_ok(gm_cache_put(cache, &key, sizeof key, NULL, all, NULL, err));
  close_emptied("a put of a large object", 1);
  for (int own = 0; own < OBJECTS; own += OBJECTS - 1) { /* the first to go; the last */
    open_full("100000", (gm_cache_params){.max_bytes = all});
    pool_bench_ok(gm_cache_put(cache, &own, sizeof own, NULL, all, NULL, err));
    close_emptied("a put of a large object in place of a small one", 1);
  }
  open_full("100000", (gm_cache_params){.max_entries = 0});
  pool_bench_ok(gm_config_set(bench.ctx, "gpu.memory.cache_size", "5", err));
  put(cache, key);
  close_emptied("a smaller bound", 5);
  gives_way = true;
  open_full("100000", (gm_cache_params){.max_entries = OBJECTS});
  gives_way = false;
  assert_in_range(ask(12 << 20, &most), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
  assert_int_equal(ask(13 << 20, &block), GM_ACQUIRE_OVER_LIMIT); /* these objects have no memory of the pool */
  assert_int_equal(gm_free(bench.pool, &most, NULL), GM_OK);
  assert_true(released >= 9 << 10); /* 9 MiB are missing */
  close_emptied("a request that asks evictors", OBJECTS - released);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_put_beside_leases_looks_at_a_piece),
                                     cmocka_unit_test(test_a_put_beside_used_objects_spares_some),
                                     cmocka_unit_test(test_objects_go_in_pieces)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
