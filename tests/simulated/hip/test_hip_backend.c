/* The HIP backend on the simulated runtimes of ROCm 5 and 6. Tested are what differs between versions, what the backend
 * leaves in the calling thread, and the traps of HIP that docs/backends/hip.md lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/simulated/hip/hip_world.h"

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

static void *other_device(void) {
  void *other = NULL;
  assert_int_equal(world.ops->device_open(world.driver, 0, &other, NULL), GM_OK);
  return other;
}

/* Enabled twice is no error, and what the engine enabled stays. */
static void test_peers_are_not_ours_alone(void **state) {
  void *other = other_device();
  (void)state;
  engine.hipSetDevice(1);
  assert_int_equal(engine.hipDeviceEnablePeerAccess(0, 0), hipSuccess);
  assert_int_equal(world.ops->peer_enable(world.device, other, NULL), GM_OK);
  assert_int_equal(world.ops->peer_disable(world.device, other, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(engine.hipDeviceDisablePeerAccess(0), hipSuccess);
  assert_int_equal(world.ops->peer_enable(world.device, other, NULL), GM_OK);
  assert_int_equal(engine.hipDeviceDisablePeerAccess(0), hipSuccess);
  assert_int_equal(world.ops->peer_disable(world.device, other, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(engine.hipPeekAtLastError(), hipSuccess);
  world.ops->device_close(other, GM_CLOSE_NORMAL);
}

static void test_no_path_between_devices(void **state) {
  void *other = other_device();
  gm_peer_info info;
  gm_error err = {0};
  (void)state;
  control("set NO peer");
  assert_int_equal(world.ops->peer_info(world.device, other, &info, NULL), GM_OK);
  assert_false(info.direct);
  assert_int_equal(world.ops->peer_enable(world.device, other, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "through host memory"));
  world.ops->device_close(other, GM_CLOSE_NORMAL);
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
  const gm_memory_params filled = {.struct_size = sizeof filled, .bytes = BLOCK, .flags = GM_ALLOC_COMMIT};
  hipStream_t stream = NULL;
  hipGraph_t graph = NULL;
  gm_memory memory;
  void *lent = NULL;
  (void)state;
  engine.hipSetDevice(1);
  assert_int_equal(engine.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
  assert_int_equal(adopt_stream((uintptr_t)stream, &lent), GM_OK);
  assert_int_equal(engine.hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
  assert_int_equal(world.ops->memory_alloc(world.device, &filled, &memory, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(world.ops->memory_alloc(world.device, &params, &memory, NULL), GM_OK);
  assert_int_equal(world.ops->stream_sync(world.device, lent, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(engine.hipStreamEndCapture(stream, &graph), hipSuccess);
  assert_int_equal(engine.hipGraphDestroy(graph), hipSuccess);
  give(&memory);
  world.ops->stream_close(world.device, lent, GM_CLOSE_NORMAL);
  assert_int_equal(engine.hipStreamDestroy(stream), hipSuccess);
}

/* HIP gives a stream the address of one that is gone; gm keeps nothing by it. */
static void test_recycled_stream_handles(void **state) {
  const uint32_t pattern = 2;
  (void)state;
  engine.hipSetDevice(1);
  const gm_memory memory = take(0);
  for (int i = 0; i < 20; i++) {
    hipStream_t stream = NULL;
    hipGraph_t graph = NULL;
    void *lent = NULL;
    assert_int_equal(engine.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
    assert_int_equal(adopt_stream((uintptr_t)stream, &lent), GM_OK);
    if (i % 2) assert_int_equal(engine.hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
    const gm_status status = world.ops->fill(world.device, lent, &memory, 0, 64, &pattern, 4, NULL, NULL);
    assert_int_equal(status, i % 2 ? GM_ERR_NOT_SUPPORTED : GM_OK);
    world.ops->stream_close(world.device, lent, GM_CLOSE_NORMAL);
    if (i % 2) assert_int_equal(engine.hipStreamEndCapture(stream, &graph), hipSuccess);
    if (i % 2) engine.hipGraphDestroy(graph);
    assert_int_equal(engine.hipStreamDestroy(stream), hipSuccess);
  }
  give(&memory);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_says_what_it_is, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_placeholder_is_no_uuid, NULL, world_end),
      cmocka_unit_test_setup_teardown(test_old_runtime_has_no_vmm, world_begin_old, world_end),
      cmocka_unit_test_setup_teardown(test_wraps_by_version, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_wraps_by_version, world_begin_old, world_end),
      cmocka_unit_test_setup_teardown(test_wraps_no_strangers, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_wraps_no_strangers, world_begin_old, world_end),
      cmocka_unit_test_setup_teardown(test_old_host_address_of_a_part_is_not_guessed, world_begin_old, world_end),
      cmocka_unit_test_setup_teardown(test_thread_keeps_its_device, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_last_error_is_the_engines, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_pinned_limit_is_its_own_answer, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_released_memory_comes_back, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_vmm_refuses_what_is_not_there, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_range_that_is_lost, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_peers_are_not_ours_alone, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_no_path_between_devices, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_adopts_only_what_it_can_keep_apart, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_recycled_stream_handles, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_capture_is_left_alone, world_begin_new, world_end),
      cmocka_unit_test_setup_teardown(test_capture_is_left_alone, world_begin_old, world_end),
      cmocka_unit_test_setup_teardown(test_lost_device_gives_back, world_begin_new, world_end),
      cmocka_unit_test_setup(test_abandoning_calls_nothing, world_begin_new),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
