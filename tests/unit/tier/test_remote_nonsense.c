/* The tier of a server that answers nonsense. Every call ends in a failure with a reason, in time and with little
 * memory, and the process lives on. The server is a thread of the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/tcp.h>
#include <pthread.h>

#include "support/counted_services.h"
#include "support/remote_bench.h"

/* ---- the server ---- */

typedef struct fake {
  int listener;
  uint16_t port;
  pthread_t thread;
  atomic_int polite;  /* requests that get a right answer first, on all connections together */
  const char *answer; /* to all others */
  size_t bytes;
  bool again;                /* the answer has no end */
  bool closes;               /* after the answer */
  const char *client;        /* its answer to CLIENT INFO; NULL: one that is right */
  bool endless;              /* each page of its list has a cursor that leads on */
  bool empty;                /* and no keys */
  bool ends;                 /* its list is one page without keys */
  _Atomic(const char *) map; /* its answer to CLUSTER SLOTS; NULL: as to all */
  atomic_int maps;           /* how often it was asked for that */
  int64_t says;              /* how many keys it says that it has */
  unsigned pages, counts;
  atomic_int requests;
  atomic_int kills, killed_at; /* how often it was to end a connection, and after which request */
} fake;

static bool fake_byte(int fd, char *out) { return recv(fd, out, 1, 0) == 1; }

static long fake_number(int fd) {
  char text[32] = "", byte = 0;
  for (size_t at = 0; at < sizeof text - 1 && fake_byte(fd, &byte) && byte != '\n'; at++) text[at] = byte;
  return byte == '\n' ? atol(text) : -1;
}

/* Reads a request, and keeps its first two words. */
static bool fake_request(int fd, char words[2][16]) {
  char byte;
  long count = fake_byte(fd, &byte) && byte == '*' ? fake_number(fd) : 0;
  memset(words, 0, 32);
  for (long i = 0; i < count; i++) {
    long bytes = fake_byte(fd, &byte) && byte == '$' ? fake_number(fd) : -1;
    if (bytes < 0) return false;
    for (long at = 0; at < bytes + 2; at++) {
      if (!fake_byte(fd, &byte)) return false;
      if (i < 2 && at < bytes && at < 15) words[i][at] = byte;
    }
  }
  return count > 0;
}

static bool fake_send(int fd, const char *bytes, size_t count) {
  while (count) {
    const ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    count -= (size_t)sent;
  }
  return true;
}

static const char *fake_client(const fake *server, const char *word) {
  if (strcmp(word, "KILL") == 0) return ":1\r\n";
  return server->client ? server->client : "$27\r\nid=11 addr=127.0.0.1:4711 \n\r\n";
}

/* A page of new keys, without an end. */
static bool fake_page(fake *server, int fd) {
  enum { KEYS = 50 };
  char page[KEYS * 32 + 64], number[16];
  const unsigned keys = server->empty ? 0 : KEYS, count = ++server->pages;
  if (server->ends) return fake_send(fd, "*2\r\n$1\r\n0\r\n*0\r\n", 15);
  const int digits = snprintf(number, sizeof number, "%u", count);
  size_t at = (size_t)snprintf(page, sizeof page, "*2\r\n$%d\r\n%s\r\n*%u\r\n", digits, number, keys);
  for (unsigned i = 0; i < keys; i++) {
    at += (size_t)snprintf(page + at, sizeof page - at, "$19\r\ntest:v:%08u%04u\r\n", count, i);
  }
  return fake_send(fd, page, at);
}

/* Its part of a list. False: the request is none of a list, or the connection has ended. */
static bool fake_list(fake *server, int fd, const char *word) {
  char number[32];
  if (strcmp(word, "SCAN") == 0) return fake_page(server, fd);
  if (strcmp(word, "GETRANGE") == 0) {
    static const char head[] = "$48\r\ngmtier1\n\1\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0aaaaaaaabbbbbbbbcccccccc\r\n";
    return fake_send(fd, head, sizeof head - 1);
  }
  if (strcmp(word, "DBSIZE") != 0) return false;
  server->counts++;
  const int count = snprintf(number, sizeof number, ":%lld\r\n", (long long)server->says);
  return fake_send(fd, number, (size_t)count);
}

