/* The tier of a server that is killed, stopped, full or away: what was promised is there, and nothing is ever wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "support/remote_bench.h"

enum { KEYS = 6, ROUNDS = 6 };

/* The promises of a script of puts for each key. */
typedef struct promises {
  uint64_t begun[KEYS], done[KEYS]; /* versions, which rise */
} promises;

static uint64_t version_seed(int key, uint64_t version) { return (uint64_t)key * 1000 + version; }

static size_t version_size(int key, uint64_t version) {
  static const size_t sizes[] = {100, 2000000, 40000, 0, 3500000};
  return sizes[(version + (uint64_t)key) % 5];
}

/* Puts, until one fails. */
static gm_status put_until(gm_tier *tier, promises *promised, int steps) {
  for (int i = 0; i < steps; i++) {
    const int at = i % KEYS;
    const char key[2] = {(char)('a' + at), '\0'};
    const uint64_t version = ++promised->begun[at];
    const gm_status status = remote_put_seed(tier, key, version_seed(at, version), version_size(at, version), NULL);
    if (status) return status;
    promised->done[at] = version;
  }
  return GM_OK;
}

static bool is_version(gm_tier *tier, int at, uint64_t version) {
  const char key[2] = {(char)('a' + at), '\0'};
  gm_tier_value *value = NULL;
  uint64_t bytes = 0;
  if (gm_tier_value_open(tier, key, 1, &value, &bytes, NULL)) return false;
  unsigned char *want = remote_bytes(version_seed(at, version), version_size(at, version)), *read = malloc(bytes + 1);
  const bool same = bytes == version_size(at, version) && gm_tier_value_read(value, 0, read, bytes, NULL) == GM_OK &&
                    memcmp(read, want, bytes) == 0;
  free(read);
  free(want);
  gm_tier_value_close(value);
  return same;
}

/* Each key has the version that was promised, or a later one that was begun. `keeps`: none may be missing. */
static void check_promises(gm_tier *tier, promises *promised, bool keeps) {
  for (int at = 0; at < KEYS; at++) {
    const char key[2] = {(char)('a' + at), '\0'};
    gm_tier_value *value = NULL;
    const gm_status status = gm_tier_value_open(tier, key, 1, &value, NULL, NULL);
    gm_tier_value_close(value);
    if (status == GM_ERR_NOT_FOUND && (!keeps || !promised->done[at])) continue;
    assert_int_equal(status, GM_OK);
    uint64_t version = promised->done[at];
    while (version <= promised->begun[at] && !is_version(tier, at, version)) version++;
    if (version > promised->begun[at])
      fail_msg("key %s: neither version %d nor a later one", key, (int)promised->done[at]);
    promised->done[at] = version;
  }
}

typedef struct killer {
  redis_server *server;
  int after_ms;
} killer;

static void *kill_later(void *arg) {
  const killer *how = arg;
  for (int ms = 0; ms < how->after_ms; ms += 2) redis_nap();
  kill(how->server->pid, SIGKILL);
  return NULL;
}

/* The server is killed in the middle of puts, and comes back. */
static void kill_in_the_middle(bool keeps) {
  redis_server server;
  promises promised = {.begun = {0}};
  if (keeps)
    redis_server_start(&server, "--appendonly", "yes", "--appendfsync", "always", NULL);
  else
    redis_server_start(&server, "--save", "", NULL);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, server.where, 150), *patient = remote_open(ctx, server.where, 0);
  for (int i = 0; i < ROUNDS; i++) {
    pthread_t thread;
    killer how = {.server = &server, .after_ms = 3 + i * 9};
    assert_int_equal(pthread_create(&thread, NULL, kill_later, &how), 0);
    const gm_status status = put_until(tier, &promised, 100000);
    assert_true(status == GM_ERR_IO || status == GM_ERR_TIMEOUT);
    pthread_join(thread, NULL);
    waitpid(server.pid, NULL, 0);
    assert_true(redis_server_run(&server));
    if (!keeps) memset(promised.done, 0, sizeof promised.done); /* it is an empty server now */
    check_promises(patient, &promised, keeps);
    assert_int_equal(put_until(patient, &promised, KEYS), GM_OK);
    check_promises(patient, &promised, true);
  }
  assert_true(remote_stats(tier).retries > 0);
  assert_int_equal(remote_stats(patient).damaged, 0);
  assert_int_equal(gm_tier_close(patient, NULL), GM_OK);
  remote_close(tier, ctx);
  redis_server_end(&server);
}

