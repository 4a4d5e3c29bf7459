/* A store over tiers: four times the device's memory with a file below, and several tiers. A tier answers with
 * something that is no value, and stores are opened again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gm/size.h"
#include "gm/store.h"
#include "support/store_bench.h"
#include "support/temp_folder.h"

#define MIB (UINT64_C(1) << 20)

static void test_four_times_the_memory_on_disk(void **state) {
  (void)state;
  pool_bench bench;
  temp_folder folder;
  temp_folder_make(&folder);
  store_open_bench(&bench, 4 * MIB);
  gm_tier *tier = store_open_tier(&bench, "disk", temp_folder_join(&folder, "file"), 0);
  store_four_times(bench.pool, tier, 4 * MIB, GM_NO_BYTES, 3);
  assert_int_equal(store_tier_values(tier), 0); /* clear removes below, too */
  store_four_times(bench.pool, tier, 4 * MIB, 2 * MIB, 3);
  pool_bench_ok(gm_tier_close(tier, err));
  pool_bench_close(&bench);
  temp_folder_remove(&folder);
}

static void test_a_store_is_opened_again(void **state) {
  (void)state;
  pool_bench bench;
  temp_folder folder;
  temp_folder_make(&folder);
  const char *path = temp_folder_join(&folder, "file");
  store_open_bench(&bench, 4 * MIB);
  gm_tier *tier = store_open_tier(&bench, "disk", path, 0);
  const gm_store_params params = {.tiers = &tier, .tier_count = 1};
  const gm_tier_part stranger = {"no value", 8};
  gm_store *store = store_open(bench.pool, &params);
  store_put(store, "a/b", 1, 1, 1000);
  store_put(store, "c", 2, 1, 2000);
  store_put(store, "gone", 3, 1, 2000);
  pool_bench_ok(gm_store_flush(store, err));
  assert_int_equal(store_stats(store).device_bytes, 5000); /* they stay where they are */
  pool_bench_ok(gm_store_flush(store, err));
  store_put(store, "c", 2, 2, 2500);
  pool_bench_ok(gm_store_delete(store, "gone", err));
  pool_bench_ok(gm_store_move(store, "a/b", "moved", err));
  pool_bench_ok(gm_store_flush(store, err));
  store_put(store, "c", 2, 3, 100); /* not flushed */
  store_close(store);
  pool_bench_ok(gm_tier_put(tier, "a/../b", 6, &stranger, 1, err)); /* no key of a store */
  pool_bench_ok(gm_tier_put(tier, "wrong", 5, &stranger, 1, err));
  pool_bench_ok(gm_tier_close(tier, err));
  tier = store_open_tier(&bench, "disk", path, 0);
  store = store_open(bench.pool, &params);
  assert_int_equal(store_stats(store).keys, 3);
  store_expect(store, "moved", 1, 1, 1000);
  store_expect(store, "c", 2, 2, 2500);
  store_expect_none(store, "gone");
  store_expect_none(store, "a/b");
  gm_value *value = NULL;
  assert_int_equal(gm_store_get(store, "wrong", &value, NULL), GM_ERR_FORMAT);
  pool_bench_ok(gm_store_delete(store, "wrong", err));
  store_close(store);
  pool_bench_ok(gm_tier_close(tier, err));
  pool_bench_close(&bench);
  temp_folder_remove(&folder);
}

/* Values sink from tier to tier as the nearer ones fill, and come back from each. */
static void test_several_tiers(void **state) {
  (void)state;
  pool_bench bench;
  gm_tier *tiers[3];
  store_open_bench(&bench, 1 * MIB);
  tiers[0] = store_open_tier(&bench, "host", "near", 1 * MIB);
  tiers[1] = store_open_tier(&bench, "host", "middle", 1 * MIB);
  tiers[2] = store_open_tier(&bench, "host", "far", 0);
  const gm_store_params params = {
      .tiers = tiers, .tier_count = 3, .max_host_bytes = GM_NO_BYTES, .fallback = GM_FALLBACK_REFUSE};
  gm_store *store = store_open(bench.pool, &params);
  char key[16];
  for (uint64_t i = 0; i < 40; i++) {
    snprintf(key, sizeof key, "k%d", (int)i);
    store_put(store, key, i, 0, 200 << 10);
  }
  for (int i = 0; i < 3; i++) assert_true(store_tier_values(tiers[i]) > 3);
  store_put(store, "large", 99, 0, 900 << 10); /* fills a tier alone */
  for (uint64_t i = 0; i < 40; i++) {
    snprintf(key, sizeof key, "k%d", (int)i);
    if (i % 3 == 0) store_put(store, key, i, 1, 150 << 10);
    store_expect(store, key, i, i % 3 == 0, (i % 3 == 0 ? UINT64_C(150) : UINT64_C(200)) << 10);
  }
  store_expect(store, "large", 99, 0, 900 << 10);
  pool_bench_ok(gm_store_flush(store, err));
  assert_int_equal(store_tier_values(tiers[2]), 41);
  store_close(store);
  /* The nearest copy that a new store finds is of the newest version. */
  store = store_open(bench.pool, &params);
  for (uint64_t i = 0; i < 40; i++) {
    snprintf(key, sizeof key, "k%d", (int)i);
    store_expect(store, key, i, i % 3 == 0, (i % 3 == 0 ? UINT64_C(150) : UINT64_C(200)) << 10);
  }
  pool_bench_ok(gm_store_clear(store, NULL, err));
  for (int i = 0; i < 3; i++) assert_int_equal(store_tier_values(tiers[i]), 0);
  store_close(store);
  for (int i = 0; i < 3; i++) pool_bench_ok(gm_tier_close(tiers[i], err));
  pool_bench_close(&bench);
}

