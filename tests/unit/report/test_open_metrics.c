/* The page for Prometheus, against what gm_pool_stats and the trackers say. With a path as argument the program writes
 * a page of hostile names there. Beside it stands what its figures are: parse_open_metrics.py has it read by others. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/fragmentation.h"
#include "gm/report.h"
#include "gm/tracker.h"
#include "gm/version.h"
#include "support/pool_bench.h"

enum { PAGE = 64 << 10, TAGS = 5 };

typedef struct text {
  char bytes[PAGE];
  size_t used;
} text;

/* Two pools, of which the second tracks blocks of these tags. The last ones are the same once they are clean. */
typedef struct scene {
  pool_bench bench; /* its pool is the first */
  gm_pool *hostile;
  gm_block plain, blocks[TAGS];
  uint64_t bytes[TAGS];
} scene;

static const char hostile_name[] = "a\"b\\c\nd</script>\xff\xc3\xa9";
static const char hostile_shown[] = "a\\\"b\\\\c?d</script>?\xc3\xa9"; /* in a label */
static const char *const tags[TAGS] = {"", "kv\"", "w\\", "x\x01", "x\xc3"};
static const char *const shown[] = {"", "kv\\\"", "w\\\\", "x?"};

static scene at;
static text page, wanted;

static void put(void *user, const char *bytes, size_t count) {
  text *out = user;
  assert_true(count > 0 && out->used + count < PAGE);
  assert_int_equal(bytes[count - 1], '\n');
  memcpy(out->bytes + out->used, bytes, count);
  out->used += count;
  out->bytes[out->used] = '\0';
}

static void want(const char *format, ...) GM_PRINTF(1, 2);
static void want(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int wrote = vsnprintf(wanted.bytes + wanted.used, PAGE - wanted.used, format, arguments);
  va_end(arguments);
  assert_true(wrote > 0 && wanted.used + (size_t)wrote < PAGE);
  wanted.used += (size_t)wrote;
}

static gm_block take(gm_pool *pool, uint64_t bytes, uint32_t tag) {
  gm_block block;
  gm_request request = {.bytes = bytes, .tag = tag};
  assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
  return block;
}

static void open_scene(void) {
  const gm_pool_params plain = {.struct_size = sizeof plain, .name = "plain", .strategy = GM_STRATEGY_BUCKET};
  const gm_pool_params odd = {.struct_size = sizeof odd, .name = hostile_name, .track = true};
  page.used = wanted.used = 0;
  pool_bench_open(&at.bench, "null", "null:capacity=1G", &plain);
  pool_bench_ok(gm_pool_create(at.bench.device, &odd, &at.hostile, err));
  pool_bench_ok(gm_pool_set_tracking(at.bench.pool, false, err)); /* debug builds do */
  at.plain = take(at.bench.pool, 1 << 20, 0);
  for (uint32_t i = 0; i < TAGS; i++) {
    at.bytes[i] = 1000 + 100 * i;
    at.blocks[i] = take(at.hostile, at.bytes[i], *tags[i] ? gm_tag(at.bench.ctx, tags[i]) : 0);
  }
}

static void close_scene(void) {
  for (uint32_t i = 0; i < TAGS; i++) assert_int_equal(gm_free(at.hostile, &at.blocks[i], NULL), GM_OK);
  assert_int_equal(gm_free(at.bench.pool, &at.plain, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(at.hostile, err));
  pool_bench_close(&at.bench);
}

static void write_page(void) {
  page.used = 0;
  pool_bench_ok(gm_report_open_metrics(at.bench.ctx, put, &page, err));
}

/* ---- what the page should be ---- */

static uint64_t id_of(gm_pool *pool) { /* numbers are given in turn, the device's first */
  return pool == at.hostile ? 3 : 2;
}

static const char *label_of(gm_pool *pool) { return pool == at.hostile ? hostile_shown : "plain"; }

static gm_stats stats_of(gm_pool *pool) {
  gm_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_pool_stats(pool, &stats), GM_OK);
  return stats;
}

static bool is_one_of(const char *name, const char *const *names) {
  while (*names && strcmp(*names, name) != 0) names++;
  return *names;
}

static const char *const gauges[] = {"requested_bytes",
                                     "in_use_bytes",
                                     "reserved_bytes",
                                     "pooled_bytes",
                                     "reclaimable_bytes",
                                     "peak_requested_bytes",
                                     "peak_in_use_bytes",
                                     "peak_reserved_bytes",
                                     "active",
                                     "fallback_bytes",
                                     "hole_bytes",
                                     "scattered_bytes",
                                     "largest_hole_bytes",
                                     NULL};

