/* Discovery and selection over a scripted backend: statuses and reasons, hostile answers, levels, order, margins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/figures/memory_info.h"
#include "gm/config.h"
#include "gm/device.h"
#include "support/counted_services.h"
#include "support/fake_backend.h"

static const uint64_t MiB = 1u << 20;

static gm_context *context_with_fake(const char *backends) {
  gm_context_params params = {.struct_size = sizeof params, .backends = backends, .ignore_environment = true};
  gm_context *ctx = NULL;
  assert_int_equal(gm_context_create(&params, &ctx, NULL), GM_OK);
  assert_int_equal(gm_backend_register(ctx, &fake_ops, NULL), GM_OK);
  return ctx;
}

static gm_backend_info find_backend(gm_context *ctx, gm_probe_level level, const char *name) {
  gm_backend_info infos[16] = {{.struct_size = sizeof *infos}};
  size_t count = 0;
  assert_int_equal(gm_discover_backends(ctx, level, infos, 16, &count, NULL), GM_OK);
  assert_true(count <= 16);
  for (size_t i = 0; i < count; i++) {
    if (strcmp(infos[i].name, name) == 0) return infos[i];
  }
  fail_msg("no backend %s", name);
  return infos[0];
}

static void test_every_backend_is_listed_with_a_reason(void **state) {
  (void)state;
  fake_backend_reset();
  gm_context *ctx = context_with_fake("cpu,null,fake,cuda,hip,metal");
  static const char *const names[] = {"cpu", "cuda", "hip", "opencl", "vulkan", "metal", "null", "fake"};
  for (size_t i = 0; i < 8; i++) {
    gm_backend_info info = find_backend(ctx, GM_PROBE_ACTIVE, names[i]);
    assert_true(info.status == GM_OK ? info.device_count > 0 : info.reason.message[0] != 0);
  }
  assert_non_null(strstr(find_backend(ctx, GM_PROBE_ACTIVE, "opencl").reason.message, "by the program"));
  assert_string_equal(find_backend(ctx, GM_PROBE_ACTIVE, "metal").reason.message, "not built");
  gm_backend_info cuda = find_backend(ctx, GM_PROBE_ACTIVE, "cuda");
  if (cuda.status == GM_ERR_UNAVAILABLE) assert_non_null(strstr(cuda.reason.message, "NVIDIA driver"));
  gm_backend_info own = find_backend(ctx, GM_PROBE_ACTIVE, "fake");
  assert_int_equal(own.status, GM_OK);
  assert_true(own.simulated);
  assert_string_equal(own.library, "libfake.so");
  gm_context_destroy(ctx, NULL);
}

static void test_passive_runs_no_driver(void **state) {
  (void)state;
  fake_backend_reset();
  gm_context *ctx = context_with_fake("cpu,null,fake");
  assert_int_equal(find_backend(ctx, GM_PROBE_PASSIVE, "fake").status, GM_OK);
  assert_int_equal(fake.inits, 0);
  assert_int_equal(find_backend(ctx, GM_PROBE_ACTIVE, "fake").status, GM_OK);
  assert_int_equal(fake.inits, 1);
  assert_int_equal(find_backend(ctx, GM_PROBE_ACTIVE, "fake").status, GM_OK);
  assert_int_equal(fake.inits, 1);
  gm_context_destroy(ctx, NULL);
  assert_int_equal(fake.inits, 0);
}

static void test_what_a_backend_answers_is_its_own_affair(void **state) {
  (void)state;
  fake_backend_reset();
  fake.init_status = GM_ERR_DRIVER;
  gm_context *ctx = context_with_fake("cpu,null,fake");
  gm_backend_info info = find_backend(ctx, GM_PROBE_ACTIVE, "fake");
  assert_int_equal(info.status, GM_ERR_DRIVER);
  assert_int_equal(info.reason.native_code, 77);
  gm_context_destroy(ctx, NULL);

  fake_backend_reset();
  fake.device_count = 0;
  ctx = context_with_fake("cpu,null,fake");
  assert_int_equal(find_backend(ctx, GM_PROBE_ACTIVE, "fake").status, GM_ERR_UNAVAILABLE);
  gm_context_destroy(ctx, NULL);

  fake_backend_reset();
  fake.device_count = UINT32_MAX;
  ctx = context_with_fake("cpu,null,fake");
  assert_int_equal(find_backend(ctx, GM_PROBE_ACTIVE, "fake").status, GM_ERR_DRIVER);
  gm_context_destroy(ctx, NULL);

  fake_backend_reset();
  fake.figures_status = GM_ERR_DRIVER; /* no figure is not no device */
  ctx = context_with_fake("fake");
  gm_device_entry entries[4] = {{.struct_size = sizeof *entries}};
  size_t count = 0;
  assert_int_equal(gm_discover_devices(ctx, entries, 4, &count, NULL), GM_OK);
  assert_int_equal(count, 1);
  assert_int_equal(entries[0].memory.free_state, GM_FIGURE_UNKNOWN);
  gm_selection selection = {.struct_size = sizeof selection};
  gm_error err = {.status = GM_OK};
  assert_int_equal(gm_select_backend_for_bytes(ctx, 1, NULL, &selection, &err), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(err.message, "not known"));
  gm_context_destroy(ctx, NULL);

  fake_backend_reset();
  memset(fake.info.name, 'x', sizeof fake.info.name); /* texts without an end */
  memset(fake.info.pci, 'y', sizeof fake.info.pci);
  memset(fake.info.version, 'z', sizeof fake.info.version);
  ctx = context_with_fake("fake");
  assert_int_equal(gm_discover_devices(ctx, entries, 4, &count, NULL), GM_OK);
  assert_int_equal(strlen(entries[0].info.name), sizeof entries[0].info.name - 1);
  assert_int_equal(strlen(entries[0].info.pci), sizeof entries[0].info.pci - 1);
  gm_context_destroy(ctx, NULL);
}

