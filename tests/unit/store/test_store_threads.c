/* A store among threads, in a forked child, and where host memory runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gm/size.h"
#include "gm/store.h"
#include "support/store_bench.h"

#define MIB (UINT64_C(1) << 20)

static void open_bench(pool_bench *bench, uint64_t max_bytes) {
  const gm_pool_params params = {
      .struct_size = sizeof params, .checked = true, .no_vmm = true, .max_bytes = max_bytes, .keep_bytes = GM_NO_BYTES};
  pool_bench_open(bench, "cpu", NULL, &params);
}

/* ---- threads ---- */

enum { THREADS = 4, STEPS = 400, SHARED = 12 };

typedef struct worker {
  gm_store *store;
  uint64_t seed;
} worker;

/* Each value tells its own version in its first bytes. */
static void *work(void *user) {
  worker *mine = user;
  for (int i = 0; i < STEPS; i++) {
    char key[16];
    const uint64_t at = test_random(&mine->seed) % SHARED;
    snprintf(key, sizeof key, "k/%d", (int)at);
    switch (test_random(&mine->seed) % 10) {
      case 0:
      case 1:
      case 2: {
        const uint64_t version = test_random(&mine->seed) % 4;
        store_put(mine->store, key, at, version, 60000 + version);
        break;
      }
      case 3: (void)gm_store_delete(mine->store, key, NULL); break;
      case 4: (void)gm_store_demote(mine->store, 100000, NULL, NULL); break;
      case 5: (void)gm_store_demote_key(mine->store, key, NULL); break;
      default: {
        gm_value *value = NULL;
        gm_value_info info = {.struct_size = sizeof info};
        const gm_status status = gm_store_get(mine->store, key, &value, NULL);
        if (status == GM_ERR_NOT_FOUND) break;
        assert_int_equal(status, GM_OK);
        assert_int_equal(gm_value_describe(value, &info, NULL), GM_OK);
        assert_true(store_value_is(value, at, info.bytes - 60000, info.bytes));
        gm_value_release(value, NULL);
      }
    }
  }
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  pool_bench bench;
  pthread_t threads[THREADS];
  worker workers[THREADS];
  gm_tier *tier = NULL;
  open_bench(&bench, 512 << 10);
  pool_bench_ok(gm_tier_open(bench.ctx, "host", "below", NULL, &tier, err));
  const gm_store_params params = {
      .tiers = &tier, .tier_count = 1, .max_host_bytes = 128 << 10, .fallback = GM_FALLBACK_HOST};
  gm_store *store = store_open(bench.pool, &params);
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){store, (uint64_t)i + 1};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  store_close(store);
  pool_bench_ok(gm_tier_close(tier, err));
  pool_bench_close(&bench);
}

static void test_a_forked_child(void **state) {
  (void)state;
  pool_bench bench;
  open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  store_put(store, "a", 1, 1, 100);
  const pid_t child = fork();
  if (child == 0) {
    gm_value *value = NULL;
    bool wrong = gm_store_get(store, "a", &value, NULL) != GM_ERR_FORKED;
    wrong = wrong || gm_store_delete(store, "a", NULL) != GM_ERR_FORKED;
    wrong = wrong || gm_store_destroy(store, NULL) || gm_pool_destroy(bench.pool, NULL);
    wrong = wrong || gm_device_close(bench.device, NULL) || gm_context_destroy(bench.ctx, NULL);
    _exit(wrong);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  store_expect(store, "a", 1, 1, 100);
  store_close(store);
  pool_bench_close(&bench);
}

static gm_status attempt(const gm_services *services) {
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_tier *tier = NULL;
  gm_store *store = NULL;
  gm_value *value = NULL, *dict = NULL, *got[2] = {NULL};
  const gm_context_params context = {.struct_size = sizeof context, .services = services, .ignore_environment = true};
  const gm_tensor_desc desc = store_bytes_desc(100);
  const char bytes[100] = "bytes";
  gm_status status = gm_context_create(&context, &ctx, NULL);
  if (!status) status = gm_device_open_index(ctx, "cpu", 0, &device, NULL);
  if (!status) status = gm_pool_create(device, NULL, &pool, NULL);
  if (!status) status = gm_tier_open(ctx, "host", "", NULL, &tier, NULL);
  const gm_store_params params = {.struct_size = sizeof params,
                                  .pool = pool,
                                  .tiers = &tier,
                                  .tier_count = 1,
                                  .max_host_bytes = 700,
                                  .fallback = GM_FALLBACK_REFUSE};
  if (!status) status = gm_store_create(&params, &store, NULL);
  if (!status) status = gm_value_tensor_on_host(ctx, &desc, bytes, &value, NULL);
  if (!status) status = gm_value_dict(ctx, (const char *[]){"x"}, &value, 1, &dict, NULL);
  if (!status) status = gm_store_put(store, "a", dict, NULL);
  if (!status) status = gm_store_put_many(store, (const char *[]){"b", "c"}, (gm_value *[]){dict, value}, 2, NULL);
  if (!status) status = gm_store_declare_prefix(store, "p", NULL);
  if (!status) status = gm_store_demote(store, UINT64_MAX, NULL, NULL);
  if (!status) status = gm_store_flush(store, NULL);
  if (!status) status = gm_store_get_many(store, (const char *[]){"a", "b"}, 2, got, NULL);
  if (!status) status = gm_store_copy(store, "a", "d", NULL);
  if (!status) status = gm_store_delete_many(store, (const char *[]){"a", "b"}, 2, NULL);
  if (!status) status = gm_store_clear(store, NULL, NULL);
  gm_value_release(got[0], NULL);
  gm_value_release(got[1], NULL);
  gm_value_release(dict, NULL);
  gm_value_release(value, NULL);
  assert_int_equal(gm_store_destroy(store, NULL), GM_OK);
  assert_int_equal(gm_tier_close(tier, NULL), GM_OK);
  assert_int_equal(gm_pool_destroy(pool, NULL), GM_OK);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  return status;
}

static void test_each_host_allocation_may_fail(void **state) {
  (void)state;
  size_t n = 0, calls;
  do {
    counted_services host;
    counted_services_init(&host);
    host.fail_at = ++n;
    host.fail_count = 1;
    const gm_status status = attempt(&host.services);
    if (status) assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY); /* some are done without */
    counted_services_check(&host);
    calls = atomic_load(&host.calls);
  } while (calls >= n);
  assert_true(n > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_a_forked_child),
      cmocka_unit_test(test_each_host_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
