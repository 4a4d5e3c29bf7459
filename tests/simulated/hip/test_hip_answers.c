/* The words of HIP and of the kernel's files are input: nonsense, failures, no host memory for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/hip/hip_kernel.h"
#include "backends/hip/hip_status.h"
#include "backends/shared/pci_node.h"
#include "support/figure_scene.h"
#include "support/tree.h"
#include "tests/simulated/hip/hip_world.h"

static void test_figures_are_raw(void **state) {
  gm_raw_figures raw;
  (void)state;
  assert_int_equal(world.ops->figures(world.driver, 1, NULL, &raw, NULL), GM_OK);
  assert_int_equal(raw.rules, GM_RAW_HIP);
  assert_int_equal(raw.driver.state, GM_RAW_ABSENT);
  assert_int_equal(raw.device_total.total_bytes, world.info.total_bytes);
  control("set MEMINFO free_above_total");
  assert_int_equal(world.ops->figures(world.driver, 1, world.device, &raw, NULL), GM_OK);
  assert_true(raw.driver.free_bytes > raw.driver.total_bytes);
  control("set MEMINFO fail");
  assert_int_equal(world.ops->figures(world.driver, 1, world.device, &raw, NULL), GM_OK);
  assert_int_equal(raw.driver.state, GM_RAW_ERROR);
  assert_int_equal(raw.driver.code, 999);
}

static void expect_init(gm_status want, const char *part) {
  gm_error err = {0};
  assert_int_equal(world.ops->init(&world.host, &world.driver, &err), want);
  if (!strstr(err.message, part)) fail_msg("`%s` does not say `%s`", err.message, part);
  assert_null(world.driver);
}

/* hipMallocAsync was seen to corrupt memory and to keep it. The table has no entry of it, so nothing can call one. */
static void test_no_driver_pools(void **state) {
  static const char *const entries[] = {
#define X(need, fault, symbol, parameters, arguments) #symbol,
#include "backends/hip/hip_syms.def"
#undef X
  };
  (void)state;
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
    assert_null(strstr(entries[i], "MemPool"));
    assert_null(strstr(entries[i], "MallocAsync"));
  }
}

static void test_hostile_counts(void **state) {
  (void)state;
  world_load(SIM_HIP6_LIBRARY);
  control("set HOSTILE counts");
  expect_init(GM_ERR_DRIVER, "HIP says that there are -1 devices");
  control("set HOSTILE counts_huge");
  expect_init(GM_ERR_DRIVER, "HIP says that there are 2147483647 devices");
  control("set HOSTILE none");
}

/* Names without an end; alignments of 0 need not be believed either. */
static void test_hostile_names(void **state) {
  (void)state;
  setenv("SIMCUDA_HOSTILE", "names,pci,granularity", 1);
  world_open(SIM_HIP6_LIBRARY, 0);
  unsetenv("SIMCUDA_HOSTILE");
  assert_non_null(memchr(world.info.name, 0, sizeof world.info.name));
  assert_non_null(memchr(world.info.pci, 0, sizeof world.info.pci));
  assert_true(world.info.alignment > 0);
  assert_false(world.info.capabilities & GM_CAP_VMM); /* it was tried, and has no granularity */
  control("set HOSTILE none");
}

static void test_hostile_granularity(void **state) {
  gm_error err = {0};
  uint64_t granule = 7;
  const gm_vmm_props props = {0};
  (void)state;
  control("set HOSTILE granularity");
  assert_int_equal(world.ops->vmm_granularity(world.device, &props, &granule, &err), GM_ERR_DRIVER);
  assert_non_null(strstr(err.message, "HIP says that the granularity is 0"));
  assert_int_equal(granule, 7);
  control("set HOSTILE none");
}

static void expect_hip_said(gm_status status, const gm_error *err) {
  assert_int_equal(status, GM_ERR_DRIVER);
  if (!strstr(err->message, "HIP answered success")) fail_msg("`%s` does not name HIP", err->message);
}

/* Success with a handle or an address of 0. */
static void test_hostile_success(void **state) {
  gm_error err = {0};
  gm_memory memory;
  gm_stream_kind kind;
  gm_backend_point point = {0};
  void *out = NULL, *stream = NULL;
  uint64_t number = 0;
  const gm_vmm_props props = {0};
  (void)state;
  assert_int_equal(world.ops->stream_create(world.device, &stream, &kind, &err), GM_OK);
  control("set HOSTILE null_success");
  for (uint32_t type = 0; type < 2; type++) {
    const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = BLOCK};
    expect_hip_said(world.ops->memory_alloc(world.device, &params, &memory, &err), &err);
  }
  expect_hip_said(world.ops->stream_create(world.device, &out, &kind, &err), &err);
  expect_hip_said(world.ops->point_record(world.device, stream, &point, &err), &err);
  expect_hip_said(world.ops->vmm_reserve(world.device, 2 << 20, 0, &number, &err), &err);
  expect_hip_said(world.ops->vmm_create(world.device, &props, 2 << 20, &number, &err), &err);
  assert_null(out);
  assert_int_equal(number, 0);
  control("set HOSTILE none");
  world.ops->stream_close(world.device, stream, GM_CLOSE_NORMAL);
}