static void test_a_killed_server_that_keeps_what_it_has(void **state) {
  (void)state;
  kill_in_the_middle(true);
}

static void test_a_killed_server_that_keeps_nothing(void **state) {
  (void)state;
  kill_in_the_middle(false);
}

typedef struct waiter {
  gm_tier *tier;
  gm_status status;
} waiter;

static void *put_in_thread(void *arg) {
  waiter *mine = arg;
  mine->status = tier_put_text(mine->tier, "a", "after");
  return NULL;
}

/* A server that is back within the time-out costs retries, and no failure. */
static void test_a_server_that_was_away(void **state) {
  (void)state;
  redis_server server;
  pthread_t thread;
  redis_server_start(&server, NULL);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, server.where, 0);
  assert_int_equal(tier_put_text(tier, "a", "before"), GM_OK);
  redis_server_kill(&server);
  waiter put = {.tier = tier};
  assert_int_equal(pthread_create(&thread, NULL, put_in_thread, &put), 0);
  for (int i = 0; i < 20; i++) redis_nap();
  assert_true(redis_server_run(&server));
  pthread_join(thread, NULL);
  assert_int_equal(put.status, GM_OK);
  tier_expect_text(tier, "a", "after");
  assert_true(remote_stats(tier).retries > 0);
  redis_server_kill(&server);
  gm_error err = {.status = GM_OK};
  const gm_tier_params params = {.struct_size = sizeof params};
  gm_tier *other = NULL;
  assert_int_equal(gm_tier_open(ctx, "remote", server.where, &params, &other, &err), GM_ERR_UNAVAILABLE);
  remote_close(tier, ctx);
  assert_true(redis_server_run(&server));
  redis_server_end(&server);
}

static void test_a_server_that_stops(void **state) {
  (void)state;
  enum { TIMEOUT_MS = 250 };
  redis_server server;
  gm_error err = {.status = GM_OK};
  gm_tier_value *value = NULL;
  char byte;
  redis_server_start(&server, NULL);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, server.where, TIMEOUT_MS), *other = NULL;
  gm_tier *patient = remote_open(ctx, server.where, 0);
  assert_int_equal(remote_put_seed(patient, "a", 1, 9 << 20, NULL), GM_OK);
  assert_int_equal(tier_put_text(patient, "b", "before"), GM_OK);
  for (int i = 0; i < 40 && !value; i++) gm_tier_value_open(tier, "a", 1, &value, NULL, NULL);
  assert_non_null(value);
  kill(server.pid, SIGSTOP);
  const uint64_t begin = remote_now_ms();
  const gm_tier_params params = {.struct_size = sizeof params, .timeout_ns = TIMEOUT_MS * UINT64_C(1000000)};
  assert_int_equal(tier_put_text(tier, "b", "late"), GM_ERR_TIMEOUT);
  assert_int_equal(gm_tier_value_read(value, 0, &byte, 1, &err), GM_ERR_TIMEOUT);
  assert_int_equal(err.status, GM_ERR_TIMEOUT);
  assert_int_equal(remote_put_seed(tier, "a", 2, 9 << 20, &err), GM_ERR_TIMEOUT);
  assert_int_equal(gm_tier_remove(tier, "a", 1, &err), GM_ERR_TIMEOUT);
  assert_int_equal(gm_tier_list(tier, NULL, 0, tier_listing_visit, NULL, &err), GM_ERR_TIMEOUT);
  assert_int_equal(gm_tier_open(ctx, "remote", server.where, &params, &other, &err), GM_ERR_TIMEOUT);
  assert_true(remote_now_ms() - begin >=
              6 * TIMEOUT_MS); /* how much longer is the machine's: the test's limit tells a hang */
  kill(server.pid, SIGCONT);
  /* A put that timed out may have happened, but only before those that were promised later. */
  gm_status status = GM_ERR_TIMEOUT;
  for (int i = 0; i < 40 && status == GM_ERR_TIMEOUT; i++) status = tier_put_text(tier, "b", "after");
  assert_int_equal(status, GM_OK);
  for (int i = 0; i < 50; i++) tier_expect_text(patient, "b", "after");
  remote_expect_seed(patient, "a", 1, 9 << 20);
  gm_tier_value_close(value);
  assert_int_equal(gm_tier_close(patient, NULL), GM_OK);
  remote_close(tier, ctx);
  redis_server_end(&server);
}

