/* gm_cache: bounds, leases, kept objects; each object is released exactly once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gm/cache.h"
#include "gm/config.h"
#include "support/cache_things.h"
#include "support/fail_each.h"

static gm_status put(gm_cache *cache, const char *key, thing *t, gm_cache_lease **lease) {
  return gm_cache_put(cache, key, strlen(key), t, t->bytes, lease, NULL);
}

static gm_cache_lease *get(gm_cache *cache, const char *key) {
  gm_cache_lease *lease = NULL;
  const gm_status status = gm_cache_get(cache, key, strlen(key), &lease, NULL, NULL);
  assert_int_equal(status, lease ? GM_OK : GM_ERR_NOT_FOUND);
  return lease;
}

static bool has(gm_cache *cache, const char *key) {
  gm_cache_lease *lease = get(cache, key);
  gm_cache_return(lease);
  return lease != NULL;
}

static void test_objects_come_and_go(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm_context *ctx = open_context(&host.services);
  atomic_uint calls = 0;
  gm_cache *cache = open_cache(ctx, GM_CACHE_S3FIFO, 0, 0, &calls);
  thing a = {.bytes = 10}, b = {.bytes = 20}, c = {.bytes = 30};
  void *object = NULL;
  gm_cache_lease *lease = NULL;
  assert_false(has(cache, "a"));
  assert_int_equal(put(cache, "a", &a, NULL), GM_OK);
  assert_int_equal(gm_cache_put(cache, "a\0a", 3, &b, 20, NULL, NULL), GM_OK); /* keys are bytes, not texts */
  assert_int_equal(gm_cache_get(cache, "a", 1, &lease, &object, NULL), GM_OK);
  assert_ptr_equal(object, &a);
  assert_ptr_equal(gm_cache_lease_object(lease), &a);
  assert_null(gm_cache_lease_object(NULL));
  gm_cache_return(lease);
  gm_cache_return(NULL);
  assert_int_equal(put(cache, "a", &c, NULL), GM_OK); /* replaces */
  assert_int_equal(a.released, 1);
  assert_int_equal(gm_cache_remove(cache, "a", 1, NULL), GM_OK);
  assert_int_equal(c.released, 1);
  assert_int_equal(gm_cache_remove(cache, "a", 1, NULL), GM_ERR_NOT_FOUND);
  const gm_cache_stats stats = stats_of(cache);
  assert_int_equal(stats.entries, 1);
  assert_int_equal(stats.bytes, 20);
  assert_int_equal(stats.hits, 1);
  assert_int_equal(stats.misses, 1);
  assert_int_equal(stats.puts, 3);
  assert_int_equal(stats.evictions, 0);
  assert_int_equal(b.released, 0);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_ERR_BUSY);
  close_all(ctx, cache);
  assert_int_equal(b.released, 1);
  assert_int_equal(calls, 3);
  counted_services_check(&host);
}

static void fill(gm_cache *cache, thing *things, size_t count) {
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(gm_cache_put(cache, &i, sizeof i, &things[i], things[i].bytes, NULL, NULL), GM_OK);
  }
}

static void test_the_configuration_bounds_the_count(void **state) {
  (void)state;
  static thing things[300];
  memset(things, 0, sizeof things);
  gm_context *ctx = open_context(NULL);
  gm_cache *cache = NULL;
  const gm_cache_params params = {.struct_size = sizeof params, .release = thing_release};
  assert_int_equal(gm_cache_create(ctx, &params, &cache, NULL), GM_OK);
  fill(cache, things, 300);
  assert_int_equal(stats_of(cache).entries, 100);
  assert_int_equal(stats_of(cache).evictions, 200);
  assert_int_equal(released(things, 300), 200);
  assert_int_equal(gm_cache_destroy(cache, NULL), GM_OK);
  assert_int_equal(gm_config_set(ctx, "gpu.memory.cache_size", "7", NULL), GM_OK);
  assert_int_equal(gm_cache_create(ctx, NULL, &cache, NULL), GM_OK); /* and without `release` */
  fill(cache, things, 300);
  assert_int_equal(stats_of(cache).entries, 7);
  assert_int_equal(gm_cache_destroy(cache, NULL), GM_OK);
  assert_int_equal(gm_config_set(ctx, "gpu.memory.cache_size", "0", NULL), GM_OK);
  assert_int_equal(gm_cache_create(ctx, NULL, &cache, NULL), GM_OK);
  assert_int_equal(put(cache, "a", &things[0], NULL), GM_ERR_OVER_LIMIT);
  close_all(ctx, cache);
}