/* A total of 0, more free than there is, a query that fails. */
static void test_figures_that_cannot_be(void **state) {
  (void)state;
  world_load(SIM_HIP6_LIBRARY);
  figures_hold("hip", SIM_HIP6_LIBRARY, engine.simHipControl);
}

static void test_total_of_zero(void **state) {
  (void)state;
  world_load(SIM_HIP6_LIBRARY);
  total_of_zero_holds("hip", SIM_HIP6_LIBRARY, engine.simHipControl);
}

/* HIP's own time limit ends the device's work for good; numbers that nobody knows are errors with the call's name. */
static void test_codes(void **state) {
  (void)state;
  static const int lost[] = {214, 700, 702, 709, 710, 719};
  gm_error err = {0};
  for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
    assert_int_equal(gm__code_fail(&gm__hip_codes, &err, lost[i], "hipAnything"), GM_ERR_DEVICE_LOST);
    assert_int_equal(err.native_code, lost[i]);
  }
  assert_int_equal(gm__code_fail(&gm__hip_codes, &err, 702, "hipAnything"), GM_ERR_DEVICE_LOST);
  assert_non_null(strstr(err.message, "hipAnything: hipErrorLaunchTimeOut (702)"));
  assert_int_equal(gm__code_fail(&gm__hip_codes, &err, -123456, "hipAnything"), GM_ERR_DRIVER);
  assert_non_null(strstr(err.message, "hipAnything: unknown code (-123456)"));
  assert_int_equal(gm__code_fail(&gm__hip_codes, NULL, hipSuccess, "hipAnything"),
                   GM_ERR_DRIVER); /* a failure is never GM_OK */
}

/* An integrated part says so, and its figures are left to the core's rules. */
static void test_integrated_part(void **state) {
  gm_raw_figures raw;
  gm_memory_type type = {.struct_size = sizeof type};
  (void)state;
  setenv("SIMCUDA_INTEGRATED", "1", 1);
  world_open(SIM_HIP6_LIBRARY, 0);
  unsetenv("SIMCUDA_INTEGRATED");
  assert_true(world.info.unified);
  assert_int_equal(world.info.type, GM_DEVICE_TYPE_INTEGRATED);
  assert_int_equal(world.ops->figures(world.driver, 0, world.device, &raw, NULL), GM_OK);
  assert_int_equal(raw.place, GM_RAW_INTEGRATED);
  assert_int_equal(world.ops->memory_type(world.device, 1, &type, NULL), GM_OK);
  assert_int_equal(type.heap, 0); /* host memory and the device's are one */
}

static void test_no_device_is_unavailable(void **state) {
  (void)state;
  world_load(SIM_HIP6_LIBRARY);
  control("set DEVICES 0");
  expect_init(GM_ERR_UNAVAILABLE, "finds no device");
  assert_int_equal(engine.hipPeekAtLastError(), hipSuccess);
}

/* Starting, listing and asking leave the thread's last error as it was. */
static void test_starting_leaves_the_last_error(void **state) {
  gm_raw_figures raw;
  (void)state;
  world_load(SIM_HIP6_LIBRARY);
  control("fail cuDeviceTotalMem:1:999");
  assert_int_equal(world.ops->init(&world.host, &world.driver, NULL), GM_OK);
  assert_int_equal(engine.hipPeekAtLastError(), hipSuccess);
  control("fail cuDeviceTotalMem:1:999");
  assert_int_equal(world.ops->figures(world.driver, 0, NULL, &raw, NULL), GM_OK);
  assert_int_equal(raw.device_total.state, GM_RAW_ERROR);
  assert_int_equal(engine.hipPeekAtLastError(), hipSuccess);
  assert_int_equal(engine.hipSetDevice(77), hipErrorInvalidDevice);
  assert_int_equal(world.ops->figures(world.driver, 0, NULL, &raw, NULL), GM_OK);
  assert_int_equal(engine.hipGetLastError(), hipErrorInvalidDevice);
}

