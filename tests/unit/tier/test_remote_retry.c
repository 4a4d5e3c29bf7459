/* The tier of a server whose answers are lost while others put, and of one that does not let gm end a connection. The
 * value that was acknowledged last is there, whole, and stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/redis_proxy.h"
#include "support/remote_bench.h"

enum { SMALL = 10, LARGE = 100000, ANSWERS_MOST = 300 };

typedef struct scene {
  redis_server server;
  redis_proxy proxy;
  gm_context *ctx;
  gm_tier *tier, *other; /* through the proxy, and of another process */
  size_t other_bytes;    /* what the other one puts when an answer is lost; 0: it removes */
  int others;
} scene;

static void other_acts(void *arg) {
  scene *self = arg;
  self->others++;
  if (self->other_bytes) assert_int_equal(remote_put_seed(self->other, "k", 2, self->other_bytes, NULL), GM_OK);
  if (!self->other_bytes) (void)gm_tier_remove(self->other, "k", 1, NULL);
}

static void scene_begin(scene *self) {
  memset(self, 0, sizeof *self);
  redis_server_start(&self->server, NULL);
  self->proxy.then = other_acts;
  self->proxy.user = self;
  redis_proxy_start(&self->proxy, &self->server);
  self->ctx = remote_context(NULL);
  self->tier = remote_open(self->ctx, self->proxy.where, 20000);
  self->other = remote_open(self->ctx, self->server.where, 20000);
}

static void scene_end(scene *self) {
  assert_int_equal(gm_tier_close(self->other, NULL), GM_OK);
  assert_int_equal(gm_tier_close(self->tier, NULL), GM_OK);
  redis_proxy_end(&self->proxy);
  assert_int_equal(gm_context_destroy(self->ctx, NULL), GM_OK);
  redis_server_end(&self->server);
}

/* All that expires is gone, as it will be some time. */
static void let_expire(const redis_server *server) {
  static char keys[1 << 16];
  char line[256];
  snprintf(keys, sizeof keys, "%s", redis_say(server->port, "KEYS *"));
  for (char *key = strtok(keys, "\r\n"); key; key = strtok(NULL, "\r\n")) {
    if (*key == '$' || *key == '*') continue;
    snprintf(line, sizeof line, "PTTL %s", key);
    const bool expires = strncmp(redis_say(server->port, line), ":-1", 3) != 0;
    snprintf(line, sizeof line, "DEL %s", key);
    if (expires) redis_say(server->port, line);
  }
}

/* The answer to the message of that number is lost, and somebody else puts or removes meanwhile. False: the call sends
 * fewer messages. */
static bool put_beside(scene *self, int answer, size_t bytes) {
  self->others = 0;
  (void)gm_tier_remove(self->other, "k", 1, NULL);
  assert_int_equal(remote_put_seed(self->other, "k", 3, bytes, NULL), GM_OK);
  const int lost = atomic_load(&self->proxy.lost);
  atomic_store(&self->proxy.lose, answer);
  gm_error why = {.status = GM_OK};
  if (remote_put_seed(self->tier, "k", 1, bytes, &why)) fail_msg("answer %d: %s", answer, why.message);
  atomic_store(&self->proxy.lose, 0);
  let_expire(&self->server);
  /* Which of the two is the last one, nobody can say; it is whole. */
  gm_tier_value *value = NULL;
  uint64_t has = 0;
  const gm_status status = gm_tier_value_open(self->other, "k", 1, &value, &has, NULL);
  gm_tier_value_close(value);
  if (status == GM_ERR_NOT_FOUND) {
    assert_true(self->others && !self->other_bytes);
  } else {
    unsigned char *mine = remote_bytes(1, bytes), *there = malloc(has + 1);
    assert_int_equal(status, GM_OK);
    assert_int_equal(gm_tier_value_open(self->other, "k", 1, &value, &has, NULL), GM_OK);
    assert_int_equal(gm_tier_value_read(value, 0, there, has, NULL), GM_OK);
    gm_tier_value_close(value);
    const bool is_mine = has == bytes && memcmp(mine, there, bytes) == 0;
    free(mine);
    free(there);
    if (!is_mine) remote_expect_seed(self->other, "k", 2, self->other_bytes);
    assert_true(is_mine || self->others);
  }
  return atomic_load(&self->proxy.lost) > lost;
}

static void lose_each(size_t bytes, size_t other_bytes) {
  scene self;
  int lost = 0;
  scene_begin(&self);
  self.other_bytes = other_bytes;
  while (put_beside(&self, lost + 1, bytes)) assert_true(++lost < ANSWERS_MOST);
  assert_true(lost >= (bytes == LARGE ? 3 : 1)); /* of the chunks, of their stay, and of the manifest */
  assert_int_equal(remote_stats(self.other).damaged, 0);
  scene_end(&self);
}

static void test_lost_answers_to_a_large_put(void **state) {
  (void)state;
  lose_each(LARGE, LARGE);
  lose_each(LARGE, SMALL);
}

static void test_lost_answers_to_a_small_put(void **state) {
  (void)state;
  lose_each(SMALL, LARGE);
}

static void test_lost_answers_beside_a_removal(void **state) {
  (void)state;
  lose_each(LARGE, 0);
}

