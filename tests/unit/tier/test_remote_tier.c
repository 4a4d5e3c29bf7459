/* The tier of a server: what it does with a real one that is well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "gm/tier.h"
#include "support/counted_services.h"
#include "support/remote_bench.h"

/* All keys that no value needs go away by themselves. */
static void expect_no_rest(const redis_server *server) {
  unsigned keys = 0, expires = 0;
  const char *at = strstr(redis_say(server->port, "INFO keyspace"), "db0:");
  if (!at) return;
  assert_int_equal(sscanf(at, "db0:keys=%u,expires=%u", &keys, &expires), 2);
  assert_int_equal(keys, expires);
}

static void test_it_does_what_every_tier_does(void **state) {
  (void)state;
  redis_server server;
  redis_server_start(&server, NULL);
  const char *const wheres[] = {server.where, server.socket};
  for (size_t i = 0; i < 2; i++) {
    counted_services host;
    counted_services_init(&host);
    gm_context *ctx = remote_context(&host.services);
    gm_tier *tier = remote_open(ctx, wheres[i], 0);
    assert_string_equal(gm_tier_kind(tier), "remote");
    tier_suite(tier, i + 3, 60, 3 << 20);
    const gm_tier_stats stats = remote_stats(tier);
    assert_int_equal(stats.retries, 0);
    assert_true(stats.written_bytes > 1000000);
    assert_true(stats.read_bytes > 1000000);
    remote_close(tier, ctx);
    counted_services_check(&host);
    expect_no_rest(&server);
  }
  redis_server_end(&server);
}

static void test_values_of_every_cut(void **state) {
  (void)state;
  static const uint64_t sizes[] = {0, 1, 32768, 32769, 1 << 20, (1 << 20) + 1, 9 << 20, (17 << 20) + 5};
  redis_server server;
  redis_server_start(&server, NULL);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, server.where, 0), *other = remote_open(ctx, server.where, 0);
  unsigned char *bytes = remote_bytes(1, 18 << 20), *read = malloc(18 << 20);
  assert_non_null(read);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    const uint64_t size = sizes[i], third = size / 3;
    const gm_tier_part parts[] = {{bytes, third}, {NULL, 0}, {bytes + third, 1}, {bytes + third + 1, size - third - 1}};
    gm_tier_value *value = NULL;
    assert_int_equal(gm_tier_put(tier, "k", 1, parts, size ? 4 : 1, NULL), GM_OK);
    tier_expect(other, "k", 1, bytes, size);
    assert_int_equal(gm_tier_value_open(other, "k", 1, &value, NULL, NULL), GM_OK);
    for (uint64_t from = 0; from < size; from += size / 7 + 1) {
      const uint64_t count = size - from < size / 5 + 1 ? size - from : size / 5 + 1;
      assert_int_equal(gm_tier_value_read(value, from, read, count, NULL), GM_OK);
      assert_memory_equal(read, bytes + from, count);
    }
    gm_tier_value_close(value);
  }
  assert_int_equal(gm_tier_remove(other, "k", 1, NULL), GM_OK);
  tier_expect_none(tier, "k", 1);
  expect_no_rest(&server);
  free(bytes);
  free(read);
  assert_int_equal(gm_tier_close(other, NULL), GM_OK);
  remote_close(tier, ctx);
  redis_server_end(&server);
}

static void test_prefixes_keep_tiers_apart(void **state) {
  (void)state;
  redis_server server;
  char where[80];
  redis_server_start(&server, NULL);
  gm_context *ctx = remote_context(NULL);
  gm_tier *one = remote_open(ctx, server.where, 0);
  snprintf(where, sizeof where, "redis://localhost:%u/t[e]s?*", server.port);
  gm_tier *two = remote_open(ctx, where, 0);
  assert_int_equal(tier_put_text(one, "a*", "one"), GM_OK);
  assert_int_equal(tier_put_text(one, "ab", "one"), GM_OK);
  assert_int_equal(tier_put_text(two, "a*", "two"), GM_OK);
  tier_expect_text(one, "a*", "one");
  tier_expect_text(two, "a*", "two");
  assert_int_equal(tier_list_of(one, "a*", 9).count, 1);
  assert_int_equal(tier_list_of(one, "a", 9).count, 2);
  assert_int_equal(tier_list_of(one, "a", 1).count, 1);
  assert_int_equal(tier_list_of(two, "", 9).count, 1);
  assert_int_equal(gm_tier_close(two, NULL), GM_OK);
  remote_close(one, ctx);
  redis_server_end(&server);
}

