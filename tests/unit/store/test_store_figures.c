/* The figures of a store: how much it says that it freed, and why it has no room. Its calls take so much memory, and
 * so many steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/store.h"
#include "support/store_bench.h"

#define MIB (UINT64_C(1) << 20)

/* ---- what is freed ---- */

static void demote_and_check(pool_bench *bench, gm_store *store, uint64_t bytes, uint64_t want) {
  const uint64_t before = pool_bench_stats(bench).in_use_bytes;
  uint64_t gone = 0;
  pool_bench_ok(gm_store_demote(store, bytes, &gone, err));
  assert_int_equal(gone, before - pool_bench_stats(bench).in_use_bytes);
  assert_int_equal(gone, want);
}

/* A value of ten keys is free when the last of them went down. */
static void test_a_value_of_ten_keys(void **state) {
  (void)state;
  pool_bench bench;
  store_open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  store_put(store, "a", 1, 0, MIB);
  for (int i = 0; i < 9; i++) {
    pool_bench_ok(gm_store_copy(store, "a", (const char[]){'b', (char)('0' + i), '\0'}, err));
  }
  demote_and_check(&bench, store, 5 * MIB, MIB);
  assert_int_equal(store_stats(store).device_bytes, 0);
  store_expect(store, "a", 1, 0, MIB);
  store_expect(store, "b8", 1, 0, MIB);
  store_close(store);
  pool_bench_close(&bench);
}

/* Parts that somebody holds, and buffers of somebody else, stay where they are. */
static void test_a_value_whose_parts_are_held(void **state) {
  (void)state;
  pool_bench bench;
  gm_value *tensors[2], *list = NULL;
  const gm_tensor_desc desc = store_bytes_desc(MIB);
  unsigned char *data = store_contents(1, 0, MIB);
  store_open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  for (int i = 0; i < 2; i++) {
    pool_bench_ok(gm_value_tensor(bench.pool, &desc, data, GM_FALLBACK_REFUSE, NULL, &tensors[i], err));
  }
  pool_bench_ok(gm_value_list(bench.ctx, tensors, 2, &list, err));
  pool_bench_ok(gm_store_put(store, "list", list, err));
  gm_value_release(list, NULL);
  gm_value_release(tensors[0], NULL); /* the other one is held */
  demote_and_check(&bench, store, 16 * MIB, MIB);
  gm_value_release(tensors[1], NULL);
  assert_int_equal(pool_bench_stats(&bench).in_use_bytes, 0);
  free(data);
  store_close(store);
  pool_bench_close(&bench);
}

