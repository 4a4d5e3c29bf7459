/* Pitfalls of memory at an address: shared virtual memory, Intel's unified shared memory, buffers mapped for life. The
 * simulated driver plays each, and gm's public interface meets it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gm/copy.h"
#include "gm/device.h"
#include "gm/managed.h"
#include "gm/native_opencl.h"
#include "gm/transfer.h"
#include "simulated/shim/pitfall.h"

static const pitfall_driver buffers = {"opencl", "SIMCL", "opencl=" SIM_LIBRARY, NULL};
static const pitfall_driver svm = {"opencl", "SIMCL", "opencl=" SIM_LIBRARY, "opencl:memory=svm"};
static const pitfall_driver usm = {"opencl", "SIMCL", "opencl=" SIM_LIBRARY, "opencl:memory=usm"};

/* How many memory types a device has, and its capabilities. */
static uint32_t types_of(const pitfall_driver *driver, const char *script, uint64_t *out_capabilities) {
  pool_bench bench;
  uint32_t count = 0;
  pitfall_open(&bench, driver, script);
  pool_bench_ok(gm_device_memory_type_count(bench.device, &count, err));
  *out_capabilities = gm_device_get_info(bench.device)->capabilities & (GM_CAP_ADDRESS | GM_CAP_MANAGED | GM_CAP_VIEW);
  pitfall_close(&bench);
  return count;
}

static void test_kinds_are_what_the_device_says(void **state) {
  (void)state;
  uint64_t can;
  assert_int_equal(types_of(&buffers, "svm=0", &can), 2);
  assert_int_equal(types_of(&buffers, "svm=1", &can), 3);
  assert_int_equal(types_of(&buffers, "svm=2", &can), 4); /* fine-grained, and a buffer over it */
  assert_int_equal(types_of(&buffers, "svm=3", &can), 5);
  assert_int_equal(types_of(&buffers, "type=gpu,svm=3", &can), 4); /* its memory is its own */
  assert_int_equal(types_of(&buffers, "type=gpu,unified,svm=3", &can), 5);
  assert_int_equal(types_of(&buffers, "svm=0xffffffff00000000", &can), 2);
  assert_int_equal(types_of(&buffers, "svm=0,usm,usm_can=0", &can), 2);
  assert_int_equal(types_of(&buffers, "svm=0,usm,usm_can=0xfffffffe", &can), 2);
  assert_int_equal(types_of(&buffers, "svm=0,usm", &can), 5);
  assert_int_equal(can, GM_CAP_VIEW | GM_CAP_MANAGED);
  assert_int_equal(types_of(&usm, "svm=3,usm", &can), 8);
  assert_int_equal(can, GM_CAP_ADDRESS | GM_CAP_MANAGED);
}

/* The extension's name is there, its entries are not. */
static void test_extension_without_its_entries(void **state) {
  (void)state;
  uint64_t can;
  assert_int_equal(types_of(&usm, "svm=0,usm,lacks=clEnqueueMemcpyINTEL", &can), 2);
  assert_int_equal(can, GM_CAP_VIEW);
  assert_int_equal(types_of(&usm, "svm=0,usm,fail=clGetExtensionFunctionAddressForPlatform:3", &can), 2);
  assert_int_equal(types_of(&usm, "svm=0,usm,lacks=clEnqueueMigrateMemINTEL", &can), 5);
  assert_int_equal(can, GM_CAP_ADDRESS);
}

static gm_opencl_memory native_of(const pool_bench *bench, const gm_block *block) {
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  pool_bench_ok(gm_block_native(bench->pool, block, &native.head, err));
  return native;
}

