/* The CUDA backend's driver and devices: what probing touches, what is told, old and hostile drivers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "support/cuda_fixture.h"
#include "support/figure_scene.h"

static void test_a_passive_probe_runs_no_vendor_code(void **state) {
  (void)state;
  cuda_fixture f;
  gm_driver_info info = {.struct_size = sizeof info};
  cuda_begin(&f);
  cuda_say("zero");
  assert_int_equal(f.ops->probe(&f.host, GM_PROBE_PASSIVE, &info, &f.err), GM_OK);
  assert_string_equal(info.library, f.host.library);
  assert_int_equal(cuda_count("calls"), 0);
  f.host.library = "libcuda_that_is_not_there.so.1";
  assert_int_equal(f.ops->probe(&f.host, GM_PROBE_PASSIVE, &info, &f.err), GM_ERR_UNAVAILABLE);
  assert_non_null(strstr(f.err.message, "libcuda_that_is_not_there.so.1"));
  assert_non_null(strstr(f.err.message, "NVIDIA driver"));
}

static void test_an_active_probe_leaves_no_context(void **state) {
  (void)state;
  cuda_fixture f;
  gm_driver_info info = {.struct_size = sizeof info};
  cuda_begin(&f);
  cuda_say("set DEVICES 3");
  cuda_say("zero");
  assert_int_equal(f.ops->probe(&f.host, GM_PROBE_ACTIVE, &info, &f.err), GM_OK);
  assert_int_equal(info.device_count, 3);
  assert_true(info.simulated);
  assert_non_null(strstr(info.version, "CUDA 13.0"));
  cuda_init(&f);
  gm_raw_figures figures = {.struct_size = sizeof figures};
  assert_int_equal(f.ops->figures(f.driver, 2, NULL, &figures, &f.err), GM_OK);
  assert_int_equal(cuda_count("contexts"), 0);
  assert_int_equal(cuda_calls("cuDevicePrimaryCtxRetain"), 0);
  assert_int_equal(cuda_calls("cuMemGetInfo_v2"), 0);
  cuda_end(&f);
}

static void test_what_a_device_tells(void **state) {
  (void)state;
  cuda_fixture f;
  gm_device_info info = {.struct_size = sizeof info};
  cuda_begin(&f);
  cuda_say("set DEVICES 2");
  cuda_say("set TOTAL 3g");
  cuda_init(&f);
  assert_int_equal(f.ops->device_info(f.driver, 1, NULL, &info, &f.err), GM_OK);
  assert_string_equal(info.backend, "cuda");
  assert_non_null(strstr(info.name, "Simulated"));
  assert_string_equal(info.vendor, "nvidia");
  assert_string_equal(info.driver, "simulated");
  assert_true(info.simulated);
  assert_memory_equal(info.capability, "sm_", 3);
  assert_int_equal(strlen(info.pci), strlen("0000:65:00.0"));
  assert_false(info.uuid_derived);
  assert_int_equal(info.type, GM_DEVICE_TYPE_DISCRETE);
  assert_string_equal(info.partition, "");
  assert_int_equal(info.total_bytes, UINT64_C(3) << 30);
  assert_int_equal(info.alignment, 256);
  const uint64_t has = GM_CAP_VMM | GM_CAP_MANAGED | GM_CAP_REGISTRATION | GM_CAP_ADDRESS | GM_CAP_ADOPT;
  assert_int_equal(info.capabilities & has, has);
  cuda_end(&f);
}

static void test_integrated_and_partitioned(void **state) {
  (void)state;
  cuda_fixture f;
  gm_device_info info = {.struct_size = sizeof info};
  gm_raw_figures figures = {.struct_size = sizeof figures};
  cuda_begin(&f);
  cuda_say("set INTEGRATED 1");
  cuda_say("set MIG 1");
  cuda_init(&f);
  assert_int_equal(f.ops->device_info(f.driver, 0, NULL, &info, &f.err), GM_OK);
  assert_true(info.unified);
  assert_int_equal(info.type, GM_DEVICE_TYPE_INTEGRATED);
  assert_memory_equal(info.partition, "MIG-", 4);
  assert_int_equal(f.ops->figures(f.driver, 0, NULL, &figures, &f.err), GM_OK);
  assert_int_equal(figures.place, GM_RAW_INTEGRATED);
  assert_true(figures.flags & GM_RAW_PARTITION);
  assert_int_equal(figures.nvml.handle, GM_RAW_NVML_SLICE);
  assert_int_equal(f.ops->device_open(f.driver, 0, &f.device, &f.err), GM_OK);
  gm_memory_type type = {.struct_size = sizeof type};
  for (uint32_t i = 0; i < 3; i++) {
    assert_int_equal(f.ops->memory_type(f.device, i, &type, &f.err), GM_OK);
    assert_int_equal(type.heap, 0); /* all of it is the host's */
  }
  cuda_end(&f);
}

