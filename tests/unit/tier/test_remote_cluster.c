/* The tier of a cluster: three masters and three replicas on loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/counted_services.h"
#include "support/remote_bench.h"

enum { SERVERS = 6, MASTERS = 3, SLOTS = 16384 };

typedef struct cluster {
  redis_server server[SERVERS]; /* the masters first */
  char id[SERVERS][41];
  char where[128];
} cluster;

static int first_slot(int master) { return master * SLOTS / MASTERS; }

static void cluster_say(const cluster *nodes, int at, const char *want, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void cluster_say(const cluster *nodes, int at, const char *want, const char *format, ...) {
  char line[300];
  va_list more;
  va_start(more, format);
  vsnprintf(line, sizeof line, format, more);
  va_end(more);
  redis_await(nodes->server[at].port, line, want);
}

/* Until each server knows that the cluster is well, and of each other. */
static void cluster_await(const cluster *nodes, const char *sign) {
  for (int i = 0; i < SERVERS; i++) {
    for (int ms = 0; !strstr(redis_say(nodes->server[i].port, "CLUSTER INFO"), sign); ms += 2) {
      if (ms > REDIS_PATIENCE_MS) fail_msg("server %d has no %s", i, sign);
      redis_nap();
    }
  }
}

static void cluster_start(cluster *nodes) {
  memset(nodes, 0, sizeof *nodes);
  for (int i = 0; i < SERVERS; i++) {
    redis_server_start(&nodes->server[i], "--cluster-enabled", "yes", "--cluster-node-timeout", "700",
                       "--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0", "--save", "", NULL);
    const char *id = strchr(redis_say(nodes->server[i].port, "CLUSTER MYID"), '\n');
    assert_non_null(id);
    memcpy(nodes->id[i], id + 1, 40);
    if (i < MASTERS) {
      cluster_say(nodes, i, "+OK", "CLUSTER ADDSLOTSRANGE %d %d", first_slot(i), first_slot(i + 1) - 1);
    }
    cluster_say(nodes, i, "+OK", "CLUSTER SET-CONFIG-EPOCH %d", i + 1);
    if (i) cluster_say(nodes, i, "+OK", "CLUSTER MEET 127.0.0.1 %u", nodes->server[0].port);
  }
  cluster_await(nodes, "cluster_known_nodes:6");
  for (int i = MASTERS; i < SERVERS; i++) cluster_say(nodes, i, "+OK", "CLUSTER REPLICATE %s", nodes->id[i - MASTERS]);
  cluster_await(nodes, "cluster_state:ok");
  snprintf(nodes->where, sizeof nodes->where, "redis+cluster://127.0.0.1:%u,127.0.0.1:%u/test", nodes->server[0].port,
           nodes->server[4].port);
}

static void cluster_end(cluster *nodes) {
  for (int i = 0; i < SERVERS; i++) redis_server_end(&nodes->server[i]);
}

static int keys_of(const redis_server *server) { return atoi(redis_say(server->port, "DBSIZE") + 1); }

static void check_suite(const cluster *nodes) {
  counted_services host;
  counted_services_init(&host);
  gm_context *ctx = remote_context(&host.services);
  gm_tier *tier = remote_open(ctx, nodes->where, 0);
  tier_suite(tier, 5, 40, 3 << 20);
  assert_int_equal(remote_stats(tier).retries, 0); /* each request went to the right server at once */
  assert_int_equal(remote_put_seed(tier, "spread", 1, 40 << 20, NULL), GM_OK);
  for (int i = 0; i < MASTERS; i++) assert_true(keys_of(&nodes->server[i]) >= 5);
  remote_expect_seed(tier, "spread", 1, 40 << 20);
  assert_int_equal(gm_tier_remove(tier, "spread", 6, NULL), GM_OK);
  remote_close(tier, ctx);
  counted_services_check(&host);
}

/* A server that is one of a cluster says so to who takes it for a single one. */
static void check_single(const cluster *nodes) {
  gm_error err = {.status = GM_OK};
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = NULL;
  gm_status status = gm_tier_open(ctx, "remote", nodes->server[0].where, NULL, &tier, &err);
  for (int i = 0; i < 20 && !status; i++) status = gm_tier_put(tier, &i, sizeof i, NULL, 0, &err);
  assert_int_equal(status, GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "redis+cluster://"));
  remote_close(tier, ctx);
}

