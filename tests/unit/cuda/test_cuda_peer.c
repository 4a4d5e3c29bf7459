/* The CUDA backend between devices, and managed memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "support/cuda_fixture.h"

static void *peer_second;

static void peer_begin(cuda_fixture *f) {
  cuda_begin(f);
  cuda_say("set DEVICES 2");
}

static void peer_open(cuda_fixture *f) {
  cuda_open(f);
  assert_int_equal(f->ops->device_open(f->driver, 1, &peer_second, &f->err), GM_OK);
}

static void peer_end(cuda_fixture *f) {
  f->ops->device_close(peer_second, GM_CLOSE_NORMAL);
  cuda_end(f);
}

/* FIELD: enabling twice is an error to ignore; what somebody else has enabled stays. */
static void test_enabling_and_disabling(void **state) {
  (void)state;
  cuda_fixture f;
  CUresult (*enable)(CUcontext, unsigned) = NULL;
  CUresult (*disable)(CUcontext) = NULL;
  CUresult (*set)(CUcontext) = NULL;
  gm_cuda_device first = {.head = {sizeof first, GM_API_CUDA}}, second = first;
  cuda_entry("cuCtxEnablePeerAccess", &enable);
  cuda_entry("cuCtxDisablePeerAccess", &disable);
  cuda_entry("cuCtxSetCurrent", &set);
  peer_begin(&f);
  peer_open(&f);
  cuda_say("zero");
  assert_int_equal(f.ops->peer_enable(f.device, f.device, &f.err), GM_OK); /* itself */
  assert_int_equal(cuda_calls("cuCtxEnablePeerAccess"), 0);
  assert_int_equal(f.ops->peer_enable(f.device, peer_second, &f.err), GM_OK);
  assert_int_equal(f.ops->peer_enable(f.device, peer_second, &f.err), GM_OK);
  assert_int_equal(f.ops->peer_disable(f.device, peer_second, GM_CLOSE_NORMAL, &f.err), GM_OK);
  assert_int_equal(cuda_calls("cuCtxDisablePeerAccess"), 1);
  assert_int_equal(f.ops->peer_disable(f.device, peer_second, GM_CLOSE_NORMAL, &f.err), GM_OK);
  assert_int_equal(cuda_calls("cuCtxDisablePeerAccess"), 1);
  assert_int_equal(f.ops->device_native(f.device, &first.head, &f.err), GM_OK);
  assert_int_equal(f.ops->device_native(peer_second, &second.head, &f.err), GM_OK);
  assert_int_equal(set((CUcontext)first.context), CUDA_SUCCESS);
  assert_int_equal(enable((CUcontext)second.context, 0), CUDA_SUCCESS); /* the engine's */
  assert_int_equal(f.ops->peer_enable(f.device, peer_second, &f.err), GM_OK);
  assert_int_equal(f.ops->peer_disable(f.device, peer_second, GM_CLOSE_NORMAL, &f.err), GM_OK);
  assert_int_equal(disable((CUcontext)second.context), CUDA_SUCCESS); /* it was still there */
  set(NULL);
  peer_end(&f);
}

/* Without a path the answer says so; the copy works all the same. */
static void test_no_path(void **state) {
  (void)state;
  cuda_fixture f;
  gm_peer_info info = {.struct_size = sizeof info};
  static unsigned char want[5000], got[5000];
  peer_begin(&f);
  cuda_say("set NO peer");
  peer_open(&f);
  assert_int_equal(f.ops->peer_info(f.device, peer_second, &info, &f.err), GM_OK);
  assert_false(info.direct);
  assert_int_equal(f.ops->peer_enable(f.device, peer_second, &f.err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(f.err.message, "no direct path"));
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = sizeof want};
  gm_memory here = cuda_memory(&f, 0, sizeof want), there;
  assert_int_equal(f.ops->memory_alloc(peer_second, &params, &there, &f.err), GM_OK);
  memset(want, 0x3c, sizeof want);
  assert_int_equal(f.ops->copy_to_device(peer_second, NULL, &there, 0, want, sizeof want, NULL, &f.err), GM_OK);
  const gm_copy_item item = {.src = &there, .dst = &here, .bytes = sizeof want};
  assert_int_equal(f.ops->peer_copy(f.device, f.stream, peer_second, &item, NULL, &f.err), GM_OK);
  assert_int_equal(f.ops->copy_to_host(f.device, f.stream, &here, 0, got, sizeof got, NULL, &f.err), GM_OK);
  assert_memory_equal(got, want, sizeof want);
  assert_int_equal(f.ops->memory_free(peer_second, &there, GM_CLOSE_NORMAL, &f.err), GM_OK);
  cuda_free(&f, &here);
  peer_end(&f);
}

