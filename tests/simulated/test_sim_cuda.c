/* The simulated CUDA driver by itself: entry points, devices, contexts, memory, and what a script can do. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/simulated/sim_cuda_fixture.h"

static void *find(const char *name, int version, uint64_t flags, CUdriverProcAddressQueryResult *status) {
  void *symbol = NULL;
  assert_cu(cu.cuGetProcAddress_v2(name, &symbol, version, flags, status));
  return symbol;
}

static void proc_address_answers_by_version(void **state) {
  (void)state;
  CUdriverProcAddressQueryResult status;
  assert_ptr_equal(find("cuMemAlloc", 13000, 0, &status), fixture_exported("cuMemAlloc_v2"));
  assert_ptr_equal(find("cuMemPrefetchAsync", 12010, 0, &status), fixture_exported("cuMemPrefetchAsync"));
  assert_ptr_equal(find("cuMemPrefetchAsync", 12020, 0, &status), fixture_exported("cuMemPrefetchAsync_v2"));
  assert_null(find("cuMemAllocAsync", 11000, 0, &status));
  assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  assert_null(find("cuMemAlloc_v2x", 13000, 0, &status));
  assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  assert_ptr_equal(find("cuStreamSynchronize", 13000, 2, &status), fixture_exported("cuStreamSynchronize_ptsz"));
  assert_ptr_equal(find("cuMemcpyHtoD", 13000, 2, &status), fixture_exported("cuMemcpyHtoD_v2_ptds"));
  assert_ptr_equal(find("cuStreamSynchronize", 13000, 1, &status), fixture_exported("cuStreamSynchronize"));
  void *symbol = NULL;
  assert_int_equal(cu.cuGetProcAddress("cuNothing", &symbol, 13000, 0), CUDA_ERROR_NOT_FOUND);
  assert_int_equal(cu.cuGetProcAddress_v2("cuInit", &symbol, 14000, 0, &status), CUDA_ERROR_INVALID_VALUE);
}

static void old_drivers_lack_newer_symbols(void **state) {
  (void)state;
  CUdriverProcAddressQueryResult status;
  fixture_do("set VERSION 12000");
  assert_null(find("cuMemcpyBatchAsync", 12000, 0, &status));
  assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  assert_ptr_equal(find("cuMemAdvise", 12000, 0, &status), fixture_exported("cuMemAdvise"));
  float elapsed = 0;
  assert_int_equal(cu.cuEventElapsedTime_v2(&elapsed, NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
  assert_int_equal(fixture_number("get dropped_calls"), 1);
  int version = 0;
  assert_cu(cu.cuDriverGetVersion(&version));
  assert_int_equal(version, 12000);
}

static void devices_say_they_are_simulated(void **state) {
  (void)state;
  char name[64];
  assert_cu(cu.cuDeviceGetName(name, sizeof name, 1));
  assert_string_equal(name, "Simulated GPU 1");
  CUuuid whole, part;
  fixture_do("set MIG 1");
  assert_cu(cu.cuDeviceGetUuid(&whole, 0));
  assert_cu(cu.cuDeviceGetUuid_v2(&part, 0));
  assert_memory_not_equal(&whole, &part, sizeof whole);
  char pci[32];
  CUdevice device = -1;
  assert_cu(cu.cuDeviceGetPCIBusId(pci, sizeof pci, 1));
  assert_cu(cu.cuDeviceGetByPCIBusId(&device, pci));
  assert_int_equal(device, 1);
  assert_int_equal(cu.cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
  int value = -1;
  assert_cu(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
  assert_int_equal(value, 1);
  fixture_do("set NO pools,vmm");
  assert_cu(cu.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
  assert_int_equal(value, 0);
  CUdeviceptr address = 0;
  assert_int_equal(cu.cuMemAllocAsync(&address, 64, NULL), CUDA_ERROR_NOT_SUPPORTED);
  assert_int_equal(cu.cuMemAddressReserve(&address, 2 << 20, 0, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
}

static void contexts_are_counted_and_stacked(void **state) {
  (void)state;
  CUcontext first = NULL, other = NULL, top = NULL;
  assert_cu(cu.cuCtxGetCurrent(&first));
  assert_cu(cu.cuDevicePrimaryCtxRetain(&other, 1));
  assert_cu(cu.cuCtxPushCurrent_v2(other));
  CUdevice device = -1;
  assert_cu(cu.cuCtxGetDevice(&device));
  assert_int_equal(device, 1);
  assert_cu(cu.cuCtxPopCurrent_v2(&top));
  assert_ptr_equal(top, other);
  assert_cu(cu.cuCtxGetCurrent(&top));
  assert_ptr_equal(top, first);
  assert_cu(cu.cuCtxPushCurrent_v2(other));
  assert_cu(cu.cuDevicePrimaryCtxRelease_v2(1));
  CUdeviceptr address = 0;
  assert_int_equal(cu.cuMemAlloc_v2(&address, 64), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  assert_cu(cu.cuCtxPopCurrent_v2(NULL));
  assert_int_equal(cu.cuDevicePrimaryCtxRelease_v2(1), CUDA_ERROR_INVALID_CONTEXT);
  assert_cu(cu.cuCtxSetCurrent(NULL));
  assert_int_equal(cu.cuMemAlloc_v2(&address, 64), CUDA_ERROR_INVALID_CONTEXT);
}

static void memory_is_counted_and_refused(void **state) {
  (void)state;
  size_t left = 0, total = 0, after = 0;
  assert_cu(cu.cuMemGetInfo_v2(&left, &total));
  assert_int_equal(total, (size_t)1 << 30);
  assert_int_equal(left, total - (4 << 20));
  CUdeviceptr first = fixture_alloc(1 << 20), none = 7;
  assert_cu(cu.cuMemGetInfo_v2(&after, &total));
  assert_int_equal(after, left - (1 << 20));
  assert_int_equal(cu.cuMemAlloc_v2(&none, total), CUDA_ERROR_OUT_OF_MEMORY);
  assert_int_equal(none, 7);
  fixture_do("set FRAGMENT 64k");
  assert_int_equal(cu.cuMemAlloc_v2(&none, 65 << 10), CUDA_ERROR_OUT_OF_MEMORY);
  fixture_do("set FRAGMENT 0");
  fixture_do("set OTHERS 1000m");
  assert_int_equal(cu.cuMemAlloc_v2(&none, 32 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  assert_cu(cu.cuMemFree_v2(first));
  assert_int_equal(cu.cuMemFree_v2(first), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr again = fixture_alloc(1 << 20);
  fixture_do("set OOM_AFTER 1");
  CUdeviceptr last = fixture_alloc(64);
  assert_int_equal(cu.cuMemAlloc_v2(&none, 64), CUDA_ERROR_OUT_OF_MEMORY);
  assert_cu(cu.cuMemFree_v2(last));
  assert_int_equal(again, first); /* addresses are used again at once */
  assert_cu(cu.cuMemFree_v2(again));
}