enum { VALUES = 40 };

static void put_values(gm_tier *tier, uint64_t round) {
  gm_error err = {.status = GM_OK};
  for (int i = 0; i < VALUES; i++) {
    char key[16];
    snprintf(key, sizeof key, "key%d", i);
    if (remote_put_seed(tier, key, round * VALUES + (uint64_t)i, i % 10 ? 3000 : 3 << 20, &err)) {
      fail_msg("%s: %s", err.op, err.message);
    }
  }
}

static void expect_values(gm_tier *tier, uint64_t round) {
  for (int i = 0; i < VALUES; i++) {
    char key[16];
    snprintf(key, sizeof key, "key%d", i);
    remote_expect_seed(tier, key, round * VALUES + (uint64_t)i, i % 10 ? 3000 : 3 << 20);
  }
  assert_int_equal(tier_list_of(tier, "", 999).count, VALUES);
}

/* Slots on their way to another server: keys that are there still, and keys that are there already. */
static void check_migration(const cluster *nodes, gm_tier *tier) {
  enum { MOVED = 400 };
  put_values(tier, 1);
  for (int slot = 0; slot < MOVED; slot++) {
    cluster_say(nodes, 1, "+OK", "CLUSTER SETSLOT %d IMPORTING %s", slot, nodes->id[0]);
    cluster_say(nodes, 0, "+OK", "CLUSTER SETSLOT %d MIGRATING %s", slot, nodes->id[1]);
  }
  put_values(tier, 2); /* new chunks in these slots are asked for at the other server */
  expect_values(tier, 2);
  for (int slot = 0; slot < MOVED; slot++) {
    char line[64];
    snprintf(line, sizeof line, "CLUSTER GETKEYSINSLOT %d 1", slot);
    for (const char *name; (name = strstr(redis_say(nodes->server[0].port, line), "test:")) != NULL;) {
      const int length = (int)strcspn(name, "\r");
      char moved[200];
      snprintf(moved, sizeof moved, "%.*s", length, name);
      cluster_say(nodes, 0, "+", "MIGRATE 127.0.0.1 %u %s 0 5000", nodes->server[1].port, moved);
    }
  }
  expect_values(tier, 2);
  for (int slot = 0; slot < MOVED; slot++) {
    cluster_say(nodes, 1, "+OK", "CLUSTER SETSLOT %d NODE %s", slot, nodes->id[1]);
    cluster_say(nodes, 0, "+OK", "CLUSTER SETSLOT %d NODE %s", slot, nodes->id[1]);
  }
  expect_values(tier, 2); /* the tier learns of the new server by being sent there */
  put_values(tier, 3);
  expect_values(tier, 3);
}

/* Until a replica has all that its master has. */
static void await_replica(const cluster *nodes, int master) {
  redis_await(nodes->server[master].port, "WAIT 1 1000", ":1");
  char role[64];
  snprintf(role, sizeof role, "*3\r\n$6\r\nmaster");
  redis_await(nodes->server[master].port, "ROLE", role);
}

/* A master dies, and its replica takes over: what it had got is there, and puts go on. */
static void check_failover(cluster *nodes, gm_tier *tier) {
  put_values(tier, 4);
  redis_await(nodes->server[MASTERS + 2].port, "ROLE", "*5\r\n$5\r\nslave");
  await_replica(nodes, 2);
  for (int ms = 0; keys_of(&nodes->server[5]) != keys_of(&nodes->server[2]); ms += 2) {
    assert_true(ms < REDIS_PATIENCE_MS);
    redis_nap();
  }
  redis_server_kill(&nodes->server[2]);
  put_values(tier, 5);
  expect_values(tier, 5);
  assert_true(remote_stats(tier).retries > 0);
  redis_await(nodes->server[5].port, "ROLE", "*3\r\n$6\r\nmaster");
  assert_true(redis_server_run(&nodes->server[2])); /* for cluster_end */
}

static void test_a_cluster(void **state) {
  (void)state;
  static cluster nodes;
  cluster_start(&nodes);
  check_suite(&nodes);
  check_single(&nodes);
  gm_context *ctx = remote_context(NULL);
  gm_tier *tier = remote_open(ctx, nodes.where, 20000);
  check_migration(&nodes, tier);
  check_failover(&nodes, tier);
  remote_close(tier, ctx);
  cluster_end(&nodes);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_cluster)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