static void want_head(const char *family, const char *type, const char *unit, const char *help) {
  want("# TYPE gm_%s %s\n", family, type);
  if (unit) want("# UNIT gm_%s %s\n", family, unit);
  want("# HELP gm_%s %s\n", family, help);
}

static void want_sample(const char *family, gm_pool *pool, uint64_t value, const char *suffix) {
  if (value == GM_UNKNOWN_BYTES) return;
  want("gm_pool_%s%s{pool=\"%s\",id=\"%" PRIu64 "\",device=\"null:0\"} %" PRIu64 "\n", family, suffix, label_of(pool),
       id_of(pool), value);
}

/* `first` and `second` are the field's value in the pools, the newest first. */
static void want_field(const char *name, const char *help, uint64_t first, uint64_t second) {
  if (strcmp(name, "local_cache_hits") == 0) return;
  if (strcmp(name, "driver_ns") == 0) {
    want_head("pool_driver_seconds", "counter", "seconds", help);
    const struct {
      gm_pool *pool;
      uint64_t ns;
    } of[] = {{at.hostile, first}, {at.bench.pool, second}};
    for (int i = 0; i < 2; i++) {
      want("gm_pool_driver_seconds_total{pool=\"%s\",id=\"%" PRIu64 "\",device=\"null:0\"} %" PRIu64 ".%09" PRIu64 "\n",
           label_of(of[i].pool), id_of(of[i].pool), of[i].ns / 1000000000, of[i].ns % 1000000000);
    }
    return;
  }
  char family[64];
  const bool gauge = is_one_of(name, gauges);
  const size_t length = strlen(name);
  snprintf(family, sizeof family, "pool_%s", name);
  want_head(family, gauge ? "gauge" : "counter", length > 5 && strcmp(name + length - 5, "bytes") == 0 ? "bytes" : NULL,
            help);
  want_sample(name, at.hostile, first, gauge ? "" : "_total");
  want_sample(name, at.bench.pool, second, gauge ? "" : "_total");
}

static void want_device(void) {
  static const char *const flows[][3] = {{"up_bytes", "bytes", "bytes that gm moved from the host to the device"},
                                         {"down_bytes", "bytes", "bytes that gm moved from the device to the host"},
                                         {"up_copies", NULL, "submissions of copies to the device"},
                                         {"down_copies", NULL, "submissions of copies to the host"},
                                         {"useful_bytes", "bytes", "bytes moved that somebody asked for"}};
  want_head("build", "info", NULL, "the version of gm");
  want("gm_build_info{version=\"%s\"} 1\n", gm_version_string());
  want_head("device", "info", NULL, "devices that have a pool");
  want("gm_device_info{device=\"null:0\",id=\"1\",name=\"simulated device without memory\",driver=\"null\"} 1\n");
  want_head("device_memory_bytes", "gauge", "bytes", "bytes that the device has");
  want("gm_device_memory_bytes{device=\"null:0\",id=\"1\"} 1073741824\n");
  for (size_t i = 0; i < sizeof flows / sizeof *flows; i++) {
    char family[64];
    snprintf(family, sizeof family, "device_%s", flows[i][0]);
    want_head(family, "counter", flows[i][1], flows[i][2]);
    want("gm_%s_total{device=\"null:0\",id=\"1\"} 0\n", family);
  }
}

/* The largest tag comes first: the two that look alike are joined where the larger one stands. */
static void want_tags(void) {
  static const int order[] = {3, 2, 1, 0};
  static const char *const families[][3] = {{"bytes", "bytes", "bytes of the tag's blocks, as callers asked for them"},
                                            {"peak_bytes", "bytes", "highest bytes; of several threads an upper bound"},
                                            {"active", NULL, "blocks of the tag"}};
  for (int f = 0; f < 3; f++) {
    char family[64];
    snprintf(family, sizeof family, "pool_tag_%s", families[f][0]);
    want_head(family, "gauge", families[f][1], families[f][2]);
    for (int i = 0; i < 4; i++) {
      const int tag = order[i];
      const uint64_t bytes = at.bytes[tag] + (tag == 3 ? at.bytes[4] : 0), count = tag == 3 ? 2 : 1;
      want("gm_%s{pool=\"%s\",id=\"3\",device=\"null:0\",tag=\"%s\"} %" PRIu64 "\n", family, hostile_shown, shown[tag],
           f == 2 ? count : bytes);
    }
  }
}

static void want_page(void) {
  const gm_stats first = stats_of(at.hostile), second = stats_of(at.bench.pool);
  wanted.used = 0;
  want_device();
#define X(name, help) want_field(#name, help, first.name, second.name);
  GM_STATS_FIELDS(X)
#undef X
  want_tags();
  want("# EOF\n");
}