/* Threads that wait for each other all hear that the time is up. */
static void test_threads_wait_for_a_server_that_stops(void **state) {
  (void)state;
  enum { THREADS = 8, TIMEOUT_MS = 300 };
  redis_server server;
  pthread_t threads[THREADS];
  waiter waiters[THREADS];
  redis_server_start(&server, NULL);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, server.where, TIMEOUT_MS);
  kill(server.pid, SIGSTOP);
  const uint64_t begin = remote_now_ms();
  for (int i = 0; i < THREADS; i++) {
    waiters[i] = (waiter){.tier = tier};
    assert_int_equal(pthread_create(&threads[i], NULL, put_in_thread, &waiters[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(waiters[i].status, GM_ERR_TIMEOUT);
  }
  assert_true(remote_now_ms() - begin >= TIMEOUT_MS);
  kill(server.pid, SIGCONT);
  remote_close(tier, ctx);
  redis_server_end(&server);
}

/* A full server refuses, and has all that it promised. */
static void test_a_server_that_is_full(void **state) {
  (void)state;
  redis_server server;
  gm_error err = {.status = GM_OK};
  uint64_t put = 0;
  gm_status status;
  char key[16];
  redis_server_start(&server, "--maxmemory", "24mb", "--maxmemory-policy", "noeviction", NULL);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, server.where, 0);
  do {
    snprintf(key, sizeof key, "k%d", (int)put);
    status = remote_put_seed(tier, key, put, 3 << 20, &err);
  } while (!status && ++put < 20);
  assert_int_equal(status, GM_ERR_IO);
  assert_non_null(strstr(err.message, "OOM"));
  assert_in_range(put, 2, 8);
  for (uint64_t i = 0; i < put; i++) {
    snprintf(key, sizeof key, "k%d", (int)i);
    remote_expect_seed(tier, key, i, 3 << 20);
  }
  assert_int_equal(remote_put_seed(tier, "k0", 99, 8 << 20, &err), GM_ERR_IO); /* and the earlier one stays */
  remote_expect_seed(tier, "k0", 0, 3 << 20);
  assert_int_equal(tier_list_of(tier, "", 99).count, put);
  snprintf(key, sizeof key, ":%d\r\n", (int)put * 4); /* manifests and chunks: a refused put leaves nothing */
  assert_string_equal(redis_say(server.port, "DBSIZE"), key);
  for (uint64_t i = 0; i < put; i++) {
    snprintf(key, sizeof key, "k%d", (int)i);
    assert_int_equal(gm_tier_remove(tier, key, strlen(key), NULL), GM_OK);
  }
  remote_close(tier, ctx);
  redis_server_end(&server);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_killed_server_that_keeps_what_it_has),
      cmocka_unit_test(test_a_killed_server_that_keeps_nothing),
      cmocka_unit_test(test_a_server_that_was_away),
      cmocka_unit_test(test_a_server_that_stops),
      cmocka_unit_test(test_threads_wait_for_a_server_that_stops),
      cmocka_unit_test(test_a_server_that_is_full),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
