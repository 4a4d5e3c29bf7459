/* The power is cut under a store over several tiers: what was flushed is there, and no older value, and no deleted key,
 * comes back. The tiers are played: each has the bytes of now, and those that it would have after the cut. */
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

enum { TIERS_MOST = 3, KEYS = 5, VALUE_BYTES = 64 };

/* ---- a tier that keeps over a power cut what it had at its last flush ---- */

typedef struct played {
  gm_tier *now, *durable;
  int flushes;
  bool fails; /* its flush does nothing, and fails */
} played;

static played played_tiers[TIERS_MOST];
static int flush_order[16], flushes; /* which tiers were flushed, in what order */

static gm_status played_open(gm_context *ctx, const char *where, const gm_tier_params *params, void **out,
                             gm_error *err) {
  (void)params;
  played *self = &played_tiers[where[0] - '0'];
  *self = (played){.flushes = 0};
  gm_status status = gm_tier_open(ctx, "host", "now", NULL, &self->now, err);
  if (!status) status = gm_tier_open(ctx, "host", "durable", NULL, &self->durable, err);
  *out = self;
  return status;
}

static void played_close(void *own) {
  const played *self = own;
  assert_int_equal(gm_tier_close(self->now, NULL), GM_OK);
  assert_int_equal(gm_tier_close(self->durable, NULL), GM_OK);
}

static gm_status played_put(void *own, const void *key, size_t bytes, const gm_tier_part *parts, size_t count,
                            gm_error *err) {
  return gm_tier_put(((played *)own)->now, key, bytes, parts, count, err);
}

static gm_status played_value_open(void *own, const void *key, size_t bytes, void **out, uint64_t *has, gm_error *err) {
  return gm_tier_value_open(((played *)own)->now, key, bytes, (gm_tier_value **)out, has, err);
}

static gm_status played_value_read(void *own, void *value, uint64_t offset, void *dst, uint64_t bytes, gm_error *err) {
  (void)own;
  return gm_tier_value_read(value, offset, dst, bytes, err);
}

static void played_value_close(void *own, void *value) {
  (void)own;
  gm_tier_value_close(value);
}

static gm_status played_remove(void *own, const void *key, size_t bytes, gm_error *err) {
  return gm_tier_remove(((played *)own)->now, key, bytes, err);
}

static gm_status played_list(void *own, const void *prefix, size_t bytes, gm_tier_visit visit, void *user,
                             gm_error *err) {
  return gm_tier_list(((played *)own)->now, prefix, bytes, visit, user, err);
}

typedef struct played_keys {
  size_t count;
  char keys[16][32];
} played_keys;

static bool played_key_visit(void *user, const void *key, size_t bytes, uint64_t value_bytes) {
  played_keys *found = user;
  (void)value_bytes;
  assert_true(found->count < 16 && bytes < sizeof found->keys[0]);
  memcpy(found->keys[found->count], key, bytes);
  found->keys[found->count++][bytes] = '\0';
  return true;
}

static void played_copy(gm_tier *to, gm_tier *from, const char *key) {
  unsigned char room[1024];
  uint64_t bytes = 0;
  gm_tier_value *value = NULL;
  assert_int_equal(gm_tier_value_open(from, key, strlen(key), &value, &bytes, NULL), GM_OK);
  assert_true(bytes <= sizeof room);
  assert_int_equal(gm_tier_value_read(value, 0, room, bytes, NULL), GM_OK);
  gm_tier_value_close(value);
  const gm_tier_part part = {room, bytes};
  assert_int_equal(gm_tier_put(to, key, strlen(key), &part, 1, NULL), GM_OK);
}

/* Makes a tier what another one is. */
static void played_assign(gm_tier *to, gm_tier *from) {
  played_keys old = {.count = 0}, new = {.count = 0};
  assert_int_equal(gm_tier_list(to, NULL, 0, played_key_visit, &old, NULL), GM_OK);
  assert_int_equal(gm_tier_list(from, NULL, 0, played_key_visit, &new, NULL), GM_OK);
  for (size_t i = 0; i < old.count; i++) {
    assert_int_equal(gm_tier_remove(to, old.keys[i], strlen(old.keys[i]), NULL), GM_OK);
  }
  for (size_t i = 0; i < new.count; i++) played_copy(to, from, new.keys[i]);
}

static gm_status played_flush(void *own, gm_error *err) {
  played *self = own;
  (void)err;
  if (flushes < 16) flush_order[flushes++] = (int)(self - played_tiers);
  self->flushes++;
  if (self->fails) return GM_ERR_IO;
  played_assign(self->durable, self->now);
  return GM_OK;
}

static void played_stats(void *own, gm_tier_stats *out) {
  assert_int_equal(gm_tier_get_stats(((played *)own)->now, out, NULL), GM_OK);
}

