/* A store of four times a pool's memory on the simulated CUDA driver, to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/cuda_fixture.h"
#include "support/store_bench.h"

static void test_four_times_the_memory(void **state) {
  (void)state;
  const gm_context_params params = {.struct_size = sizeof params}; /* GM_CUDA_LIBRARY */
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  store_on_device("cuda", &params);
}

/* ---- pinned memory between the device and the host ---- */

enum { KEYS = 40, VALUE_BYTES = 200 << 10, ROOM = 2 << 20, PINNED = 1 << 20, HOST = 1 << 20 };

static const char *key_of(uint64_t id) {
  static char key[24];
  snprintf(key, sizeof key, "layer/%u", (unsigned)id);
  return key;
}

/* All keys, to the byte, in an order of their own. The bounds hold all the while. */
static void go_round(gm_store *store, uint64_t most_pinned) {
  uint64_t seed = 7;
  for (int i = 0; i < 4 * KEYS; i++) {
    const uint64_t id = test_random(&seed) % KEYS;
    store_expect(store, key_of(id), id, 0, VALUE_BYTES);
    const gm_store_stats stats = store_stats(store);
    assert_true(stats.pinned_bytes <= most_pinned);
    assert_true(stats.host_bytes <= HOST);
  }
}

/* `fault` is what the driver is told before the store has values; NULL: nothing. */
static void with_a_store(uint64_t max_pinned, const char *fault, void (*act)(gm_store *store)) {
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_tier *tier = NULL;
  const gm_context_params context = {.struct_size = sizeof context}; /* GM_CUDA_LIBRARY */
  const gm_pool_params params = {
      .struct_size = sizeof params, .no_vmm = true, .max_bytes = ROOM, .keep_bytes = GM_NO_BYTES};
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  pool_bench_ok(gm_context_create(&context, &ctx, err));
  pool_bench_ok(gm_device_open_index(ctx, "cuda", 0, &device, err));
  pool_bench_ok(gm_pool_create(device, &params, &pool, err));
  pool_bench_ok(gm_tier_open(ctx, "host", "below", NULL, &tier, err));
  const gm_store_params asked = {.tiers = &tier,
                                 .tier_count = 1,
                                 .max_pinned_bytes = max_pinned,
                                 .max_host_bytes = HOST,
                                 .fallback = GM_FALLBACK_REFUSE};
  gm_store *store = store_open(pool, &asked);
  if (fault) cuda_say(fault);
  for (uint64_t id = 0; id < KEYS; id++) store_put(store, key_of(id), id, 0, VALUE_BYTES);
  act(store);
  if (fault) cuda_say("fail");
  store_close(store);
  pool_bench_ok(gm_tier_close(tier, err));
  pool_bench_ok(gm_pool_destroy(pool, err));
  pool_bench_ok(gm_device_close(device, err));
  assert_int_equal(cuda_count("pinned"), 0);
  assert_int_equal(cuda_count("allocations"), 0);
  pool_bench_ok(gm_context_destroy(ctx, err));
}

static void act_go_through(gm_store *store) {
  const gm_store_stats stats = store_stats(store);
  assert_in_range(stats.pinned_bytes, PINNED / 2, PINNED);
  assert_in_range(cuda_count("pinned"), 1, 2);       /* allocations of the driver */
  assert_in_range(stats.host_bytes, HOST / 2, HOST); /* pinned memory was full */
  go_round(store, PINNED);
  pool_bench_ok(gm_store_demote(store, UINT64_MAX, NULL, err));
  assert_int_equal(store_stats(store).device_bytes, 0);
  assert_true(store_stats(store).pinned_bytes > 0);
  pool_bench_ok(gm_store_flush(store, err)); /* what is in pinned memory, too */
  pool_bench_ok(gm_store_clear(store, NULL, err));
  assert_int_equal(store_stats(store).pinned_bytes, 0);
  const long pins = cuda_calls("cuMemHostAlloc"), frees = cuda_calls("cuMemFreeHost");
  printf("driver calls for %u values that left the device: %ld to pin, %ld to free\n",
         (unsigned)store_stats(store).went_down, pins, frees);
  assert_in_range(pins, 1, 8);
  assert_in_range(frees, 0, 8);
}

static void test_pinned_memory_is_between(void **state) {
  (void)state;
  with_a_store(PINNED, NULL, act_go_through);
}

static void act_without(gm_store *store) {
  assert_int_equal(store_stats(store).pinned_bytes, 0);
  assert_true(store_stats(store).host_bytes > 0);
  go_round(store, 0);
}

/* 0 and GM_NO_BYTES ask for none. A value that is larger than the bound goes on to the host. So does one for which the
 * driver pins no memory. */
static void test_no_pinned_memory(void **state) {
  (void)state;
  with_a_store(0, NULL, act_without);
  with_a_store(GM_NO_BYTES, NULL, act_without);
  with_a_store(VALUE_BYTES, NULL, act_without); /* its image is larger */
  with_a_store(PINNED, "fail cuMemHostAlloc:*:2", act_without);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_four_times_the_memory),
                                     cmocka_unit_test(test_pinned_memory_is_between),
                                     cmocka_unit_test(test_no_pinned_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
