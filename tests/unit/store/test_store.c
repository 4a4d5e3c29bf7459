/* A store in memory: keys, replacing, leases, prefixes, batches, counts of users, threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/size.h"
#include "gm/store.h"
#include "support/store_bench.h"

#define MIB (UINT64_C(1) << 20)

static void open_bench(pool_bench *bench, uint64_t max_bytes) {
  const gm_pool_params params = {
      .struct_size = sizeof params, .checked = true, .no_vmm = true, .max_bytes = max_bytes, .keep_bytes = GM_NO_BYTES};
  pool_bench_open(bench, "cpu", NULL, &params);
}

static void test_keys(void **state) {
  (void)state;
  static char longest[1 << 20];
  pool_bench bench;
  gm_error why;
  gm_value *value = NULL;
  open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  store_put(store, "/a//b/./c/", 1, 1, 100);
  store_expect(store, "a/b/c", 1, 1, 100);
  store_put(store, "a/b/x/../c", 1, 2, 50);
  store_expect(store, "a/b/c", 1, 2, 50);
  store_expect_none(store, "a/b");
  assert_int_equal(store_stats(store).keys, 1);
  assert_int_equal(gm_store_get(store, "nobody/here", &value, &why), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(why.message, "nobody/here"));
  memset(longest, 'k', sizeof longest - 1);
  const char *const wrong[] = {"", "/", "..", "a/../..", "//./", longest, NULL};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    bool there;
    assert_int_equal(store_try_put(store, wrong[i], 1, 1, 1), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_store_get(store, wrong[i], &value, NULL), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_store_exists(store, wrong[i], &there, NULL), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_store_delete(store, wrong[i], NULL), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_store_move(store, "a/b/c", wrong[i], NULL), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_store_demote_key(store, wrong[i], NULL), GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(gm_store_declare_prefix(store, wrong[i], NULL), GM_ERR_INVALID_ARGUMENT);
  }
  longest[GM_STORE_KEY_MOST] = '\0';
  store_put(store, longest, 3, 3, 3);
  store_expect(store, longest, 3, 3, 3);
  pool_bench_ok(gm_store_delete(store, "a/b/c", err));
  assert_int_equal(gm_store_delete(store, "a/b/c", NULL), GM_ERR_NOT_FOUND);
  store_expect_none(store, "a/b/c");
  assert_int_equal(gm_store_flush(store, NULL), GM_ERR_NOT_SUPPORTED);
  store_close(store);
  pool_bench_close(&bench);
}

static void test_a_value_lives_as_long_as_somebody_holds_it(void **state) {
  (void)state;
  pool_bench bench;
  gm_value *first = NULL, *second = NULL;
  open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  store_put(store, "a", 1, 1, 1000);
  pool_bench_ok(gm_store_get(store, "a", &first, err));
  store_put(store, "a", 1, 2, 2000);
  pool_bench_ok(gm_store_get(store, "a", &second, err));
  pool_bench_ok(gm_store_delete(store, "a", err));
  assert_true(store_value_is(first, 1, 1, 1000));
  assert_true(store_value_is(second, 1, 2, 2000));
  assert_int_equal(gm_pool_destroy(bench.pool, NULL), GM_ERR_BUSY);
  store_close(store);
  assert_true(store_value_is(second, 1, 2, 2000));
  assert_int_equal(gm_pool_destroy(bench.pool, NULL), GM_ERR_BUSY);
  gm_value_release(first, NULL);
  gm_value_release(second, NULL);
  pool_bench_close(&bench);
}

static void test_move_and_copy(void **state) {
  (void)state;
  pool_bench bench;
  open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  store_put(store, "a", 1, 1, 10);
  store_put(store, "b", 2, 1, 20);
  pool_bench_ok(gm_store_copy(store, "a", "c/d", err));
  pool_bench_ok(gm_store_move(store, "a", "b", err));
  store_expect_none(store, "a");
  store_expect(store, "b", 1, 1, 10);
  store_expect(store, "c/d", 1, 1, 10);
  pool_bench_ok(gm_store_move(store, "b", "/b/", err)); /* onto itself */
  store_expect(store, "b", 1, 1, 10);
  assert_int_equal(gm_store_move(store, "a", "b", NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_store_copy(store, "a", "b", NULL), GM_ERR_NOT_FOUND);
  /* Two keys of one value go down one after the other. */
  uint64_t gone = 0;
  pool_bench_ok(gm_store_demote(store, UINT64_MAX, &gone, err));
  assert_int_equal(store_stats(store).device_bytes, 0);
  pool_bench_ok(gm_store_copy(store, "b", "e", err)); /* it comes back for that */
  store_expect(store, "e", 1, 1, 10);
  store_close(store);
  pool_bench_close(&bench);
}

