/* Fills, small copies and expansion by kernels that the simulated hiprtc compiles, and by copies wherever that fails.
 * The simulated HIP runs the backend's own text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "backends/hip/hip_device.h"
#include "support/program_scene.h"
#include "tests/simulated/hip/hip_world.h"
#include "tests/simulated/hip/sim_hiprtc.h"

static const uint8_t pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static __typeof__(simHiprtcControl) *compiler;

static struct {
  int lines;
  char text[512];
} told;

static void tell(void *user, int level, const char *line) {
  (void)user;
  (void)level;
  if (!strstr(line, "not by a kernel")) return;
  told.lines++;
  snprintf(told.text, sizeof told.text, "%s", line);
}

static long rtc(const char *command) {
  const long answer = compiler(command);
  assert_true(answer >= 0);
  return answer;
}

static int begin_on(const char *library) {
  void *handle = dlopen(SIM_HIPRTC_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(handle);
  void *symbol = dlsym(handle, "simHiprtcControl");
  memcpy(&compiler, &symbol, sizeof symbol);
  memset(&told, 0, sizeof told);
  world_open(library, 1);
  world.memory.services.log = tell;
  rtc("zero");
  control("zero");
  return 0;
}

static int begin(void **state) {
  (void)state;
  return begin_on(SIM_HIP6_LIBRARY);
}

static int begin_7(void **state) {
  (void)state;
  return begin_on(SIM_HIP7_LIBRARY);
}

static int end(void **state) {
  const int answer = world_end(state);
  unsetenv("SIMHIP_ARCH");
  assert_int_equal(rtc("programs"), 0);
  return answer;
}

static gm_status fill_on(void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes, uint32_t period) {
  return world.ops->fill(world.device, stream, memory, offset, bytes, pattern, period, NULL, NULL);
}

static void check_fill(const gm_memory *memory, uint64_t offset, uint64_t bytes, uint32_t period) {
  static uint8_t want[BLOCK], got[BLOCK];
  const uint8_t before = 0xaa;
  const uint64_t seen = offset + bytes + 64;
  assert_int_equal(world.ops->fill(world.device, NULL, memory, 0, seen, &before, 1, NULL, NULL), GM_OK);
  assert_int_equal(fill_on(NULL, memory, offset, bytes, period), GM_OK);
  memset(want, before, seen);
  for (uint64_t i = 0; i < bytes; i++) want[offset + i] = pattern[i % period];
  assert_int_equal(world.ops->copy_to_host(world.device, NULL, memory, 0, got, seen, NULL, NULL), GM_OK);
  assert_memory_equal(got, want, seen);
}

static void check_one(void) {
  const gm_memory memory = take(0);
  check_fill(&memory, 5, 1000, 16);
  give(&memory);
}

/* One launch each, whatever the offset and the length, and not a byte beside. */
static void test_fills_by_one_kernel(void **state) {
  (void)state;
  const gm_memory memory = take(0);
  long long fills = 0;
  for (uint64_t offset = 0; offset < 20; offset++) {
    for (uint64_t bytes = 9; bytes < 60; bytes += 5, fills++) check_fill(&memory, offset, bytes, offset % 2 ? 8 : 16);
  }
  check_fill(&memory, 3, BLOCK - 100, 16);
  assert_int_equal(number("calls cuLaunchKernel"), fills + 1);
  assert_int_equal(number("calls cuMemcpyAsync"), 0);
  assert_int_equal(rtc("calls hiprtcCompileProgram"), 1);
  assert_int_equal(told.lines, 0);
  give(&memory);
}

static void test_fills_of_every_kind_of_memory(void **state) {
  (void)state;
  for (uint32_t type = 0; type < 2; type++) {
    const gm_memory memory = take(type);
    check_fill(&memory, 7, 5000, 8);
    give(&memory);
  }
  assert_int_equal(number("calls cuLaunchKernel"), 2);
}