/* FIELD: since 13.5 the driver says no for an IOMMU; a pair that has no path for another reason looks the same. */
static void test_an_iommu_is_a_reason(void **state) {
  static const char off[] = "CUDA_DISABLE_IOMMU_ACS_P2P_CAPABILITY_CHECK";
  (void)state;
  for (int newer = 0; newer < 2; newer++) {
    cuda_fixture f;
    gm_peer_info info = {.struct_size = sizeof info};
    cuda_begin(&f);
    cuda_say("set DEVICES 2");
    cuda_say(newer ? "set VERSION 13050" : "set VERSION 13040");
    cuda_say("set IOMMU 1");
    peer_open(&f);
    assert_int_equal(f.ops->peer_info(f.device, peer_second, &info, &f.err), GM_OK);
    assert_int_equal(info.direct, !newer);
    if (newer) {
      assert_non_null(strstr(info.why, "IOMMU"));
      assert_int_equal(f.ops->peer_enable(f.device, peer_second, &f.err), GM_ERR_NOT_SUPPORTED);
      assert_non_null(strstr(f.err.message, off));
      setenv(off, "1", 1);
      assert_int_equal(f.ops->peer_info(f.device, peer_second, &info, &f.err), GM_OK);
      assert_true(info.direct && !info.why[0]);
      unsetenv(off);
    }
    peer_end(&f);
  }
}

/* FIELD: enabling peers does not open mapped memory; each range is opened for each device. */
static void test_mapped_memory_is_opened_by_itself(void **state) {
  (void)state;
  cuda_fixture f;
  const gm_vmm_props props = {0};
  uint64_t granule = 0, address = 0, handle = 0;
  peer_begin(&f);
  peer_open(&f);
  assert_int_equal(f.ops->vmm_granularity(f.device, &props, &granule, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_reserve(f.device, granule, 0, &address, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_create(f.device, &props, granule, &handle, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_map(f.device, address, granule, handle, 0, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_access(f.device, address, granule, &f.err), GM_OK);
  assert_int_equal(f.ops->peer_access(f.device, peer_second, address, granule, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_unmap(f.device, address, granule, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_destroy(f.device, handle, granule, GM_CLOSE_NORMAL, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_unreserve(f.device, address, granule, GM_CLOSE_NORMAL, &f.err), GM_OK);
  peer_end(&f);
}

/* The forms that take a device number, for drivers before CUDA 12.2. */
static void test_managed_memory_of_an_older_driver(void **state) {
  (void)state;
  static const char *const versions[] = {"set VERSION 12000", "set VERSION 13000"};
  static const char *const names[] = {"cuMemPrefetchAsync", "cuMemPrefetchAsync_v2"};
  for (size_t i = 0; i < 2; i++) {
    cuda_fixture f;
    cuda_begin(&f);
    cuda_say(versions[i]);
    cuda_open(&f);
    gm_memory memory = cuda_memory(&f, 2, 100000);
    cuda_say("zero");
    assert_int_equal(f.ops->managed_prefetch(f.device, f.stream, &memory, 0, 100000, GM_MANAGED_ON_HOST, NULL, &f.err),
                     GM_OK);
    assert_int_equal(
        f.ops->managed_advise(f.device, &memory, 0, 100000, GM_ADVICE_STAY_ON, GM_MANAGED_ON_DEVICE, true, &f.err),
        GM_OK);
    assert_int_equal(cuda_calls(names[i]), 1);
    assert_int_equal(
        f.ops->managed_advise(f.device, &memory, 0, 1, (gm_managed_advice)9, GM_MANAGED_ON_HOST, true, &f.err),
        GM_ERR_INVALID_ARGUMENT);
    assert_int_equal(f.ops->managed_prefetch(f.device, f.stream, &memory, 0, 1, (gm_managed_place)9, NULL, &f.err),
                     GM_ERR_INVALID_ARGUMENT);
    cuda_free(&f, &memory);
    cuda_end(&f);
  }
}

static void test_each_call_fails_once(void **state) {
  (void)state;
  static const char *const specs[] = {"fail cuCtxEnablePeerAccess:1:2", "fail cuMemcpyPeerAsync:1:2"};
  for (size_t i = 0; i < 2; i++) {
    cuda_fixture f;
    peer_begin(&f);
    peer_open(&f);
    gm_memory memory = cuda_memory(&f, 0, 4096);
    const gm_copy_item item = {.src = &memory, .dst = &memory, .dst_offset = 2048, .bytes = 100};
    cuda_say(specs[i]);
    const gm_status status = i ? f.ops->peer_copy(f.device, f.stream, f.device, &item, NULL, &f.err)
                               : f.ops->peer_enable(f.device, peer_second, &f.err);
    assert_int_equal(status, GM_ERR_OUT_OF_DEVICE_MEMORY);
    assert_int_equal(f.err.native_code, 2);
    cuda_say("fail");
    assert_int_equal(f.ops->peer_copy(f.device, f.stream, f.device, &item, NULL, &f.err), GM_OK);
    cuda_free(&f, &memory);
    peer_end(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_enabling_and_disabling),
      cmocka_unit_test(test_no_path),
      cmocka_unit_test(test_an_iommu_is_a_reason),
      cmocka_unit_test(test_mapped_memory_is_opened_by_itself),
      cmocka_unit_test(test_managed_memory_of_an_older_driver),
      cmocka_unit_test(test_each_call_fails_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