static const gm_tier_ops played_ops = {.struct_size = sizeof played_ops,
                                       .abi = GM_TIER_ABI,
                                       .name = "played",
                                       .open = played_open,
                                       .close = played_close,
                                       .put = played_put,
                                       .value_open = played_value_open,
                                       .value_read = played_value_read,
                                       .value_close = played_value_close,
                                       .remove = played_remove,
                                       .list = played_list,
                                       .flush = played_flush,
                                       .stats = played_stats};

/* ---- a store over such tiers ---- */

typedef struct scene {
  pool_bench bench;
  gm_tier *tiers[TIERS_MOST];
  uint32_t tier_count;
  gm_store *store;
} scene;

static void scene_open_store(scene *self) {
  const gm_store_params params = {.tiers = self->tiers, .tier_count = self->tier_count, .max_host_bytes = GM_NO_BYTES};
  self->store = store_open(self->bench.pool, &params);
}

static void scene_begin(scene *self, uint32_t tier_count) {
  store_open_bench(&self->bench, 4 * MIB);
  pool_bench_ok(gm_tier_register(self->bench.ctx, &played_ops, err));
  self->tier_count = tier_count;
  for (uint32_t i = 0; i < tier_count; i++) {
    self->tiers[i] = store_open_tier(&self->bench, "played", (const char[]){(char)('0' + i), '\0'}, 0);
  }
  scene_open_store(self);
}

static void scene_end(scene *self) {
  store_close(self->store);
  for (uint32_t i = 0; i < self->tier_count; i++) pool_bench_ok(gm_tier_close(self->tiers[i], err));
  pool_bench_close(&self->bench);
}

/* The store ends, each tier has what is on its disk for sure (or, where `lucky` has its bit, all), and a new store
 * begins. */
static void scene_cut(scene *self, uint64_t lucky) {
  store_close(self->store);
  for (uint32_t i = 0; i < self->tier_count; i++) {
    played *tier = &played_tiers[i];
    if (lucky >> i & 1) played_assign(tier->durable, tier->now);
    played_assign(tier->now, tier->durable);
  }
  scene_open_store(self);
}

static void test_a_key_that_was_put_again(void **state) {
  (void)state;
  scene self;
  scene_begin(&self, 2);
  store_put(self.store, "k", 1, 1, VALUE_BYTES);
  pool_bench_ok(gm_store_demote_key(self.store, "k", err)); /* into the nearer tier */
  pool_bench_ok(gm_tier_flush(self.tiers[0], err));
  store_put(self.store, "k", 1, 2, VALUE_BYTES);
  pool_bench_ok(gm_store_flush(self.store, err));
  scene_cut(&self, 0);
  store_expect(self.store, "k", 1, 2, VALUE_BYTES);
  scene_end(&self);
}

static void test_a_key_that_was_deleted(void **state) {
  (void)state;
  scene self;
  scene_begin(&self, 3);
  store_put(self.store, "k", 1, 1, VALUE_BYTES);
  pool_bench_ok(gm_store_demote_key(self.store, "k", err));
  pool_bench_ok(gm_store_flush(self.store, err));
  pool_bench_ok(gm_tier_flush(self.tiers[0], err));
  pool_bench_ok(gm_store_delete(self.store, "k", err));
  pool_bench_ok(gm_store_flush(self.store, err));
  scene_cut(&self, 0);
  store_expect_none(self.store, "k");
  scene_end(&self);
}

/* Each tier that was changed since its last flush is flushed, the nearest first, and no other. */
static void test_which_tiers_a_flush_flushes(void **state) {
  (void)state;
  scene self;
  scene_begin(&self, 3);
  pool_bench_ok(gm_store_flush(self.store, err)); /* what another store left is not known */
  assert_int_equal(played_tiers[0].flushes, 1);
  store_put(self.store, "k", 1, 1, VALUE_BYTES);
  flushes = 0;
  pool_bench_ok(gm_store_flush(self.store, err));
  assert_int_equal(played_tiers[0].flushes + played_tiers[1].flushes, 2);
  assert_int_equal(flush_order[0], 2);
  store_put(self.store, "k", 1, 2, VALUE_BYTES);
  pool_bench_ok(gm_store_demote_key(self.store, "k", err));
  flushes = 0;
  pool_bench_ok(gm_store_flush(self.store, err));
  assert_int_equal(flushes, 2);
  assert_int_equal(flush_order[0], 0);
  assert_int_equal(flush_order[1], 2);
  /* A flush that failed is owed, also where nothing changes until the next one. */
  store_put(self.store, "k", 1, 3, VALUE_BYTES);
  pool_bench_ok(gm_store_demote_key(self.store, "k", err));
  played_tiers[0].fails = true;
  assert_int_equal(gm_store_flush(self.store, NULL), GM_ERR_IO);
  played_tiers[0].fails = false;
  flushes = 0;
  pool_bench_ok(gm_store_flush(self.store, err));
  assert_int_equal(flush_order[0], 0);
  scene_end(&self);
}