static void test_many_values_are_listed_once(void **state) {
  (void)state;
  redis_server server;
  redis_server_start(&server, NULL);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, server.where, 0);
  for (int i = 0; i < 1500; i++) {
    char key[16];
    snprintf(key, sizeof key, "%c%d", 'a' + i % 3, i);
    assert_int_equal(tier_put_text(tier, key, "value"), GM_OK);
  }
  assert_int_equal(tier_list_of(tier, "", 9999).count, 1500);
  assert_int_equal(tier_list_of(tier, "b", 9999).count, 500);
  assert_int_equal(tier_list_of(tier, "b", 100).count, 100);
  assert_int_equal(remote_stats(tier).value_bytes, 7500);
  remote_close(tier, ctx);
  redis_server_end(&server);
}

static gm_status open_status(gm_context *ctx, const char *where, const char *password, gm_error *err) {
  const gm_tier_params params = {.struct_size = sizeof params, .password = password, .timeout_ns = 2000000000};
  gm_tier *tier = NULL;
  const gm_status status = gm_tier_open(ctx, "remote", where, &params, &tier, err);
  assert_int_equal(tier != NULL, status == GM_OK);
  assert_int_equal(gm_tier_close(tier, NULL), GM_OK);
  return status;
}

static void test_a_password(void **state) {
  (void)state;
  redis_server server;
  gm_error err = {.status = GM_OK};
  redis_server_start(&server, "--requirepass", "open sesame", NULL);
  gm_context *ctx = remote_context(NULL);
  assert_int_equal(open_status(ctx, server.where, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "NOAUTH"));
  assert_int_equal(open_status(ctx, server.where, "open barley", &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "WRONGPASS"));
  assert_null(strstr(err.message, "barley"));
  assert_int_equal(open_status(ctx, server.where, "open sesame", &err), GM_OK);
  redis_server_end(&server);
  redis_server_start(&server, NULL);
  assert_int_equal(open_status(ctx, server.where, "not wanted", &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(open_status(ctx, server.where, "", &err), GM_ERR_INVALID_ARGUMENT);
  redis_server_end(&server);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_addresses_that_are_none(void **state) {
  (void)state;
  static char longest[600] = "redis://";
  static const char *const wheres[] = {"",
                                       "localhost",
                                       "http://localhost",
                                       "redis://",
                                       "redis:///prefix",
                                       "redis://:6379",
                                       "redis://host:",
                                       "redis://host:0",
                                       "redis://host:65536",
                                       "redis://host:-1",
                                       "redis://host:99999999999999999999",
                                       "redis://host:63 79",
                                       "redis://ho st",
                                       "redis://user:secret@host",
                                       "redis://a:1,b:2",
                                       "redis+cluster://a:1,",
                                       "redis+cluster://,",
                                       "redis://[::1",
                                       "redis://[::1]x",
                                       "redis://[]:1",
                                       "unix:",
                                       "unix:relative",
                                       "redis+cluster://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q",
                                       longest};
  gm_error err = {.status = GM_OK};
  gm_context *ctx = remote_context(NULL);
  memset(longest + 8, 'h', sizeof longest - 9);
  for (size_t i = 0; i < sizeof wheres / sizeof *wheres; i++) {
    assert_int_equal(open_status(ctx, wheres[i], NULL, &err), GM_ERR_INVALID_ARGUMENT);
    assert_string_equal(err.op, "gm_tier_open");
    assert_null(strstr(err.message, "secret"));
  }
  char path[400] = "unix:/", prefix[300] = "redis://127.0.0.1/";
  memset(path + 6, 'p', 200);
  memset(prefix + 18, 'p', 200);
  assert_int_equal(open_status(ctx, path, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(open_status(ctx, prefix, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(open_status(ctx, "unix:/no/such/socket", NULL, &err), GM_ERR_UNAVAILABLE);
  assert_int_equal(open_status(ctx, "redis://[::1]:1/p", NULL, &err), GM_ERR_UNAVAILABLE);
  assert_int_equal(open_status(ctx, "redis://127.0.0.1:1", NULL, &err), GM_ERR_UNAVAILABLE);
  assert_non_null(strstr(err.message, "127.0.0.1:1"));
  assert_int_equal(open_status(ctx, "redis://no-such-host.invalid", NULL, &err), GM_ERR_UNAVAILABLE);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_limits_and_kinds_that_do_not_fit(void **state) {
  (void)state;
  redis_server server;
  gm_error err = {.status = GM_OK};
  gm_tier *tier = NULL;
  redis_server_start(&server, NULL);
  gm_context *ctx = remote_context(NULL);
  gm_tier_params params = {.struct_size = sizeof params, .max_bytes = 1 << 20};
  assert_int_equal(gm_tier_open(ctx, "remote", server.where, &params, &tier, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "maxmemory"));
  char where[64];
  snprintf(where, sizeof where, "redis+cluster://127.0.0.1:%u/test", server.port);
  assert_int_equal(open_status(ctx, where, NULL, &err), GM_ERR_NOT_SUPPORTED);
  params = (gm_tier_params){.struct_size = sizeof params, .read_only = true};
  assert_int_equal(gm_tier_open(ctx, "remote", server.where, &params, &tier, NULL), GM_OK);
  assert_int_equal(tier_put_text(tier, "a", "1"), GM_ERR_NOT_SUPPORTED);
  tier_expect_none(tier, "a", 1);
  remote_close(tier, ctx);
  redis_server_end(&server);
}

/* ---- what stands on the server is not what gm put there ---- */

static gm_status read_all(gm_tier *tier, const char *key, gm_error *err) {
  gm_tier_value *value = NULL;
  uint64_t bytes;
  gm_status status = gm_tier_value_open(tier, key, strlen(key), &value, &bytes, err);
  if (status) return status;
  char *read = malloc(bytes + 1);
  status = gm_tier_value_read(value, 0, read, bytes, err);
  free(read);
  gm_tier_value_close(value);
  return status;
}

/* The server's name of a chunk of some value. */
static void chunk_name(const redis_server *server, char name[128]) {
  const char *at = strstr(redis_say(server->port, "KEYS test:c:*:1"), "test:c:");
  assert_non_null(at);
  assert_int_equal(sscanf(at, "%127[^\r]", name), 1);
}

static void test_damage_is_told(void **state) {
  (void)state;
  redis_server server;
  char name[128], line[256];
  gm_error err = {.status = GM_OK};
  redis_server_start(&server, NULL);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, server.where, 0);
  assert_int_equal(remote_put_seed(tier, "large", 1, 3 << 20, NULL), GM_OK);
  assert_int_equal(tier_put_text(tier, "small", "of little weight"), GM_OK);
  chunk_name(&server, name);
  snprintf(line, sizeof line, "SETRANGE %s 77 x", name);
  redis_say(server.port, line);
  assert_int_equal(read_all(tier, "large", &err), GM_ERR_DAMAGED);
  snprintf(line, sizeof line, "DEL %s", name);
  redis_say(server.port, line);
  assert_int_equal(read_all(tier, "large", &err), GM_ERR_DAMAGED);
  snprintf(line, sizeof line, "LPUSH %s x", name);
  redis_say(server.port, line);
  assert_int_equal(read_all(tier, "large", &err), GM_ERR_FORMAT);
  for (int at = 8; at < 60; at += 3) {
    assert_int_equal(tier_put_text(tier, "small", "of little weight"), GM_OK);
    gm_status status = GM_OK;
    for (int byte = 3; !status && byte < 5; byte++) { /* one of them may be there already */
      snprintf(line, sizeof line, "SETRANGE test:v:small %d \"\\x%02x\"", at, byte);
      redis_say(server.port, line);
      status = read_all(tier, "small", &err);
    }
    if (status != GM_ERR_NOT_SUPPORTED) assert_int_equal(status, GM_ERR_DAMAGED);
  }
  redis_say(server.port, "SET test:v:small nonsense");
  assert_int_equal(read_all(tier, "small", &err), GM_ERR_FORMAT);
  redis_say(server.port, "LPUSH test:v:list x");
  assert_int_equal(read_all(tier, "list", &err), GM_ERR_FORMAT);
  assert_int_equal(tier_put_text(tier, "list", "text"), GM_ERR_FORMAT);
  assert_int_equal(tier_put_text(tier, "small", "again"), GM_OK);
  tier_expect_text(tier, "small", "again");
  assert_int_equal(tier_put_text(tier, "large", "again"), GM_OK);
  assert_int_equal(tier_list_of(tier, "", 99).count, 2);
  assert_true(remote_stats(tier).damaged >= 2);
  remote_close(tier, ctx);
  redis_server_end(&server);
}

/* Chunks of a value that was replaced are there for a while. When they are gone, the reader is told so. */
static void test_a_reader_that_is_too_late(void **state) {
  (void)state;
  redis_server server;
  char name[128], line[256], byte;
  gm_error err = {.status = GM_OK};
  gm_tier_value *value = NULL;
  redis_server_start(&server, NULL);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, server.where, 0);
  assert_int_equal(remote_put_seed(tier, "k", 1, 3 << 20, NULL), GM_OK);
  assert_int_equal(gm_tier_value_open(tier, "k", 1, &value, NULL, NULL), GM_OK);
  chunk_name(&server, name);
  assert_int_equal(gm_tier_remove(tier, "k", 1, NULL), GM_OK);
  assert_int_equal(gm_tier_value_read(value, 1 << 20, &byte, 1, &err), GM_OK);
  snprintf(line, sizeof line, "PTTL %s", name);
  const int left = atoi(redis_say(server.port, line) + 1);
  assert_in_range(left, 1, 60000);
  snprintf(line, sizeof line, "DEL %s", name);
  redis_say(server.port, line);
  assert_int_equal(gm_tier_value_read(value, 1 << 20, &byte, 1, &err), GM_ERR_NOT_FOUND);
  gm_tier_value_close(value);
  remote_close(tier, ctx);
  redis_server_end(&server);
}

/* ---- host memory, threads, forks ---- */

static const char *fill_where;

static gm_status open_and_fill(const gm_services *services) {
  gm_context *ctx = NULL;
  gm_tier *tier = NULL;
  const gm_context_params params = {.struct_size = sizeof params, .services = services, .ignore_environment = true};
  gm_status status = gm_context_create(&params, &ctx, NULL);
  if (status) return status;
  const gm_tier_params with = {.struct_size = sizeof with, .password = "word"};
  status = gm_tier_open(ctx, "remote", fill_where, &with, &tier, NULL);
  if (!status) status = remote_put_seed(tier, "a", 1, 100000, NULL);
  if (!status) status = tier_put_text(tier, "a", "other");
  if (!status) status = remote_put_seed(tier, "b", 1, 100000, NULL);
  if (!status) status = read_all(tier, "b", NULL);
  if (!status) status = gm_tier_list(tier, NULL, 0, tier_listing_visit, &(tier_listing){.most = 9}, NULL);
  if (!status) status = gm_tier_remove(tier, "b", 1, NULL);
  assert_int_equal(gm_tier_close(tier, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  return status;
}

static void test_host_memory_that_is_missing_loses_nothing(void **state) {
  (void)state;
  redis_server server;
  redis_server_start(&server, "--requirepass", "word", NULL);
  fill_where = server.where;
  size_t n = 0, calls;
  do {
    counted_services host;
    counted_services_init(&host);
    host.fail_at = ++n;
    host.fail_count = 1;
    const gm_status status = open_and_fill(&host.services);
    /* A put is done though there is no memory to have its earlier chunks expire. */
    if (status) assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
    calls = atomic_load(&host.calls);
    counted_services_check(&host);
  } while (calls >= n);
  assert_true(n > 40);
  redis_server_end(&server);
}

static void *use_in_thread(void *arg) {
  gm_tier *tier = arg;
  for (int i = 0; i < 60; i++) {
    const char key[2] = {(char)('a' + i % 5), '\0'};
    const size_t bytes = i % 3 ? 1000 : 200000;
    gm_tier_value *value = NULL;
    uint64_t has = 0;
    if (remote_put_seed(tier, key, bytes, bytes, NULL)) return arg;
    const gm_status status = gm_tier_value_open(tier, key, 1, &value, &has, NULL);
    if (status == GM_OK) {
      unsigned char *read = malloc(has), *want = remote_bytes(has, has);
      const bool wrong = gm_tier_value_read(value, 0, read, has, NULL) || memcmp(read, want, has) != 0;
      free(read);
      free(want);
      gm_tier_value_close(value);
      if (wrong) return arg;
    } else if (status != GM_ERR_NOT_FOUND) {
      return arg;
    }
    if (i % 7 == 0) gm_tier_remove(tier, key, 1, NULL);
  }
  return NULL;
}

static void test_threads_share_a_tier(void **state) {
  (void)state;
  redis_server server;
  pthread_t threads[4];
  redis_server_start(&server, NULL);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, server.where, 0);
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_in_thread, tier), 0);
  for (int i = 0; i < 4; i++) {
    void *wrong = NULL;
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
  remote_close(tier, ctx);
  redis_server_end(&server);
}

static void test_a_forked_child_only_closes(void **state) {
  (void)state;
  redis_server server;
  redis_server_start(&server, NULL);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, server.where, 0);
  tier_forks(ctx, tier);
  assert_int_equal(remote_stats(tier).retries, 0);
  remote_close(tier, ctx);
  redis_server_end(&server);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_it_does_what_every_tier_does),
      cmocka_unit_test(test_values_of_every_cut),
      cmocka_unit_test(test_prefixes_keep_tiers_apart),
      cmocka_unit_test(test_many_values_are_listed_once),
      cmocka_unit_test(test_a_password),
      cmocka_unit_test(test_addresses_that_are_none),
      cmocka_unit_test(test_limits_and_kinds_that_do_not_fit),
      cmocka_unit_test(test_damage_is_told),
      cmocka_unit_test(test_a_reader_that_is_too_late),
      cmocka_unit_test(test_host_memory_that_is_missing_loses_nothing),
      cmocka_unit_test(test_threads_share_a_tier),
      cmocka_unit_test(test_a_forked_child_only_closes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
