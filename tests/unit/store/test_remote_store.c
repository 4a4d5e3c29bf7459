/* A store over a real server that is killed, comes back, stops, is slow, and is full. Each key has what was promised,
 * to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "support/remote_bench.h"
#include "support/store_bench.h"

#define MIB (UINT64_C(1) << 20)

enum { KEYS = 24, PATIENCE_MS = 60000, FULL_BYTES = (1 << 19) - 4096 };

typedef struct scene {
  redis_server server;
  pool_bench bench;
  gm_tier *tier;
  gm_store *store;
} scene;

static void scene_open_store(scene *self) {
  const gm_store_params params = {.tiers = &self->tier,
                                  .tier_count = 1,
                                  .max_host_bytes = GM_NO_BYTES,
                                  .fallback = GM_FALLBACK_REFUSE,
                                  .keep = GM_STORE_KEEP_LONG};
  self->store = store_open(self->bench.pool, &params);
}

/* A device of 4 MiB, no host memory, and the server below. The server runs. */
static void scene_begin(scene *self, uint64_t timeout_ms) {
  const gm_pool_params params = {
      .struct_size = sizeof params, .checked = true, .no_vmm = true, .max_bytes = 4 * MIB, .keep_bytes = GM_NO_BYTES};
  pool_bench_open(&self->bench, "cpu", NULL, &params);
  self->tier = remote_open(self->bench.ctx, self->server.where, timeout_ms);
  scene_open_store(self);
}

static void scene_end(scene *self) {
  store_close(self->store);
  pool_bench_ok(gm_tier_close(self->tier, err));
  pool_bench_close(&self->bench);
  redis_server_end(&self->server);
}

static const char *key_of(uint64_t id) {
  static char key[24];
  snprintf(key, sizeof key, "layer/%u", (unsigned)id);
  return key;
}

static uint64_t size_of(uint64_t id) { return 500000 + id * 9973; } /* some in one piece, some in two */

/* A server that is away costs answers of these, and no others. */
static bool is_of_the_server(gm_status status) {
  return status == GM_ERR_IO || status == GM_ERR_TIMEOUT || status == GM_ERR_UNAVAILABLE ||
         status == GM_ERR_OUT_OF_DEVICE_MEMORY || status == GM_ERR_OVER_LIMIT;
}

/* False: the server was in the way. The value that a get brings is right. */
static bool try_expect(gm_store *store, uint64_t id, uint64_t version) {
  gm_value *value = NULL;
  gm_error err = {.status = GM_OK};
  const gm_status status = gm_store_get(store, key_of(id), &value, &err);
  if (status && !is_of_the_server(status)) fail_msg("%s: %s", key_of(id), err.message);
  if (!status) assert_true(store_value_is(value, id, version, size_of(id)));
  gm_value_release(value, NULL);
  return !status;
}

/* The server is there now, but the machine may be slow. */
static void expect_all(gm_store *store, const uint64_t *versions) {
  const uint64_t begin = remote_now_ms();
  for (uint64_t id = 0; id < KEYS; id++) {
    while (!try_expect(store, id, versions[id])) {
      if (remote_now_ms() - begin > PATIENCE_MS) fail_msg("%s does not come back", key_of(id));
    }
  }
}

static void flush_patiently(gm_store *store) {
  gm_status status = GM_ERR_TIMEOUT;
  for (int i = 0; i < 100 && status; i++) status = gm_store_flush(store, NULL);
  assert_int_equal(status, GM_OK);
}

/* ---- killed and back, again and again ---- */

typedef struct killer {
  redis_server *server;
  int after_ms;
  atomic_bool done;
} killer;

static void *kill_later(void *arg) {
  killer *how = arg;
  for (int ms = 0; ms < how->after_ms; ms += 2) redis_nap();
  kill(how->server->pid, SIGKILL);
  atomic_store(&how->done, true);
  return NULL;
}

