/* Shared virtual memory on a real driver: an engine's own pointers, what gm hands out of its own, and the switch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/opencl/opencl_kind.h"
#include "support/opencl_fixture.h"

enum { BYTES = 9000 };

static opencl_fixture f;

static uint32_t svm_type(void) {
  uint32_t count = 0;
  gm_memory_type type = {.struct_size = sizeof type};
  assert_int_equal(f.ops->memory_type_count(f.device, &count, NULL), GM_OK);
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(f.ops->memory_type(f.device, i, &type, NULL), GM_OK);
    if (type.flags & GM_MEMORY_APART) return i;
  }
  return UINT32_MAX;
}

static gm_opencl_memory native_of(const gm_memory *memory, uint64_t offset, uint64_t bytes) {
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  assert_int_equal(f.ops->memory_native(f.device, memory, offset, bytes, &native.head, NULL), GM_OK);
  return native;
}

static bool no_addresses(void) {
  if (svm_type() != UINT32_MAX) return false;
  print_message("the device has no memory at an address\n");
  return true;
}

static void test_an_address_is_real_and_is_all_there_is(void **state) {
  (void)state;
  if (no_addresses()) skip();
  const gm_memory memory = opencl_fixture_alloc(&f, svm_type(), BYTES);
  const gm_opencl_memory native = native_of(&memory, 100, 200);
  assert_true(memory.address != 0 && memory.address % f.info.alignment == 0);
  assert_int_equal(native.pointer, memory.address + 100);
  assert_int_equal(native.memory, 0);
  assert_int_equal(native.offset, 0);
  assert_int_equal(native.bytes, 200);
  opencl_fixture_free(&f, &memory);
}

/* Both names of the same bytes, and the memory outlives the second. */
static void test_an_engines_pointer_is_wrapped(void **state) {
  (void)state;
  if (no_addresses()) skip();
  unsigned char want[300], got[300] = {0};
  const gm_memory memory = opencl_fixture_alloc(&f, svm_type(), BYTES);
  gm_opencl_memory native = native_of(&memory, 0, BYTES);
  gm_memory wrapped;
  native.offset = 1000;
  native.bytes = 500;
  for (unsigned i = 0; i < sizeof want; i++) want[i] = (unsigned char)(i * 5);
  assert_int_equal(f.ops->memory_wrap(f.device, &native.head, &wrapped, NULL), GM_OK);
  assert_true(wrapped.wrapped && wrapped.bytes == 500 && wrapped.address == memory.address + 1000);
  assert_int_equal(f.ops->copy_to_device(f.device, f.stream, &wrapped, 7, want, sizeof want, NULL, NULL), GM_OK);
  assert_int_equal(f.ops->fill(f.device, f.stream, &wrapped, 320, 13, "z", 1, NULL, NULL), GM_OK);
  opencl_fixture_free(&f, &wrapped);
  assert_int_equal(f.ops->copy_to_host(f.device, f.stream, &memory, 1007, got, sizeof got, NULL, NULL), GM_OK);
  assert_memory_equal(got, want, sizeof want);
  assert_int_equal(f.ops->copy_to_host(f.device, f.stream, &memory, 1320, got, 13, NULL, NULL), GM_OK);
  assert_memory_equal(got, "zzzzzzzzzzzzz", 13);
  opencl_fixture_free(&f, &memory);
}

static void refused(gm_opencl_memory native) {
  gm_memory wrapped;
  gm_error err;
  assert_int_equal(f.ops->memory_wrap(f.device, &native.head, &wrapped, &err), GM_ERR_INVALID_ARGUMENT);
  assert_true(err.message[0] != '\0');
}

static void test_a_bad_pointer_is_refused_with_the_reason(void **state) {
  (void)state;
  if (no_addresses()) skip();
  const gm_memory memory = opencl_fixture_alloc(&f, svm_type(), BYTES);
  gm_opencl_memory native = native_of(&memory, 0, BYTES);
  native.bytes = 0; /* OpenCL does not tell how long it is */
  refused(native);
  native.bytes = UINT64_MAX;
  native.offset = 2;
  refused(native);
  native = native_of(&memory, 0, BYTES);
  native.memory = 1; /* one or the other */
  refused(native);
  native.memory = native.pointer = 0;
  refused(native);
  opencl_fixture_free(&f, &memory);
}

/* The pointer that map gives is the address, on gm's queue as on a stream. */
static void test_a_mapping_is_at_the_address(void **state) {
  (void)state;
  if (no_addresses()) skip();
  const gm_memory memory = opencl_fixture_alloc(&f, svm_type(), BYTES);
  void *streams[] = {NULL, f.stream};
  for (int i = 0; i < 2; i++) {
    void *host = NULL;
    unsigned char got = 0;
    assert_int_equal(f.ops->map(f.device, streams[i], &memory, 40, 9, GM_MAP_WRITE, &host, NULL), GM_OK);
    assert_int_equal((uintptr_t)host, memory.address + 40);
    *(unsigned char *)host = (unsigned char)(i + 3);
    assert_int_equal(f.ops->unmap(f.device, streams[i], &memory, host, NULL), GM_OK);
    assert_int_equal(f.ops->copy_to_host(f.device, streams[i], &memory, 40, &got, 1, NULL, NULL), GM_OK);
    assert_int_equal(got, i + 3);
  }
  opencl_fixture_free(&f, &memory);
}

static void test_only_memory_that_migrates_is_moved(void **state) {
  (void)state;
  const gm_memory memory = opencl_fixture_alloc(&f, 0, BYTES);
  gm_error err;
  const bool can = (f.info.capabilities & GM_CAP_MANAGED) != 0;
  const gm_status want = can ? GM_ERR_INVALID_ARGUMENT : GM_ERR_NOT_SUPPORTED;
  assert_int_equal(f.ops->managed_prefetch(f.device, f.stream, &memory, 0, 1, GM_MANAGED_ON_HOST, NULL, &err), want);
  assert_int_equal(f.ops->managed_advise(f.device, &memory, 0, 1, GM_ADVICE_STAY_ON, GM_MANAGED_ON_HOST, true, &err),
                   want);
  assert_int_equal(f.ops->managed_advise(f.device, &memory, 0, 1, (gm_managed_advice)3, GM_MANAGED_ON_HOST, true, &err),
                   GM_ERR_INVALID_ARGUMENT);
  opencl_fixture_free(&f, &memory);
}

static void test_the_switch(void **state) {
  (void)state;
  gm__opencl_family family;
  gm_error err;
  assert_int_equal(gm__opencl_family_read(NULL, &family, NULL), GM_OK);
  assert_int_equal(family, GM__OPENCL_BUFFERS);
  assert_int_equal(gm__opencl_family_read("memory=svm", &family, NULL), GM_OK);
  assert_int_equal(family, GM__OPENCL_SVMS);
  assert_int_equal(gm__opencl_family_read("memory=usm", &family, NULL), GM_OK);
  assert_int_equal(family, GM__OPENCL_USMS);
  assert_int_equal(gm__opencl_family_read("memory=other", &family, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "memory=other"));
}

OPENCL_FIXTURE_GROUP(f)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_address_is_real_and_is_all_there_is),
      cmocka_unit_test(test_an_engines_pointer_is_wrapped),
      cmocka_unit_test(test_a_bad_pointer_is_refused_with_the_reason),
      cmocka_unit_test(test_a_mapping_is_at_the_address),
      cmocka_unit_test(test_only_memory_that_migrates_is_moved),
      cmocka_unit_test(test_the_switch),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