static void check_page(void) {
  write_page();
  want_page();
  for (size_t i = 0; i < page.used && i < wanted.used; i++) {
    if (page.bytes[i] != wanted.bytes[i])
      fail_msg("at %zu:\n%.300s\nin place of\n%.300s", i, page.bytes + i, wanted.bytes + i);
  }
  assert_int_equal(page.used, wanted.used);
}

/* ---- tests ---- */

static bool has_line(const char *start) {
  const size_t bytes = strlen(start);
  const char *line = page.bytes;
  while (*line && strncmp(line, start, bytes) != 0) line = strchr(line, '\n') + 1;
  return *line;
}

static void test_the_page_has_every_figure(void **state) {
  (void)state;
  gm_fragmentation holes = {.struct_size = sizeof holes};
  open_scene();
  check_page();
  assert_true(has_line("gm_pool_reserved_bytes{pool=\"plain\",id=\"2\",device=\"null:0\"} 1048576\n"));
  assert_true(has_line("gm_pool_hole_bytes{pool=\"plain\",")); /* buckets have none, and that is known */
  assert_false(has_line("gm_pool_hole_bytes{pool=\"a"));
  assert_int_equal(gm_free(at.hostile, &at.blocks[1], NULL), GM_OK);
  pool_bench_ok(gm_pool_fragmentation(at.hostile, &holes, err));
  at.blocks[1] = take(at.hostile, at.bytes[1], gm_tag(at.bench.ctx, tags[1]));
  check_page();
  assert_true(has_line("gm_pool_hole_bytes{pool=\"a"));
  close_scene();
}

static void test_a_context_without_pools_has_no_samples(void **state) {
  (void)state;
  open_scene();
  close_scene();
  counted_services host;
  counted_services_init(&host);
  const gm_context_params params = {
      .struct_size = sizeof params, .services = &host.services, .ignore_environment = true};
  page.used = 0;
  pool_bench_ok(gm_context_create(&params, &at.bench.ctx, err));
  write_page();
  for (const char *line = page.bytes; *line; line = strchr(line, '\n') + 1) {
    assert_true(*line == '#' || strncmp(line, "gm_build_info{", 14) == 0);
  }
  assert_string_equal(page.bytes + page.used - 6, "# EOF\n");
  pool_bench_ok(gm_context_destroy(at.bench.ctx, err));
  counted_services_check(&host);
}

static void test_every_host_allocation_may_fail(void **state) {
  (void)state;
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  gm_error err = {0};
  open_scene();
  for (size_t n = 1; status; n++) {
    at.bench.host.fail_at = atomic_load(&at.bench.host.calls) + n;
    page.used = 0;
    status = gm_report_open_metrics(at.bench.ctx, put, &page, &err);
    at.bench.host.fail_at = 0;
    assert_true(status == GM_OK || (status == GM_ERR_OUT_OF_HOST_MEMORY && page.used == 0));
    assert_true(n < 20);
  }
  close_scene();
}

static void test_wrong_calls_are_refused(void **state) {
  (void)state;
  gm_error err = {0};
  open_scene();
  assert_int_equal(gm_report_open_metrics(NULL, put, &page, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_report_open_metrics(at.bench.ctx, NULL, &page, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "write_text"));
  assert_int_equal(page.used, 0);
  close_scene();
}

/* ---- for other readers ---- */

static void write_file(const char *path, const char *end, const char *bytes, size_t count) {
  char name[4096];
  snprintf(name, sizeof name, "%s%s", path, end);
  FILE *file = fopen(name, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  assert_int_equal(fclose(file), 0);
}

/* PATH has the page, PATH.stats the lines "id name value". */
static int write_for_others(const char *path) {
  open_scene();
  write_page();
  gm_pool *const pools[] = {at.hostile, at.bench.pool};
  for (int i = 0; i < 2; i++) {
    const gm_stats stats = stats_of(pools[i]);
#define X(name, help) want("%" PRIu64 " %s %" PRIu64 "\n", id_of(pools[i]), #name, stats.name);
    GM_STATS_FIELDS(X)
#undef X
  }
  write_file(path, "", page.bytes, page.used);
  write_file(path, ".stats", wanted.bytes, wanted.used);
  close_scene();
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1) return write_for_others(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_page_has_every_figure),
      cmocka_unit_test(test_a_context_without_pools_has_no_samples),
      cmocka_unit_test(test_every_host_allocation_may_fail),
      cmocka_unit_test(test_wrong_calls_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