typedef struct seen {
  char text[256];
  int most;
  gm_store *store;
} seen;

static bool visit(void *user, const char *key) {
  seen *list = user;
  const size_t length = strlen(list->text);
  snprintf(list->text + length, sizeof list->text - length, "%s ", key);
  if (list->store) assert_int_equal(gm_store_delete(list->store, key, NULL), GM_OK);
  return --list->most > 0;
}

static void expect_keys(gm_store *store, const char *prefix, const char *keys) {
  seen list = {.most = 100};
  pool_bench_ok(gm_store_list(store, prefix, visit, &list, err));
  assert_string_equal(list.text, keys);
}

static void expect_prefixes(gm_store *store, const char *prefix, const char *keys) {
  seen list = {.most = 100};
  pool_bench_ok(gm_store_list_prefixes(store, prefix, visit, &list, err));
  assert_string_equal(list.text, keys);
}

static void test_prefixes(void **state) {
  (void)state;
  pool_bench bench;
  open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  expect_keys(store, NULL, "");
  const char *const keys[] = {"b", "a/2", "a/1", "a", "ab", "c/d/e"};
  for (uint64_t i = 0; i < 6; i++) store_put(store, keys[i], i, 0, 4);
  expect_keys(store, NULL, "a a/1 a/2 ab b c/d/e ");
  expect_keys(store, "/", "a a/1 a/2 ab b c/d/e ");
  expect_keys(store, "a/", "a a/1 a/2 ");
  expect_keys(store, "c", "c/d/e ");
  expect_keys(store, "none", "");
  assert_int_equal(gm_store_list(store, "..", visit, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_store_list(store, NULL, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_store_declare_prefix(store, "x//y/", err));
  pool_bench_ok(gm_store_declare_prefix(store, "a", err));
  pool_bench_ok(gm_store_declare_prefix(store, "a", err));
  expect_prefixes(store, NULL, "a x/y ");
  expect_prefixes(store, "x", "x/y ");
  expect_keys(store, "x/y", "");
  seen some = {.most = 2, .store = store}; /* a visitor deletes, and ends early */
  pool_bench_ok(gm_store_list(store, NULL, visit, &some, err));
  expect_keys(store, NULL, "a/2 ab b c/d/e ");
  pool_bench_ok(gm_store_clear(store, "a", err));
  expect_keys(store, NULL, "ab b c/d/e ");
  expect_prefixes(store, NULL, "x/y ");
  pool_bench_ok(gm_store_clear(store, "", err));
  expect_keys(store, NULL, "");
  expect_prefixes(store, NULL, "");
  assert_int_equal(store_stats(store).allocated_bytes, 0);
  store_close(store);
  pool_bench_close(&bench);
}

static void test_batches(void **state) {
  (void)state;
  pool_bench bench;
  gm_error why;
  open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  gm_value *values[3] = {NULL}, *got[3] = {NULL};
  for (uint64_t i = 0; i < 3; i++) {
    const gm_tensor_desc desc = store_bytes_desc(100);
    unsigned char *data = store_contents(i, 0, 100);
    pool_bench_ok(gm_value_tensor_on_host(bench.ctx, &desc, data, &values[i], err));
    free(data);
  }
  store_put(store, "b", 9, 9, 9);
  assert_int_equal(gm_store_put_many(store, (const char *[]){"a", "b", ".."}, values, 3, NULL),
                   GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(
      gm_store_put_many(store, (const char *[]){"a", "b", "c"}, (gm_value *[]){values[0], NULL, values[1]}, 3, NULL),
      GM_ERR_INVALID_ARGUMENT);
  expect_keys(store, NULL, "b ");
  store_expect(store, "b", 9, 9, 9);
  pool_bench_ok(gm_store_put_many(store, (const char *[]){"a", "b", "a"}, values, 3, err));
  pool_bench_ok(gm_store_put_many(store, NULL, NULL, 0, err));
  store_expect(store, "a", 2, 0, 100);
  store_expect(store, "b", 1, 0, 100);
  assert_int_equal(gm_store_get_many(store, (const char *[]){"a", "none", "b"}, 3, got, &why), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(why.message, "none"));
  assert_null(got[0]);
  pool_bench_ok(gm_store_get_many(store, (const char *[]){"a", "b"}, 2, got, err));
  assert_true(store_value_is(got[1], 1, 0, 100));
  assert_int_equal(gm_store_delete_many(store, (const char *[]){"a", "none"}, 2, NULL), GM_ERR_NOT_FOUND);
  expect_keys(store, NULL, "a b ");
  assert_int_equal(gm_store_delete_many(NULL, (const char *[]){"a"}, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_store_delete_many(store, NULL, 0, err));
  pool_bench_ok(gm_store_delete_many(store, (const char *[]){"a", "b", "./a"}, 3, err));
  expect_keys(store, NULL, "");
  for (int i = 0; i < 3; i++) gm_value_release(values[i], NULL);
  gm_value_release(got[0], NULL);
  gm_value_release(got[1], NULL);
  store_close(store);
  pool_bench_close(&bench);
}

static void test_counts_of_users(void **state) {
  (void)state;
  pool_bench bench;
  gm_value *value = NULL, *host = NULL;
  open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  const gm_tensor_desc desc = store_bytes_desc(1000);
  unsigned char *data = store_contents(1, 1, 1000);
  pool_bench_ok(gm_value_tensor_on_host(bench.ctx, &desc, data, &host, err));
  free(data);
  pool_bench_ok(gm_store_release(store, "a", err)); /* unknown */
  assert_int_equal(gm_store_acquire(store, "a", &value, NULL), GM_ERR_NOT_FOUND);
  pool_bench_ok(gm_store_allocate(store, "a", host, err));
  assert_true(store_stats(store).allocated_bytes >= 1000);
  assert_true(store_stats(store).reserved_bytes >= 1000);
  pool_bench_ok(gm_store_acquire(store, "a", &value, err));
  assert_true(store_value_is(value, 1, 1, 1000));
  gm_value_release(value, NULL);
  pool_bench_ok(gm_store_release(store, "a", err)); /* of two */
  store_expect(store, "a", 1, 1, 1000);
  pool_bench_ok(gm_store_acquire(store, "a", &value, err));
  gm_value_release(value, NULL);
  pool_bench_ok(gm_store_allocate(store, "a", host, err)); /* again: one */
  pool_bench_ok(gm_store_release(store, "a", err));
  store_expect_none(store, "a");
  assert_int_equal(store_stats(store).allocated_bytes, 0);
  assert_true(store_stats(store).peak_reserved_bytes >= 1000);
  store_put(store, "plain", 1, 1, 10); /* nobody counts it */
  pool_bench_ok(gm_store_release(store, "plain", err));
  store_expect(store, "plain", 1, 1, 10);
  gm_value_release(host, NULL);
  store_close(store);
  pool_bench_close(&bench);
}

/* A tree with tensors on the host comes to the device, and back from below with all its names and types. */
static void test_a_tree_goes_down_and_comes_back(void **state) {
  (void)state;
  pool_bench bench;
  gm_value *items[4] = {NULL}, *list = NULL, *dict = NULL, *got = NULL, *item = NULL;
  gm_value_info info = {.struct_size = sizeof info};
  float number = 0;
  const uint16_t half[6] = {1, 2, 3, 4, 5, 6};
  uint16_t back[6];
  open_bench(&bench, 16 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  const gm_tensor_desc scalar = {.struct_size = sizeof scalar, .dtype = GM_DTYPE_F32};
  const gm_tensor_desc matrix = {.struct_size = sizeof matrix, .dtype = GM_DTYPE_BF16, .rank = 2, .shape = {2, 3}};
  const gm_tensor_desc none = {.struct_size = sizeof none, .dtype = GM_DTYPE_BOOL, .rank = 2, .shape = {0, 3}};
  pool_bench_ok(gm_value_tensor_on_host(bench.ctx, &scalar, &(float){1.5F}, &items[0], err));
  pool_bench_ok(gm_value_tensor(bench.pool, &matrix, half, GM_FALLBACK_REFUSE, NULL, &items[1], err));
  pool_bench_ok(gm_value_tensor_on_host(bench.ctx, &none, NULL, &items[2], err));
  pool_bench_ok(gm_value_list(bench.ctx, items, 3, &list, err));
  pool_bench_ok(gm_value_list(bench.ctx, NULL, 0, &items[3], err));
  pool_bench_ok(gm_value_dict(bench.ctx, (const char *[]){"\xc3\xa4", "", "l"},
                              (gm_value *[]){items[1], items[3], list}, 3, &dict, err));
  pool_bench_ok(gm_store_put(store, "tree", dict, err));
  for (int i = 0; i < 4; i++) gm_value_release(items[i], NULL);
  gm_value_release(list, NULL);
  gm_value_release(dict, NULL);
  pool_bench_ok(gm_store_demote_key(store, "tree", err));
  assert_int_equal(store_stats(store).device_bytes, 0);
  assert_int_equal(store_stats(store).allocated_bytes, 0);
  pool_bench_ok(gm_store_demote_key(store, "tree", err)); /* it is there already */
  pool_bench_ok(gm_store_get(store, "tree", &got, err));
  assert_int_equal(gm_store_demote_key(store, "tree", NULL), GM_ERR_BUSY);
  pool_bench_ok(gm_value_describe(got, &info, err));
  assert_int_equal(info.items, 3);
  assert_int_equal(info.nodes, 7);
  assert_int_equal(info.location, GM_LOCATION_DEVICE);
  pool_bench_ok(gm_value_find(got, "\xc3\xa4", &item, err));
  pool_bench_ok(gm_value_read(item, 0, back, sizeof back, NULL, err));
  assert_memory_equal(back, half, sizeof half);
  pool_bench_ok(gm_value_find(got, "l", &list, err));
  pool_bench_ok(gm_value_at(list, 0, NULL, &item, err));
  pool_bench_ok(gm_value_read(item, 0, &number, 4, NULL, err));
  assert_true(number == 1.5F);
  pool_bench_ok(gm_value_at(list, 2, NULL, &item, err));
  pool_bench_ok(gm_value_describe(item, &info, err));
  assert_int_equal(info.dtype, GM_DTYPE_BOOL);
  assert_int_equal(info.shape[1], 3);
  gm_value_release(got, NULL);
  store_close(store);
  pool_bench_close(&bench);
}

static void test_values_go_down_at_the_bounds(void **state) {
  (void)state;
  pool_bench bench;
  gm_value *held = NULL;
  open_bench(&bench, 16 * MIB);
  const gm_store_params bound = {.max_device_bytes = 1000};
  gm_store *store = store_open(bench.pool, &bound);
  for (uint64_t i = 0; i < 8; i++) store_put(store, (char[]){(char)('a' + i), 0}, i, 0, 300);
  assert_true(store_stats(store).device_bytes <= 1300);
  pool_bench_ok(gm_store_get(store, "h", &held, err));
  for (uint64_t i = 0; i < 8; i++) store_expect(store, (char[]){(char)('a' + i), 0}, i, 0, 300);
  assert_true(store_value_is(held, 7, 0, 300));
  gm_value_release(held, NULL);
  store_close(store);
  /* keep_in_vram false: what nobody refers to goes at the next call. The key holds for stores that leave it open. */
  store = store_open(bench.pool, NULL);
  store_put(store, "a", 1, 0, 100);
  store_put(store, "b", 2, 0, 100);
  assert_int_equal(store_stats(store).device_bytes, 200);
  pool_bench_ok(gm_config_set(bench.ctx, "gpu.memory.keep_in_vram", "false", err));
  store_put(store, "c", 3, 0, 100);
  assert_true(store_stats(store).device_bytes <= 100);
  store_expect(store, "a", 1, 0, 100);
  /* The store looks at the key at each call, so it may change back. */
  pool_bench_ok(gm_config_set(bench.ctx, "gpu.memory.keep_in_vram", "true", err));
  for (uint64_t i = 1; i <= 3; i++) store_expect(store, (char[]){(char)('a' + i - 1), 0}, i, 0, 100);
  assert_int_equal(store_stats(store).device_bytes, 300);
  pool_bench_ok(gm_config_set(bench.ctx, "gpu.memory.keep_in_vram", "false", err));
  store_close(store);
  const gm_store_params keeps = {.keep = GM_STORE_KEEP_LONG};
  store = store_open(bench.pool, &keeps);
  store_put(store, "a", 1, 0, 100);
  store_put(store, "b", 2, 0, 100);
  assert_int_equal(store_stats(store).device_bytes, 200);
  store_close(store);
  pool_bench_close(&bench);
}

/* Without a tier, host memory takes all of it. */
static void test_four_times_the_memory(void **state) {
  (void)state;
  pool_bench bench;
  open_bench(&bench, 4 * MIB);
  store_four_times(bench.pool, NULL, 4 * MIB, 0, 3);
  pool_bench_close(&bench);
}

/* A request beside the store, of the pool: values that nobody holds make room for it. */
static void test_the_store_makes_room_for_others(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  gm_value *held = NULL;
  open_bench(&bench, 1 * MIB);
  gm_store *store = store_open(bench.pool, NULL);
  store_put(store, "a", 1, 0, 300 << 10);
  store_put(store, "b", 2, 0, 300 << 10);
  store_put(store, "c", 3, 0, 300 << 10);
  pool_bench_ok(gm_store_get(store, "a", &held, err));
  const gm_request request = {.bytes = 600 << 10};
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &block)));
  assert_int_equal(store_stats(store).went_down, 2);
  assert_true(store_value_is(held, 1, 0, 300 << 10));
  const gm_request more = {.bytes = 500 << 10}; /* "a" is held */
  gm_block none;
  assert_false(gm_acquired(gm_alloc(bench.pool, &more, &none)));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  store_expect(store, "b", 2, 0, 300 << 10);
  store_expect(store, "c", 3, 0, 300 << 10);
  gm_value_release(held, NULL);
  store_close(store);
  pool_bench_close(&bench);
}

static void test_where_nothing_can_go(void **state) {
  (void)state;
  pool_bench bench;
  gm_value *held = NULL;
  open_bench(&bench, 1 * MIB);
  const gm_store_params params = {.fallback = GM_FALLBACK_REFUSE, .max_host_bytes = GM_NO_BYTES};
  gm_store *store = store_open(bench.pool, &params);
  store_put(store, "a", 1, 0, 700 << 10);
  assert_int_equal(store_try_put(store, "b", 2, 0, 700 << 10), GM_ERR_OVER_LIMIT); /* no place below */
  store_expect(store, "a", 1, 0, 700 << 10);
  assert_true(store_stats(store).tier_failures == 0);
  const gm_tensor_desc large = store_bytes_desc(700 << 10);
  static const unsigned char zeros[700 << 10];
  gm_error why;
  assert_int_equal(gm_store_put_tensor(store, "b", &large, zeros, &why), GM_ERR_OVER_LIMIT);
  assert_null(strstr(why.message, "host memory")); /* that is no place of this store */
  store_close(store);
  const gm_store_params host = {.fallback = GM_FALLBACK_REFUSE};
  store = store_open(bench.pool, &host);
  store_put(store, "a", 1, 0, 700 << 10);
  pool_bench_ok(gm_store_get(store, "a", &held, err));
  assert_int_equal(store_try_put(store, "b", 2, 0, 700 << 10), GM_ERR_OVER_LIMIT); /* somebody holds it */
  store_expect_none(store, "b");
  gm_value_release(held, NULL);
  store_put(store, "b", 2, 0, 700 << 10);
  store_expect(store, "a", 1, 0, 700 << 10);
  const uint64_t on_device = store_stats(store).device_bytes;
  assert_int_equal(store_try_put(store, "c", 3, 0, 2 * MIB), GM_ERR_OVER_LIMIT);
  assert_int_equal(store_stats(store).device_bytes, on_device); /* nothing went down for what never fits */
  store_expect(store, "b", 2, 0, 700 << 10);
  store_close(store);
  store = store_open(bench.pool, NULL); /* the key cpu_fallback counts as it is at each call */
  pool_bench_ok(gm_config_set(bench.ctx, "cpu_fallback", "false", err));
  assert_int_equal(store_try_put(store, "c", 3, 0, 2 * MIB), GM_ERR_OVER_LIMIT);
  pool_bench_ok(gm_config_set(bench.ctx, "cpu_fallback", "true", err));
  assert_int_equal(store_try_put(store, "c", 3, 0, 2 * MIB), GM_OK);
  store_close(store);
  const gm_store_params falls = {.fallback = GM_FALLBACK_HOST};
  store = store_open(bench.pool, &falls);
  gm_value_info info = {.struct_size = sizeof info};
  store_put(store, "c", 3, 0, 2 * MIB);
  pool_bench_ok(gm_store_get(store, "c", &held, err));
  pool_bench_ok(gm_value_describe(held, &info, err));
  assert_int_equal(info.location, GM_LOCATION_HOST);
  assert_true(store_value_is(held, 3, 0, 2 * MIB));
  gm_value_release(held, NULL);
  store_close(store);
  pool_bench_close(&bench);
}

static void test_what_is_no_store(void **state) {
  (void)state;
  pool_bench bench;
  gm_store *store = NULL;
  gm_tier *none[1] = {NULL};
  open_bench(&bench, 16 * MIB);
  gm_store_params params = {.struct_size = sizeof params};
  assert_int_equal(gm_store_create(NULL, &store, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_store_create(&params, &store, NULL), GM_ERR_INVALID_ARGUMENT);
  params.pool = bench.pool;
  assert_int_equal(gm_store_create(&params, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  params.tier_count = 1;
  assert_int_equal(gm_store_create(&params, &store, NULL), GM_ERR_INVALID_ARGUMENT);
  params.tiers = none;
  assert_int_equal(gm_store_create(&params, &store, NULL), GM_ERR_INVALID_ARGUMENT);
  params.tier_count = GM_STORE_TIERS_MOST + 1;
  assert_int_equal(gm_store_create(&params, &store, NULL), GM_ERR_INVALID_ARGUMENT);
  params.tier_count = 0;
  params.keep = (gm_store_keep)3;
  assert_int_equal(gm_store_create(&params, &store, NULL), GM_ERR_INVALID_ARGUMENT);
  params.keep = GM_STORE_KEEP_CONFIG;
  params.fallback = (gm_fallback)9;
  assert_int_equal(gm_store_create(&params, &store, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_null(store);
  assert_int_equal(gm_store_put(NULL, "a", NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_store_destroy(NULL, NULL), GM_OK);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_keys),
      cmocka_unit_test(test_a_value_lives_as_long_as_somebody_holds_it),
      cmocka_unit_test(test_move_and_copy),
      cmocka_unit_test(test_prefixes),
      cmocka_unit_test(test_batches),
      cmocka_unit_test(test_counts_of_users),
      cmocka_unit_test(test_a_tree_goes_down_and_comes_back),
      cmocka_unit_test(test_values_go_down_at_the_bounds),
      cmocka_unit_test(test_four_times_the_memory),
      cmocka_unit_test(test_the_store_makes_room_for_others),
      cmocka_unit_test(test_where_nothing_can_go),
      cmocka_unit_test(test_what_is_no_store),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
