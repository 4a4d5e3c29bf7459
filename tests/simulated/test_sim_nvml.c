/* The simulated NVML by itself, and that it counts what the simulated CUDA driver uses. */
#include <unistd.h>

#include "tests/simulated/nvml/sim_nvml_api.h"
#include "tests/simulated/sim_cuda_fixture.h"

#define NVML_ENTRIES(ENTRY)                      \
  ENTRY(nvmlInit_v2)                             \
  ENTRY(nvmlShutdown)                            \
  ENTRY(nvmlDeviceGetCount_v2)                   \
  ENTRY(nvmlDeviceGetHandleByIndex_v2)           \
  ENTRY(nvmlDeviceGetHandleByUUID)               \
  ENTRY(nvmlDeviceGetHandleByPciBusId_v2)        \
  ENTRY(nvmlDeviceGetName)                       \
  ENTRY(nvmlDeviceGetUUID)                       \
  ENTRY(nvmlDeviceGetMemoryInfo)                 \
  ENTRY(nvmlDeviceGetMemoryInfo_v2)              \
  ENTRY(nvmlDeviceGetComputeRunningProcesses_v3) \
  ENTRY(nvmlDeviceGetMigDeviceHandleByIndex)     \
  ENTRY(nvmlDeviceIsMigDeviceHandle)

typedef struct nvml_api {
#define ENTRY(name) __typeof__(name) *name;
  NVML_ENTRIES(ENTRY)
#undef ENTRY
} nvml_api;

static nvml_api nvml;

