/* The HIP backend on the simulated runtimes of ROCm 5 and 6: what differs between versions, what it leaves in the
 * calling thread, and the traps of HIP that docs/backends/hip.md lists. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/hip/hip_backend.h"
#include "backends/hip/hip_kernel.h"
#include "gm/native_hip.h"
#include "support/counted_services.h"
#include "support/tree.h"
#include "tests/simulated/hip/sim_hip_api.h"

enum { BLOCK = 1 << 20 };

typedef struct hip_world {
  counted_services memory;
  gm_backend_host host;
  const gm_backend_ops *ops;
  void *driver, *device;
  void *library; /* the engine's own handle of it */
  gm_device_info info;
} hip_world;

static hip_world world;

/* What the engine calls, past gm. */
#define ENGINE_CALLS(X)       \
  X(hipFree)                  \
  X(hipGetDevice)             \
  X(hipGetLastError)          \
  X(hipGraphDestroy)          \
  X(hipMalloc)                \
  X(hipPeekAtLastError)       \
  X(hipSetDevice)             \
  X(hipStreamBeginCapture)    \
  X(hipStreamCreateWithFlags) \
  X(hipStreamDestroy)         \
  X(hipStreamEndCapture)      \
  X(simHipControl)

static struct {
#define X(name) __typeof__(name) *name;
  ENGINE_CALLS(X)
#undef X
} engine;

static void engine_symbol(const char *name, void *out) {
  void *symbol = dlsym(world.library, name);
  if (!symbol) fail_msg("%s is not exported", name);
  memcpy(out, &symbol, sizeof symbol);
}

static void engine_load(void) {
#define X(name) engine_symbol(#name, &engine.name);
  ENGINE_CALLS(X)
#undef X
}

static void control(const char *command) { assert_int_equal(engine.simHipControl(command, NULL, 0), 0); }

static long long number(const char *command) {
  char reply[64];
  assert_int_equal(engine.simHipControl(command, reply, sizeof reply), 0);
  return atoll(reply);
}

static void world_load(const char *library) {
  world = (hip_world){.ops = &gm__hip_backend};
  counted_services_init(&world.memory);
  world.host = (gm_backend_host){
      .struct_size = sizeof world.host, .services = &world.memory.services, .library = library, .options = ""};
  world.library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(world.library);
  engine_load();
  control("reload");
  control("set DEVICES 2");
  control("set LATENCY_US 0");
}

static void world_open(const char *library, uint32_t index) {
  gm_error err = {0};
  world_load(library);
  if (world.ops->init(&world.host, &world.driver, &err) != GM_OK) fail_msg("%s", err.message);
  if (world.ops->device_open(world.driver, index, &world.device, &err) != GM_OK) fail_msg("%s", err.message);
  assert_int_equal(world.ops->device_info(world.driver, 0, world.device, &world.info, NULL), GM_OK);
}

static int world_begin_new(void **state) {
  (void)state;
  world_open(SIM_HIP6_LIBRARY, 1);
  return 0;
}

static int world_begin_old(void **state) {
  (void)state;
  world_open(SIM_HIP5_LIBRARY, 1);
  return 0;
}

/* Nothing is left at the driver or of host memory. */
static int world_end(void **state) {
  char left[2048] = "";
  (void)state;
  control("release");
  if (world.device) world.ops->device_close(world.device, GM_CLOSE_NORMAL);
  if (world.driver) world.ops->fini(world.driver, GM_CLOSE_NORMAL);
  counted_services_check(&world.memory);
  if (engine.simHipControl("leaks", left, sizeof left)) fail_msg("left behind:\n%s", left);
  engine.hipSetDevice(0);
  engine.hipGetLastError();
  return 0;
}

static gm_memory take(uint32_t type) {
  gm_memory memory = {0};
  const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = BLOCK};
  assert_int_equal(world.ops->memory_alloc(world.device, &params, &memory, NULL), GM_OK);
  return memory;
}

static void give(const gm_memory *memory) {
  assert_int_equal(world.ops->memory_free(world.device, memory, GM_CLOSE_NORMAL, NULL), GM_OK);
}

static gm_status wrap(uint64_t pointer, uint64_t bytes, gm_memory *out) {
  const gm_hip_memory lent = {.head = {sizeof lent, GM_API_HIP}, .pointer = pointer, .bytes = bytes};
  return world.ops->memory_wrap(world.device, &lent.head, out, NULL);
}

static void test_says_what_it_is(void **state) {
  (void)state;
  assert_string_equal(world.info.name, "Simulated GPU 1 (HIP)");
  assert_string_equal(world.info.version, "HIP 6.3.42131");
  assert_string_equal(world.info.driver, "simulated");
  assert_string_equal(world.info.pci, "0000:0b:00.0");
  assert_true(world.info.simulated);
  assert_false(world.info.uuid_derived);
  assert_true(world.info.capabilities & GM_CAP_VMM);
}