/* A put or a get. Each keeps what it promised, whether it fails or not. Returns whether it did. */
static bool step(gm_store *store, uint64_t *versions, uint64_t *seed) {
  const uint64_t id = test_random(seed) % KEYS;
  if (test_random(seed) % 8 > 2) return try_expect(store, id, versions[id]);
  const gm_status status = store_try_put(store, key_of(id), id, versions[id] + 1, size_of(id));
  if (status && !is_of_the_server(status)) fail_msg("%s: %s", key_of(id), gm_status_text(status));
  versions[id] += status == GM_OK;
  return !status;
}

/* Steps until the server is killed, and some more without it. Returns how many failed. */
static int steps_and_kill(scene *self, uint64_t *versions, uint64_t *seed, int after_ms) {
  killer how = {.server = &self->server, .after_ms = after_ms};
  pthread_t thread;
  int failed = 0;
  assert_int_equal(pthread_create(&thread, NULL, kill_later, &how), 0);
  while (!atomic_load(&how.done)) failed += !step(self->store, versions, seed);
  pthread_join(thread, NULL);
  waitpid(self->server.pid, NULL, 0);
  for (int i = 0; i < 3; i++) failed += !step(self->store, versions, seed); /* each waits for several time-outs */
  assert_true(redis_server_run(&self->server));
  return failed;
}

static void put_all(gm_store *store) {
  for (uint64_t id = 0; id < KEYS; id++) {
    gm_status status = GM_ERR_TIMEOUT;
    for (int i = 0; i < 100 && status; i++) status = store_try_put(store, key_of(id), id, 0, size_of(id));
    assert_int_equal(status, GM_OK);
  }
}

/* Another store finds on the server what was flushed. */
static void expect_all_in_another_store(scene *self, const uint64_t *versions) {
  flush_patiently(self->store);
  store_close(self->store);
  scene_open_store(self);
  assert_int_equal(store_stats(self->store).keys, KEYS);
  expect_all(self->store, versions);
}

static void test_a_server_that_is_killed_under_a_store(void **state) {
  (void)state;
  enum { ROUNDS = 5 };
  scene self;
  uint64_t versions[KEYS] = {0}, seed = 3;
  int failed = 0;
  redis_server_start(&self.server, "--appendonly", "yes", "--appendfsync", "always", NULL);
  scene_begin(&self, 100);
  put_all(self.store);
  for (int i = 0; i < ROUNDS; i++) {
    failed += steps_and_kill(&self, versions, &seed, 5 + i * 23);
    expect_all(self.store, versions);
  }
  print_message("%d kills: %d calls failed, and nothing is lost; %u times a value stayed on the device\n", ROUNDS,
                failed, (unsigned)store_stats(self.store).tier_failures);
  assert_true(failed > 0);
  expect_all_in_another_store(&self, versions);
  scene_end(&self);
}

/* ---- stopped, and slow ---- */

/* The server answers nobody until all these calls have returned: so each has an end of its own. */
static int calls_without_an_answer(scene *self, uint64_t *versions, uint64_t *seed) {
  int failed = 0;
  kill(self->server.pid, SIGSTOP);
  for (int i = 0; i < 4; i++) failed += !step(self->store, versions, seed);
  const gm_status status = gm_store_flush(self->store, NULL);
  assert_true(!status || is_of_the_server(status));
  pool_bench_ok(gm_store_demote(self->store, UINT64_MAX, NULL, err));
  kill(self->server.pid, SIGCONT);
  return failed;
}

static void test_a_server_that_stops_under_a_store(void **state) {
  (void)state;
  enum { ROUNDS = 4 };
  scene self;
  uint64_t versions[KEYS] = {0}, seed = 5;
  int failed = 0;
  redis_server_start(&self.server, NULL);
  scene_begin(&self, 100);
  put_all(self.store);
  for (int i = 0; i < ROUNDS; i++) {
    failed += calls_without_an_answer(&self, versions, &seed);
    expect_all(self.store, versions);
  }
  print_message("%d stops: %d calls failed, and nothing is lost\n", ROUNDS, failed);
  assert_true(failed > 0);
  expect_all_in_another_store(&self, versions);
  scene_end(&self);
}