static void fake_talk(fake *server, int fd) {
  char words[2][16];
  while (fake_request(fd, words)) {
    if (strcmp(words[1], "KILL") == 0) {
      atomic_store(&server->killed_at, atomic_load(&server->requests));
      atomic_fetch_add(&server->kills, 1);
    }
    const char *map = strcmp(words[0], "CLUSTER") == 0 ? atomic_load(&server->map) : NULL;
    if (map) {
      atomic_fetch_add(&server->maps, 1);
      if (!fake_send(fd, map, strlen(map))) return;
    } else if (strcmp(words[0], "CLIENT") == 0) {
      const char *answer = fake_client(server, words[1]);
      if (!fake_send(fd, answer, strlen(answer))) return;
    } else if (server->endless && fake_list(server, fd, words[0])) {
      atomic_fetch_add(&server->requests, 1);
    } else if (atomic_fetch_add(&server->requests, 1) < server->polite) {
      if (!fake_send(fd, "$-1\r\n", 5)) return;
    } else {
      do {
        if (!fake_send(fd, server->answer, server->bytes)) return;
      } while (server->again);
      if (server->closes) return;
    }
  }
}

static void *fake_run(void *arg) {
  fake *server = arg;
  const int on = 1;
  for (int fd; (fd = accept(server->listener, NULL, NULL)) >= 0; close(fd)) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fake_talk(server, fd);
  }
  return NULL;
}