static void test_figures_before_and_after_opening(void **state) {
  (void)state;
  cuda_fixture f;
  const char *options = getenv("GM_CUDA_OPTIONS"); /* nvml=…: the simulated NVML */
  gm_raw_figures figures = {.struct_size = sizeof figures};
  cuda_begin(&f);
  cuda_say("set TOTAL 2g");
  cuda_say("set OTHERS 256m");
  setenv("SIMCUDA_TOTAL", "2g", 1);
  setenv("SIMCUDA_OTHERS", "256m", 1);
  if (options) f.host.options = options;
  cuda_init(&f);
  assert_int_equal(f.ops->figures(f.driver, 0, NULL, &figures, &f.err), GM_OK);
  assert_int_equal(figures.rules, GM_RAW_CUDA);
  assert_int_equal(figures.driver.state, GM_RAW_ABSENT);
  assert_int_equal(figures.device_total.total_bytes, UINT64_C(2) << 30);
  if (options) {
    assert_int_equal(figures.nvml.memory.state, GM_RAW_OK);
    assert_int_equal(figures.nvml.handle, GM_RAW_NVML_DEVICE);
    assert_int_equal(figures.nvml.memory.total_bytes, UINT64_C(2) << 30);
    assert_true(figures.nvml.memory.free_bytes <= (UINT64_C(2) << 30) - (UINT64_C(256) << 20));
  }
  assert_int_equal(f.ops->device_open(f.driver, 0, &f.device, &f.err), GM_OK);
  assert_int_equal(f.ops->figures(f.driver, 0, f.device, &figures, &f.err), GM_OK);
  assert_int_equal(figures.driver.state, GM_RAW_OK);
  assert_int_equal(figures.driver.total_bytes, UINT64_C(2) << 30);
  cuda_say("set MEMINFO oom"); /* a full device cannot answer: no figure, no failure */
  assert_int_equal(f.ops->figures(f.driver, 0, f.device, &figures, &f.err), GM_OK);
  assert_int_equal(figures.driver.state, GM_RAW_ERROR);
  assert_int_equal(figures.driver.code, CUDA_ERROR_OUT_OF_MEMORY);
  unsetenv("SIMCUDA_TOTAL");
  unsetenv("SIMCUDA_OTHERS");
  cuda_end(&f);
}

/* FIELD: of a slice NVML tells through the slice's own handle; the card's figure is never taken. */
static void test_the_figures_of_a_slice(void **state) {
  (void)state;
  cuda_fixture f;
  const char *options = getenv("GM_CUDA_OPTIONS");
  gm_raw_figures figures = {.struct_size = sizeof figures};
  if (!options) skip();
  cuda_begin(&f);
  setenv("SIMCUDA_MIG", "1", 1);
  cuda_say("set MIG 1");
  f.host.options = options;
  cuda_init(&f);
  assert_int_equal(f.ops->figures(f.driver, 0, NULL, &figures, &f.err), GM_OK);
  assert_int_equal(figures.nvml.handle, GM_RAW_NVML_SLICE);
  assert_int_equal(figures.nvml.memory.state, GM_RAW_OK);
  assert_int_equal(figures.nvml.memory.total_bytes, figures.device_total.total_bytes);
  unsetenv("SIMCUDA_MIG");
  cuda_end(&f);
}

/* A driver of CUDA 11.0 has neither cuGetProcAddress nor the newer entries: what it has is found under full names. */
static void test_an_old_driver(void **state) {
  (void)state;
  static const char *const versions[] = {"set VERSION 11000", "set VERSION 11040", "set VERSION 12000"};
  for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
    cuda_fixture f;
    unsigned char got[64] = {0};
    const uint32_t pattern = 0x01020304;
    cuda_begin(&f);
    cuda_say(versions[i]);
    cuda_open(&f);
    gm_memory memory = cuda_memory(&f, 0, 64);
    assert_int_equal(f.ops->fill(f.device, f.stream, &memory, 0, 64, &pattern, 4, NULL, &f.err), GM_OK);
    assert_int_equal(f.ops->copy_to_host(f.device, f.stream, &memory, 0, got, 64, NULL, &f.err), GM_OK);
    assert_int_equal(got[60], 4);
    cuda_free(&f, &memory);
    cuda_end(&f);
  }
}

