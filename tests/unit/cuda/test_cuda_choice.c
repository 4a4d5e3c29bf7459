/* Which card is chosen where nothing tells what is free on it before it is opened: CUDA without NVML. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "gm/report.h"
#include "support/cuda_fixture.h"
#include "support/pool_bench.h"

static const uint64_t MiB = 1u << 20, GiB = UINT64_C(1) << 30;

/* NVML under a name that nothing has: a container with compute only, an older Jetson. */
static const char *const without_nvml = "cuda:nvml=/nonexistent/libnvidia-ml.so.1";

static gm_context *choice_begin(const char *devices, const char *total, const char *others, const char *options) {
  char libraries[512];
  gm_context *ctx = NULL;
  setenv("SIMCUDA_DEVICES", devices, 1);
  setenv("SIMCUDA_TOTAL", total, 1);
  setenv("SIMCUDA_OTHERS", others, 1);
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  snprintf(libraries, sizeof libraries, "cuda=%s", getenv("GM_CUDA_LIBRARY"));
  const gm_context_params params = {.struct_size = sizeof params,
                                    .backends = "cpu,cuda",
                                    .libraries = libraries,
                                    .backend_options = options,
                                    .ignore_environment = true};
  pool_bench_ok(gm_context_create(&params, &ctx, err));
  return ctx;
}

static gm_selection choice_best(gm_context *ctx) {
  gm_selection best = {.struct_size = sizeof best};
  pool_bench_ok(gm_best_backend(ctx, &best, err));
  return best;
}

static char page[4096];

static void choice_put(void *user, const char *text, size_t bytes) {
  (void)user;
  const size_t used = strlen(page);
  if (used + bytes < sizeof page) memcpy(page + used, text, bytes), page[used + bytes] = 0;
}

static const char *choice_summary(gm_context *ctx) {
  page[0] = 0;
  pool_bench_ok(gm_summary(ctx, GM_PROBE_ACTIVE, choice_put, NULL, err));
  return page;
}