static void fake_start(fake *server) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(server->listener, (const struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(listen(server->listener, 16), 0);
  assert_int_equal(getsockname(server->listener, (struct sockaddr *)&at, &size), 0);
  server->port = ntohs(at.sin_port);
  atomic_store(&server->requests, 0);
  assert_int_equal(pthread_create(&server->thread, NULL, fake_run, server), 0);
}

static void fake_end(fake *server) {
  shutdown(server->listener, SHUT_RDWR); /* accept fails */
  pthread_join(server->thread, NULL);
  close(server->listener);
}

/* ---- what is asked of it ---- */

typedef enum call { CALL_OPEN, CALL_PUT, CALL_PUT_LARGE, CALL_GET, CALL_LIST, CALL_REMOVE, CALL_STATS, CALLS } call;

static gm_status call_tier(gm_tier *tier, call what, gm_error *err) {
  gm_tier_value *value = NULL;
  gm_tier_stats stats = {.struct_size = sizeof stats};
  tier_listing listing = {.most = 1 << 20};
  const gm_tier_part part = {"value", 5};
  switch (what) {
    case CALL_PUT: return gm_tier_put(tier, "k", 1, &part, 1, err);
    case CALL_PUT_LARGE: return remote_put_seed(tier, "k", 1, 40000, err);
    case CALL_GET: return gm_tier_value_open(tier, "k", 1, &value, NULL, err);
    case CALL_LIST: return gm_tier_list(tier, NULL, 0, tier_listing_visit, &listing, err);
    case CALL_REMOVE: return gm_tier_remove(tier, "k", 1, err);
    default: return gm_tier_get_stats(tier, &stats, err);
  }
}

/* One call, to which the server answers that. */
static gm_status call_once(fake *server, call what, const char *kind, uint64_t timeout_ms, size_t peak, gm_error *err) {
  char where[64];
  counted_services host;
  gm_tier *tier = NULL;
  counted_services_init(&host);
  server->polite = what == CALL_OPEN ? 0 : 1;
  fake_start(server);
  snprintf(where, sizeof where, "%s://127.0.0.1:%u/test", kind, server->port);
  gm_context *ctx = remote_context(&host.services);
  const gm_tier_params params = {.struct_size = sizeof params, .timeout_ns = timeout_ms * 1000000};
  gm_status status = gm_tier_open(ctx, "remote", where, &params, &tier, err);
  const bool slow = what != CALL_OPEN && status == GM_ERR_TIMEOUT; /* the machine, not the server */
  if (what != CALL_OPEN && !slow) {
    assert_int_equal(status, GM_OK);
    status = call_tier(tier, what, err);
  }
  assert_int_equal(gm_tier_close(tier, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  assert_true(atomic_load(&host.peak_bytes) <= peak);
  counted_services_check(&host);
  fake_end(server);
  return slow ? call_once(server, what, kind, timeout_ms * 2, peak, err) : status;
}

#define ANSWER(text) \
  { text, sizeof(text) - 1 }
static const struct {
  const char *bytes;
  size_t count;
} answers[] = {
    ANSWER(""),
    ANSWER("\r\n"),
    ANSWER("$"),
    ANSWER("$5\r\nab"),
    ANSWER("$5\r\nabcdefgh\r\n"),
    ANSWER("$-2\r\n"),
    ANSWER("$x\r\n"),
    ANSWER("$9223372036854775807\r\nabc"),
    ANSWER("$99999999999999999999\r\nabc"),
    ANSWER("*-5\r\n"),
    ANSWER("*2147483647\r\n"),
    ANSWER("*2147483648\r\n"),
    ANSWER("*9223372036854775807\r\n:1\r\n"),
    ANSWER("*0\r\n"),
    ANSWER("*2\r\n$1\r\n0\r\n:5\r\n"),
    ANSWER("*2\r\n*0\r\n*0\r\n"),
    ANSWER("*2\r\n$4\r\n1\0x2\r\n*0\r\n"),
    ANSWER("*2\r\n$30\r\n111111111111111111111111111111\r\n*0\r\n"),
    ANSWER("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"),
    ANSWER(":99999999999999999999\r\n"),
    ANSWER(":\r\n"),
    ANSWER("!no such type\r\n"),
    ANSWER("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n400"),
    ANSWER("-\r\n"),
    ANSWER("-ERR \x01\x02\x03 %s %n\r\n"),
    ANSWER("-MOVED\r\n"),
    ANSWER("-MOVED 1\r\n"),
    ANSWER("-MOVED 99999 127.0.0.1:1\r\n"),
    ANSWER("-MOVED 1 127.0.0.1:99999\r\n"),
    ANSWER("-MOVED 1 :\r\n"),
    ANSWER("-ASK 1 127.0.0.1:1\r\n"),
    ANSWER("-ASK x y\r\n"),
    ANSWER("-LOADING for ever\r\n"),
    ANSWER("$48\r\ngmtier1\n\1\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
           "aaaaaaaabbbbbbbbcccccccc\r\n"),
    ANSWER("%1\r\n+a\r\n+b\r\n"),
    ANSWER(",1.5\r\n"),
    ANSWER("#t\r\n"),
};
enum { ANSWERS = sizeof answers / sizeof *answers };

enum { TIMEOUT_MS = 25, PEAK = 1 << 20 };

static void check_answer(const char *kind, call what, size_t i, bool closes) {
  gm_error err = {.status = GM_OK};
  fake server = {.answer = answers[i].bytes, .bytes = answers[i].count, .closes = closes};
  const gm_status status = call_once(&server, what, kind, TIMEOUT_MS, PEAK, &err);
  if (what == CALL_STATS || status == GM_OK) return;
  assert_int_equal(err.status, status);
  assert_true(*err.message != '\0');
  assert_null(strstr(err.message, "gives no reason"));
}

static void test_answers_that_make_no_sense(void **state) {
  (void)state;
  for (size_t i = 0; i < ANSWERS; i++) {
    for (int what = CALL_OPEN; what < CALLS; what++) check_answer("redis", (call)what, i, i % 2 == 0);
    check_answer("redis+cluster", CALL_OPEN, i, false);
  }
}

/* None of these can be taken for a value. */
static void test_no_nonsense_is_a_value(void **state) {
  (void)state;
  for (size_t i = 0; i < ANSWERS; i++) {
    gm_error err = {.status = GM_OK};
    fake server = {.answer = answers[i].bytes, .bytes = answers[i].count};
    const gm_status status = call_once(&server, CALL_GET, "redis", TIMEOUT_MS, PEAK, &err);
    assert_int_not_equal(status, GM_OK);
    assert_int_not_equal(status, GM_ERR_NOT_FOUND);
  }
}

/* Answers without an end have a bound. */
static void test_answers_without_an_end(void **state) {
  (void)state;
  static char bulk[1 << 16], items[1 << 15];
  gm_error err = {.status = GM_OK};
  memset(bulk, 'x', sizeof bulk);
  memcpy(bulk, "$999999999\r\n", 12);
  fake server = {.answer = bulk, .bytes = sizeof bulk, .again = true};
  assert_int_equal(call_once(&server, CALL_GET, "redis", 20000, PEAK, &err), GM_ERR_FORMAT);
  assert_non_null(strstr(err.message, "too large"));
  for (size_t i = 0; i < sizeof items; i += 4) memcpy(items + i, i ? ":1\r\n" : "*9\r\n", 4);
  server = (fake){.answer = items, .bytes = sizeof items, .again = true};
  for (int what = CALL_PUT; what < CALL_STATS; what++) {
    assert_int_equal(call_once(&server, (call)what, "redis", 20000, 32 << 20, &err), GM_ERR_FORMAT);
  }
}

/* An answer that nobody asked for is not taken for the answer to the next request. */
static void test_answers_that_nobody_asked_for(void **state) {
  (void)state;
  char where[64];
  static const char twice[] = "$-1\r\n$-1\r\n";
  fake server = {.answer = twice, .bytes = sizeof twice - 1, .polite = 0};
  fake_start(&server);
  snprintf(where, sizeof where, "redis://127.0.0.1:%u", server.port);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, where, 2000);
  for (int i = 0; i < 10; i++) tier_expect_none(tier, "k", 1);
  assert_int_equal(atomic_load(&server.requests), 11);
  remote_close(tier, ctx);
  fake_end(&server);
}

/* Requests that were given up must not be carried out after later ones: the server is told to end their connection. */
static void test_a_connection_that_was_given_up(void **state) {
  (void)state;
  char where[64];
  fake server = {.answer = "", .bytes = 0, .polite = 1, .client = "$27\r\nid=77 addr=127.0.0.1:4711 \n\r\n"};
  fake_start(&server);
  snprintf(where, sizeof where, "redis://127.0.0.1:%u", server.port);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, where, 200);
  assert_int_equal(tier_put_text(tier, "k", "late"), GM_ERR_TIMEOUT);
  const int requests = atomic_load(&server.requests);
  atomic_store(&server.polite, 1000);
  gm_status status = GM_ERR_TIMEOUT;
  for (int i = 0; i < 20 && status == GM_ERR_TIMEOUT; i++) status = tier_put_text(tier, "k", "later");
  assert_int_equal(status, GM_OK);
  assert_true(atomic_load(&server.kills) >= 1);
  assert_true(atomic_load(&server.killed_at) <= atomic_load(&server.requests) - 1);
  assert_true(requests >= 2);
  remote_close(tier, ctx);
  fake_end(&server);
}

/* A list ends, whatever the server says: it names no more than it says that it has, and some that came meanwhile. */
static void test_a_list_without_an_end(void **state) {
  (void)state;
  static const int64_t says[] = {0, -7, 1000};
  for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
    for (int empty = 0; empty < 2; empty++) {
      gm_error err = {.status = GM_OK};
      fake server = {.endless = true, .says = says[i], .empty = empty, .answer = "$-1\r\n", .bytes = 5};
      assert_int_equal(call_once(&server, CALL_LIST, "redis", 20000, 64 << 20, &err), GM_ERR_FORMAT);
      assert_non_null(strstr(err.message, "does not end"));
      const uint64_t most = (says[i] > 0 ? 2 * (uint64_t)says[i] : 0) + 4096;
      assert_true(server.pages <= (empty ? most : most / 50) + 1);
      assert_in_range(server.counts, 1, 8);
    }
  }
}