static void test_missing_groups_clear_capabilities(void **state) {
  (void)state;
  cuda_fixture f;
  gm_device_info info = {.struct_size = sizeof info};
  uint32_t types = 0;
  uint64_t number = 0;
  unsigned char page[4096];
  const gm_vmm_props props = {0};
  cuda_begin(&f);
  cuda_say("set NO vmm,hostreg,managed");
  cuda_open(&f);
  assert_int_equal(f.ops->device_info(f.driver, 0, f.device, &info, &f.err), GM_OK);
  assert_false(info.capabilities & (GM_CAP_VMM | GM_CAP_MANAGED | GM_CAP_REGISTRATION));
  assert_int_equal(f.ops->memory_type_count(f.device, &types, &f.err), GM_OK);
  assert_int_equal(types, 2);
  assert_int_equal(f.ops->vmm_granularity(f.device, &props, &number, &f.err), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(f.ops->vmm_reserve(f.device, 2 << 20, 0, &number, &f.err), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(f.ops->host_register(f.device, page, sizeof page, &f.err), GM_ERR_NOT_SUPPORTED);
  cuda_end(&f);
}

/* FIELD: the attribute says that it can, and cuMemSetAccess fails all the same (WSL2): only trying tells. */
static void test_virtual_memory_is_tried(void **state) {
  (void)state;
  cuda_fixture f;
  gm_device_info info = {.struct_size = sizeof info};
  cuda_begin(&f);
  cuda_init(&f);
  cuda_say("fail cuMemSetAccess:*:1");
  assert_int_equal(f.ops->device_info(f.driver, 0, NULL, &info, &f.err), GM_OK);
  assert_true(info.capabilities & GM_CAP_VMM);
  assert_int_equal(f.ops->device_open(f.driver, 0, &f.device, &f.err), GM_OK);
  assert_int_equal(f.ops->device_info(f.driver, 0, f.device, &info, &f.err), GM_OK);
  assert_false(info.capabilities & GM_CAP_VMM);
  cuda_say("fail");
  cuda_end(&f);
  cuda_begin(&f); /* no room for the try: the attribute is believed */
  cuda_init(&f);
  cuda_say("fail cuMemCreate:*:2");
  assert_int_equal(f.ops->device_open(f.driver, 0, &f.device, &f.err), GM_OK);
  assert_int_equal(f.ops->device_info(f.driver, 0, f.device, &info, &f.err), GM_OK);
  assert_true(info.capabilities & GM_CAP_VMM);
  cuda_say("fail");
  cuda_end(&f);
}

static void test_no_device(void **state) {
  (void)state;
  cuda_fixture f;
  cuda_begin(&f);
  cuda_say("set INIT 100");
  assert_int_equal(f.ops->init(&f.host, &f.driver, &f.err), GM_ERR_UNAVAILABLE);
  assert_int_equal(f.err.native_code, CUDA_ERROR_NO_DEVICE);
  assert_non_null(strstr(f.err.message, "no device"));
  cuda_say("set INIT 34");
  assert_int_equal(f.ops->init(&f.host, &f.driver, &f.err), GM_ERR_UNAVAILABLE);
  assert_non_null(strstr(f.err.message, "STUB_LIBRARY"));
  cuda_say("set INIT 3"); /* what CUDA says in a child of a process that used it */
  assert_int_equal(f.ops->init(&f.host, &f.driver, &f.err), GM_ERR_FORKED);
  cuda_say("set INIT 0");
  cuda_say("set DEVICES 0");
  assert_int_equal(f.ops->init(&f.host, &f.driver, &f.err), GM_ERR_UNAVAILABLE);
  cuda_end(&f);
}

static void test_switches(void **state) {
  (void)state;
  cuda_fixture f;
  static const char *const bad[] = {"fast", "nvml=", "nvml=a,b", "nvml"};
  cuda_begin(&f);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    f.host.options = bad[i];
    assert_int_equal(f.ops->init(&f.host, &f.driver, &f.err), GM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(f.err.message, bad[i]));
  }
  f.host.options = "nvml=libnvidia_ml_that_is_not_there.so.1"; /* nothing depends on it */
  cuda_init(&f);
  cuda_end(&f);
}

/* A driver's answers are input: each becomes an error with the call that gave it. */
static void test_hostile_counts(void **state) {
  (void)state;
  static const char *const words[] = {"set HOSTILE counts", "set HOSTILE counts_huge"};
  for (size_t i = 0; i < 2; i++) {
    cuda_fixture f;
    cuda_begin(&f);
    cuda_say(words[i]);
    assert_int_equal(f.ops->init(&f.host, &f.driver, &f.err), GM_ERR_DRIVER);
    assert_string_equal(f.err.op, "cuDeviceGetCount");
    assert_non_null(strstr(f.err.message, "CUDA driver"));
    assert_null(f.driver);
  }
}

static void test_hostile_names(void **state) {
  (void)state;
  cuda_fixture f;
  gm_device_info info = {.struct_size = sizeof info};
  cuda_begin(&f);
  cuda_say("set HOSTILE names,pci");
  cuda_init(&f);
  assert_int_equal(f.ops->device_info(f.driver, 0, NULL, &info, &f.err), GM_OK);
  assert_non_null(memchr(info.name, 0, sizeof info.name));
  cuda_end(&f);
}

static void test_hostile_granularity(void **state) {
  (void)state;
  cuda_fixture f;
  uint64_t granule = 7;
  const gm_vmm_props props = {0};
  cuda_begin(&f);
  cuda_open(&f);
  cuda_say("set HOSTILE granularity");
  assert_int_equal(f.ops->vmm_granularity(f.device, &props, &granule, &f.err), GM_ERR_DRIVER);
  assert_string_equal(f.err.op, "cuMemGetAllocationGranularity");
  assert_int_equal(granule, 7);
  cuda_say("set HOSTILE none");
  cuda_end(&f);
}

/* Success with a handle or an address of 0. */
static void test_hostile_success(void **state) {
  (void)state;
  cuda_fixture f;
  void *out = NULL;
  uint64_t number = 0;
  gm_stream_kind kind;
  const gm_vmm_props props = {0};
  gm_memory memory;
  gm_backend_point point = {0};
  cuda_begin(&f);
  cuda_open(&f);
  cuda_say("set HOSTILE null_success");
  for (uint32_t type = 0; type < 2; type++) {
    const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = 4096};
    assert_int_equal(f.ops->memory_alloc(f.device, &params, &memory, &f.err), GM_ERR_DRIVER);
    assert_non_null(strstr(f.err.message, "CUDA driver answered success"));
  }
  assert_int_equal(f.ops->stream_create(f.device, &out, &kind, &f.err), GM_ERR_DRIVER);
  assert_int_equal(f.ops->vmm_reserve(f.device, 2 << 20, 0, &number, &f.err), GM_ERR_DRIVER);
  assert_int_equal(f.ops->vmm_create(f.device, &props, 2 << 20, &number, &f.err), GM_ERR_DRIVER);
  assert_int_equal(f.ops->point_record(f.device, f.stream, &point, &f.err), GM_ERR_DRIVER);
  assert_int_equal(f.ops->device_open(f.driver, 0, &out, &f.err), GM_ERR_DRIVER);
  assert_null(out);
  cuda_say("set HOSTILE none");
  cuda_end(&f);
}