/* rocminfo's "GPU-XX": a card without a number must not be one with all others. */
static void test_placeholder_is_no_uuid(void **state) {
  (void)state;
  setenv("SIMHIP_UUID", "none", 1);
  world_open(SIM_HIP6_LIBRARY, 0);
  unsetenv("SIMHIP_UUID");
  assert_true(world.info.uuid_derived);
}

static void test_old_runtime_has_no_vmm(void **state) {
  uint64_t address = 0;
  (void)state;
  assert_false(world.info.capabilities & GM_CAP_VMM);
  assert_int_equal(world.ops->vmm_reserve(world.device, BLOCK, 0, &address, NULL), GM_ERR_NOT_SUPPORTED);
}

/* hipMemoryType has other numbers before 6.0, and its host address is that of the allocation. */
static void test_wraps_by_version(void **state) {
  (void)state;
  const gm_memory own = take(0), pinned = take(1);
  gm_memory wrapped;
  assert_int_equal(wrap(own.address + 256, 512, &wrapped), GM_OK);
  assert_int_equal(wrapped.type, 0);
  assert_null(wrapped.host);
  assert_int_equal(wrap(pinned.address, BLOCK, &wrapped), GM_OK);
  assert_int_equal(wrapped.type, 1);
  assert_ptr_equal(wrapped.host, pinned.host);
  give(&own);
  give(&pinned);
}