/* Figures do not wait for such a list, either. */
static void test_figures_of_a_list_without_an_end(void **state) {
  (void)state;
  gm_error err = {.status = GM_OK};
  fake server = {.endless = true, .says = 5, .answer = "$-1\r\n", .bytes = 5};
  assert_int_equal(call_once(&server, CALL_STATS, "redis", 20000, 64 << 20, &err), GM_OK);
  assert_true(server.pages <= 100);
}

/* ---- a cluster ---- */

/* All slots are of that server. */
static void say_map(const fake *server, char out[96]) {
  snprintf(out, 96, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n", server->port);
}

/* In each try, each server is asked once where the slots are. */
static void test_a_cluster_that_has_no_slots_any_more(void **state) {
  (void)state;
  static const char down[] = "-CLUSTERDOWN as it was told\r\n";
  char where[64], map[96];
  fake server = {.answer = down, .bytes = sizeof down - 1, .polite = 1, .endless = true, .ends = true};
  fake_start(&server);
  say_map(&server, map);
  atomic_store(&server.map, map);
  snprintf(where, sizeof where, "redis+cluster://127.0.0.1:%u", server.port);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, where, 200);
  const uint64_t before = remote_stats(tier).retries;
  const int first = atomic_load(&server.maps);
  atomic_store(&server.map, "*0\r\n");
  assert_int_not_equal(tier_put_text(tier, "k", "v"), GM_OK);
  const int asked = atomic_load(&server.maps) - first;
  atomic_store(&server.map, map);
  const uint64_t retries = remote_stats(tier).retries - before;
  assert_true(asked >= 1 && (uint64_t)asked <= retries + 1);
  remote_close(tier, ctx);
  fake_end(&server);
}