static void test_bytes_are_bounded(void **state) {
  (void)state;
  gm_context *ctx = open_context(NULL);
  gm_cache *cache = open_cache(ctx, GM_CACHE_LRU, UINT64_MAX, 100, NULL);
  thing small[10], large = {.bytes = 95}, huge = {.bytes = 101};
  memset(small, 0, sizeof small);
  for (int i = 0; i < 10; i++) small[i].bytes = 10;
  fill(cache, small, 10);
  gm_error err;
  assert_int_equal(gm_cache_put(cache, "h", 1, &huge, 101, NULL, &err), GM_ERR_OVER_LIMIT);
  assert_non_null(strstr(err.message, "101 bytes"));
  assert_int_equal(released(small, 10), 0); /* nothing has changed */
  assert_int_equal(huge.released, 0);
  assert_int_equal(put(cache, "l", &large, NULL), GM_OK);
  assert_int_equal(released(small, 10), 10);
  assert_int_equal(stats_of(cache).bytes, 95);
  assert_int_equal(stats_of(cache).refused, 1);
  assert_int_equal(stats_of(cache).evicted_bytes, 100);
  close_all(ctx, cache);
}

static void test_what_is_held_stays(gm_cache_policy policy) {
  gm_context *ctx = open_context(NULL);
  gm_cache *cache = open_cache(ctx, policy, 4, 0, NULL);
  thing held = {.bytes = 1}, kept = {.bytes = 1}, others[50], more = {.bytes = 1};
  gm_cache_lease *leases[3] = {NULL}, *room[4] = {NULL};
  memset(others, 0, sizeof others);
  assert_int_equal(put(cache, "held", &held, &leases[0]), GM_OK);
  assert_int_equal(put(cache, "kept", &kept, NULL), GM_OK);
  assert_int_equal(gm_cache_keep(cache, "kept", 4, true, NULL), GM_OK);
  assert_int_equal(gm_cache_keep(cache, "kept", 4, true, NULL), GM_OK);
  assert_int_equal(gm_cache_keep(cache, "none", 4, true, NULL), GM_ERR_NOT_FOUND);
  fill(cache, others, 50);
  assert_int_equal(held.released + kept.released, 0);
  assert_int_equal(released(others, 50), 48);
  assert_int_equal(stats_of(cache).held_entries, 2);
  assert_int_equal(stats_of(cache).held_bytes, 2);
  for (size_t i = 48; i < 50; i++) {
    assert_int_equal(gm_cache_get(cache, &i, sizeof i, &leases[i - 47], NULL, NULL), GM_OK);
  }
  assert_int_equal(put(cache, "more", &more, NULL), GM_ERR_OVER_LIMIT);
  assert_int_equal(stats_of(cache).entries, 4);
  assert_int_equal(gm_cache_destroy(cache, NULL), GM_ERR_BUSY);
  gm_cache_return(leases[1]);
  assert_int_equal(put(cache, "more", &more, NULL), GM_OK); /* the only one that could go went */
  assert_int_equal(others[48].released, 1);
  gm_cache_return(leases[0]);
  gm_cache_return(leases[2]);
  assert_int_equal(gm_cache_keep(cache, "kept", 4, false, NULL), GM_OK);
  assert_int_equal(stats_of(cache).held_entries, 0);
  for (int i = 0; i < 4; i++) { /* leases of others take all the room: nothing is held, so all went */
    assert_int_equal(gm_cache_put(cache, &i, sizeof i, NULL, 0, &room[i], NULL), GM_OK);
  }
  assert_int_equal(held.released + kept.released + more.released, 3);
  for (int i = 0; i < 4; i++) gm_cache_return(room[i]);
  assert_int_equal(stats_of(cache).held_entries, 0);
  close_all(ctx, cache);
}

static void test_what_is_held_stays_s3fifo(void **state) {
  (void)state;
  test_what_is_held_stays(GM_CACHE_S3FIFO);
}

static void test_what_is_held_stays_lru(void **state) {
  (void)state;
  test_what_is_held_stays(GM_CACHE_LRU);
}

static void test_a_lease_outlives_the_key(void **state) {
  (void)state;
  gm_context *ctx = open_context(NULL);
  gm_cache *cache = open_cache(ctx, GM_CACHE_S3FIFO, 1, 10, NULL);
  thing a = {.bytes = 10}, b = {.bytes = 10}, c = {.bytes = 10};
  gm_cache_lease *first = NULL, *second;
  assert_int_equal(put(cache, "a", &a, &first), GM_OK);
  assert_int_equal(gm_cache_keep(cache, "a", 1, true, NULL), GM_OK);
  second = get(cache, "a");
  assert_int_equal(put(cache, "a", &b, NULL), GM_OK); /* what it replaces counts no more, and the key stays kept */
  assert_int_equal(stats_of(cache).bytes, 10);
  assert_int_equal(stats_of(cache).leases, 2);
  assert_int_equal(stats_of(cache).held_entries, 1);
  assert_int_equal(put(cache, "c", &c, NULL), GM_ERR_OVER_LIMIT);
  gm_cache_return(first);
  assert_int_equal(a.released, 0);
  assert_ptr_equal(gm_cache_lease_object(second), &a);
  first = get(cache, "a");
  assert_ptr_equal(gm_cache_lease_object(first), &b);
  assert_int_equal(gm_cache_clear(cache, NULL), GM_OK);
  assert_int_equal(stats_of(cache).entries, 0);
  assert_int_equal(stats_of(cache).held_entries, 0);
  assert_int_equal(gm_cache_destroy(cache, NULL), GM_ERR_BUSY);
  gm_cache_return(second);
  gm_cache_return(first);
  assert_int_equal(a.released, 1);
  assert_int_equal(b.released, 1);
  assert_int_equal(put(cache, "c", &c, NULL), GM_OK);
  close_all(ctx, cache);
  assert_int_equal(c.released, 1);
}