static void test_a_card_without_figures_is_not_passed_over_for_the_cpu(void **state) {
  (void)state;
  gm_context *ctx = choice_begin("1", "24g", "0", without_nvml);
  gm_selection best = choice_best(ctx);
  assert_string_equal(best.id.backend, "cuda");
  assert_int_equal(best.free_state, GM_FIGURE_ESTIMATED);
  assert_int_equal(best.free_source, GM_SOURCE_OWN_ACCOUNTING);
  assert_int_equal(best.free_bytes, 24 * GiB - 512 * MiB); /* less what opening may cost */
  assert_int_equal(cuda_count("contexts"), 0);             /* choosing opens nothing */
  assert_non_null(strstr(choice_summary(ctx), "~23.5 GiB free (estimated, own_accounting)"));
  assert_non_null(strstr(page, "Recommended: CUDA [0]"));
  assert_non_null(strstr(page, "up to ~"));
  gm_device_entry entries[4] = {{.struct_size = sizeof *entries}};
  size_t count = 0;
  pool_bench_ok(gm_discover_devices(ctx, entries, 4, &count, err));
  assert_string_equal(entries[1].id.backend, "cuda");
  assert_int_equal(entries[1].memory.free_state, GM_FIGURE_ESTIMATED);
  assert_int_equal(entries[1].memory.used_by_others_bytes, GM_UNKNOWN_BYTES); /* nobody has told */
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_the_chosen_card_is_opened_and_asked(void **state) {
  (void)state;
  gm_device *device = NULL;
  gm_context *ctx = choice_begin("1", "24g", "4g", without_nvml);
  pool_bench_ok(gm_open_for_bytes(ctx, "cuda", 64 * MiB, &device, err));
  assert_string_equal(gm_device_get_info(device)->backend, "cuda");
  gm_selection best = choice_best(ctx); /* the open card is asked itself */
  assert_string_equal(best.id.backend, "cuda");
  assert_int_equal(best.free_state, GM_FIGURE_KNOWN);
  assert_int_equal(best.free_source, GM_SOURCE_DRIVER);
  assert_in_range(best.free_bytes, 20 * GiB - 64 * MiB, 20 * GiB);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  best = choice_best(ctx); /* known, and not known again */
  assert_string_equal(best.id.backend, "cuda");
  assert_int_equal(best.free_state, GM_FIGURE_ESTIMATED);
  pool_bench_ok(gm_device_open_index(ctx, "cuda", 0, &device, err));
  assert_int_equal(choice_best(ctx).free_state, GM_FIGURE_KNOWN);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* Others fill the first card: the estimate cannot know it, the open card tells. */
static void test_a_card_that_is_too_full_is_closed_and_the_next_is_taken(void **state) {
  (void)state;
  gm_device *device = NULL;
  gm_error why = {.status = GM_OK};
  gm_context *ctx = choice_begin("2", "24g,16g", "24000m,1g", without_nvml);
  assert_int_equal(choice_best(ctx).device, 0);
  cuda_say("zero");
  pool_bench_ok(gm_open_for_bytes(ctx, "cuda", 4 * GiB, &device, err));
  assert_int_equal(gm_device_get_info(device)->index, 1);
  assert_int_equal(cuda_calls("cuDevicePrimaryCtxRetain"), 2);
  assert_int_equal(cuda_count("contexts"), 1); /* the first one is closed again */
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  device = NULL;
  assert_int_equal(gm_open_for_bytes(ctx, "cuda", 15 * GiB, &device, &why), GM_ERR_NOT_FOUND);
  assert_null(device);
  assert_int_equal(cuda_count("contexts"), 0);
  assert_non_null(strstr(why.message, "cuda 0: opened: 15 GiB does not fit"));
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_a_source_is_believed_as_before(void **state) {
  (void)state;
  char options[512];
  const char *nvml = getenv("GM_CUDA_OPTIONS");
  assert_non_null(nvml); /* nvml=PATH, set by the build */
  snprintf(options, sizeof options, "cuda:%s", nvml);
  gm_context *ctx = choice_begin("1", "24g", "0", options);
  gm_selection best = choice_best(ctx);
  assert_int_equal(best.free_source, GM_SOURCE_NVML);
  assert_int_equal(best.free_bytes, 24 * GiB);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* A card that cannot be opened any more is none. Another one is taken, and the reasons say why. */
static void test_a_card_that_vanishes(void **state) {
  (void)state;
  gm_device *device = NULL;
  gm_error why = {.status = GM_OK};
  gm_context *ctx = choice_begin("2", "24g,16g", "0", without_nvml);
  assert_int_equal(choice_best(ctx).device, 0);
  cuda_say("fail cuDevicePrimaryCtxRetain:1:101");
  pool_bench_ok(gm_open_for_bytes(ctx, NULL, GiB, &device, err));
  assert_int_equal(gm_device_get_info(device)->index, 1);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  device = NULL;
  cuda_say("fail cuDevicePrimaryCtxRetain:*:101");
  assert_int_equal(gm_open_for_bytes(ctx, "cuda", GiB, &device, &why), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(why.message, "cuda 0: cannot be opened: cuDevicePrimaryCtxRetain"));
  assert_non_null(strstr(why.message, "cuda 1: cannot be opened: cuDevicePrimaryCtxRetain"));
  assert_null(device);
  cuda_say("fail");
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* The query for free memory fails on an open card that works: the card is taken all the same, and stays the best. */
static void test_an_open_card_whose_query_fails(void **state) {
  (void)state;
  gm_device *device = NULL;
  gm_context *ctx = choice_begin("1", "24g", "0", without_nvml);
  cuda_say("set MEMINFO fail");
  pool_bench_ok(gm_open_for_bytes(ctx, "cuda", GiB, &device, err));
  gm_selection best = choice_best(ctx);
  assert_string_equal(best.id.backend, "cuda");
  assert_int_equal(best.free_state, GM_FIGURE_ESTIMATED);
  cuda_say("set MEMINFO true");
  assert_int_equal(choice_best(ctx).free_state, GM_FIGURE_KNOWN);
  cuda_say("lose"); /* a lost card is no candidate */
  assert_string_equal(choice_best(ctx).id.backend, "cpu");
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_passive_opens_nothing(void **state) {
  (void)state;
  size_t count = 0;
  gm_context *ctx = choice_begin("1", "24g", "0", without_nvml);
  cuda_say("zero");
  pool_bench_ok(gm_discover_backends(ctx, GM_PROBE_PASSIVE, NULL, 0, &count, err));
  assert_int_equal(cuda_count("calls"), 0);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_passive_opens_nothing),
      cmocka_unit_test(test_a_card_without_figures_is_not_passed_over_for_the_cpu),
      cmocka_unit_test(test_the_chosen_card_is_opened_and_asked),
      cmocka_unit_test(test_a_card_that_is_too_full_is_closed_and_the_next_is_taken),
      cmocka_unit_test(test_a_source_is_believed_as_before),
      cmocka_unit_test(test_a_card_that_vanishes),
      cmocka_unit_test(test_an_open_card_whose_query_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