static void freed_memory_is_poisoned(void **state) {
  (void)state;
  CUdeviceptr address = fixture_alloc(4096);
  assert_cu(cu.cuMemsetD32_v2(address, 5, 1024));
  assert_int_equal(fixture_word(address + 4092), 5);
  assert_cu(cu.cuMemFree_v2(address));
  CUdeviceptr again = fixture_alloc(4096);
  assert_int_equal(again, address);
  assert_int_equal(fixture_word(again + 4092), 0xcdcdcdcd);
  assert_cu(cu.cuMemFree_v2(again));
}

static void hosts_fault_on_device_addresses(void **state) {
  (void)state;
  CUdeviceptr address = fixture_alloc(4096);
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    *(volatile int *)(uintptr_t)address = 1;
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  assert_cu(cu.cuMemFree_v2(address));
}

static void forked_children_are_refused(void **state) {
  (void)state;
  pid_t child = fork();
  if (child == 0) {
    int count = 0;
    _exit(cu.cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void scripted_calls_fail_once(void **state) {
  (void)state;
  CUdeviceptr address = 0;
  fixture_do("fail cuMemAlloc:2:2,cuStreamCreate:*:999");
  CUdeviceptr first = fixture_alloc(64);
  assert_int_equal(cu.cuMemAlloc_v2(&address, 64), CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr second = fixture_alloc(64);
  CUstream stream = NULL;
  assert_int_equal(cu.cuStreamCreate(&stream, 0), CUDA_ERROR_UNKNOWN);
  assert_int_equal(cu.cuStreamCreate(&stream, 0), CUDA_ERROR_UNKNOWN);
  fixture_do("fail");
  assert_cu(cu.cuMemFree_v2(first));
  assert_cu(cu.cuMemFree_v2(second));
  assert_int_equal(fixture_number("calls cuMemAlloc"), 3);
  assert_int_equal(cu.control("fail nonsense", NULL, 0), 1);
  assert_int_equal(cu.control("frobnicate", NULL, 0), 1);
}

static void lost_devices_stay_lost(void **state) {
  (void)state;
  CUdeviceptr address = fixture_alloc(64);
  fixture_do("set LOST_AFTER 2:700");
  assert_cu(cu.cuMemsetD8_v2(address, 1, 64));
  assert_cu(cu.cuCtxSynchronize());
  assert_int_equal(cu.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(cu.cuMemFree_v2(address), CUDA_ERROR_ILLEGAL_ADDRESS);
  fixture_do("reload");
  assert_cu(cu.cuMemFree_v2(address));
}

static void hostile_answers_are_played(void **state) {
  (void)state;
  char name[8] = {0};
  int count = 0;
  CUdeviceptr address = 5;
  fixture_do("set HOSTILE names,counts,null_success");
  assert_cu(cu.cuDeviceGetName(name, sizeof name, 0));
  assert_memory_equal(name, "SSSSSSSS", 8);
  assert_cu(cu.cuDeviceGetCount(&count));
  assert_int_equal(count, -1);
  assert_cu(cu.cuMemAlloc_v2(&address, 64));
  assert_int_equal(address, 0);
  fixture_do("set HOSTILE counts_huge");
  assert_cu(cu.cuDeviceGetCount(&count));
  assert_int_equal(count, INT32_MAX);
  size_t left = 0, total = 0;
  fixture_do("set MEMINFO free_above_total");
  assert_cu(cu.cuMemGetInfo_v2(&left, &total));
  assert_true(left > total);
  fixture_do("set MEMINFO fail");
  assert_int_equal(cu.cuMemGetInfo_v2(&left, &total), CUDA_ERROR_UNKNOWN);
}

static void pinned_memory_has_rules(void **state) {
  (void)state;
  void *pinned = NULL;
  assert_cu(cu.cuMemHostAlloc(&pinned, 8192, 0));
  memset(pinned, 1, 8192);
  assert_int_equal(cu.cuMemHostRegister_v2(pinned, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  assert_cu(cu.cuMemFreeHost(pinned));
  char *own = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(own != MAP_FAILED);
  assert_cu(cu.cuMemHostRegister_v2(own, 4096, 0));
  assert_int_equal(cu.cuMemHostRegister_v2(own + 2048, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  assert_cu(cu.cuMemHostUnregister(own));
  assert_int_equal(cu.cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  assert_int_equal(mprotect(own + 8192, 4096, PROT_READ), 0);
  assert_int_equal(cu.cuMemHostRegister_v2(own + 4096, 8192, 0), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(cu.cuMemHostRegister_v2(own + 8192, 4096, CU_MEMHOSTREGISTER_READ_ONLY), CUDA_ERROR_NOT_SUPPORTED);
  fixture_do("set READ_ONLY 1");
  assert_cu(cu.cuMemHostRegister_v2(own + 8192, 4096, CU_MEMHOSTREGISTER_READ_ONLY));
  assert_cu(cu.cuMemHostUnregister(own + 8192));
  assert_int_equal(cu.cuMemHostRegister_v2(own, (size_t)513 << 30, 0), CUDA_ERROR_INVALID_VALUE);
  fixture_do("set PINNED 4k");
  assert_int_equal(cu.cuMemHostAlloc(&pinned, 8192, 0), CUDA_ERROR_OUT_OF_MEMORY);
  munmap(own, 3 * 4096);
}

static void pointers_are_known(void **state) {
  (void)state;
  CUdeviceptr device = fixture_alloc(1000), base = 0, shared = 0;
  size_t bytes = 0;
  assert_cu(cu.cuMemGetAddressRange_v2(&base, &bytes, device + 999));
  assert_int_equal(base, device);
  assert_int_equal(bytes, 1000);
  unsigned type = 0;
  assert_cu(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
  assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
  assert_int_equal(cu.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&type),
                   CUDA_ERROR_INVALID_VALUE);
  assert_cu(cu.cuMemAllocManaged(&shared, 4096, CU_MEM_ATTACH_GLOBAL));
  *(int *)(uintptr_t)shared = 3; /* the host may */
  unsigned char managed = 0;
  assert_cu(cu.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, shared));
  assert_int_equal(managed, 1);
  assert_cu(cu.cuMemPrefetchAsync(shared, 4096, CU_DEVICE_CPU, NULL));
  assert_cu(cu.cuMemFree_v2(shared));
  assert_cu(cu.cuMemFree_v2(device));
}

static void the_environment_is_read(void **state) {
  (void)state;
  static const char *const settings[][2] = {{"SIMCUDA_DEVICES", "3"},
                                            {"SIMCUDA_TOTAL", "64m,2g"},
                                            {"SIMCUDA_OTHERS", "0,1g"},
                                            {"SIMCUDA_VERSION", "11040"},
                                            {"SIMCUDA_FAIL", "cuCtxGetDevice:1:304"},
                                            {"SIMCUDA_OOM_AFTER", "1"}};
  enum { COUNT = sizeof settings / sizeof settings[0] };
  for (int i = 0; i < COUNT; i++) setenv(settings[i][0], settings[i][1], 1);
  fixture_do("reload");
  for (int i = 0; i < COUNT; i++) unsetenv(settings[i][0]);
  int count = 0;
  size_t total = 0;
  CUdevice device = -1;
  assert_cu(cu.cuDeviceGetCount(&count));
  assert_int_equal(count, 3);
  assert_cu(cu.cuDeviceTotalMem_v2(&total, 0));
  assert_int_equal(total, 64 << 20);
  assert_cu(cu.cuDeviceTotalMem_v2(&total, 2));
  assert_true(total == (size_t)2 << 30);
  char figures[128];
  assert_int_equal(cu.control("device 2", figures, sizeof figures), 0);
  assert_string_equal(figures, "2147483648 1073741824 0");
  assert_int_equal(cu.cuCtxGetDevice(&device), CUDA_ERROR_OPERATING_SYSTEM);
  assert_cu(cu.cuCtxGetDevice(&device));
  assert_int_equal(cu.control("set TOTAL nonsense", NULL, 0), 1);
}

static void every_symbol_is_listed(void **state) {
  (void)state;
  static char list[16384];
  assert_int_equal(cu.control("symbols", list, sizeof list), 0);
  int lines = 0;
  for (const char *at = list; (at = strchr(at, '\n')); at++) lines++;
  assert_true(lines > 140);
  assert_non_null(strstr(list, "cuMemAlloc_v2 3020\n"));
  assert_int_equal(cu.control("called", list, sizeof list), 0);
  assert_non_null(strstr(list, "cuDevicePrimaryCtxRetain 1\n"));
}

static void call_at_exit(void) {
  int count = 0;
  _exit(cu.cuDeviceGetCount(&count) == CUDA_ERROR_DEINITIALIZED ? 0 : 1);
}

/* Started before this process initialises CUDA: they end, and call once more while they do. */
static pid_t exit_children[2];

static int start_children(void **state) {
  for (int crash = 0; crash < 2; crash++) {
    exit_children[crash] = fork();
    if (exit_children[crash]) continue;
    if (crash) setenv("SIMCUDA_EXIT", "crash_after_atexit", 1);
    signal(SIGABRT, SIG_DFL);
    atexit(call_at_exit);
    exit(fixture_load(state) ? 2 : 3);
  }
  return fixture_load(state);
}

static void calls_after_exit_began_are_refused(void **state) {
  (void)state;
  int status = 0;
  assert_int_equal(waitpid(exit_children[0], &status, 0), exit_children[0]);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_int_equal(waitpid(exit_children[1], &status, 0), exit_children[1]);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_begin, fixture_end)
  const struct CMUnitTest tests[] = {
      TEST(proc_address_answers_by_version),
      TEST(old_drivers_lack_newer_symbols),
      TEST(devices_say_they_are_simulated),
      TEST(contexts_are_counted_and_stacked),
      TEST(memory_is_counted_and_refused),
      TEST(freed_memory_is_poisoned),
      TEST(hosts_fault_on_device_addresses),
      TEST(forked_children_are_refused),
      TEST(scripted_calls_fail_once),
      TEST(lost_devices_stay_lost),
      TEST(hostile_answers_are_played),
      TEST(pinned_memory_has_rules),
      TEST(pointers_are_known),
      TEST(the_environment_is_read),
      TEST(every_symbol_is_listed),
      TEST(calls_after_exit_began_are_refused),
  };
  return cmocka_run_group_tests(tests, start_children, NULL);
}