static void test_arguments_are_named(void **state) {
  (void)state;
  gm_context *ctx = context_with_fake("cpu");
  gm_error err = {.status = GM_OK};
  size_t count = 0;
  gm_selection out = {.struct_size = sizeof out};
  assert_int_equal(gm_discover_backends(ctx, (gm_probe_level)9, NULL, 0, &count, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "level"));
  assert_int_equal(gm_discover_backends(ctx, GM_PROBE_PASSIVE, NULL, 0, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_discover_backends(ctx, GM_PROBE_PASSIVE, NULL, 3, &count, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_discover_devices(ctx, NULL, 3, &count, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_discover_devices(ctx, NULL, 0, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_discover_devices(NULL, NULL, 0, &count, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_select_backend_for_bytes(ctx, 1, NULL, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  gm_select_params params = {.struct_size = sizeof params, .prefer = "cpu,gpu"};
  assert_int_equal(gm_select_backend_for_bytes(ctx, 1, &params, &out, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "\"gpu\""));
  params = (gm_select_params){.struct_size = sizeof params, .memory_fraction = 1.5};
  assert_int_equal(gm_select_backend_for_bytes(ctx, 1, &params, &out, &err), GM_ERR_INVALID_ARGUMENT);
  params = (gm_select_params){.struct_size = 1};
  assert_int_equal(gm_select_backend_for_bytes(ctx, 1, &params, &out, &err), GM_ERR_INVALID_ARGUMENT);
  gm_device *device = NULL;
  assert_int_equal(gm_open_for_bytes(ctx, NULL, 1, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_open(ctx, NULL, &device, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_open_index(ctx, "cpu", 7, &device, &err), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_device_open_index(ctx, "nope", 0, &device, &err), GM_ERR_NOT_FOUND);
  gm_context_destroy(ctx, NULL);
}

/* A program that asked for a backend by name wants to know why it is not there, whatever other backends serve. */
static void test_a_preferred_backend_that_is_missing_tells_why(void **state) {
  (void)state;
  fake_backend_reset();
  fake.init_status = GM_ERR_DRIVER;
  gm_context *ctx = context_with_fake("cpu,null,fake");
  gm_error err = {.status = GM_OK};
  gm_device *device = NULL;
  const gm_backend_info missing = find_backend(ctx, GM_PROBE_ACTIVE, "fake");
  char wanted[600];
  snprintf(wanted, sizeof wanted, "no device can take 1 B: fake: %s; cpu 0: ", missing.reason.message);
  gm_select_params params = {.struct_size = sizeof params, .prefer = "fake"};
  gm_selection out = {.struct_size = sizeof out};
  assert_int_equal(gm_select_backend_for_bytes(ctx, 1, &params, &out, &err), GM_ERR_NOT_FOUND);
  assert_string_equal(out.rejected[0].id.backend, "fake");
  assert_int_equal(out.rejected[0].device, GM_NO_DEVICE);
  assert_string_equal(out.rejected[0].why, missing.reason.message);
  assert_int_equal(out.rejected_count, 3); /* it, cpu, null */
  assert_memory_equal(err.message, wanted, strlen(wanted));
  assert_int_equal(gm_open_for_bytes(ctx, "fake", 1, &device, &err), GM_ERR_NOT_FOUND);
  assert_memory_equal(err.message, wanted, strlen(wanted));

  params.prefer = "fake,cpu"; /* another one serves */
  assert_int_equal(gm_select_backend_for_bytes(ctx, 1, &params, &out, &err), GM_OK);
  assert_string_equal(out.id.backend, "cpu");
  assert_string_equal(out.rejected[0].id.backend, "fake");
  params.prefer = NULL; /* not asked for by name */
  assert_int_equal(gm_select_backend_for_bytes(ctx, 1, &params, &out, &err), GM_OK);
  assert_int_equal(out.rejected_count, 1);
  assert_string_equal(out.rejected[0].id.backend, "null");
  gm_context_destroy(ctx, NULL);
}

static gm_selection select_ok(gm_context *ctx, uint64_t bytes, const gm_select_params *params) {
  gm_selection out = {.struct_size = sizeof out};
  gm_error err = {.status = GM_OK};
  if (gm_select_backend_for_bytes(ctx, bytes, params, &out, &err) != GM_OK) fail_msg("%s", err.message);
  return out;
}

static void test_the_most_free_device_that_fits_is_taken(void **state) {
  (void)state;
  fake_backend_reset();
  fake.device_count = 3;
  for (int i = 0; i < 3; i++) fake.total[i] = 1000 * MiB;
  fake.free_bytes[0] = 300 * MiB, fake.free_bytes[1] = 800 * MiB, fake.free_bytes[2] = 500 * MiB;
  gm_context *ctx = context_with_fake("fake,cpu,null");
  gm_selection taken = select_ok(ctx, 100 * MiB, NULL);
  assert_string_equal(taken.id.backend, "fake");
  assert_int_equal(taken.device, 1);
  assert_int_equal(taken.free_bytes, 800 * MiB);
  assert_int_equal(taken.headroom_bytes, 800 * MiB - 50 * MiB - 100 * MiB); /* 5 % of total stay free */
  assert_int_equal(taken.rejected_count, 4);                                /* two fakes, cpu, null */
  assert_non_null(strstr(taken.rejected[0].why, "comes first"));
  gm_select_params params = {.struct_size = sizeof params, .keep_free_bytes = 790 * MiB, .refuse_cpu = true};
  gm_selection out = {.struct_size = sizeof out};
  gm_error err = {.status = GM_OK};
  assert_int_equal(gm_select_backend_for_bytes(ctx, 100 * MiB, &params, &out, &err), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(err.message, "fake 1"));
  assert_non_null(strstr(err.message, "does not fit"));
  assert_int_equal(out.rejected_count, 5);
  params = (gm_select_params){.struct_size = sizeof params, .memory_fraction = 0.05, .refuse_cpu = true};
  assert_int_equal(gm_select_backend_for_bytes(ctx, 51 * MiB, &params, &out, &err), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_select_backend_for_bytes(ctx, 50 * MiB, &params, &out, &err), GM_OK);
  gm_context_destroy(ctx, NULL);
}

static void test_preference_and_refusal(void **state) {
  (void)state;
  fake_backend_reset();
  gm_context *ctx = context_with_fake("fake,cpu,null");
  gm_select_params params = {.struct_size = sizeof params, .prefer = "cpu,fake"};
  assert_string_equal(select_ok(ctx, 1, &params).id.backend, "cpu");
  params.prefer = "auto";
  assert_string_equal(select_ok(ctx, 1, &params).id.backend, "fake");
  params.prefer = "null";
  gm_selection out = {.struct_size = sizeof out};
  assert_int_equal(gm_select_backend_for_bytes(ctx, 1, &params, &out, NULL), GM_ERR_NOT_FOUND);
  params = (gm_select_params){.struct_size = sizeof params, .prefer = "cpu", .refuse_cpu = true};
  assert_int_equal(gm_select_backend_for_bytes(ctx, 1, &params, &out, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_config_set(ctx, "gpu.backend.enabled", "false", NULL), GM_OK);
  assert_string_equal(select_ok(ctx, 1, NULL).id.backend, "cpu");
  assert_int_equal(gm_config_set(ctx, "gpu.backend.enabled", "true", NULL), GM_OK);
  assert_int_equal(gm_config_set(ctx, "gpu.backend.device", "cpu", NULL), GM_OK);
  gm_selection best = {.struct_size = sizeof best};
  assert_int_equal(gm_best_backend(ctx, &best, NULL), GM_OK);
  assert_string_equal(best.id.backend, "cpu");
  assert_int_equal(gm_config_set(ctx, "gpu.backend.device", "fake:01000000-0000-0000-0000-000000000000", NULL), GM_OK);
  assert_string_equal(select_ok(ctx, 1, NULL).id.backend, "fake");
  gm_error err = {.status = GM_OK};
  assert_int_equal(gm_config_set(ctx, "gpu.backend.device", "fake:02000000000000000000000000000000", NULL), GM_OK);
  assert_int_equal(gm_best_backend(ctx, &best, &err), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(err.message, "names another device"));
  assert_int_equal(gm_config_set(ctx, "gpu.backend.enabled", "false", NULL), GM_OK); /* whatever device is named */
  assert_string_equal(select_ok(ctx, 1, NULL).id.backend, "cpu");
  assert_int_equal(gm_config_set(ctx, "gpu.backend.enabled", "true", NULL), GM_OK);
  assert_int_equal(gm_config_set(ctx, "gpu.backend.device", "fake:12", NULL), GM_OK);
  assert_int_equal(gm_best_backend(ctx, &best, &err), GM_ERR_INVALID_ARGUMENT);
  gm_context_destroy(ctx, NULL);
}

static void test_a_full_device_is_not_recommended(void **state) {
  (void)state;
  fake_backend_reset();
  fake.free_bytes[0] = 0;
  gm_context *ctx = context_with_fake("fake,cpu");
  gm_selection best = {.struct_size = sizeof best};
  assert_int_equal(gm_best_backend(ctx, &best, NULL), GM_OK);
  assert_string_equal(best.id.backend, "cpu");
  assert_string_equal(best.rejected[0].id.backend, "fake");
  assert_non_null(strstr(best.rejected[0].why, "0 B may be taken"));
  gm_context_destroy(ctx, NULL);
}

static void test_software_devices_rank_below_the_cpu(void **state) {
  (void)state;
  fake_backend_reset();
  fake.info.type = GM_DEVICE_TYPE_CPU;
  fake.total[0] = fake.free_bytes[0] = UINT64_C(1) << 50;
  gm_context *ctx = context_with_fake("fake,cpu");
  assert_string_equal(select_ok(ctx, 1, NULL).id.backend, "cpu");
  gm_device_entry entries[4] = {{.struct_size = sizeof *entries}};
  size_t count = 0;
  assert_int_equal(gm_discover_devices(ctx, entries, 4, &count, NULL), GM_OK);
  assert_int_equal(count, 2);
  assert_true(entries[0].host_pool && entries[1].host_pool);
  assert_int_equal(entries[0].physical, entries[1].physical);
  gm_context_destroy(ctx, NULL);
}

/* An OpenCL card without a free query beside another API's entry for the same card. */
static gm_status opencl_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  (void)driver, (void)index, (void)device, (void)err;
  out->rules = GM_RAW_OPENCL;
  out->device_total = (gm_raw_reply){GM_RAW_OK, 0, fake.total[0], GM_UNKNOWN_BYTES};
  return GM_OK;
}

static void check_peer(const char *pci, gm_figure_source source, uint64_t free_bytes) {
  gm_context_params params = {.struct_size = sizeof params, .backends = "fake,clcard", .ignore_environment = true};
  gm_context *ctx = NULL;
  gm_backend_ops card = fake_ops;
  card.name = "clcard";
  card.figures = opencl_figures;
  fake_backend_reset();
  snprintf(fake.info.pci, sizeof fake.info.pci, "%s", pci);
  fake.info.uuid_derived = true;
  assert_int_equal(gm_context_create(&params, &ctx, NULL), GM_OK);
  assert_int_equal(gm_backend_register(ctx, &fake_ops, NULL), GM_OK);
  assert_int_equal(gm_backend_register(ctx, &card, NULL), GM_OK);
  gm_device_entry entries[4] = {{.struct_size = sizeof *entries}};
  size_t count = 0;
  assert_int_equal(gm_discover_devices(ctx, entries, 4, &count, NULL), GM_OK);
  assert_int_equal(count, 2);
  assert_string_equal(entries[1].id.backend, "clcard");
  assert_int_equal(entries[1].memory.free_source, source);
  assert_int_equal(entries[1].memory.free_bytes, free_bytes);
  gm_device *device = NULL;
  gm_memory_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_device_open_index(ctx, "clcard", 0, &device, NULL), GM_OK);
  assert_int_equal(gm_device_memory_info(device, &info, NULL), GM_OK);
  assert_int_equal(info.free_source, source);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  gm_context_destroy(ctx, NULL);
}

static void test_a_figure_of_another_api_for_the_same_card(void **state) {
  (void)state;
  check_peer("0000:65:00.0", GM_SOURCE_PEER_API, 900 * MiB);
  check_peer("", GM_SOURCE_OWN_ACCOUNTING, 1000 * MiB); /* nothing says that they are one card */
}

static void test_headroom_arithmetic(void **state) {
  (void)state;
  gm_memory_info m = {.total_bytes = 1000, .free_bytes = 600, .used_by_us_bytes = 300, .reclaimable_bytes = 100};
  assert_int_equal(gm__headroom(&m, 0.9, 50), 650); /* effective free 700 - 50 against 900 - 200 */
  assert_int_equal(gm__headroom(&m, 0.5, 50), 300); /* 500 - (300 - 100) */
  assert_int_equal(gm__headroom(&m, 0.9, 5000), 0);
  m.free_bytes = GM_UNKNOWN_BYTES;
  assert_int_equal(gm__headroom(&m, 0.9, 0), 0);
  m.total_bytes = GM_UNKNOWN_BYTES;
  assert_int_equal(gm__headroom(&m, 0.9, 0), 0);
}

static void test_the_operators_library_goes_first(void **state) {
  (void)state;
  gm_context_params params = {
      .struct_size = sizeof params, .backends = "vulkan", .libraries = "vulkan=libgm-program.so"};
  setenv("GM_VULKAN_LIBRARY", "libgm-operator.so", 1);
  for (int ignore = 0; ignore < 2; ignore++) {
    params.ignore_environment = ignore;
    gm_context *ctx = NULL;
    assert_int_equal(gm_context_create(&params, &ctx, NULL), GM_OK);
    gm_backend_info info = find_backend(ctx, GM_PROBE_ACTIVE, "vulkan");
    if (info.status == GM_ERR_UNAVAILABLE) { /* the backend is in this build */
      assert_non_null(strstr(info.reason.message, ignore ? "libgm-program.so" : "libgm-operator.so"));
    }
    gm_context_destroy(ctx, NULL);
  }
  unsetenv("GM_VULKAN_LIBRARY");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_backend_is_listed_with_a_reason),
      cmocka_unit_test(test_passive_runs_no_driver),
      cmocka_unit_test(test_what_a_backend_answers_is_its_own_affair),
      cmocka_unit_test(test_arguments_are_named),
      cmocka_unit_test(test_a_preferred_backend_that_is_missing_tells_why),
      cmocka_unit_test(test_the_most_free_device_that_fits_is_taken),
      cmocka_unit_test(test_preference_and_refusal),
      cmocka_unit_test(test_a_full_device_is_not_recommended),
      cmocka_unit_test(test_software_devices_rank_below_the_cpu),
      cmocka_unit_test(test_the_operators_library_goes_first),
      cmocka_unit_test(test_a_figure_of_another_api_for_the_same_card),
      cmocka_unit_test(test_headroom_arithmetic),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
