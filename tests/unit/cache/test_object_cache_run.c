/* gm_cache over long random runs, of one thread and of several: nothing is lost, and nothing goes that is leased. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "gm/cache.h"
#include "support/cache_things.h"
#include "support/random.h"

enum { RUN_KEYS = 40, RUN_STEPS = 20000, RUN_LEASES = 5, RUN_BYTES = 200, RUN_ENTRIES = 15 };

typedef struct random_run {
  gm_cache *cache;
  thing *things;
  size_t used;          /* things that the cache took */
  thing *now[RUN_KEYS]; /* put last; it may be gone since */
  bool kept[RUN_KEYS];  /* only with an object that is there */
  gm_cache_lease *leases[RUN_LEASES];
} random_run;

static void run_put(random_run *run, unsigned key, bool lease, uint64_t bytes) {
  thing *t = &run->things[run->used];
  t->bytes = bytes;
  gm_cache_lease *taken = NULL;
  const gm_status status = gm_cache_put(run->cache, &key, sizeof key, t, bytes, lease ? &taken : NULL, NULL);
  assert_true(status == GM_OK || status == GM_ERR_OVER_LIMIT);
  if (status) return;
  run->used++;
  run->now[key] = t;
  gm_cache_return(taken);
}

static void run_get(random_run *run, unsigned key, unsigned slot) {
  void *object = NULL;
  gm_cache_return(run->leases[slot]);
  run->leases[slot] = NULL;
  if (gm_cache_get(run->cache, &key, sizeof key, &run->leases[slot], &object, NULL)) {
    assert_false(run->kept[key]);
    assert_true(!run->now[key] || run->now[key]->released == 1);
    return;
  }
  assert_ptr_equal(object, run->now[key]);
}

static void run_check(const random_run *run) {
  const gm_cache_stats stats = stats_of(run->cache);
  size_t leases = 0, gone = 0;
  for (size_t i = 0; i < RUN_LEASES; i++) {
    if (!run->leases[i]) continue;
    leases++;
    assert_int_equal(((thing *)gm_cache_lease_object(run->leases[i]))->released, 0);
  }
  for (size_t i = 0; i < run->used; i++) {
    assert_true(run->things[i].released <= 1);
    gone += run->things[i].released;
  }
  assert_int_equal(stats.leases, leases);
  assert_true(stats.entries <= RUN_ENTRIES && stats.bytes <= RUN_BYTES);
  assert_true(stats.held_entries <= stats.entries && stats.held_bytes <= stats.bytes);
  const size_t alive = run->used - gone; /* in the cache, or leased and replaced */
  assert_true(alive >= stats.entries && alive <= stats.entries + leases);
}

static void run_random(gm_cache_policy policy, uint64_t seed) {
  gm_context *ctx = open_context(NULL);
  random_run run = {.things = calloc(RUN_STEPS, sizeof(thing))};
  assert_non_null(run.things);
  run.cache = open_cache(ctx, policy, RUN_ENTRIES, RUN_BYTES, NULL);
  for (int step = 0; step < RUN_STEPS; step++) {
    const unsigned key = (unsigned)(test_random(&seed) % RUN_KEYS), what = (unsigned)(test_random(&seed) % 32);
    const unsigned slot = (unsigned)(test_random(&seed) % RUN_LEASES);
    if (what < 12)
      run_put(&run, key, what & 1, test_log_uniform(&seed, RUN_BYTES / 4) - 1);
    else if (what < 24)
      run_get(&run, key, slot);
    else if (what < 26)
      gm_cache_return(run.leases[slot]), run.leases[slot] = NULL;
    else if (what < 30) {
      const bool keep = what == 26 && !run.kept[(key + 1) % RUN_KEYS];
      run.kept[key] = gm_cache_keep(run.cache, &key, sizeof key, keep, NULL) == GM_OK && keep;
    } else if (what == 30) {
      run.kept[key] = false;
      if (!gm_cache_remove(run.cache, &key, sizeof key, NULL)) run.now[key] = NULL;
    } else if (test_random(&seed) % 20 == 0) {
      assert_int_equal(gm_cache_clear(run.cache, NULL), GM_OK);
      memset(run.kept, 0, sizeof run.kept);
      memset(run.now, 0, sizeof run.now);
    }
    if (step % 16 == 0) run_check(&run);
  }
  for (size_t i = 0; i < RUN_LEASES; i++) gm_cache_return(run.leases[i]);
  close_all(ctx, run.cache);
  for (size_t i = 0; i < run.used; i++) assert_int_equal(run.things[i].released, 1);
  for (size_t i = run.used; i < RUN_STEPS; i++) assert_int_equal(run.things[i].released, 0);
  free(run.things);
}

static void test_a_random_run_loses_nothing(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3; seed++) {
    run_random(GM_CACHE_S3FIFO, seed);
    run_random(GM_CACHE_LRU, seed);
  }
}

/* ---- threads ---- */

enum { THREADS = 4, THREAD_STEPS = 4000, THREAD_KEYS = 24 };

typedef struct worker {
  gm_cache *cache;
  thing *things; /* THREAD_STEPS of its own */
  uint64_t seed;
  size_t used, wrong;
} worker;

static void work_once(worker *w) {
  const unsigned key = (unsigned)(test_random(&w->seed) % THREAD_KEYS), what = (unsigned)(test_random(&w->seed) % 16);
  gm_cache_lease *lease = NULL;
  void *object = NULL;
  if (what == 0) {
    gm_cache_remove(w->cache, &key, sizeof key, NULL);
  } else if (what == 1) {
    gm_cache_keep(w->cache, &key, sizeof key, key < 2, NULL);
  } else if (what < 8) {
    thing *t = &w->things[w->used];
    t->bytes = 1 + key;
    if (gm_cache_put(w->cache, &key, sizeof key, t, t->bytes, &lease, NULL) == GM_OK) w->used++;
    object = gm_cache_lease_object(lease);
  } else {
    gm_cache_get(w->cache, &key, sizeof key, &lease, &object, NULL);
  }
  if (object) w->wrong += atomic_load(&((thing *)object)->released) != 0 || ((thing *)object)->bytes != 1 + key;
  gm_cache_return(lease);
}

static void *work(void *arg) {
  worker *w = arg;
  for (int step = 0; step < THREAD_STEPS; step++) work_once(w);
  return NULL;
}

static void test_threads_share_a_cache(void **state) {
  (void)state;
  gm_context *ctx = open_context(NULL);
  gm_cache *cache = open_cache(ctx, GM_CACHE_S3FIFO, 10, 120, NULL);
  worker workers[THREADS];
  pthread_t threads[THREADS];
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i] = (worker){.cache = cache, .things = calloc(THREAD_STEPS, sizeof(thing)), .seed = i};
    assert_non_null(workers[i].things);
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_int_equal(stats_of(cache).leases, 0);
  assert_true(stats_of(cache).evictions > 0 && stats_of(cache).hits > 0);
  close_all(ctx, cache);
  for (unsigned i = 0; i < THREADS; i++) {
    assert_int_equal(workers[i].wrong, 0);
    for (size_t j = 0; j < workers[i].used; j++) assert_int_equal(workers[i].things[j].released, 1);
    free(workers[i].things);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_random_run_loses_nothing),
      cmocka_unit_test(test_threads_share_a_cache),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