/* ---- a release that uses the cache ---- */

static struct {
  gm_cache *cache;
  int depth;
  uint64_t entries;
} inner;

static void release_and_put(void *user, void *object, uint64_t bytes) {
  (void)user, (void)object, (void)bytes;
  if (!inner.cache || inner.depth++ >= 5) return;
  assert_int_equal(gm_cache_put(inner.cache, &inner.depth, sizeof inner.depth, NULL, 1, NULL, NULL), GM_OK);
  inner.entries = stats_of(inner.cache).entries;
}

static void test_a_release_may_use_the_cache(void **state) {
  (void)state;
  gm_context *ctx = open_context(NULL);
  const gm_cache_params params = {.struct_size = sizeof params, .max_entries = 1, .release = release_and_put};
  assert_int_equal(gm_cache_create(ctx, &params, &inner.cache, NULL), GM_OK);
  assert_int_equal(gm_cache_put(inner.cache, "a", 1, NULL, 1, NULL, NULL), GM_OK);
  assert_int_equal(gm_cache_put(inner.cache, "b", 1, NULL, 1, NULL, NULL), GM_OK);
  assert_int_equal(inner.depth, 6);
  assert_int_equal(inner.entries, 1);
  gm_cache *cache = inner.cache;
  inner.cache = NULL;
  close_all(ctx, cache);
}

/* ---- scans ---- */

static uint64_t hits_with_scans(gm_cache_policy policy) {
  gm_context *ctx = open_context(NULL);
  gm_cache *cache = open_cache(ctx, policy, 100, 0, NULL);
  for (unsigned round = 0; round < 30; round++) {
    for (unsigned i = 0; i < 160 + 200; i++) {
      const unsigned key = i < 160 ? i % 80 : 1000 + round * 200 + i; /* a working set, twice, then a scan */
      gm_cache_lease *lease = NULL;
      if (gm_cache_get(cache, &key, sizeof key, &lease, NULL, NULL)) {
        assert_int_equal(gm_cache_put(cache, &key, sizeof key, NULL, 0, NULL, NULL), GM_OK);
      }
      gm_cache_return(lease);
    }
  }
  const uint64_t hits = stats_of(cache).hits;
  close_all(ctx, cache);
  return hits;
}

static void test_a_scan_pushes_no_working_set_out(void **state) {
  (void)state;
  assert_int_equal(hits_with_scans(GM_CACHE_LRU), 80 * 30); /* all that are possible: 80 * 59 */
  assert_int_equal(hits_with_scans(GM_CACHE_S3FIFO), 80 * 59);
}

/* ---- arguments, host memory, forks ---- */

