/* The summary, line by line, over a machine of made-up devices. */
#include "gm/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gm/backend.h"
#include "gm/config.h"
#include "gm/reserve.h"
#include "support/counted_services.h"
#include "support/temp_folder.h"

extern const gm_backend_ops gm__null_backend;

static temp_folder host;
static char page[8192];
static size_t page_used;

static void put(void *user, const char *text, size_t bytes) {
  (void)user;
  assert_true(bytes > 0 && page_used + bytes < sizeof page);
  memcpy(page + page_used, text, bytes);
  page_used += bytes;
  page[page_used] = '\0';
}

static void check_has(const char *line) {
  if (!strstr(page, line)) fail_msg("no \"%s\" in:\n%s", line, page);
}

/* ---- a backend with scripted cards, over the null backend ---- */

static gm_status cards_count(void *driver, uint32_t *out, gm_error *err) {
  (void)driver, (void)err;
  *out = 4;
  return GM_OK;
}

static gm_status cards_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  (void)driver, (void)device, (void)err;
  static const char *const names[] = {"First", "Second\nline", "", "Twin"};
  *out = (gm_device_info){.struct_size = sizeof *out, .index = index, .api = GM_API_OTHER, .alignment = 256};
  out->type = GM_DEVICE_TYPE_DISCRETE;
  out->numa_node = -1;
  out->map_atom_bytes = 1;
  snprintf(out->name, sizeof out->name, "%s", names[index]);
  snprintf(out->driver, sizeof out->driver, "drv");
  if (index == 0 || index == 3) snprintf(out->version, sizeof out->version, "7.%u", index);
  if (index == 0 || index == 3) snprintf(out->pci, sizeof out->pci, "0000:65:00.0");
  if (index == 1) snprintf(out->pci, sizeof out->pci, "0000:66:00.0");
  if (index == 2) snprintf(out->pci, sizeof out->pci, "0000:67:00.0");
  out->uuid[0] = (uint8_t)(index == 3 ? 1 : index + 1);
  out->total_bytes = UINT64_C(8) << 30;
  return GM_OK;
}

static gm_status cards_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  (void)driver, (void)device, (void)err;
  *out = (gm_raw_figures){.struct_size = sizeof *out, .rules = GM_RAW_DRIVER, .place = GM_RAW_OWN_MEMORY};
  out->driver = (gm_raw_reply){.state = GM_RAW_OK, .total_bytes = UINT64_C(8) << 30, .free_bytes = UINT64_C(3) << 29};
  if (index == 1) out->driver.free_bytes = UINT64_C(9) << 30; /* more than there is: repaired, so estimated */
  if (index == 2) out->driver = (gm_raw_reply){.state = GM_RAW_ERROR, .code = 1};
  return GM_OK;
}

static gm_context *make_context(const char *backends, const gm_services *services) {
  gm_context_params params = {.struct_size = sizeof params,
                              .services = services,
                              .backends = backends,
                              .backend_options = "null:capacity=8G,devices=2",
                              .host_root = host.path,
                              .ignore_environment = true};
  gm_context *ctx = NULL;
  gm_error err = {0};
  if (gm_context_create(&params, &ctx, &err) != GM_OK) fail_msg("%s", err.message);
  return ctx;
}

static void add_cards(gm_context *ctx) {
  gm_backend_ops ops = gm__null_backend;
  gm_error err = {0};
  ops.name = "cards";
  ops.api = GM_API_OTHER;
  ops.device_count = cards_count;
  ops.device_info = cards_info;
  ops.figures = cards_figures;
  if (gm_backend_register(ctx, &ops, &err) != GM_OK) fail_msg("%s", err.message);
}

static void make_host(const char *limit) {
  static const char meminfo[] = "MemTotal: 16777216 kB\nMemFree: 8388608 kB\nMemAvailable: 8388608 kB\n";
  temp_folder_dir(&host, "proc/self");
  temp_folder_dir(&host, "sys/fs/cgroup/box");
  temp_folder_write(&host, "proc/meminfo", meminfo, sizeof meminfo - 1);
  temp_folder_write(&host, "proc/self/cgroup", "0::/box\n", 8);
  temp_folder_write(&host, "proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", 52);
  temp_folder_write(&host, "sys/fs/cgroup/cgroup.controllers", "memory\n", 7);
  temp_folder_write(&host, "sys/fs/cgroup/box/memory.max", limit, strlen(limit));
  temp_folder_write(&host, "sys/fs/cgroup/box/memory.current", "1073741824\n", 11);
  temp_folder_write(&host, "sys/fs/cgroup/box/memory.stat", "anon 1073741824\ninactive_file 0\nactive_file 0\n", 46);
}