/* A total of 0, more free than there is, a query that fails. */
static void test_figures_that_cannot_be(void **state) {
  (void)state;
  cuda_fixture f;
  cuda_begin(&f);
  figures_hold("cuda", f.host.library, cuda_script);
  cuda_end(&f);
}

static void test_total_of_zero(void **state) {
  (void)state;
  cuda_fixture f;
  cuda_begin(&f);
  total_of_zero_holds("cuda", f.host.library, cuda_script);
  cuda_end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_passive_probe_runs_no_vendor_code),
      cmocka_unit_test(test_an_active_probe_leaves_no_context),
      cmocka_unit_test(test_what_a_device_tells),
      cmocka_unit_test(test_integrated_and_partitioned),
      cmocka_unit_test(test_figures_before_and_after_opening),
      cmocka_unit_test(test_the_figures_of_a_slice),
      cmocka_unit_test(test_an_old_driver),
      cmocka_unit_test(test_missing_groups_clear_capabilities),
      cmocka_unit_test(test_virtual_memory_is_tried),
      cmocka_unit_test(test_no_device),
      cmocka_unit_test(test_switches),
      cmocka_unit_test(test_hostile_counts),
      cmocka_unit_test(test_hostile_names),
      cmocka_unit_test(test_hostile_granularity),
      cmocka_unit_test(test_hostile_success),
      cmocka_unit_test(test_figures_that_cannot_be),
      cmocka_unit_test(test_total_of_zero),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
