/* What HIP and the kernel's files say is input: nonsense, failures, no host memory for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/hip/hip_kernel.h"
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

static void test_nonsense_is_an_error(void **state) {
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = BLOCK};
  gm_memory memory;
  (void)state;
  world_load(SIM_HIP6_LIBRARY);
  control("set HOSTILE counts");
  expect_init(GM_ERR_DRIVER, "-1 devices");
  control("set HOSTILE counts_huge");
  expect_init(GM_ERR_DRIVER, "2147483647 devices");
  control("set HOSTILE names,pci");
  world_open(SIM_HIP6_LIBRARY, 0);
  control("set HOSTILE null_success");
  assert_int_equal(world.ops->memory_alloc(world.device, &params, &memory, NULL), GM_ERR_DRIVER);
  control("set HOSTILE none");
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
  scratch root;
  char arch[32];
  (void)state;
  scratch_make(&root);
  assert_false(gm__hip_kernel_present(root.path));
  tree_put(&root, KFD "/0/gpu_id", "0\n");
  tree_put(&root, KFD "/0/properties", "cpu_cores_count 64\nlocation_id 0\ndomain 0\n");
  tree_put(&root, KFD "/1/gpu_id", "51234\n");
  tree_put(&root, KFD "/1/properties", "domain 0\nlocation_id 768\ngfx_target_version 90010\n");
  tree_put(&root, KFD "/2/gpu_id", "777\n");
  tree_put(&root, KFD "/2/properties", "domain 1\nlocation_id 768\ngfx_target_version 110002\n");
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
  assert_int_equal(gm__hip_kernel_node(root.path, "0000:03:00.0"), 1);
  assert_int_equal(gm__hip_kernel_node(root.path, "0000:04:00.0"), -1);
  assert_int_equal(gm__hip_kernel_node(root.path, "../../etc"), -1);
  scratch_remove(&root);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_figures_are_raw, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_nonsense_is_an_error, NULL, world_end),
      cmocka_unit_test_setup_teardown(test_no_device_is_unavailable, NULL, world_end),
      cmocka_unit_test_setup_teardown(test_starting_leaves_the_last_error, NULL, world_end),
      cmocka_unit_test_setup_teardown(test_switches_are_refused, NULL, world_end),
      cmocka_unit_test_setup_teardown(test_opens_without_host_memory, NULL, world_end),
      cmocka_unit_test(test_kernel_tells_the_architecture),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