static int setup(void **state) {
  (void)state;
  page_used = 0;
  temp_folder_make(&host);
  make_host("4294967296\n");
  return 0;
}

static int teardown(void **state) {
  (void)state;
  temp_folder_remove(&host);
  return 0;
}

/* ---- what is written ---- */

static void test_every_kind_of_device_has_its_line(void **state) {
  (void)state;
  gm_context *ctx = make_context("cpu,null,cards", NULL);
  gm_error err = {0};
  add_cards(ctx);
  if (gm_summary(ctx, GM_PROBE_ACTIVE, put, NULL, &err) != GM_OK) fail_msg("%s", err.message);
  assert_memory_equal(page, "=== gm backends ===\n", 20);
  check_has("\u2713 CPU      [0] ");
  check_has(": 4 GiB, 3 GiB free (cgroup)\n");
  check_has("\u2717 CUDA     switched off by the program\n");
  check_has("\u2717 Metal    ");
  check_has(
      "\u2713 null     [0] simulated device without memory: 8 GiB, 8 GiB free, simulated\n"
      "           [1] simulated device without memory: 8 GiB, 8 GiB free, simulated\n");
  check_has("\u2713 cards    [0] First (drv 7.0): 8 GiB, 1.5 GiB free\n");
  check_has("           [1] Second?line (drv): 8 GiB, ~8 GiB free (estimated, driver)\n");
  check_has("           [2] unnamed (drv): ");
  check_has(", free not known\n");
  check_has("           [3] Twin (drv 7.3): 8 GiB, 1.5 GiB free, same card as cards 0\n");
  check_has("\nRecommended: cards [1] Second?line, up to ");
  assert_int_equal(page[page_used - 1], '\n');
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_reserved_bytes_are_told(void **state) {
  (void)state;
  gm_context *ctx = make_context("cards", NULL);
  gm_device *device = NULL;
  gm_reservation *held = NULL;
  gm_error err = {0};
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = UINT64_C(512) << 20};
  add_cards(ctx);
  if (gm_config_set(ctx, "reserve.share", "off", &err)) fail_msg("%s", err.message);
  if (gm_device_open_index(ctx, "cards", 0, &device, &err)) fail_msg("%s", err.message);
  if (gm_reserve(device, &params, &held, &err)) fail_msg("%s", err.message);
  if (gm_summary(ctx, GM_PROBE_ACTIVE, put, NULL, &err) != GM_OK) fail_msg("%s", err.message);
  check_has("[0] First (drv 7.0): 8 GiB, 1.5 GiB free, 512 MiB of it reserved\n");
  gm_reservation_cancel(held);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_a_host_without_a_limit_names_none(void **state) {
  (void)state;
  make_host("max\n");
  gm_context *ctx = make_context("cpu", NULL);
  assert_int_equal(gm_summary(ctx, GM_PROBE_ACTIVE, put, NULL, NULL), GM_OK);
  check_has(": 16 GiB, 8 GiB free\n");
  check_has("\nRecommended: CPU [0] ");
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_nothing_is_recommended_where_nothing_is(void **state) {
  (void)state;
  gm_context *ctx = make_context("null", NULL);
  assert_int_equal(gm_summary(ctx, GM_PROBE_ACTIVE, put, NULL, NULL), GM_OK);
  check_has("\u2717 CPU      switched off by the program\n");
  check_has("\nRecommended: nothing: no device can take 0 B: ");
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_a_machine_without_a_device_has_its_lines(void **state) {
  (void)state;
  gm_context *ctx = make_context("metal", NULL);
  assert_int_equal(gm_summary(ctx, GM_PROBE_ACTIVE, put, NULL, NULL), GM_OK);
  check_has("\u2717 CPU      switched off by the program\n");
  check_has("\nRecommended: nothing: ");
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_a_passive_summary_asks_no_device(void **state) {
  (void)state;
  gm_context *ctx = make_context("null", NULL);
  assert_int_equal(gm_summary(ctx, GM_PROBE_PASSIVE, put, NULL, NULL), GM_OK);
  check_has("\u2713 null     devices not asked for\n");
  check_has("\nRecommended: not judged, devices were not asked for\n");
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* ---- the short one ---- */

static void check_has_not(const char *text) {
  if (strstr(page, text)) fail_msg("\"%s\" in:\n%s", text, page);
}

static void test_the_short_one_leaves_out_what_nobody_asks_about(void **state) {
  (void)state;
  /* Valgrind's twin (TESTS_NO_DRIVER) loads no driver: drivers leak. */
  gm_context *ctx = make_context(getenv("TESTS_NO_DRIVER") ? "cpu,cards" : "", NULL);
  add_cards(ctx);
  assert_int_equal(gm_summary_brief(ctx, GM_PROBE_ACTIVE, put, NULL, NULL), GM_OK);
  assert_memory_equal(page, "=== gm backends ===\n\u2713 CPU      [0] ", 36);
  check_has("\u2713 cards    [0] First (drv 7.0): 8 GiB, 1.5 GiB free\n");
  check_has("\nRecommended: cards [1] ");
  check_has_not("null");
  check_has_not("Metal");
  check_has_not("not found");  /* a library */
  check_has_not("GPU driver"); /* the cards have one */
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_the_short_one_shows_what_was_chosen_by_name(void **state) {
  (void)state;
  gm_context *ctx = make_context("null,cpu", NULL);
  assert_int_equal(gm_summary_brief(ctx, GM_PROBE_ACTIVE, put, NULL, NULL), GM_OK);
  check_has("\u2713 CPU      [0] ");
  check_has("\u2713 null     [0] ");
  check_has_not("switched off");
  check_has_not("\u2717");
  page_used = 0;
  assert_int_equal(gm_summary_brief(ctx, GM_PROBE_ACTIVE, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_summary_brief(NULL, GM_PROBE_ACTIVE, put, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(page_used, 0);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* A library that was named is asked for: it keeps its line and its reason. */
static void test_the_short_one_tells_of_a_library_that_was_named(void **state) {
  (void)state;
  gm_context_params params = {.struct_size = sizeof params,
                              .libraries = "cuda=/nonexistent/libcuda.so.1",
                              .host_root = host.path,
                              .ignore_environment = true};
  gm_context *ctx = NULL;
  assert_int_equal(gm_context_create(&params, &ctx, NULL), GM_OK);
  assert_int_equal(gm_summary_brief(ctx, GM_PROBE_PASSIVE, put, NULL, NULL), GM_OK);
  check_has("\u2717 CUDA     /nonexistent/libcuda.so.1 ");
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* ---- onto a stream, and failures ---- */

static void test_a_stream_gets_the_same_text(void **state) {
  (void)state;
  char copy[8192];
  gm_context *ctx = make_context("null", NULL);
  assert_int_equal(gm_summary(ctx, GM_PROBE_ACTIVE, put, NULL, NULL), GM_OK);
  FILE *file = tmpfile();
  assert_non_null(file);
  assert_int_equal(gm_print_summary(ctx, GM_PROBE_ACTIVE, file, NULL), GM_OK);
  rewind(file);
  size_t got = fread(copy, 1, sizeof copy, file);
  assert_int_equal(got, page_used);
  assert_memory_equal(copy, page, got);
  fclose(file);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_what_cannot_be_written_is_an_error(void **state) {
  (void)state;
  gm_context *ctx = make_context("null", NULL);
  gm_error err = {0};
  FILE *full = fopen("/dev/full", "w");
  if (!full) skip();
  setvbuf(full, NULL, _IONBF, 0);
  assert_int_equal(gm_print_summary(ctx, GM_PROBE_ACTIVE, full, &err), GM_ERR_IO);
  fclose(full);
  assert_int_equal(gm_print_summary(ctx, GM_PROBE_ACTIVE, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_print_summary(NULL, GM_PROBE_ACTIVE, stdout, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_summary(ctx, GM_PROBE_ACTIVE, NULL, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_summary(ctx, (gm_probe_level)9, put, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(page_used, 0);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_every_host_allocation_may_fail(void **state) {
  (void)state;
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  for (size_t n = 1; status == GM_ERR_OUT_OF_HOST_MEMORY; n++) {
    counted_services counted;
    counted_services_init(&counted);
    gm_context *ctx = make_context("null", &counted.services);
    counted.fail_at = atomic_load(&counted.calls) + n;
    counted.fail_count = 1;
    page_used = 0;
    status = gm_summary(ctx, GM_PROBE_ACTIVE, put, NULL, NULL);
    assert_true(status == GM_OK || page_used == 0);
    assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
    counted_services_check(&counted);
    assert_true(n < 200);
  }
  assert_int_equal(status, GM_OK);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_every_kind_of_device_has_its_line),
      TEST(test_reserved_bytes_are_told),
      TEST(test_a_host_without_a_limit_names_none),
      TEST(test_nothing_is_recommended_where_nothing_is),
      TEST(test_a_machine_without_a_device_has_its_lines),
      TEST(test_a_passive_summary_asks_no_device),
      TEST(test_the_short_one_leaves_out_what_nobody_asks_about),
      TEST(test_the_short_one_shows_what_was_chosen_by_name),
      TEST(test_the_short_one_tells_of_a_library_that_was_named),
      TEST(test_a_stream_gets_the_same_text),
      TEST(test_what_cannot_be_written_is_an_error),
      TEST(test_every_host_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