/* ---- hostile bytes: every bit of a small value flipped, every length ---- */

enum { HOSTILE_BATCH = 256 };

typedef struct hostile {
  pool_bench *bench;
  gm_tier *tier;
  size_t count;
  bool sealed[HOSTILE_BATCH];
} hostile;

static size_t hostile_key(size_t at, char key[16]) { return (size_t)snprintf(key, 16, "v%zu", at); }

/* Whatever a tier says, a get answers FORMAT or a value. Where the checksum holds, only bytes of tensors may differ. */
static void get_anything(gm_store *store, const char *key, bool sealed) {
  unsigned char read[256];
  gm_value *value = NULL, *item = NULL;
  const gm_status status = gm_store_get(store, key, &value, NULL);
  if (status) {
    assert_int_equal(status, GM_ERR_FORMAT);
  } else if (!sealed) {
    pool_bench_ok(gm_value_find(value, "name", &item, err));
    pool_bench_ok(gm_value_read(item, 0, read, 6, NULL, err));
  }
  gm_value_release(value, NULL);
}

/* A new store finds all that was put, and each is asked for. */
static void hostile_ask(hostile *self) {
  char key[16];
  const gm_store_params params = {.tiers = &self->tier, .tier_count = 1};
  gm_store *store = store_open(self->bench->pool, &params);
  assert_int_equal(store_stats(store).keys, self->count);
  for (size_t i = 0; i < self->count; i++) {
    hostile_key(i, key);
    get_anything(store, key, self->sealed[i]);
  }
  store_close(store);
  for (size_t i = 0; i < self->count; i++) pool_bench_ok(gm_tier_remove(self->tier, key, hostile_key(i, key), err));
  self->count = 0;
}

static void hostile_put(hostile *self, const unsigned char *bytes, size_t count, bool sealed) {
  const gm_tier_part part = {bytes, count};
  char key[16];
  self->sealed[self->count] = sealed;
  pool_bench_ok(gm_tier_put(self->tier, key, hostile_key(self->count, key), &part, 1, err));
  if (++self->count == HOSTILE_BATCH) hostile_ask(self);
}

/* The checksum of the image, made again where the test changed what it is of. */
static void seal(unsigned char *data, size_t count) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325), tree = 0;
  for (int i = 0; i < 8; i++) tree |= (uint64_t)data[16 + i] << 8 * i;
  if (tree > count - 48) return;
  memset(data + 32, 0, 8);
  for (size_t i = 0; i < 48 + tree; i++) hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
  for (int i = 0; i < 8; i++) data[32 + i] = (unsigned char)(hash >> 8 * i);
}

static unsigned char *small_image(pool_bench *bench, gm_tier *tier, size_t *out_count) {
  gm_value *tensor = NULL, *list = NULL, *dict = NULL;
  gm_tier_value *value = NULL;
  uint64_t count = 0;
  const gm_store_params params = {.tiers = &tier, .tier_count = 1};
  const gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = GM_DTYPE_U16, .rank = 2, .shape = {1, 3}};
  pool_bench_ok(gm_value_tensor_on_host(bench->ctx, &desc, "abcdef", &tensor, err));
  pool_bench_ok(gm_value_list(bench->ctx, &tensor, 1, &list, err));
  pool_bench_ok(gm_value_dict(bench->ctx, (const char *[]){"name", "l"}, (gm_value *[]){tensor, list}, 2, &dict, err));
  gm_store *store = store_open(bench->pool, &params);
  pool_bench_ok(gm_store_put(store, "v", dict, err));
  pool_bench_ok(gm_store_flush(store, err));
  store_close(store);
  gm_value_release(tensor, NULL);
  gm_value_release(list, NULL);
  gm_value_release(dict, NULL);
  pool_bench_ok(gm_tier_value_open(tier, "v", 1, &value, &count, err));
  unsigned char *bytes = malloc((size_t)count);
  assert_non_null(bytes);
  pool_bench_ok(gm_tier_value_read(value, 0, bytes, count, err));
  gm_tier_value_close(value);
  *out_count = (size_t)count;
  return bytes;
}