/* A request beside the store needs more than the first victims free. */
static void test_the_evictor_goes_on_until_it_is_free(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  store_open_bench(&bench, 8 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  store_put(store, "a", 1, 0, 3 * MIB);
  pool_bench_ok(gm_store_copy(store, "a", "b", err));
  store_put(store, "c", 3, 0, 3 * MIB);
  const gm_request request = {.bytes = 6 * MIB};
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  store_expect(store, "a", 1, 0, 3 * MIB);
  store_expect(store, "b", 1, 0, 3 * MIB);
  store_close(store);
  pool_bench_close(&bench);
}

/* ---- why there is no room ---- */

static gm_status put_and_say(gm_store *store, const char *key, uint64_t bytes, gm_error *err) {
  const gm_tensor_desc desc = store_bytes_desc(bytes);
  unsigned char *data = store_contents(1, 0, bytes);
  const gm_status status = gm_store_put_tensor(store, key, &desc, data, err);
  free(data);
  return status;
}

static gm_status fill(gm_store *store, gm_error *err) {
  char key[16];
  gm_status status = GM_OK;
  for (int i = 0; i < 64 && !status; i++) {
    snprintf(key, sizeof key, "k%d", i);
    status = put_and_say(store, key, MIB, err);
  }
  return status;
}

static void test_the_places_that_are_full(void **state) {
  (void)state;
  pool_bench bench;
  gm_error why = {.status = GM_OK};
  store_open_bench(&bench, 4 * MIB);
  gm_tier *tier = store_open_tier(&bench, "host", "shelf.gmtier", 3 * MIB);
  const gm_store_params params = {
      .tiers = &tier, .tier_count = 1, .max_host_bytes = 2 * MIB, .fallback = GM_FALLBACK_REFUSE};
  gm_store *store = store_open(bench.pool, &params);
  assert_int_equal(fill(store, &why), GM_ERR_OVER_LIMIT);
  assert_non_null(strstr(why.message, "nothing below has room"));
  assert_non_null(strstr(why.message, "host memory: 1 MiB of 2 MiB")); /* an image has a head beside its bytes */
  assert_non_null(strstr(why.message, "tier \"shelf.gmtier\""));
  assert_non_null(strstr(why.message, "are more than the tier's 3145728"));
  assert_null(strstr(why.message, "pool's cap"));
  store_close(store);
  pool_bench_ok(gm_tier_close(tier, err));
  pool_bench_close(&bench);
}

static void test_values_that_are_held(void **state) {
  (void)state;
  pool_bench bench;
  gm_error why = {.status = GM_OK};
  gm_value *values[4];
  store_open_bench(&bench, 4 * MIB);
  const gm_store_params params = {.fallback = GM_FALLBACK_REFUSE};
  gm_store *store = store_open(bench.pool, &params);
  for (int i = 0; i < 4; i++) {
    const char key[2] = {(char)('a' + i), '\0'};
    store_put(store, key, 1, 0, MIB);
    pool_bench_ok(gm_store_get(store, key, &values[i], err));
  }
  assert_int_equal(put_and_say(store, "more", MIB, &why), GM_ERR_OVER_LIMIT);
  assert_non_null(strstr(why.message, "held"));
  assert_null(strstr(why.message, "below"));
  for (int i = 0; i < 4; i++) gm_value_release(values[i], NULL);
  /* A value larger than the pool is the pool's to refuse. */
  assert_int_equal(put_and_say(store, "more", 5 * MIB, &why), GM_ERR_OVER_LIMIT);
  assert_null(strstr(why.message, "held"));
  store_close(store);
  pool_bench_close(&bench);
}

static void test_a_store_without_tiers(void **state) {
  (void)state;
  pool_bench bench;
  gm_error why = {.status = GM_OK};
  store_open_bench(&bench, 4 * MIB);
  const gm_store_params params = {.max_host_bytes = GM_NO_BYTES, .fallback = GM_FALLBACK_REFUSE};
  gm_store *store = store_open(bench.pool, &params);
  assert_int_equal(fill(store, &why), GM_ERR_OVER_LIMIT);
  assert_non_null(strstr(why.message, "the store has no tier"));
  store_close(store);
  pool_bench_close(&bench);
}

/* ---- what many keys cost ---- */

enum { MANY = 2000 };

static void put_many_small(gm_store *store) {
  char key[32];
  for (int i = 0; i < MANY; i++) {
    snprintf(key, sizeof key, "folder/%d", i);
    store_put(store, key, (uint64_t)i, 0, 16);
  }
}

static size_t flush_extra(pool_bench *bench, gm_store *store) {
  const size_t before = atomic_load(&bench->host.live_bytes);
  atomic_store(&bench->host.peak_bytes, before);
  pool_bench_ok(gm_store_flush(store, err));
  return atomic_load(&bench->host.peak_bytes) - before;
}

static void test_a_flush_takes_what_is_new(void **state) {
  (void)state;
  pool_bench bench;
  gm_tier_stats stats = {.struct_size = sizeof stats};
  store_open_bench(&bench, 16 * MIB);
  gm_tier *tier = store_open_tier(&bench, "host", "", 0);
  const gm_store_params params = {.tiers = &tier, .tier_count = 1};
  gm_store *store = store_open(bench.pool, &params);
  put_many_small(store);
  assert_in_range(flush_extra(&bench, store), 0, MANY * 512); /* the tier's own */
  put_many_small(store);
  for (int i = 0; i < 3; i++) pool_bench_ok(gm_store_flush(store, err));
  store_put(store, "folder/7", 7, 1, 16);
  pool_bench_ok(gm_tier_get_stats(tier, &stats, err));
  const uint64_t puts = stats.puts;
  assert_int_equal(puts, 2 * MANY); /* each value once */
  assert_in_range(flush_extra(&bench, store), 0, 2048);
  pool_bench_ok(gm_tier_get_stats(tier, &stats, err));
  assert_int_equal(stats.puts, puts + 1);
  store_close(store);
  pool_bench_ok(gm_tier_close(tier, err));
  pool_bench_close(&bench);
}

static void test_several_keys_take_as_much_as_they_are(void **state) {
  (void)state;
  static char text[MANY][16];
  static const char *keys[MANY];
  static gm_value *values[MANY];
  pool_bench bench;
  const gm_tensor_desc desc = store_bytes_desc(16);
  store_open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  pool_bench_ok(gm_value_tensor(bench.pool, &desc, "0123456789abcdef", GM_FALLBACK_REFUSE, NULL, &values[0], err));
  for (int i = 0; i < MANY; i++) {
    snprintf(text[i], sizeof text[i], "many/%d", i);
    keys[i] = text[i];
    values[i] = values[0];
  }
  pool_bench_ok(gm_store_put_many(store, keys, values, MANY, err));
  gm_value_release(values[0], NULL);
  const size_t before = atomic_load(&bench.host.live_bytes);
  atomic_store(&bench.host.peak_bytes, before);
  pool_bench_ok(gm_store_put_many(store, keys, values, MANY, err));
  assert_in_range(atomic_load(&bench.host.peak_bytes) - before, 0, MANY * 64);
  atomic_store(&bench.host.peak_bytes, before);
  pool_bench_ok(gm_store_delete_many(store, keys, MANY, err));
  assert_in_range(atomic_load(&bench.host.peak_bytes) - before, 0, MANY * 64);
  assert_int_equal(store_stats(store).keys, 0);
  store_close(store);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_value_of_ten_keys),
      cmocka_unit_test(test_a_value_whose_parts_are_held),
      cmocka_unit_test(test_the_evictor_goes_on_until_it_is_free),
      cmocka_unit_test(test_the_places_that_are_full),
      cmocka_unit_test(test_values_that_are_held),
      cmocka_unit_test(test_a_store_without_tiers),
      cmocka_unit_test(test_a_flush_takes_what_is_new),
      cmocka_unit_test(test_several_keys_take_as_much_as_they_are),
  };
  return cmocka_run_group_tests_name("store_figures", tests, NULL, NULL);
}