/* A value that was flushed is under one of the two keys, whatever of the move reached the disks. */
static void test_a_moved_key(void **state) {
  (void)state;
  for (uint64_t lucky = 0; lucky < 4; lucky++) {
    for (int demoted = 0; demoted < 2; demoted++) {
      scene self;
      bool from = false, to = false;
      scene_begin(&self, 2);
      store_put(self.store, "a", 1, 1, VALUE_BYTES);
      if (demoted) pool_bench_ok(gm_store_demote_key(self.store, "a", err));
      pool_bench_ok(gm_store_flush(self.store, err));
      pool_bench_ok(gm_store_move(self.store, "a", "b", err));
      store_expect_none(self.store, "a");
      scene_cut(&self, lucky);
      pool_bench_ok(gm_store_exists(self.store, "a", &from, err));
      pool_bench_ok(gm_store_exists(self.store, "b", &to, err));
      assert_true(from || to);
      if (from) store_expect(self.store, "a", 1, 1, VALUE_BYTES);
      if (to) store_expect(self.store, "b", 1, 1, VALUE_BYTES);
      scene_end(&self);
    }
  }
}

/* ---- random calls, held against what may be there after the cut ---- */

/* Version 0: no value. After a cut, a key has a version that it had since the last flush. */
typedef struct history {
  uint64_t now[KEYS], next;
  bool may[KEYS][1024];
} history;

static const char *key_of(uint64_t at) {
  static const char *const keys[KEYS] = {"a", "b", "c/d", "c/e", "f"};
  return keys[at];
}

static void history_set(history *past, uint64_t key, uint64_t version) {
  past->now[key] = version;
  past->may[key][version] = true;
}

static void history_settle(history *past) {
  memset(past->may, 0, sizeof past->may);
  for (uint64_t i = 0; i < KEYS; i++) past->may[i][past->now[i]] = true;
}

static void step(scene *self, history *past, uint64_t *seed) {
  const uint64_t key = test_random(seed) % KEYS, other = test_random(seed) % KEYS;
  switch (test_random(seed) % 8) {
    case 0:
      if (past->now[key]) pool_bench_ok(gm_store_delete(self->store, key_of(key), err));
      history_set(past, key, 0);
      break;
    case 1:
    case 2:
      if (past->now[key]) pool_bench_ok(gm_store_demote_key(self->store, key_of(key), err));
      break;
    case 3:
      if (key == other || !past->now[key]) break;
      pool_bench_ok(gm_store_move(self->store, key_of(key), key_of(other), err));
      history_set(past, other, past->now[key]);
      history_set(past, key, 0);
      break;
    case 4:
      if (past->now[key]) store_expect(self->store, key_of(key), 0, past->now[key], VALUE_BYTES);
      break;
    default: history_set(past, key, ++past->next); store_put(self->store, key_of(key), 0, past->next, VALUE_BYTES);
  }
}

/* Which version a key has. 0: none. */
static uint64_t version_of(gm_store *store, uint64_t key, uint64_t last) {
  gm_value *value = NULL;
  const gm_status status = gm_store_get(store, key_of(key), &value, NULL);
  uint64_t version = 0;
  if (status == GM_ERR_NOT_FOUND) return 0;
  assert_int_equal(status, GM_OK);
  do version++;
  while (version <= last && !store_value_is(value, 0, version, VALUE_BYTES));
  assert_true(version <= last);
  gm_value_release(value, NULL);
  return version;
}

static void cut_and_check(scene *self, history *past, uint64_t lucky) {
  scene_cut(self, lucky);
  for (uint64_t i = 0; i < KEYS; i++) {
    past->now[i] = version_of(self->store, i, past->next);
    if (!past->may[i][past->now[i]]) fail_msg("%s: version %d comes back", key_of(i), (int)past->now[i]);
  }
  pool_bench_ok(gm_store_flush(self->store, err));
  history_settle(past);
}

static void test_random_calls_and_cuts(void **state) {
  enum { ROUNDS = 30 };
  (void)state;
  for (uint32_t tiers = 1; tiers <= TIERS_MOST; tiers++) {
    static history past;
    scene self;
    uint64_t seed = tiers;
    memset(&past, 0, sizeof past);
    history_settle(&past);
    scene_begin(&self, tiers);
    pool_bench_ok(gm_store_flush(self.store, err));
    for (int round = 0; round < ROUNDS; round++) {
      for (uint64_t i = test_random(&seed) % 20; i > 0; i--) step(&self, &past, &seed);
      const bool flush = test_random(&seed) % 2;
      if (flush) pool_bench_ok(gm_store_flush(self.store, err));
      if (flush) history_settle(&past);
      for (uint64_t i = test_random(&seed) % 3; i > 0 && !flush; i--) step(&self, &past, &seed);
      cut_and_check(&self, &past, test_random(&seed));
    }
    scene_end(&self);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_key_that_was_put_again),    cmocka_unit_test(test_a_key_that_was_deleted),
      cmocka_unit_test(test_which_tiers_a_flush_flushes), cmocka_unit_test(test_a_moved_key),
      cmocka_unit_test(test_random_calls_and_cuts),
  };
  return cmocka_run_group_tests_name("store_power", tests, NULL, NULL);
}