static void test_hostile_bytes(void **state) {
  (void)state;
  pool_bench bench;
  size_t count = 0;
  store_open_bench(&bench, 16 * MIB);
  gm_tier *tier = store_open_tier(&bench, "host", "", 0);
  unsigned char *bytes = small_image(&bench, tier, &count), *changed = malloc(count + 8);
  hostile self = {.bench = &bench, .tier = tier};
  assert_non_null(changed);
  pool_bench_ok(gm_tier_remove(tier, "v", 1, err));
  for (size_t length = 0; length < count; length++) hostile_put(&self, bytes, length, false);
  for (size_t bit = 0; bit < 8 * count; bit++) {
    for (int sealed = 0; sealed < 2; sealed++) {
      memcpy(changed, bytes, count);
      changed[bit / 8] ^= (unsigned char)(1U << bit % 8);
      if (sealed) seal(changed, count);
      hostile_put(&self, changed, count, sealed);
    }
  }
  uint64_t seed = 5;
  for (int i = 0; i < 20000; i++) { /* several bytes, with a checksum that is right */
    memcpy(changed, bytes, count);
    for (uint64_t n = 1 + test_random(&seed) % 3; n > 0; n--) {
      changed[8 + test_random(&seed) % (count - 8)] = (unsigned char)(test_random(&seed) >> (test_random(&seed) % 64));
    }
    seal(changed, count);
    hostile_put(&self, changed, count - test_random(&seed) % 2, true);
  }
  hostile_ask(&self);
  free(bytes);
  free(changed);
  pool_bench_ok(gm_tier_close(tier, err));
  pool_bench_close(&bench);
}

/* ---- kill -9 ---- */

enum { KILLS = 12, KILL_KEYS = 10 };

/* The child puts versions of all keys, flushes, and tells the version; until it is killed. */
static void kill_child(const char *path, int told) {
  pool_bench bench;
  store_open_bench(&bench, 1 * MIB);
  gm_tier *tier = store_open_tier(&bench, "disk", path, 0);
  const gm_store_params params = {.tiers = &tier, .tier_count = 1, .max_host_bytes = 200 << 10};
  gm_store *store = store_open(bench.pool, &params);
  for (unsigned char version = 1; version < 250; version++) {
    for (uint64_t i = 0; i < KILL_KEYS; i++) {
      store_put(store, (char[]){'k', (char)('0' + i), 0}, i, version, 150000 + version);
      store_expect(store, (char[]){'k', (char)('0' + (i * 7 + version) % (i + 1)), 0}, (i * 7 + version) % (i + 1),
                   version, 150000 + version);
    }
    assert_int_equal(gm_store_flush(store, NULL), GM_OK);
    assert_int_equal(write(told, &version, 1), 1);
  }
  _exit(0);
}

/* A key has the flushed version, or a later one. */
static void kill_check(const char *path, unsigned char flushed) {
  pool_bench bench;
  store_open_bench(&bench, 1 * MIB);
  gm_tier *tier = store_open_tier(&bench, "disk", path, 0);
  const gm_store_params params = {.tiers = &tier, .tier_count = 1};
  gm_store *store = store_open(bench.pool, &params);
  for (uint64_t i = 0; i < KILL_KEYS; i++) {
    gm_value *value = NULL;
    gm_value_info info = {.struct_size = sizeof info};
    const gm_status status = gm_store_get(store, (char[]){'k', (char)('0' + i), 0}, &value, NULL);
    if (!flushed && status == GM_ERR_NOT_FOUND) continue;
    assert_int_equal(status, GM_OK);
    pool_bench_ok(gm_value_describe(value, &info, err));
    assert_true(info.bytes >= 150000 + (uint64_t)flushed);
    assert_true(store_value_is(value, i, info.bytes - 150000, info.bytes));
    gm_value_release(value, NULL);
  }
  store_close(store);
  pool_bench_ok(gm_tier_close(tier, err));
  pool_bench_close(&bench);
}

static void test_a_killed_process_loses_nothing_that_was_flushed(void **state) {
  (void)state;
  uint64_t seed = 21;
  for (int i = 0; i < KILLS; i++) {
    temp_folder folder;
    int told[2];
    unsigned char version, flushed = 0;
    temp_folder_make(&folder);
    const char *path = temp_folder_join(&folder, "file");
    const unsigned char last = (unsigned char)(test_random(&seed) % 4);
    assert_int_equal(pipe(told), 0);
    const pid_t child = fork();
    if (child == 0) kill_child(path, told[1]);
    close(told[1]);
    while (flushed < last && read(told[0], &version, 1) == 1) flushed = version;
    usleep((useconds_t)(test_random(&seed) % 30000));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    while (read(told[0], &version, 1) == 1) flushed = version;
    close(told[0]);
    kill_check(path, flushed);
    temp_folder_remove(&folder);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_four_times_the_memory_on_disk),
      cmocka_unit_test(test_a_store_is_opened_again),
      cmocka_unit_test(test_several_tiers),
      cmocka_unit_test(test_hostile_bytes),
      cmocka_unit_test(test_a_killed_process_loses_nothing_that_was_flushed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
