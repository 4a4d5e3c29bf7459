/* Memory of the CUDA backend: kinds, alignment, which memory is out, wrapping, virtual memory, host registration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>
#include <sys/mman.h>

#include "support/cuda_fixture.h"

static gm_status memory_try(cuda_fixture *f, uint32_t type, uint64_t bytes) {
  const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = bytes};
  gm_memory memory;
  const gm_status status = f->ops->memory_alloc(f->device, &params, &memory, &f->err);
  if (status == GM_OK) cuda_free(f, &memory);
  return status;
}

/* FIELD: device and host memory that run out are different answers. */
static void test_which_memory_is_out(void **state) {
  (void)state;
  cuda_fixture f;
  cuda_begin(&f);
  cuda_say("set TOTAL 64m");
  cuda_say("set PINNED 1m");
  cuda_open(&f);
  assert_int_equal(memory_try(&f, 0, UINT64_C(64) << 20), GM_ERR_OUT_OF_DEVICE_MEMORY); /* the context has some */
  assert_string_equal(f.err.op, "cuMemAlloc");
  assert_int_equal(f.err.native_code, CUDA_ERROR_OUT_OF_MEMORY);
  assert_int_equal(memory_try(&f, 0, (UINT64_C(64) << 20) + 1), GM_ERR_ALLOCATION_TOO_LARGE);
  assert_int_equal(memory_try(&f, 1, UINT64_C(2) << 20), GM_ERR_PINNED_LIMIT);
  assert_string_equal(f.err.op, "cuMemHostAlloc");
  assert_int_equal(memory_try(&f, 0, 4096), GM_OK); /* nothing sticks */
  assert_int_equal(memory_try(&f, 1, 4096), GM_OK);
  cuda_end(&f);
}

/* FIELD: cuMemAllocAsync's pools are the process's, are emptied at each wait unless told otherwise, and opening one to
 * a peer broke copies. The table has none of their entries, so nothing can call one. */
static void test_no_driver_pools(void **state) {
  (void)state;
  static const char *const entries[] = {
#define X(need, fault, symbol, base, since, parameters, arguments) #symbol,
#include "backends/cuda/cuda_syms.def"
#undef X
  };
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
    assert_null(strstr(entries[i], "MemPool"));
    assert_null(strstr(entries[i], "AllocAsync"));
  }
}

static void test_a_fragmented_device(void **state) {
  (void)state;
  cuda_fixture f;
  cuda_begin(&f);
  cuda_say("set FRAGMENT 1m");
  cuda_open(&f);
  assert_int_equal(memory_try(&f, 0, (UINT64_C(1) << 20) + 1), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(memory_try(&f, 0, UINT64_C(1) << 20), GM_OK);
  cuda_end(&f);
}

static void test_addresses(void **state) {
  (void)state;
  cuda_fixture f;
  cuda_begin(&f);
  cuda_open(&f);
  for (uint32_t type = 0; type < 3; type++) {
    for (uint64_t align = 1; align <= UINT64_C(4) << 20; align *= 4) {
      const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = 777, .align = align};
      gm_memory memory;
      assert_int_equal(f.ops->memory_alloc(f.device, &params, &memory, &f.err), GM_OK);
      assert_int_equal(memory.address % align, 0);
      assert_int_equal((uintptr_t)memory.host % align, 0);
      assert_true((memory.host != NULL) == (type != 0));
      if (memory.host) memset(memory.host, 1, 777);
      cuda_free(&f, &memory);
    }
  }
  cuda_end(&f);
}