static void test_switches_are_refused(void **state) {
  (void)state;
  world_load(SIM_HIP6_LIBRARY);
  world.host.options = "fast";
  expect_init(GM_ERR_INVALID_ARGUMENT, "fast");
  world.host.options = "";
}

/* Opening with each host allocation failing in turn. */
static void test_opens_without_host_memory(void **state) {
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  (void)state;
  world_load(SIM_HIP6_LIBRARY);
  for (size_t n = 1; status != GM_OK; n++) {
    atomic_store(&world.memory.calls, 0);
    world.memory.fail_at = n;
    assert_true(n < 100);
    status = world.ops->init(&world.host, &world.driver, NULL);
    if (status == GM_OK) status = world.ops->device_open(world.driver, 0, &world.device, NULL);
    if (status == GM_OK) break;
    assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
    world.ops->fini(world.driver, GM_CLOSE_NORMAL);
    world.driver = NULL;
    counted_services_check(&world.memory);
  }
  world.memory.fail_at = 0;
}

#define KFD "/sys/class/kfd/kfd/topology/nodes"

static void test_kernel_tells_the_architecture(void **state) {
  temp_folder root;
  char arch[32];
  (void)state;
  temp_folder_make(&root);
  assert_false(gm__hip_kernel_present(root.path));
  tree_put(&root, KFD "/0/gpu_id", "0\n");
  tree_put(&root, KFD "/0/properties", "cpu_cores_count 64\nlocation_id 0\ndomain 0\n");
  tree_put(&root, KFD "/1/gpu_id", "51234\n");
  tree_put(&root, KFD "/1/properties", "domain 0\nlocation_id 768\ngfx_target_version 90010\n");
  tree_put(&root, KFD "/2/gpu_id", "777\n");
  tree_put(&root, KFD "/2/properties", "domain 1\nlocation_id 770\ngfx_target_version 110002\n"); /* partition 2 */
  tree_put(&root, "/sys/bus/pci/devices/0000:03:00.0/numa_node", "1\n");
  assert_true(gm__hip_kernel_present(root.path));
  assert_int_equal(gm__hip_kernel_cards(root.path), 2);
  gm__hip_kernel_arch(root.path, "0000:03:00.0", arch, sizeof arch);
  assert_string_equal(arch, "gfx90a");
  gm__hip_kernel_arch(root.path, "0001:03:00.0", arch, sizeof arch);
  assert_string_equal(arch, "gfx1102");
  gm__hip_kernel_arch(root.path, "0000:04:00.0", arch, sizeof arch);
  assert_string_equal(arch, "");
  gm__hip_kernel_arch(root.path, "nonsense", arch, sizeof arch);
  assert_string_equal(arch, "");
  assert_int_equal(gm__pci_node(root.path, "0000:03:00.0"), 1);
  assert_int_equal(gm__pci_node(root.path, "0000:04:00.0"), -1);
  assert_int_equal(gm__pci_node(root.path, "../../etc"), -1);
  temp_folder_remove(&root);
}

/* WSL2 has no KFD: Windows has the card. */
static void test_wsl(void **state) {
  temp_folder root;
  (void)state;
  temp_folder_make(&root);
  tree_put(&root, "/proc/version", "Linux version 6.6.87.2-microsoft-standard-WSL2\n");
  assert_true(gm__hip_kernel_present(root.path));
  assert_int_equal(gm__hip_kernel_cards(root.path), 0);
  tree_put(&root, "/proc/version", "Linux version 6.12\n");
  assert_false(gm__hip_kernel_present(root.path));
  temp_folder_remove(&root);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_figures_are_raw, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_hostile_counts, NULL, world_end),
      cmocka_unit_test_setup_teardown(test_hostile_names, NULL, world_end),
      cmocka_unit_test_setup_teardown(test_hostile_granularity, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_hostile_success, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_figures_that_cannot_be, NULL, world_end),
      cmocka_unit_test_setup_teardown(test_total_of_zero, NULL, world_end),
      cmocka_unit_test(test_codes),
      cmocka_unit_test_setup_teardown(test_integrated_part, NULL, world_end),
      cmocka_unit_test(test_wsl),
      cmocka_unit_test(test_no_driver_pools),
      cmocka_unit_test_setup_teardown(test_no_device_is_unavailable, NULL, world_end),
      cmocka_unit_test_setup_teardown(test_starting_leaves_the_last_error, NULL, world_end),
      cmocka_unit_test_setup_teardown(test_switches_are_refused, NULL, world_end),
      cmocka_unit_test_setup_teardown(test_opens_without_host_memory, NULL, world_end),
      cmocka_unit_test(test_kernel_tells_the_architecture),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