static int load_nvml(void **state) {
  (void)state;
  void *library = dlopen(SIM_NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  void *symbol = NULL;
#define ENTRY(name)               \
  symbol = dlsym(library, #name); \
  if (!symbol) fail_msg(#name);   \
  memcpy(&nvml.name, &symbol, sizeof symbol);
  NVML_ENTRIES(ENTRY)
#undef ENTRY
  return 0;
}

static int clear_script(void **state) {
  (void)state;
  static const char *const names[] = {"SIMCUDA_DEVICES", "SIMCUDA_TOTAL", "SIMCUDA_OTHERS",
                                      "SIMCUDA_MIG",     "SIMNVML_INIT",  "SIMNVML_PROCESSES"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unsetenv(names[i]);
  return 0;
}

static void it_wants_to_be_initialised(void **state) {
  (void)state;
  unsigned count = 0;
  assert_int_equal(nvml.nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
  assert_int_equal(nvml.nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
  setenv("SIMNVML_INIT", "9", 1);
  assert_int_equal(nvml.nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
}

static void figures_come_from_the_script(void **state) {
  (void)state;
  nvmlDevice_t device = NULL, same = NULL;
  nvmlMemory_t memory;
  nvmlMemory_v2_t memory_v2 = {.version = NVML_MEMORY_V2};
  char text[96];
  unsigned count = 0;
  setenv("SIMCUDA_DEVICES", "2", 1);
  setenv("SIMCUDA_TOTAL", "8g,24g", 1);
  setenv("SIMCUDA_OTHERS", "0,4g", 1);
  assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
  assert_int_equal(nvml.nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
  assert_int_equal(count, 2);
  assert_int_equal(nvml.nvmlDeviceGetHandleByIndex_v2(1, &device), NVML_SUCCESS);
  assert_int_equal(nvml.nvmlDeviceGetHandleByIndex_v2(2, &device), NVML_ERROR_INVALID_ARGUMENT);
  assert_int_equal(nvml.nvmlDeviceGetName(device, text, sizeof text), NVML_SUCCESS);
  assert_string_equal(text, "Simulated GPU 1");
  assert_int_equal(nvml.nvmlDeviceGetName(device, text, 4), NVML_ERROR_INSUFFICIENT_SIZE);
  assert_int_equal(nvml.nvmlDeviceGetUUID(device, text, sizeof text), NVML_SUCCESS);
  assert_int_equal(nvml.nvmlDeviceGetHandleByUUID(text, &same), NVML_SUCCESS);
  assert_ptr_equal(same, device);
  assert_int_equal(nvml.nvmlDeviceGetHandleByPciBusId_v2("00000000:0B:00.0", &same), NVML_SUCCESS);
  assert_ptr_equal(same, device);
  assert_int_equal(nvml.nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
  assert_true(memory.total == 24ull << 30 && memory.free == 20ull << 30);
  assert_int_equal(nvml.nvmlDeviceGetMemoryInfo_v2(device, &memory_v2), NVML_SUCCESS);
  assert_true(memory_v2.used == 4ull << 30);
  memory_v2.version = 7;
  assert_int_equal(nvml.nvmlDeviceGetMemoryInfo_v2(device, &memory_v2), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
}

static void processes_may_be_unknown(void **state) {
  (void)state;
  nvmlDevice_t device = NULL;
  nvmlProcessInfo_t processes[4];
  unsigned count = 0;
  setenv("SIMCUDA_OTHERS", "1g", 1);
  assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
  assert_int_equal(nvml.nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
  assert_int_equal(nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL), NVML_ERROR_INSUFFICIENT_SIZE);
  assert_int_equal(count, 1);
  assert_int_equal(nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes), NVML_SUCCESS);
  assert_true(processes[0].usedGpuMemory == 1ull << 30 && processes[0].pid != (unsigned)getpid());
  setenv("SIMNVML_PROCESSES", "1", 1);
  assert_int_equal(nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes), NVML_SUCCESS);
  assert_true(processes[0].usedGpuMemory == UINT64_MAX);
  assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
}

static void a_card_is_not_its_part(void **state) {
  (void)state;
  nvmlDevice_t card = NULL, part = NULL;
  nvmlMemory_t of_card, of_part;
  unsigned is_part = 0;
  setenv("SIMCUDA_MIG", "1", 1);
  assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
  assert_int_equal(nvml.nvmlDeviceGetHandleByIndex_v2(0, &card), NVML_SUCCESS);
  assert_int_equal(nvml.nvmlDeviceGetMigDeviceHandleByIndex(card, 0, &part), NVML_SUCCESS);
  assert_int_equal(nvml.nvmlDeviceIsMigDeviceHandle(part, &is_part), NVML_SUCCESS);
  assert_int_equal(is_part, 1);
  assert_int_equal(nvml.nvmlDeviceGetMemoryInfo(card, &of_card), NVML_SUCCESS);
  assert_int_equal(nvml.nvmlDeviceGetMemoryInfo(part, &of_part), NVML_SUCCESS);
  assert_true(of_card.total == 4 * of_part.total);
  assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
}

/* Last: from here on libcuda is loaded. */
static void what_cuda_uses_is_seen(void **state) {
  nvmlDevice_t device = NULL;
  nvmlMemory_t before, after;
  nvmlProcessInfo_t processes[4];
  unsigned count = 4;
  CUcontext context = NULL;
  assert_int_equal(nvml.nvmlInit_v2(), NVML_SUCCESS);
  assert_int_equal(nvml.nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_SUCCESS);
  assert_int_equal(nvml.nvmlDeviceGetMemoryInfo(device, &before), NVML_SUCCESS);
  assert_int_equal(before.used, 0);
  assert_int_equal(fixture_load(state), 0);
  assert_cu(cu.cuDevicePrimaryCtxRetain(&context, 0));
  assert_int_equal(nvml.nvmlDeviceGetMemoryInfo(device, &after), NVML_SUCCESS);
  assert_int_equal(after.used, 4 << 20);
  assert_int_equal(nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes), NVML_SUCCESS);
  assert_int_equal(count, 1);
  assert_int_equal(processes[0].pid, getpid());
  assert_cu(cu.cuDevicePrimaryCtxRelease_v2(0));
  assert_int_equal(nvml.nvmlShutdown(), NVML_SUCCESS);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, clear_script)
  const struct CMUnitTest tests[] = {
      TEST(it_wants_to_be_initialised), TEST(figures_come_from_the_script), TEST(processes_may_be_unknown),
      TEST(a_card_is_not_its_part),     TEST(what_cuda_uses_is_seen),
  };
  return cmocka_run_group_tests(tests, load_nvml, NULL);
}