/* A server without slots has no values to list. */
static void test_a_server_that_is_no_master_any_more(void **state) {
  (void)state;
  char where[64], map[96], moved[64];
  fake one = {.polite = 1, .answer = moved, .endless = true, .ends = true},
       other = {.polite = 1000, .endless = true, .ends = true};
  fake_start(&one);
  fake_start(&other);
  one.bytes = (size_t)snprintf(moved, sizeof moved, "-MOVED 1 127.0.0.1:%u\r\n", other.port);
  say_map(&one, map);
  atomic_store(&one.map, map);
  snprintf(where, sizeof where, "redis+cluster://127.0.0.1:%u", one.port);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, where, 20000);
  char later[96];
  say_map(&other, later);
  atomic_store(&one.map, later);
  atomic_store(&other.map, later);
  tier_expect_none(tier, "k", 1);
  assert_int_equal(tier_list_of(tier, "", 999).count, 0);
  remote_close(tier, ctx);
  fake_end(&one);
  fake_end(&other);
  assert_int_equal(one.pages, 0);
  assert_int_equal(other.pages, 1);
}

static void test_noise(void **state) {
  (void)state;
  static const char first[] = "$*+-:";
  char noise[64];
  for (uint64_t seed = 1; seed <= 60; seed++) {
    uint64_t random = seed;
    gm_error err = {.status = GM_OK};
    for (size_t i = 0; i < sizeof noise; i++) {
      const uint64_t number = test_random(&random);
      noise[i] = number % 3 ? "0123456789\r\n$*+-:"[number / 3 % 17] : (char)(number >> 32);
    }
    noise[0] = first[seed % 5];
    fake server = {.answer = noise, .bytes = sizeof noise, .closes = true};
    call_once(&server, (call)(seed % CALLS), "redis", TIMEOUT_MS, PEAK, &err);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_answers_that_make_no_sense),
      cmocka_unit_test(test_no_nonsense_is_a_value),
      cmocka_unit_test(test_answers_without_an_end),
      cmocka_unit_test(test_answers_that_nobody_asked_for),
      cmocka_unit_test(test_a_connection_that_was_given_up),
      cmocka_unit_test(test_a_list_without_an_end),
      cmocka_unit_test(test_figures_of_a_list_without_an_end),
      cmocka_unit_test(test_noise),
      cmocka_unit_test(test_a_cluster_that_has_no_slots_any_more),
      cmocka_unit_test(test_a_server_that_is_no_master_any_more),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