typedef struct sleeper {
  pid_t server;
  atomic_bool enough;
} sleeper;

/* The server works for 2 milliseconds, and stands for 8. */
static void *slow_down(void *arg) {
  sleeper *how = arg;
  while (!atomic_load(&how->enough)) {
    kill(how->server, SIGSTOP);
    for (int i = 0; i < 4; i++) redis_nap();
    kill(how->server, SIGCONT);
    redis_nap();
  }
  return NULL;
}

static void test_a_slow_server_under_a_store(void **state) {
  (void)state;
  enum { STEPS = 60 };
  scene self;
  uint64_t versions[KEYS] = {0}, seed = 9;
  int failed = 0;
  pthread_t thread;
  redis_server_start(&self.server, NULL);
  scene_begin(&self, 0); /* ten seconds: only slowness, no failure */
  sleeper how = {.server = self.server.pid};
  assert_int_equal(pthread_create(&thread, NULL, slow_down, &how), 0);
  put_all(self.store);
  for (int i = 0; i < STEPS; i++) failed += !step(self.store, versions, &seed);
  expect_all(self.store, versions);
  atomic_store(&how.enough, true);
  pthread_join(thread, NULL);
  print_message("a slow server: %d of %d calls failed\n", failed, STEPS);
  expect_all_in_another_store(&self, versions);
  scene_end(&self);
}

/* ---- a full server ---- */

/* Puts until the device and the server are full. Returns how many keys were promised. */
static uint64_t fill(gm_store *store) {
  uint64_t count = 0;
  gm_status status;
  do status = store_try_put(store, key_of(count), count, 0, FULL_BYTES);
  while (!status && ++count < 64);
  assert_true(is_of_the_server(status));
  return count;
}

/* A key whose value is on the device. */
static uint64_t one_on_the_device(gm_store *store, uint64_t count) {
  for (uint64_t id = 0; id < count; id++) {
    const uint64_t before = store_stats(store).came_back;
    gm_value *value = NULL;
    if (gm_store_get(store, key_of(id), &value, NULL)) continue;
    gm_value_release(value, NULL);
    if (store_stats(store).came_back == before) return id;
  }
  fail_msg("no value is on the device");
  return 0;
}

static void test_a_full_server_under_a_store(void **state) {
  (void)state;
  scene self;
  redis_server_start(&self.server, "--maxmemory", "16mb", "--maxmemory-policy", "noeviction", NULL);
  scene_begin(&self, 0);
  const uint64_t count = fill(self.store);
  assert_in_range(count, 16, 40);
  assert_true(store_stats(self.store).tier_failures > 0);
  assert_int_equal(store_stats(self.store).keys, count);
  /* With a place for one value on the device, all others are to be had, one after the other. Those that the server did
   * not take stay. */
  const uint64_t gone = one_on_the_device(self.store, count);
  pool_bench_ok(gm_store_delete(self.store, key_of(gone), err));
  for (int round = 0; round < 2; round++) {
    for (uint64_t id = 0; id < count; id++) {
      if (id != gone) store_expect(self.store, key_of(id), id, 0, FULL_BYTES);
    }
  }
  store_expect_none(self.store, key_of(gone));
  pool_bench_ok(gm_store_clear(self.store, NULL, err));
  assert_int_equal(tier_list_of(self.tier, "", 99).count, 0);
  scene_end(&self);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_server_that_is_killed_under_a_store),
                                     cmocka_unit_test(test_a_server_that_stops_under_a_store),
                                     cmocka_unit_test(test_a_slow_server_under_a_store),
                                     cmocka_unit_test(test_a_full_server_under_a_store)};
  return cmocka_run_group_tests_name("remote_store", tests, NULL, NULL);
}