static void test_wrong_arguments_are_told(void **state) {
  (void)state;
  gm_context *ctx = open_context(NULL);
  gm_cache *cache = NULL;
  gm_cache_lease *lease = NULL;
  gm_cache_stats stats = {.struct_size = 3};
  gm_cache_params params = {.struct_size = sizeof params, .policy = (gm_cache_policy)2};
  assert_int_equal(gm_cache_create(NULL, NULL, &cache, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cache_create(ctx, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cache_create(ctx, &params, &cache, NULL), GM_ERR_INVALID_ARGUMENT);
  params = (gm_cache_params){.struct_size = 1};
  assert_int_equal(gm_cache_create(ctx, &params, &cache, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_null(cache);
  assert_int_equal(gm_cache_create(ctx, NULL, &cache, NULL), GM_OK);
  static const char key[GM_CACHE_KEY_MOST + 1];
  assert_int_equal(gm_cache_put(NULL, "a", 1, NULL, 0, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cache_put(cache, NULL, 1, NULL, 0, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cache_put(cache, "a", 0, NULL, 0, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cache_put(cache, key, sizeof key, NULL, 0, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cache_put(cache, key, sizeof key - 1, NULL, 0, NULL, NULL), GM_OK);
  assert_int_equal(gm_cache_get(cache, key, sizeof key - 1, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cache_get(cache, NULL, 1, &lease, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cache_keep(cache, "", 0, true, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cache_remove(cache, NULL, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cache_clear(NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cache_get_stats(cache, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cache_get_stats(cache, &stats, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cache_destroy(NULL, NULL), GM_OK);
  assert_int_equal(gm_cache_destroy(cache, NULL), GM_OK);
#ifndef NDEBUG
  assert_int_equal(gm_cache_clear(cache, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_cache_destroy(cache, NULL), GM_ERR_INVALID_ARGUMENT);
#endif
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static gm_status put_many(gm_cache *cache, thing *things, size_t count) {
  gm_status status = GM_OK;
  size_t taken = 0;
  for (; !status && taken < count; taken += !status) {
    status = gm_cache_put(cache, &taken, sizeof taken, &things[taken], 0, NULL, NULL);
  }
  assert_int_equal(stats_of(cache).entries, taken); /* a put that failed took nothing */
  assert_int_equal(gm_cache_destroy(cache, NULL), GM_OK);
  assert_int_equal(released(things, count), taken);
  return status;
}

static gm_status open_and_fill(const gm_services *services) {
  thing things[70];
  gm_context *ctx = NULL;
  gm_cache *cache = NULL;
  const gm_context_params params = {.struct_size = sizeof params, .services = services, .ignore_environment = true};
  const gm_cache_params of_cache = {.struct_size = sizeof of_cache, .release = thing_release};
  memset(things, 0, sizeof things);
  gm_status status = gm_context_create(&params, &ctx, NULL);
  if (status) return status;
  status = gm_cache_create(ctx, &of_cache, &cache, NULL);
  if (!status) status = put_many(cache, things, 70);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  return status;
}

static void test_host_memory_that_is_missing_loses_nothing(void **state) {
  (void)state;
  fail_each_allocation(open_and_fill, 70);
}

static int in_child(counted_services *host, gm_context *ctx, gm_cache *cache, gm_cache_lease *gone,
                    atomic_uint *calls) {
  gm_cache_lease *lease = NULL;
  if (gm_cache_put(cache, "c", 1, NULL, 0, NULL, NULL) != GM_ERR_FORKED) return 1;
  if (gm_cache_get(cache, "a", 1, &lease, NULL, NULL) != GM_ERR_FORKED) return 2;
  if (gm_cache_clear(cache, NULL) != GM_ERR_FORKED) return 3;
  gm_cache_return(gone);
  if (gm_cache_destroy(cache, NULL) != GM_OK) return 4; /* a lease is left: it ends with the cache */
  if (gm_context_destroy(ctx, NULL) != GM_OK) return 5;
  if (atomic_load(calls)) return 6;
  return atomic_load(&host->live_blocks) ? 7 : 0;
}

static void test_a_forked_child_only_closes(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  atomic_uint calls = 0;
  gm_context *ctx = open_context(&host.services);
  gm_cache *cache = open_cache(ctx, GM_CACHE_S3FIFO, 0, 0, &calls);
  thing things[4];
  gm_cache_lease *first = NULL, *second = NULL, *third = NULL;
  int status = -1;
  memset(things, 0, sizeof things);
  assert_int_equal(put(cache, "a", &things[0], &first), GM_OK);
  assert_int_equal(put(cache, "b", &things[1], &second), GM_OK);
  assert_int_equal(put(cache, "c", &things[2], &third), GM_OK);
  assert_int_equal(gm_cache_remove(cache, "a", 1, NULL), GM_OK);
  assert_int_equal(gm_cache_remove(cache, "b", 1, NULL), GM_OK); /* two have left, one is in the cache: all leased */
  const pid_t child = fork();
  if (child == 0) _exit(in_child(&host, ctx, cache, first, &calls));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  gm_cache_return(third);
  gm_cache_return(second);
  gm_cache_return(first);
  assert_int_equal(calls, 2);
  close_all(ctx, cache);
  assert_int_equal(calls, 3);
  counted_services_check(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_objects_come_and_go),
      cmocka_unit_test(test_the_configuration_bounds_the_count),
      cmocka_unit_test(test_bytes_are_bounded),
      cmocka_unit_test(test_what_is_held_stays_s3fifo),
      cmocka_unit_test(test_what_is_held_stays_lru),
      cmocka_unit_test(test_a_lease_outlives_the_key),
      cmocka_unit_test(test_a_release_may_use_the_cache),
      cmocka_unit_test(test_a_scan_pushes_no_working_set_out),
      cmocka_unit_test(test_wrong_arguments_are_told),
      cmocka_unit_test(test_host_memory_that_is_missing_loses_nothing),
      cmocka_unit_test(test_a_forked_child_only_closes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