/* Over the seam between two pieces of memory in one range of addresses. */
static void test_fills_mapped_memory(void **state) {
  const gm_vmm_props props = {.type = 0};
  uint64_t granule = 0, address = 0, handles[2];
  (void)state;
  assert_int_equal(world.ops->vmm_granularity(world.device, &props, &granule, NULL), GM_OK);
  assert_int_equal(world.ops->vmm_reserve(world.device, 2 * granule, 0, &address, NULL), GM_OK);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(world.ops->vmm_create(world.device, &props, granule, &handles[i], NULL), GM_OK);
    assert_int_equal(world.ops->vmm_map(world.device, address + (uint64_t)i * granule, granule, handles[i], 0, NULL),
                     GM_OK);
  }
  assert_int_equal(world.ops->vmm_access(world.device, address, 2 * granule, NULL), GM_OK);
  const gm_memory memory = {.address = address + granule - 4000};
  check_fill(&memory, 9, 9000, 16);
  assert_int_equal(number("calls cuLaunchKernel"), 1);
  assert_int_equal(world.ops->vmm_unmap(world.device, address, 2 * granule, NULL), GM_OK);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(world.ops->vmm_destroy(world.device, handles[i], granule, GM_CLOSE_NORMAL, NULL), GM_OK);
  }
  assert_int_equal(world.ops->vmm_unreserve(world.device, address, 2 * granule, GM_CLOSE_NORMAL, NULL), GM_OK);
}

/* The launch is work on the stream: done when it is reached, not in the call. */
static void test_kernel_keeps_the_order(void **state) {
  uint8_t got[64];
  bool done = true;
  gm_backend_point point = {0};
  void *stream = NULL;
  gm_stream_kind kind;
  (void)state;
  const gm_memory memory = take(0);
  assert_int_equal(world.ops->stream_create(world.device, &stream, &kind, NULL), GM_OK);
  check_one();
  control("hold");
  assert_int_equal(world.ops->fill(world.device, stream, &memory, 0, sizeof got, pattern, sizeof pattern, &point, NULL),
                   GM_OK);
  assert_int_equal(world.ops->point_done(world.device, &point, &done, NULL), GM_OK);
  assert_false(done);
  control("release");
  assert_int_equal(world.ops->copy_to_host(world.device, stream, &memory, 0, got, sizeof got, NULL, NULL), GM_OK);
  assert_memory_equal(got + 48, pattern, sizeof pattern);
  world.ops->point_release(world.device, &point, GM_CLOSE_NORMAL);
  world.ops->stream_close(world.device, stream, GM_CLOSE_NORMAL);
  give(&memory);
}

/* Fills are right all the same; the reason is told once, and nothing is tried again. */
static void expect_copies(const char *reason) {
  check_one();
  const long compiled = compiler("calls hiprtcCompileProgram");
  check_one();
  assert_int_equal(told.lines, 1);
  if (!strstr(told.text, reason)) fail_msg("`%s` does not say `%s`", told.text, reason);
  assert_true(number("calls cuMemcpyAsync") > 0);
  assert_int_equal(compiler("calls hiprtcCompileProgram"), compiled);
}

static void *hide(void *user, const char *backend, const char *symbol, void *real) {
  (void)backend;
  return strcmp(symbol, user) == 0 ? NULL : real;
}

static void without(const char *symbol, const char *reason) {
  world_load(SIM_HIP6_LIBRARY);
  world.host.symbol_hook = hide;
  world.host.symbol_hook_user = (void *)(uintptr_t)symbol;
  assert_int_equal(world.ops->init(&world.host, &world.driver, NULL), GM_OK);
  assert_int_equal(world.ops->device_open(world.driver, 1, &world.device, NULL), GM_OK);
  memset(&told, 0, sizeof told);
  world.memory.services.log = tell;
  expect_copies(reason);
  world_end(NULL);
}

static void test_without_an_entry(void **state) {
  (void)state;
  begin(NULL);
  end(NULL);
  without("hiprtcCompileProgram", "has no hiprtcCompileProgram");
  without("hiprtcGetCode", "has no hiprtcGetCode");
  without("hipModuleLoadData", "the runtime has no modules");
  without("hipModuleLaunchKernel", "the runtime has no modules");
}

/* ROCm 5 has the compiler inside; the simulated one has not. */
static void test_without_a_compiler(void **state) {
  (void)state;
  begin_on(SIM_HIP5_LIBRARY);
  expect_copies("has no hiprtc");
  end(NULL);
}