/* An engine whose kernels take a cl_mem never gets an address, also where there is no buffer to be had. */
static void test_pools_stay_with_one_kind_of_handle(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  pitfall_open(&bench, &buffers, "type=gpu,total=1G,svm=3,usm,fail=clCreateBuffer:2:-4,fail=clCreateBuffer:3:-4");
  block = pitfall_block(&bench, MIB, 0, GM_DEVICE_LOCAL);
  const gm_opencl_memory native = native_of(&bench, &block);
  assert_true(native.memory != 0 && native.pointer == 0 && !native.unified);
  gm_block more;
  assert_int_equal(pitfall_take(&bench, 64 * MIB, 0, GM_ANYWHERE, &more), GM_ACQUIRE_EXHAUSTED);
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

static void round_trip(const pool_bench *bench, const gm_block *block) {
  unsigned char want[1000], got[1000] = {0};
  void *host = NULL;
  for (unsigned i = 0; i < sizeof want; i++) want[i] = (unsigned char)(i * 3);
  pool_bench_ok(gm_block_write(bench->pool, block, 5, want, sizeof want, NULL, NULL, err));
  pool_bench_ok(gm_block_read(bench->pool, block, 5, got, sizeof got, NULL, NULL, err));
  assert_memory_equal(got, want, sizeof want);
  if (gm_block_map(bench->pool, block, 0, 2000, GM_MAP_READ, NULL, &host, NULL) != GM_OK) return;
  assert_memory_equal((unsigned char *)host + 5, want, sizeof want);
  pool_bench_ok(gm_block_unmap(bench->pool, block, host, NULL, err));
}

static void test_addresses_where_they_are_asked_for(void **state) {
  (void)state;
  const pitfall_driver *const drivers[] = {&svm, &usm};
  for (int i = 0; i < 2; i++) {
    pool_bench bench;
    pitfall_open(&bench, drivers[i], "type=gpu,total=1G,svm=3,usm,align_bits=32768");
    gm_block block = pitfall_block(&bench, MIB, 0, GM_DEVICE_LOCAL);
    gm_block seen = pitfall_block(&bench, MIB, GM_HOST_VISIBLE, GM_DEVICE_ACCESSIBLE);
    const gm_opencl_memory native = native_of(&bench, &block);
    assert_true(native.memory == 0 && native.pointer == block.address && native.unified == (i == 1));
    assert_int_equal(block.address % 4096, 0);
    round_trip(&bench, &block);
    round_trip(&bench, &seen);
    pitfall_free(&bench, &seen);
    pitfall_free(&bench, &block);
    pitfall_close(&bench);
  }
}

/* The driver is asked what a pointer is; one that it does not know must be shared virtual memory. */
static void test_pointer_of_an_engine(void **state) {
  (void)state;
  pool_bench bench;
  gm_block wrapped;
  gm_error failure;
  pitfall_open(&bench, &usm, "type=gpu,total=1G,usm,svm=0");
  gm_block block = pitfall_block(&bench, MIB, 0, GM_DEVICE_LOCAL);
  gm_opencl_memory native = native_of(&bench, &block);
  native.bytes = MIB + 1;
  assert_int_equal(gm_block_wrap(bench.pool, &native.head, &wrapped, &failure), GM_ERR_INVALID_ARGUMENT);
  native.bytes = 0;
  native.pointer = (uintptr_t)&native;
  assert_int_equal(gm_block_wrap(bench.pool, &native.head, &wrapped, &failure), GM_ERR_NOT_SUPPORTED);
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

static void test_preference_that_the_device_lacks(void **state) {
  (void)state;
  pool_bench bench;
  pitfall_open(&bench, &usm, "type=gpu,total=1G");
  gm_block block = pitfall_block(&bench, MIB, 0, GM_DEVICE_LOCAL);
  assert_true(native_of(&bench, &block).memory != 0);
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

/* Managed memory through both its ends, and its kind. */
static gm_managed_kind managed_kind(const pitfall_driver *driver, const char *script) {
  pool_bench bench;
  gm_managed *managed;
  gm_managed_info info = {.struct_size = sizeof info};
  const gm_managed_params params = {.struct_size = sizeof params, .bytes = MIB, .zero = true};
  pitfall_open(&bench, driver, script);
  pool_bench_ok(gm_managed_create(bench.pool, &params, &managed, err));
  pool_bench_ok(gm_managed_get_info(managed, &info, err));
  unsigned char *host = gm_managed_host(managed);
  assert_true(host[0] == 0 && host[MIB - 1] == 0);
  memset(host, 'h', MIB);
  pool_bench_ok(gm_managed_prefetch(managed, GM_MANAGED_ON_DEVICE, 0, MIB, NULL, NULL, err));
  pool_bench_ok(gm_block_fill(bench.pool, gm_managed_block(managed), 0, MIB / 2, "d", 1, NULL, NULL, err));
  pool_bench_ok(gm_managed_prefetch(managed, GM_MANAGED_ON_HOST, 0, MIB, NULL, NULL, err));
  assert_true(host[0] == 'd' && host[MIB / 2 - 1] == 'd' && host[MIB / 2] == 'h' && host[MIB - 1] == 'h');
  pool_bench_ok(gm_managed_destroy(managed, NULL, err));
  pitfall_close(&bench);
  return info.kind;
}

static void test_managed_memory_is_one_where_the_device_says_so(void **state) {
  (void)state;
  assert_int_equal(managed_kind(&buffers, "type=gpu,unified,total=1G,svm=3"), GM_MANAGED_UNIFIED);
  assert_int_equal(managed_kind(&buffers, "type=gpu,unified,total=1G,svm=2"), GM_MANAGED_UNIFIED);
  assert_int_equal(managed_kind(&buffers, "type=gpu,unified,total=1G,svm=1"), GM_MANAGED_COPIED);
  assert_int_equal(managed_kind(&buffers, "type=gpu,unified,total=1G,svm=0"), GM_MANAGED_COPIED);
  assert_int_equal(managed_kind(&buffers, "type=gpu,total=1G,svm=3"), GM_MANAGED_COPIED);
  assert_int_equal(managed_kind(&svm, "type=gpu,unified,total=1G,svm=3"), GM_MANAGED_UNIFIED);
  assert_int_equal(managed_kind(&usm, "type=gpu,unified,total=1G,usm"), GM_MANAGED_NATIVE);
  assert_int_equal(managed_kind(&usm, "type=gpu,unified,total=1G,usm,lacks=clEnqueueMigrateMemINTEL"),
                   GM_MANAGED_UNIFIED);
}

/* The driver promised fine-grained memory, and then gives none: gm copies, and says so. */
static void test_managed_memory_is_copied_where_svm_is_refused(void **state) {
  (void)state;
  static const char *const refusals[] = {"null=clSVMAlloc", "hostile=crooked", "fail=clCreateBuffer:1:-30"};
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    char script[96];
    snprintf(script, sizeof script, "type=gpu,unified,total=1G,svm=3,%s", refusals[i]);
    assert_int_equal(managed_kind(&buffers, script), GM_MANAGED_COPIED);
  }
}

static gm_error refusal(const pitfall_driver *driver, const char *script, uint64_t bytes) {
  pool_bench bench;
  gm_block block;
  pitfall_open(&bench, driver, script);
  assert_true(pitfall_take(&bench, bytes, 0, GM_DEVICE_LOCAL, &block) > GM_ACQUIRE_FRESH);
  const gm_error why = pitfall_why(&bench, bytes);
  pitfall_close(&bench);
  return why;
}

static void test_success_with_a_null_pointer(void **state) {
  (void)state;
  const gm_error unified = refusal(&usm, "type=gpu,total=1G,usm,null=clDeviceMemAllocINTEL", MIB);
  assert_int_equal(unified.status, GM_ERR_DRIVER);
  assert_non_null(strstr(unified.message, "clDeviceMemAllocINTEL"));
  const gm_error virtual = refusal(&svm, "type=gpu,total=1G,null=clSVMAlloc", MIB);
  assert_int_equal(virtual.status, GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_non_null(strstr(virtual.message, "clSVMAlloc"));
}

static void test_address_that_is_not_aligned(void **state) {
  (void)state;
  assert_int_equal(refusal(&svm, "type=gpu,total=1G,hostile=crooked", MIB).status, GM_ERR_DRIVER);
  assert_int_equal(refusal(&usm, "type=gpu,total=1G,usm,hostile=crooked", MIB).status, GM_ERR_DRIVER);
}

static void test_largest_allocation_and_the_sum_of_all(void **state) {
  (void)state;
  const pitfall_driver *const drivers[] = {&svm, &usm};
  const char *script = "type=gpu,total=256M,maxalloc=quarter,svm=1,usm,lazy";
  for (int i = 0; i < 2; i++) {
    assert_int_equal(refusal(drivers[i], script, 64 * MIB + 1).status, GM_ERR_ALLOCATION_TOO_LARGE);
    pool_bench bench;
    gm_block blocks[4], more;
    pitfall_open(&bench, drivers[i], script);
    for (int j = 0; j < 4; j++) blocks[j] = pitfall_block(&bench, 64 * MIB, 0, GM_DEVICE_LOCAL);
    assert_in_range(pitfall_take(&bench, 32 * MIB, 0, GM_DEVICE_LOCAL, &more), GM_ACQUIRE_EXHAUSTED,
                    GM_ACQUIRE_OVER_LIMIT);
    for (int j = 0; j < 4; j++) pitfall_free(&bench, &blocks[j]);
    pitfall_close(&bench);
  }
}

static void test_lazy_memory_is_touched_when_that_is_asked(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  pitfall_open(&bench, &usm, "type=gpu,total=1G,usm,usm_can=1,lazy,others=960M");
  assert_int_equal(pitfall_take(&bench, 128 * MIB, GM_COMMIT, GM_DEVICE_LOCAL, &block), GM_ACQUIRE_EXHAUSTED);
  assert_int_equal(pitfall_why(&bench, 128 * MIB).status, GM_ERR_OUT_OF_DEVICE_MEMORY);
  block = pitfall_block(&bench, 16 * MIB, GM_COMMIT, GM_DEVICE_LOCAL);
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

/* A whole small program; what fails must say why, and everything is given back. */
static void use(const pitfall_driver *driver, const char *script) {
  static unsigned char bytes[5000];
  pool_bench bench;
  gm_error why = {.status = GM_OK};
  gm_block block;
  void *host = NULL;
  pitfall_context(&bench, driver, script);
  gm_status status = gm_device_open_index(bench.ctx, "opencl", 0, &bench.device, &why);
  if (status == GM_OK) status = gm_pool_create(bench.device, NULL, &bench.pool, &why);
  if (status == GM_OK &&
      pitfall_take(&bench, 70000, GM_COMMIT | GM_HOST_VISIBLE, GM_DEVICE_ACCESSIBLE, &block) <= GM_ACQUIRE_FRESH) {
    status = gm_block_write(bench.pool, &block, 3, bytes, sizeof bytes, NULL, NULL, &why);
    if (status == GM_OK) status = gm_block_fill(bench.pool, &block, 1, 999, "ab", 2, NULL, NULL, &why);
    if (status == GM_OK) status = gm_block_map(bench.pool, &block, 0, 99, GM_MAP_WRITE, NULL, &host, &why);
    if (status == GM_OK) status = pitfall_unmap(&bench, &block, host, &why);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  }
  if (status != GM_OK && (!why.message[0] || why.status != status)) fail_msg("%s: no reason", script);
  pitfall_close(&bench);
}

static void test_each_call_fails(void **state) {
  (void)state;
  static const char *const entries[] = {"clSVMAlloc",
                                        "clEnqueueSVMMemFill",
                                        "clEnqueueSVMMap",
                                        "clEnqueueSVMUnmap",
                                        "clCreateBuffer",
                                        "clHostMemAllocINTEL",
                                        "clDeviceMemAllocINTEL",
                                        "clSharedMemAllocINTEL",
                                        "clEnqueueMemcpyINTEL",
                                        "clEnqueueMemFillINTEL",
                                        "clGetExtensionFunctionAddressForPlatform"};
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
    for (int nth = 1; nth <= 3; nth++) {
      char script[128];
      snprintf(script, sizeof script, "type=gpu,total=1G,usm,fail=%s:%d:-6", entries[i], nth);
      use(&svm, script);
      use(&usm, script);
    }
  }
}

/* ---- the driver's memory for rings ---- */

/* Pageable memory goes to a card and comes back. *out: what the transfer up says. */
static void carry(const char *script, gm_transfer_stats *out) {
  static unsigned char host[3 * MIB];
  pool_bench bench;
  gm_transfer *transfer;
  pitfall_open(&bench, &buffers, script);
  gm_block block = pitfall_block(&bench, sizeof host, 0, GM_DEVICE_LOCAL);
  *out = (gm_transfer_stats){.struct_size = sizeof *out};
  for (size_t i = 0; i < sizeof host; i++) host[i] = (unsigned char)(i % 251);
  for (int down = 0; down < 2; down++) {
    const gm_end there = {.pool = bench.pool, .block = &block}, here = {.host = host};
    const gm_copy copy = {
        .struct_size = sizeof copy, .to = down ? here : there, .from = down ? there : here, .bytes = sizeof host};
    pool_bench_ok(gm_transfer_start(bench.device, &copy, 1, NULL, &transfer, err));
    pool_bench_ok(gm_transfer_wait(transfer, UINT64_MAX, down ? NULL : out, err));
    pool_bench_ok(gm_transfer_release(transfer, err));
    if (!down) memset(host, 0, sizeof host);
  }
  for (size_t i = 0; i < sizeof host; i++) assert_int_equal(host[i], i % 251);
  pitfall_free(&bench, &block);
  pitfall_close(&bench);
}

static void test_rings_are_the_drivers_memory(void **state) {
  (void)state;
  gm_transfer_stats stats;
  carry("type=gpu,total=1G", &stats);
  assert_string_equal(stats.why, "");
  assert_int_equal(stats.staged_bytes, 3 * MIB);
}

/* Smaller first, then pageable. The transfer says why, and the bytes arrive. */
static void test_rings_that_the_driver_refuses(void **state) {
  (void)state;
  gm_transfer_stats stats;
  carry("type=gpu,total=1G,maxalloc=4M", &stats); /* a slot of 4 MiB is a page too large for it */
  assert_non_null(strstr(stats.why, "CL_DEVICE_MAX_MEM_ALLOC_SIZE"));
  assert_int_equal(stats.staged_bytes, 0);
  carry("type=gpu,total=1G,fail=clEnqueueMapBuffer:*:-12", &stats);
  assert_non_null(strstr(stats.why, "clEnqueueMapBuffer"));
  assert_int_equal(stats.staged_bytes, 0);
  carry("type=gpu,total=1G,fail=clEnqueueUnmapMemObject:1:-5", &stats); /* gm asks again */
  assert_string_equal(stats.why, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_kinds_are_what_the_device_says),
      cmocka_unit_test(test_extension_without_its_entries),
      cmocka_unit_test(test_pools_stay_with_one_kind_of_handle),
      cmocka_unit_test(test_addresses_where_they_are_asked_for),
      cmocka_unit_test(test_pointer_of_an_engine),
      cmocka_unit_test(test_preference_that_the_device_lacks),
      cmocka_unit_test(test_managed_memory_is_one_where_the_device_says_so),
      cmocka_unit_test(test_managed_memory_is_copied_where_svm_is_refused),
      cmocka_unit_test(test_success_with_a_null_pointer),
      cmocka_unit_test(test_address_that_is_not_aligned),
      cmocka_unit_test(test_largest_allocation_and_the_sum_of_all),
      cmocka_unit_test(test_lazy_memory_is_touched_when_that_is_asked),
      cmocka_unit_test(test_each_call_fails),
      cmocka_unit_test(test_rings_are_the_drivers_memory),
      cmocka_unit_test(test_rings_that_the_driver_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