static void test_wraps_no_strangers(void **state) {
  gm_memory wrapped;
  int here = 0;
  (void)state;
  assert_int_equal(wrap((uintptr_t)&here, sizeof here, &wrapped), GM_ERR_INVALID_ARGUMENT);
  void *other = NULL;
  engine.hipSetDevice(0);
  assert_int_equal(engine.hipMalloc(&other, BLOCK), hipSuccess);
  assert_int_equal(wrap((uintptr_t)other, BLOCK, &wrapped), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(engine.hipFree(other), hipSuccess);
}

static void test_old_host_address_of_a_part_is_not_guessed(void **state) {
  gm_memory wrapped;
  (void)state;
  const gm_memory pinned = take(1);
  assert_int_equal(wrap(pinned.address + 4096, 4096, &wrapped), GM_ERR_NOT_SUPPORTED);
  give(&pinned);
}

static void test_thread_keeps_its_device(void **state) {
  int current = -1;
  (void)state;
  engine.hipSetDevice(0);
  const gm_memory memory = take(0);
  assert_int_equal(engine.hipGetDevice(&current), hipSuccess);
  assert_int_equal(current, 0);
  give(&memory);
  assert_int_equal(engine.hipGetDevice(&current), hipSuccess);
  assert_int_equal(current, 0);
}

/* An engine that asks hipGetLastError after its launches must not find gm's failures, and must find its own. */
static void test_last_error_is_the_engines(void **state) {
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = BLOCK};
  gm_memory memory;
  (void)state;
  control("fail cuMemAlloc:1:2");
  assert_int_equal(world.ops->memory_alloc(world.device, &params, &memory, NULL), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(engine.hipPeekAtLastError(), hipSuccess);
  assert_int_equal(engine.hipFree((void *)(uintptr_t)64), hipErrorInvalidValue);
  memory = take(0);
  give(&memory);
  assert_int_equal(engine.hipGetLastError(), hipErrorInvalidValue);
}

static void test_pinned_limit_is_its_own_answer(void **state) {
  const gm_memory_params params = {.struct_size = sizeof params, .type = 1, .bytes = BLOCK};
  gm_memory memory;
  (void)state;
  control("fail cuMemHostAlloc:1:2");
  assert_int_equal(world.ops->memory_alloc(world.device, &params, &memory, NULL), GM_ERR_PINNED_LIMIT);
}

static uint64_t granule(void) {
  const gm_vmm_props props = {.type = 0};
  uint64_t bytes = 0;
  assert_int_equal(world.ops->vmm_granularity(world.device, &props, &bytes, NULL), GM_OK);
  return bytes;
}

static uint64_t mapped_handle(uint64_t address, uint64_t bytes) {
  const gm_vmm_props props = {.type = 0};
  uint64_t handle = 0;
  assert_int_equal(world.ops->vmm_create(world.device, &props, bytes, &handle, NULL), GM_OK);
  assert_int_equal(world.ops->vmm_map(world.device, address, bytes, handle, 0, NULL), GM_OK);
  return handle;
}

/* hipMemRelease keeps the memory while the range is reserved (vllm#37533): the backend renews an empty range. Unmapping
 * goes by mapping, not by range (ROCR-Runtime#285): the simulated runtime refuses two at once. */
static void test_released_memory_comes_back(void **state) {
  (void)state;
  const uint64_t bytes = granule();
  const long long before = number("used 1");
  uint64_t address = 0;
  assert_int_equal(world.ops->vmm_reserve(world.device, 2 * bytes, 0, &address, NULL), GM_OK);
  const uint64_t first = mapped_handle(address, bytes), second = mapped_handle(address + bytes, bytes);
  assert_int_equal(world.ops->vmm_access(world.device, address, 2 * bytes, NULL), GM_OK);
  assert_int_equal(number("used 1") - before, 2 * bytes);
  assert_int_equal(world.ops->vmm_unmap(world.device, address, 2 * bytes, NULL), GM_OK);
  assert_int_equal(world.ops->vmm_destroy(world.device, first, bytes, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(world.ops->vmm_destroy(world.device, second, bytes, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(number("used 1"), before);
  const uint64_t again = mapped_handle(address, bytes);
  assert_int_equal(world.ops->vmm_unmap(world.device, address, bytes, NULL), GM_OK);
  assert_int_equal(world.ops->vmm_destroy(world.device, again, bytes, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(world.ops->vmm_unreserve(world.device, address, 2 * bytes, GM_CLOSE_NORMAL, NULL), GM_OK);
}

static void test_vmm_refuses_what_is_not_there(void **state) {
  (void)state;
  const uint64_t bytes = granule();
  uint64_t address = 0;
  assert_int_equal(world.ops->vmm_reserve(world.device, 2 * bytes, 0, &address, NULL), GM_OK);
  const uint64_t handle = mapped_handle(address, bytes);
  assert_int_equal(world.ops->vmm_unmap(world.device, address, 2 * bytes, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(world.ops->vmm_unmap(world.device, address, bytes / 2, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(world.ops->vmm_access(world.device, 64, bytes, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(world.ops->vmm_map(world.device, address + bytes, 2 * bytes, handle, 0, NULL),
                   GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(world.ops->vmm_unreserve(world.device, 64, bytes, GM_CLOSE_NORMAL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(world.ops->vmm_unmap(world.device, address, bytes, NULL), GM_OK);
  assert_int_equal(world.ops->vmm_destroy(world.device, handle, bytes, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(world.ops->vmm_unreserve(world.device, address, 2 * bytes, GM_CLOSE_NORMAL, NULL), GM_OK);
}

/* The range cannot be had again: nothing is mapped into what may be another's. */
static void test_range_that_is_lost(void **state) {
  (void)state;
  const uint64_t bytes = granule();
  uint64_t address = 0;
  assert_int_equal(world.ops->vmm_reserve(world.device, bytes, 0, &address, NULL), GM_OK);
  const uint64_t handle = mapped_handle(address, bytes);
  control("fail cuMemAddressReserve:1:2");
  assert_int_equal(world.ops->vmm_unmap(world.device, address, bytes, NULL), GM_OK);
  assert_int_equal(world.ops->vmm_map(world.device, address, bytes, handle, 0, NULL), GM_ERR_DRIVER);
  assert_int_equal(world.ops->vmm_destroy(world.device, handle, bytes, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(world.ops->vmm_unreserve(world.device, address, bytes, GM_CLOSE_NORMAL, NULL), GM_OK);
}

static gm_status adopt_stream(uintptr_t handle, void **out) {
  const gm_hip_stream lent = {.head = {sizeof lent, GM_API_HIP}, .stream = handle};
  gm_stream_kind kind;
  return world.ops->stream_adopt(world.device, &lent.head, out, &kind, NULL);
}

static void test_adopts_only_what_it_can_keep_apart(void **state) {
  gm_hip_device lent = {.head = {sizeof lent, GM_API_HIP}, .context = 64};
  hipStream_t other = NULL;
  void *out = NULL;
  (void)state;
  assert_int_equal(world.ops->device_adopt(world.driver, &lent.head, &out, NULL), GM_ERR_NOT_SUPPORTED);
  lent = (gm_hip_device){.head = {sizeof lent, GM_API_HIP}, .ordinal = -1};
  assert_int_equal(world.ops->device_adopt(world.driver, &lent.head, &out, NULL), GM_ERR_INVALID_ARGUMENT);
  lent.ordinal = 2;
  assert_int_equal(world.ops->device_adopt(world.driver, &lent.head, &out, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(adopt_stream(2, &out), GM_ERR_NOT_SUPPORTED);
  engine.hipSetDevice(0);
  assert_int_equal(engine.hipStreamCreateWithFlags(&other, 0), hipSuccess);
  assert_int_equal(adopt_stream((uintptr_t)other, &out), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(engine.hipStreamDestroy(other), hipSuccess);
  assert_int_equal(adopt_stream(1, &out), GM_OK);
  world.ops->stream_close(world.device, out, GM_CLOSE_NORMAL);
}

static void test_capture_is_left_alone(void **state) {
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = BLOCK};
  hipStream_t stream = NULL;
  hipGraph_t graph = NULL;
  gm_memory memory;
  void *lent = NULL;
  (void)state;
  engine.hipSetDevice(1);
  assert_int_equal(engine.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
  assert_int_equal(adopt_stream((uintptr_t)stream, &lent), GM_OK);
  assert_int_equal(engine.hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
  assert_int_equal(world.ops->memory_alloc(world.device, &params, &memory, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(world.ops->stream_sync(world.device, lent, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(engine.hipStreamEndCapture(stream, &graph), hipSuccess);
  assert_int_equal(engine.hipGraphDestroy(graph), hipSuccess);
  memory = take(0);
  give(&memory);
  world.ops->stream_close(world.device, lent, GM_CLOSE_NORMAL);
  assert_int_equal(engine.hipStreamDestroy(stream), hipSuccess);
}

static void test_lost_device_gives_back(void **state) {
  gm_error err = {0};
  (void)state;
  const gm_memory memory = take(0);
  control("lose 700");
  assert_int_equal(world.ops->device_state(world.device, &err), GM_ERR_DEVICE_LOST);
  assert_int_equal(err.native_code, 700);
  give(&memory);
  world.ops->device_close(world.device, GM_CLOSE_ABANDON);
  world.device = NULL;
  control("reload");
  control("set DEVICES 2");
  assert_int_equal(engine.hipSetDevice(1), hipSuccess);
  assert_int_equal(engine.hipFree((void *)(uintptr_t)memory.handle), hipSuccess);
}

static void test_abandoning_calls_nothing(void **state) {
  (void)state;
  const gm_memory memory = take(0);
  void *stream = NULL;
  gm_stream_kind kind;
  gm_backend_point point = {0};
  assert_int_equal(world.ops->stream_create(world.device, &stream, &kind, NULL), GM_OK);
  assert_int_equal(world.ops->point_record(world.device, stream, &point, NULL), GM_OK);
  const long long before = number("calls");
  assert_int_equal(world.ops->memory_free(world.device, &memory, GM_CLOSE_ABANDON, NULL), GM_OK);
  world.ops->point_release(world.device, &point, GM_CLOSE_ABANDON);
  world.ops->stream_close(world.device, stream, GM_CLOSE_ABANDON);
  world.ops->device_close(world.device, GM_CLOSE_ABANDON);
  world.ops->fini(world.driver, GM_CLOSE_ABANDON);
  assert_int_equal(number("calls"), before);
  counted_services_check(&world.memory);
}

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

#define ON_NEW(test) cmocka_unit_test_setup_teardown(test, world_begin_new, world_end)
#define ON_OLD(test) cmocka_unit_test_setup_teardown(test, world_begin_old, world_end)

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_NEW(test_says_what_it_is),
      cmocka_unit_test_setup_teardown(test_placeholder_is_no_uuid, NULL, world_end),
      ON_OLD(test_old_runtime_has_no_vmm),
      ON_NEW(test_wraps_by_version),
      ON_OLD(test_wraps_by_version),
      ON_NEW(test_wraps_no_strangers),
      ON_OLD(test_wraps_no_strangers),
      ON_OLD(test_old_host_address_of_a_part_is_not_guessed),
      ON_NEW(test_thread_keeps_its_device),
      ON_NEW(test_last_error_is_the_engines),
      ON_NEW(test_pinned_limit_is_its_own_answer),
      ON_NEW(test_released_memory_comes_back),
      ON_NEW(test_vmm_refuses_what_is_not_there),
      ON_NEW(test_range_that_is_lost),
      ON_NEW(test_adopts_only_what_it_can_keep_apart),
      ON_NEW(test_capture_is_left_alone),
      ON_OLD(test_capture_is_left_alone),
      ON_NEW(test_lost_device_gives_back),
      cmocka_unit_test_setup(test_abandoning_calls_nothing, world_begin_new),
      cmocka_unit_test(test_kernel_tells_the_architecture),
  };
  const struct CMUnitTest bad[] = {
      cmocka_unit_test_setup_teardown(test_nonsense_is_an_error, NULL, world_end),
      cmocka_unit_test_setup_teardown(test_switches_are_refused, NULL, world_end),
      cmocka_unit_test_setup_teardown(test_opens_without_host_memory, NULL, world_end),
      ON_NEW(test_figures_are_raw),
  };
  const int failed = cmocka_run_group_tests(bad, NULL, NULL);
  return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