static void test_compiler_that_fails(void **state) {
  static const char *const cases[][2] = {
      {"fail hiprtcCreateProgram 1 2", "hiprtcCreateProgram: HIPRTC_ERROR_PROGRAM_CREATION_FAILURE (2)"},
      {"fail hiprtcCompileProgram 1 6", "HIPRTC_ERROR_COMPILATION (6): gm.hip:3: error: as scripted"},
      {"fail hiprtcCompileProgram 1 77", "hiprtcCompileProgram: unknown code (77)"},
      {"fail hiprtcGetCodeSize 1 11", "hiprtcGetCodeSize: HIPRTC_ERROR_INTERNAL_ERROR (11)"},
      {"fail hiprtcGetCode 1 3", "hiprtcGetCode: HIPRTC_ERROR_INVALID_INPUT (3)"},
      {"size -1", "hiprtc says that the code has 0 bytes"},
      {"size 1099511627776", "hiprtc says that the code has 1099511627776 bytes"},
      {"none", "success, and no program"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    begin(NULL);
    rtc(cases[i][0]);
    expect_copies(cases[i][1]);
    end(NULL);
  }
}

static void test_runtime_that_fails(void **state) {
  static const char *const cases[][2] = {
      {"fail cuModuleLoadData:1:2", "hipModuleLoadData: hipErrorOutOfMemory (2)"},
      {"fail cuModuleGetFunction:1:500", "hipModuleGetFunction: hipErrorNotFound (500)"},
      {"fail cuLaunchKernel:1:701", "hipModuleLaunchKernel: hipErrorLaunchOutOfResources (701)"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    begin(NULL);
    control(cases[i][0]);
    expect_copies(cases[i][1]);
    assert_int_equal(engine.hipPeekAtLastError(), hipSuccess);
    end(NULL);
  }
}

static void test_launch_on_a_lost_device(void **state) {
  gm_error err = {0};
  (void)state;
  const gm_memory memory = take(0);
  control("fail cuLaunchKernel:1:719");
  assert_int_equal(world.ops->fill(world.device, NULL, &memory, 0, 64, pattern, 16, NULL, &err), GM_ERR_DEVICE_LOST);
  assert_non_null(strstr(err.message, "hipModuleLaunchKernel"));
  assert_int_equal(err.native_code, 719);
  give(&memory);
  world.ops->device_close(world.device, GM_CLOSE_NORMAL);
  world.ops->fini(world.driver, GM_CLOSE_NORMAL);
  counted_services_check(&world.memory); /* at the driver all is lost */
}

/* The kernel's files know the architecture, which is handed on; code for another one is not loaded. */
static void test_architectures(void **state) {
  (void)state;
  begin(NULL);
  setenv("SIMHIP_ARCH", "gfx1100", 1);
  snprintf(((gm__hip_device *)world.device)->base.info.capability, 16, "gfx1100");
  check_one();
  assert_int_equal(number("calls cuLaunchKernel"), 1);
  end(NULL);
  begin(NULL);
  setenv("SIMHIP_ARCH", "gfx1100", 1);
  snprintf(((gm__hip_device *)world.device)->base.info.capability, 16, "gfx90a");
  expect_copies("hipModuleLoadData: hipErrorNoBinaryForGpu (209)");
  end(NULL);
}

/* ROCm takes the card for another one: the kernel's files do not know, the runtime does. */
static void test_overridden_architecture(void **state) {
  (void)state;
  setenv("SIMHIP_ARCH", "gfx1030", 1);
  setenv("HSA_OVERRIDE_GFX_VERSION", "10.3.0", 1);
  snprintf(((gm__hip_device *)world.device)->base.info.capability, 16, "gfx1031");
  check_one();
  unsetenv("HSA_OVERRIDE_GFX_VERSION");
  assert_int_equal(number("calls cuLaunchKernel"), 1);
}

static void *lend(hipStream_t stream) {
  const gm_hip_stream lent = {.head = {sizeof lent, GM_API_HIP}, .stream = (uintptr_t)stream};
  gm_stream_kind kind;
  void *out = NULL;
  assert_int_equal(world.ops->stream_adopt(world.device, &lent.head, &out, &kind, NULL), GM_OK);
  return out;
}

static hipStream_t engine_stream(void) {
  hipStream_t stream = NULL;
  engine.hipSetDevice(1);
  assert_int_equal(engine.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
  return stream;
}

/* Nothing is compiled or loaded while the engine captures, and the capture is whole afterwards. */
static void test_capture_is_not_disturbed(void **state) {
  hipGraph_t graph = NULL;
  (void)state;
  const gm_memory memory = take(0);
  const hipStream_t stream = engine_stream();
  void *lent = lend(stream);
  assert_int_equal(engine.hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
  check_fill(&memory, 0, 1000, 16);
  assert_int_equal(rtc("calls hiprtcCompileProgram"), 0);
  assert_int_equal(number("calls cuModuleLoadData"), 0);
  assert_int_equal(engine.hipStreamEndCapture(stream, &graph), hipSuccess);
  assert_int_equal(engine.hipGraphDestroy(graph), hipSuccess);
  check_fill(&memory, 0, 1000, 16);
  assert_int_equal(number("calls cuLaunchKernel"), 1);
  assert_int_equal(told.lines, 0);
  world.ops->stream_close(world.device, lent, GM_CLOSE_NORMAL);
  assert_int_equal(engine.hipStreamDestroy(stream), hipSuccess);
  give(&memory);
}

static void test_unloads_when_closed(void **state) {
  (void)state;
  check_one();
  world.ops->device_close(world.device, GM_CLOSE_NORMAL);
  world.device = NULL;
  assert_int_equal(number("calls cuModuleUnload"), 1);
}

static void test_abandoning_unloads_nothing(void **state) {
  (void)state;
  check_one();
  const long long before = number("calls");
  world.ops->device_close(world.device, GM_CLOSE_ABANDON);
  world.ops->fini(world.driver, GM_CLOSE_ABANDON);
  assert_int_equal(number("calls"), before);
  counted_services_check(&world.memory);
}

enum { THREADS = 4 };

static void *fill_in_thread(void *user) {
  const gm_memory *memory = user;
  for (int i = 0; i < 20; i++) {
    if (fill_on(NULL, memory, 0, 4096, 16) != GM_OK) return user;
  }
  return NULL;
}

/* One compiles, the others go without until it is there. */
static void test_threads_begin_together(void **state) {
  pthread_t threads[THREADS];
  gm_memory memory[THREADS];
  (void)state;
  for (int i = 0; i < THREADS; i++) memory[i] = take(0);
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, fill_in_thread, &memory[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *failed = NULL;
    uint8_t got[4096];
    pthread_join(threads[i], &failed);
    assert_null(failed);
    assert_int_equal(world.ops->copy_to_host(world.device, NULL, &memory[i], 0, got, sizeof got, NULL, NULL), GM_OK);
    for (size_t at = 0; at < sizeof got; at += 16) assert_memory_equal(got + at, pattern, 16);
    give(&memory[i]);
  }
  assert_int_equal(rtc("calls hiprtcCompileProgram"), 1);
}

/* Whatever host memory is missing, the fill is done. */
static void test_without_host_memory(void **state) {
  (void)state;
  for (size_t n = 1; n < 8; n++) {
    begin(NULL);
    const gm_memory memory = take(0);
    atomic_store(&world.memory.calls, 0);
    world.memory.fail_at = n;
    const gm_status status = fill_on(NULL, &memory, 0, 1000, 16);
    world.memory.fail_at = 0;
    assert_int_equal(status, GM_OK);
    check_fill(&memory, 1, 1000, 16);
    give(&memory);
    end(NULL);
  }
}

/* ---- small copies ---- */

static gm_memory small_from, small_to;

static void small_begin(void) {
  begin(NULL);
  small_from = take(0);
  small_to = take(0);
  program_scene_set(world.ops, world.device, NULL, &small_from, &small_to);
  control("zero");
}

static int small_end(void **state) {
  give(&small_from);
  give(&small_to);
  return end(state);
}

static void test_copies_by_one_kernel(void **state) {
  small_begin();
  program_scene_copy(100);
  assert_int_equal(number("calls cuLaunchKernel"), 1);
  program_scene_copy(PROGRAM_MOST);
  assert_int_equal(number("calls cuLaunchKernel"), 4);
  assert_int_equal(number("calls cuMemcpyAsync"), 0);
  program_scene_odd();
  assert_int_equal(number("calls cuLaunchKernel"), 4);
  assert_int_equal(rtc("calls hiprtcCompileProgram"), 1);
  assert_int_equal(told.lines, 0);
  small_end(state);
}

/* One kernel that the compiler refuses takes no other with it. */
static void test_copies_without_the_kernel(void **state) {
  static const char *const cases[][2] = {{"fail hiprtcCompileProgram 1 6", NULL},
                                         {NULL, "fail cuModuleLoadData:1:2"},
                                         {NULL, "fail cuModuleGetFunction:1:500"},
                                         {NULL, "fail cuLaunchKernel:1:701"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    small_begin();
    if (cases[i][0]) rtc(cases[i][0]);
    if (cases[i][1]) control(cases[i][1]);
    program_scene_copy(100);
    program_scene_copy(100);
    assert_int_equal(told.lines, 1);
    assert_non_null(strstr(told.text, "hip device 1: small copies go one by one, not by a kernel: "));
    check_one();
    assert_int_equal(told.lines, 1);
    assert_int_equal(rtc("calls hiprtcCompileProgram"), 2);
    small_end(state);
  }
}

static void test_expands_by_a_kernel(void **state) {
  static const uint16_t numbers[5] = {0x3c00, 0x0001, 0x8400, 0xfc00, 0x7c01};
  static const uint32_t halves[5] = {0x3f800000, 0x33800000, 0xb8800000, 0xff800000, 0x7fc02000};
  uint32_t got[5];
  small_begin();
  assert_int_equal(world.ops->copy_to_device(world.device, NULL, &small_from, 6, numbers, sizeof numbers, NULL, NULL),
                   GM_OK);
  assert_int_equal(world.ops->expand(world.device, NULL, &small_to, 12, &small_from, 6, 5, GM_DTYPE_F16, NULL, NULL),
                   GM_OK);
  assert_int_equal(world.ops->copy_to_host(world.device, NULL, &small_to, 12, got, sizeof got, NULL, NULL), GM_OK);
  assert_memory_equal(got, halves, sizeof got);
  assert_int_equal(number("calls cuLaunchKernel"), 1);
  control("fail cuLaunchKernel:1:701");
  assert_int_equal(world.ops->expand(world.device, NULL, &small_to, 12, &small_from, 6, 5, GM_DTYPE_F16, NULL, NULL),
                   GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(told.text, "the host expands numbers, not by a kernel: hipModuleLaunchKernel"));
  small_end(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_fills_by_one_kernel, begin, end),
      cmocka_unit_test_setup_teardown(test_fills_of_every_kind_of_memory, begin, end),
      cmocka_unit_test_setup_teardown(test_fills_of_every_kind_of_memory, begin_7, end),
      cmocka_unit_test_setup_teardown(test_fills_mapped_memory, begin, end),
      cmocka_unit_test_setup_teardown(test_kernel_keeps_the_order, begin, end),
      cmocka_unit_test(test_copies_by_one_kernel),
      cmocka_unit_test(test_copies_without_the_kernel),
      cmocka_unit_test(test_expands_by_a_kernel),
      cmocka_unit_test(test_without_an_entry),
      cmocka_unit_test(test_without_a_compiler),
      cmocka_unit_test(test_compiler_that_fails),
      cmocka_unit_test(test_runtime_that_fails),
      cmocka_unit_test(test_architectures),
      cmocka_unit_test_setup_teardown(test_overridden_architecture, begin, end),
      cmocka_unit_test_setup_teardown(test_capture_is_not_disturbed, begin, end),
      cmocka_unit_test_setup_teardown(test_unloads_when_closed, begin, end),
      cmocka_unit_test_setup_teardown(test_threads_begin_together, begin, end),
      cmocka_unit_test(test_without_host_memory),
      cmocka_unit_test_setup(test_abandoning_unloads_nothing, begin),
      cmocka_unit_test_setup(test_launch_on_a_lost_device, begin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