/* Nobody else is there: the put is not made again. */
static void test_a_lost_answer_alone(void **state) {
  (void)state;
  scene self;
  scene_begin(&self);
  self.proxy.then = NULL;
  assert_int_equal(remote_put_seed(self.tier, "k", 3, LARGE, NULL), GM_OK);
  const uint64_t written = remote_stats(self.tier).written_bytes;
  self.proxy.word = "GETSET";
  atomic_store(&self.proxy.lose, 1);
  assert_int_equal(remote_put_seed(self.tier, "k", 1, LARGE, NULL), GM_OK);
  assert_int_equal(atomic_load(&self.proxy.lost), 1);
  assert_true(remote_stats(self.tier).written_bytes - written < LARGE * 3 / 2);
  let_expire(&self.server);
  remote_expect_seed(self.tier, "k", 1, LARGE);
  scene_end(&self);
}

/* A put that was held back on the way comes after a later one, and does nothing any more. */
static void test_a_message_that_is_held_back(void **state) {
  (void)state;
  scene self;
  scene_begin(&self);
  self.proxy.word = "GETSET";
  gm_tier *hasty = remote_open(self.ctx, self.proxy.where, 300);
  atomic_store(&self.proxy.hold, true);
  for (int i = 0; i < 40 && !atomic_load(&self.proxy.holds); i++) { /* a slow machine may not come so far */
    assert_int_equal(remote_put_seed(hasty, "k", 1, SMALL, NULL), GM_ERR_TIMEOUT);
  }
  assert_true(atomic_load(&self.proxy.holds));
  gm_status status = GM_ERR_TIMEOUT;
  for (int i = 0; i < 40 && status; i++) status = remote_put_seed(hasty, "k", 2, SMALL, NULL);
  assert_int_equal(status, GM_OK);
  atomic_store(&self.proxy.let_go, true);
  for (int ms = 0; atomic_load(&self.proxy.holds); ms += 2) {
    assert_true(ms < REDIS_PATIENCE_MS);
    redis_nap();
  }
  for (int i = 0; i < 20; i++) remote_expect_seed(self.other, "k", 2, SMALL);
  assert_int_equal(gm_tier_close(hasty, NULL), GM_OK);
  scene_end(&self);
}

/* ---- servers that end no connection ---- */

static void refuse(redis_server *server, const char *word) {
  gm_error why = {.status = GM_OK};
  const gm_tier_params params = {.struct_size = sizeof params};
  gm_tier *tier = NULL;
  gm_context *ctx = remote_context(NULL);
  assert_int_equal(gm_tier_open(ctx, "remote", server->where, &params, &tier, &why), GM_ERR_NOT_SUPPORTED);
  assert_null(tier);
  assert_non_null(strstr(why.message, "CLIENT KILL"));
  assert_non_null(strstr(why.message, word)); /* what the server says */
  /* Through a Unix socket nothing is on the way. */
  tier = remote_open(ctx, server->socket, 0);
  assert_int_equal(tier_put_text(tier, "k", "value"), GM_OK);
  tier_expect_text(tier, "k", "value");
  remote_close(tier, ctx);
  redis_server_end(server);
}

static void test_a_server_without_client(void **state) {
  (void)state;
  redis_server server;
  redis_server_start(&server, "--rename-command", "CLIENT", "", NULL);
  refuse(&server, "unknown command");
}

static void test_a_server_that_forbids_to_kill(void **state) {
  (void)state;
  redis_server server;
  redis_server_start(&server, "--user", "default", "on", "nopass", "~*", "&*", "+@all", "-client|kill", NULL);
  refuse(&server, "NOPERM");
}

static void test_a_server_that_forbids_to_tell_names(void **state) {
  (void)state;
  redis_server server;
  redis_server_start(&server, "--user", "default", "on", "nopass", "~*", "&*", "+@all", "-client|info", NULL);
  refuse(&server, "NOPERM");
}

/* The server forbids it later, when it is needed: then the put fails, and the earlier value stays. */
static void test_a_server_that_forbids_it_later(void **state) {
  (void)state;
  scene self;
  gm_error why = {.status = GM_OK};
  scene_begin(&self);
  self.proxy.then = NULL;
  assert_int_equal(tier_put_text(self.tier, "k", "before"), GM_OK);
  assert_string_equal(redis_say(self.server.port, "ACL SETUSER default -client|kill"), "+OK\r\n");
  atomic_store(&self.proxy.lose, 1);
  const gm_tier_part part = {"lost", 4};
  gm_tier_value *value = NULL;
  assert_int_equal(gm_tier_value_open(self.tier, "k", 1, &value, NULL, &why), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_tier_put(self.tier, "k", 1, &part, 1, &why), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(why.message, "CLIENT KILL"));
  tier_expect_text(self.other, "k", "before");
  assert_string_equal(redis_say(self.server.port, "ACL SETUSER default +client|kill"), "+OK\r\n");
  assert_int_equal(tier_put_text(self.tier, "k", "after"), GM_OK);
  tier_expect_text(self.other, "k", "after");
  scene_end(&self);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lost_answers_to_a_large_put),    cmocka_unit_test(test_lost_answers_to_a_small_put),
      cmocka_unit_test(test_lost_answers_beside_a_removal),  cmocka_unit_test(test_a_lost_answer_alone),
      cmocka_unit_test(test_a_message_that_is_held_back),    cmocka_unit_test(test_a_server_without_client),
      cmocka_unit_test(test_a_server_that_forbids_to_kill),  cmocka_unit_test(test_a_server_that_forbids_to_tell_names),
      cmocka_unit_test(test_a_server_that_forbids_it_later),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