static void test_managed_memory_is_committed_on_request(void **state) {
  (void)state;
  cuda_fixture f;
  const gm_memory_params params = {.struct_size = sizeof params, .type = 2, .bytes = 100000, .flags = GM_ALLOC_COMMIT};
  gm_memory memory;
  cuda_begin(&f);
  cuda_open(&f);
  cuda_say("zero");
  assert_int_equal(f.ops->memory_alloc(f.device, &params, &memory, &f.err), GM_OK);
  assert_int_equal(cuda_calls("cuMemsetD8Async"), 1);
  cuda_free(&f, &memory);
  cuda_say("fail cuMemsetD8Async:1:1");
  assert_int_equal(f.ops->memory_alloc(f.device, &params, &memory, &f.err), GM_ERR_DRIVER);
  cuda_say("fail");
  cuda_end(&f); /* what was taken is back */
}

static gm_status memory_wrap(cuda_fixture *f, uint64_t pointer, uint64_t bytes, gm_memory *out) {
  const gm_cuda_memory lent = {.head = {sizeof lent, GM_API_CUDA}, .pointer = pointer, .bytes = bytes};
  return f->ops->memory_wrap(f->device, &lent.head, out, &f->err);
}

static void test_wrapping(void **state) {
  (void)state;
  cuda_fixture f;
  static unsigned char pageable[64];
  gm_memory wrapped, untouched;
  memset(&wrapped, 0x5a, sizeof wrapped);
  memset(&untouched, 0x5a, sizeof untouched);
  cuda_begin(&f);
  cuda_open(&f);
  gm_memory memory = cuda_memory(&f, 0, 8192);
  assert_int_equal(memory_wrap(&f, 0, 64, &wrapped), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(memory_wrap(&f, memory.address, 0, &wrapped), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(memory_wrap(&f, memory.address, UINT64_MAX, &wrapped), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(memory_wrap(&f, memory.address, UINT64_C(1) << 40, &wrapped), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(memory_wrap(&f, (uintptr_t)pageable, sizeof pageable, &wrapped), GM_ERR_INVALID_ARGUMENT);
  assert_memory_equal(&wrapped, &untouched, sizeof wrapped);
  for (uint32_t type = 0; type < 3; type++) {
    gm_memory own = cuda_memory(&f, type, 8192);
    assert_int_equal(memory_wrap(&f, own.address + 256, 4096, &wrapped), GM_OK);
    assert_int_equal(wrapped.type, type); /* the driver tells what it is */
    assert_true(wrapped.wrapped);
    assert_int_equal(wrapped.address, own.address + 256);
    assert_ptr_equal(wrapped.host, own.host ? (unsigned char *)own.host + 256 : NULL);
    cuda_free(&f, &wrapped); /* lets go, and destroys nothing */
    cuda_free(&f, &own);
  }
  cuda_free(&f, &memory);
  cuda_end(&f);
}

/* FIELD: the granularity is that of the exact properties, and what is mapped in pieces can be copied as one. */
static void test_virtual_memory(void **state) {
  (void)state;
  enum { PIECES = 3 };
  cuda_fixture f;
  const gm_vmm_props plain = {0}, shared = {.shareable = true}, pinned = {.type = 1};
  uint64_t granule = 0, coarse = 0, address = 0, handles[PIECES];
  const uint32_t pattern = 0x0a0b0c0d;
  unsigned char tail[4] = {0};
  cuda_begin(&f);
  cuda_say("set GRANULARITY 2m:4m");
  cuda_open(&f);
  assert_int_equal(f.ops->vmm_granularity(f.device, &plain, &granule, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_granularity(f.device, &shared, &coarse, &f.err), GM_OK);
  assert_int_equal(granule, 2 << 20);
  assert_int_equal(coarse, 4 << 20);
  assert_int_equal(f.ops->vmm_granularity(f.device, &pinned, &coarse, &f.err), GM_ERR_NOT_SUPPORTED);
  assert_int_not_equal(f.ops->vmm_create(f.device, &shared, granule, &handles[0], &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_reserve(f.device, PIECES * granule, 0, &address, &f.err), GM_OK);
  for (uint64_t i = 0; i < PIECES; i++) {
    assert_int_equal(f.ops->vmm_create(f.device, &plain, granule, &handles[i], &f.err), GM_OK);
    assert_int_equal(f.ops->vmm_map(f.device, address + i * granule, granule, handles[i], 0, &f.err), GM_OK);
  }
  assert_int_equal(f.ops->vmm_access(f.device, address, PIECES * granule, &f.err), GM_OK);
  gm_memory whole;
  assert_int_equal(memory_wrap(&f, address, PIECES * granule, &whole), GM_OK); /* the base query tells one piece */
  assert_int_equal(f.ops->fill(f.device, f.stream, &whole, 0, whole.bytes, &pattern, 4, NULL, &f.err), GM_OK);
  assert_int_equal(f.ops->copy_to_host(f.device, f.stream, &whole, whole.bytes - 4, tail, 4, NULL, &f.err), GM_OK);
  assert_int_equal(tail[0], 0x0d);
  assert_int_equal(f.ops->vmm_unmap(f.device, address, PIECES * granule, &f.err), GM_OK);
  for (int i = 0; i < PIECES; i++) {
    assert_int_equal(f.ops->vmm_destroy(f.device, handles[i], granule, GM_CLOSE_NORMAL, &f.err), GM_OK);
  }
  assert_int_equal(f.ops->vmm_unreserve(f.device, address, PIECES * granule, GM_CLOSE_NORMAL, &f.err), GM_OK);
  cuda_end(&f);
}

/* FIELD: below 512 GiB for each call. The range is reserved address space, of which nobody takes a page. */
static void test_a_huge_range_is_registered_in_parts(void **state) {
  (void)state;
  const uint64_t bytes = (UINT64_C(600) << 30) + 4096;
  void *range = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  cuda_fixture f;
  if (range == MAP_FAILED) skip();
  cuda_begin(&f);
  cuda_open(&f);
  cuda_say("zero");
  const gm_status status = f.ops->host_register(f.device, range, bytes, &f.err);
  if (status != GM_OK) fail_msg("%s", f.err.message);
  assert_int_equal(cuda_calls("cuMemHostRegister_v2"), 3);
  assert_int_equal(cuda_count("registered"), 3);
  assert_int_equal(f.ops->host_unregister(f.device, range, GM_CLOSE_NORMAL, &f.err), GM_OK);
  assert_int_equal(cuda_count("registered"), 0);
  cuda_say("fail cuMemHostRegister:3:2"); /* the third part fails: the first two are given back */
  assert_int_equal(f.ops->host_register(f.device, range, bytes, &f.err), GM_ERR_PINNED_LIMIT);
  cuda_say("fail");
  assert_int_equal(cuda_count("registered"), 0);
  cuda_end(&f);
  munmap(range, bytes);
}

static void test_registering(void **state) {
  (void)state;
  cuda_fixture f;
  static unsigned char host[16384];
  cuda_begin(&f);
  cuda_open(&f);
  assert_int_equal(f.ops->host_register(f.device, NULL, 4096, &f.err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(f.ops->host_register(f.device, host, 0, &f.err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(f.ops->host_register(f.device, host, sizeof host, &f.err), GM_OK);
  assert_int_equal(f.ops->host_register(f.device, host, sizeof host, &f.err), GM_ERR_INVALID_ARGUMENT); /* twice */
  assert_int_equal(f.ops->host_unregister(f.device, host, GM_CLOSE_NORMAL, &f.err), GM_OK);
  assert_int_equal(f.ops->host_unregister(f.device, host, GM_CLOSE_NORMAL, &f.err), GM_ERR_INVALID_ARGUMENT);
  cuda_say("fail cuMemHostRegister:1:2");
  assert_int_equal(f.ops->host_register(f.device, host, sizeof host, &f.err), GM_ERR_PINNED_LIMIT);
  cuda_say("fail");
  cuda_end(&f);
}

/* A driver that takes read-only memory when it is said to be so, where the device has the attribute. */
static int readonly_attribute;
static unsigned readonly_calls;
static gm__cuda_syms readonly_real;

static CUresult readonly_register(void *pointer, size_t bytes, unsigned flags) {
  (void)pointer, (void)bytes;
  readonly_calls++;
  return flags & CU_MEMHOSTREGISTER_READ_ONLY ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult readonly_ask(int *value, CUdevice_attribute what, CUdevice device) {
  const CUresult code = readonly_real.cuDeviceGetAttribute(value, what, device);
  if (what == CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED) *value = readonly_attribute;
  return code;
}

static void *readonly_hook(void *user, const char *backend, const char *symbol, void *real) {
  (void)user, (void)backend;
  CUresult (*registering)(void *, size_t, unsigned) = readonly_register;
  CUresult (*asking)(int *, CUdevice_attribute, CUdevice) = readonly_ask;
  if (strcmp(symbol, "cuDeviceGetAttribute") == 0) {
    memcpy(&readonly_real.cuDeviceGetAttribute, &real, sizeof real);
    memcpy(&real, &asking, sizeof real);
  }
  if (strcmp(symbol, "cuMemHostRegister_v2") == 0) memcpy(&real, &registering, sizeof real);
  return real;
}

static void test_read_only_memory(void **state) {
  (void)state;
  cuda_fixture f;
  static unsigned char host[4096];
  cuda_begin(&f);
  f.host.symbol_hook = readonly_hook;
  cuda_open(&f);
  readonly_attribute = 0;
  assert_int_equal(f.ops->host_register(f.device, host, sizeof host, &f.err), GM_ERR_DRIVER);
  assert_int_equal(readonly_calls, 1);
  readonly_attribute = 1;
  assert_int_equal(f.ops->host_register(f.device, host, sizeof host, &f.err), GM_OK);
  assert_int_equal(readonly_calls, 3);
  cuda_end(&f);
}

/* Fills of every period and every raggedness, against a plain loop. */
static void test_fills(void **state) {
  (void)state;
  enum { ROOM = 600 };
  static const unsigned char pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  cuda_fixture f;
  unsigned char got[ROOM], want[ROOM];
  cuda_begin(&f);
  cuda_open(&f);
  for (uint32_t type = 0; type < 2; type++) {
    gm_memory memory = cuda_memory(&f, type, ROOM);
    for (uint32_t period = 1; period <= 16; period *= 2) {
      for (uint64_t at = 0; at < 6; at++) {
        for (uint64_t bytes = 0; bytes < 70; bytes += bytes < 40 ? 1 : 7) {
          const unsigned char zero = 0;
          memset(want, 0, sizeof want);
          for (uint64_t i = 0; i < bytes; i++) want[at + i] = pattern[i % period];
          assert_int_equal(f.ops->fill(f.device, f.stream, &memory, 0, ROOM, &zero, 1, NULL, &f.err), GM_OK);
          assert_int_equal(f.ops->fill(f.device, f.stream, &memory, at, bytes, pattern, period, NULL, &f.err), GM_OK);
          assert_int_equal(f.ops->copy_to_host(f.device, f.stream, &memory, 0, got, ROOM, NULL, &f.err), GM_OK);
          assert_memory_equal(got, want, ROOM);
        }
      }
    }
    cuda_free(&f, &memory);
  }
  assert_int_equal(f.ops->fill(f.device, f.stream, &(gm_memory){0}, 0, 4, pattern, 3, NULL, &f.err),
                   GM_ERR_INVALID_ARGUMENT);
  cuda_end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_which_memory_is_out),
      cmocka_unit_test(test_no_driver_pools),
      cmocka_unit_test(test_a_fragmented_device),
      cmocka_unit_test(test_addresses),
      cmocka_unit_test(test_managed_memory_is_committed_on_request),
      cmocka_unit_test(test_wrapping),
      cmocka_unit_test(test_virtual_memory),
      cmocka_unit_test(test_a_huge_range_is_registered_in_parts),
      cmocka_unit_test(test_registering),
      cmocka_unit_test(test_read_only_memory),
      cmocka_unit_test(test_fills),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
