/* Discovery, devices, memory and points of the OpenCL backend on a real driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/opencl_fixture.h"
#include "support/temp_folder.h"

static opencl_fixture f;

OPENCL_FIXTURE_GROUP(f)

static void test_the_passive_probe_finds_the_library_without_loading_a_driver(void **state) {
  (void)state;
  gm_driver_info info = {0};
  assert_int_equal(f.ops->probe(&f.host, GM_PROBE_PASSIVE, &info, NULL), GM_OK);
  assert_non_null(strstr(info.library, "libOpenCL.so"));
  assert_int_equal(info.device_count, 0);
}

static void test_the_active_probe_counts_devices(void **state) {
  (void)state;
  uint32_t count = 0;
  gm_driver_info info = {0};
  assert_int_equal(f.ops->device_count(f.driver, &count, NULL), GM_OK);
  assert_int_equal(f.ops->probe(&f.host, GM_PROBE_ACTIVE, &info, NULL), GM_OK);
  assert_int_equal(info.device_count, count);
  assert_string_not_equal(info.version, "");
}

static void test_a_loader_without_a_registered_driver_is_told_apart(void **state) {
  (void)state;
  temp_folder empty;
  gm_driver_info info = {.device_count = 77};
  gm_error err = {0};
  char *before = getenv("OCL_ICD_VENDORS");
  temp_folder_make(&empty);
  setenv("OCL_ICD_VENDORS", empty.path, 1);
  assert_int_equal(f.ops->probe(&f.host, GM_PROBE_PASSIVE, &info, &err), GM_ERR_UNAVAILABLE);
  assert_non_null(strstr(err.message, empty.path));
  assert_int_equal(info.device_count, 77);
  if (before) setenv("OCL_ICD_VENDORS", before, 1);
  if (!before) unsetenv("OCL_ICD_VENDORS");
  temp_folder_remove(&empty);
}

static void test_a_library_that_is_not_there_is_named(void **state) {
  (void)state;
  gm_backend_host host = f.host;
  gm_error err = {0};
  void *driver = NULL;
  host.library = "/nonexistent/libOpenCL.so.1";
  assert_int_equal(f.ops->init(&host, &driver, &err), GM_ERR_UNAVAILABLE);
  assert_non_null(strstr(err.message, host.library));
  assert_null(driver);
  gm_driver_info info;
  assert_int_equal(f.ops->probe(&host, GM_PROBE_PASSIVE, &info, &err), GM_ERR_UNAVAILABLE);
  assert_non_null(strstr(err.message, host.library));
}

static void test_switches_are_refused_by_name(void **state) {
  (void)state;
  gm_backend_host host = f.host;
  gm_error err = {0};
  void *driver = NULL;
  host.options = "fast";
  assert_int_equal(f.ops->init(&host, &driver, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`fast`"));
}

static void test_the_device_is_described(void **state) {
  (void)state;
  gm_device_info opened;
  assert_int_equal(f.ops->device_info(f.driver, 99, f.device, &opened, NULL), GM_OK);
  assert_memory_equal(opened.uuid, f.info.uuid, sizeof opened.uuid);
  assert_int_equal(f.info.api, GM_API_OPENCL);
  assert_string_equal(f.info.backend, "opencl");
  assert_string_not_equal(f.info.name, "");
  assert_string_not_equal(f.info.version, "");
  assert_int_equal(strncmp(f.info.capability, "OpenCL ", 7), 0);
  assert_true(f.info.total_bytes >= f.info.max_alloc_bytes && f.info.max_alloc_bytes > 0);
  assert_true(f.info.alignment >= 1 && (f.info.alignment & (f.info.alignment - 1)) == 0);
  if (strcmp(f.info.driver, "pocl") == 0) {
    assert_int_equal(f.info.type, GM_DEVICE_TYPE_CPU);
    assert_string_equal(f.info.vendor, "pocl");
    assert_true(f.info.unified && f.info.uuid_derived);
    assert_int_equal(f.info.alignment, 128); /* 1024 bits */
  }
}

static void test_equal_devices_have_different_uuids(void **state) {
  (void)state;
  uint32_t count = 0;
  assert_int_equal(f.ops->device_count(f.driver, &count, NULL), GM_OK);
  for (uint32_t i = 0; i < count; i++) {
    gm_device_info one, two;
    assert_int_equal(f.ops->device_info(f.driver, i, NULL, &one, NULL), GM_OK);
    assert_int_equal(one.index, i);
    for (uint32_t k = 0; k < i; k++) {
      assert_int_equal(f.ops->device_info(f.driver, k, NULL, &two, NULL), GM_OK);
      assert_memory_not_equal(one.uuid, two.uuid, sizeof one.uuid);
    }
  }
}

static void test_a_device_that_is_not_listed_is_not_found(void **state) {
  (void)state;
  gm_device_info info;
  gm_raw_figures figures;
  void *device = NULL;
  assert_int_equal(f.ops->device_info(f.driver, 999, NULL, &info, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(f.ops->device_open(f.driver, 999, &device, NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(f.ops->figures(f.driver, 999, NULL, &figures, NULL), GM_ERR_NOT_FOUND);
}

static void test_figures_are_raw(void **state) {
  (void)state;
  gm_raw_figures figures;
  assert_int_equal(f.ops->figures(f.driver, f.index, NULL, &figures, NULL), GM_OK);
  assert_int_equal(figures.rules, GM_RAW_OPENCL);
  assert_int_equal(figures.device_total.state, GM_RAW_OK);
  assert_int_equal(figures.device_total.total_bytes, f.info.total_bytes);
  assert_int_equal(figures.driver.state, GM_RAW_ABSENT);
  if (strcmp(f.info.driver, "pocl") == 0) {
    assert_int_equal(figures.place, GM_RAW_CPU_DEVICE);
    assert_int_equal(figures.amd.state, GM_RAW_ERROR);
    assert_int_equal(figures.amd.code, CL_INVALID_VALUE);
  }
}

static void test_memory_types_are_sane(void **state) {
  (void)state;
  uint32_t count = 0;
  bool apart = false;
  gm_memory_type type = {.struct_size = sizeof type};
  assert_int_equal(f.ops->memory_type_count(f.device, &count, NULL), GM_OK);
  assert_in_range(count, 2, 8);
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(f.ops->memory_type(f.device, i, &type, NULL), GM_OK);
    assert_int_equal(type.atom_bytes, 1);
    if (type.flags & GM_MEMORY_APART) { /* it has an address */
      apart = true;
      continue;
    }
    assert_false(apart); /* buffers come first */
    assert_true(type.flags & GM_MEMORY_HOST_VISIBLE);
    assert_true(i < 3 && !(type.flags & GM_MEMORY_HOST_POINTER) == (i < 2)); /* the third lies over SVM */
    if (i == 2) assert_true(f.info.unified);
  }
  assert_int_equal(f.ops->memory_type(f.device, count, &type, NULL), GM_ERR_INVALID_ARGUMENT);
}

static gm_status take(uint32_t type, uint64_t bytes, uint64_t align, gm_memory *out, gm_error *err) {
  const gm_memory_params params = {.struct_size = sizeof params, .type = type, .bytes = bytes, .align = align};
  return f.ops->memory_alloc(f.device, &params, out, err);
}

static void test_a_bad_request_names_the_argument(void **state) {
  (void)state;
  gm_memory memory = {.handle = 5};
  gm_error err;
  assert_int_equal(take(0, 0, 0, &memory, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`bytes`"));
  assert_int_equal(take(7, 64, 0, &memory, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`type`"));
  assert_int_equal(take(0, 64, 48, &memory, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`align`"));
  assert_int_equal(memory.handle, 5);
}

static void test_more_than_one_allocation_may_have_is_refused_before_the_driver(void **state) {
  (void)state;
  gm_memory memory;
  gm_error err;
  assert_int_equal(take(0, f.info.max_alloc_bytes + 1, 0, &memory, &err), GM_ERR_ALLOCATION_TOO_LARGE);
  assert_int_equal(err.native_code, 0);
  assert_int_equal(take(0, UINT64_MAX, 0, &memory, &err), GM_ERR_ALLOCATION_TOO_LARGE);
}

/* No driver refuses the sum: gm's own accounts do. The memory is given lazily, so nothing is really used. */
static void test_the_sum_of_allocations_stays_below_the_device(void **state) {
  (void)state;
  gm_memory memories[64], another;
  gm_error err;
  uint32_t count = 0;
  uint64_t held = 0;
  if (!opencl_fixture_lazy(&f)) skip();
  gm_status status = GM_OK;
  while (count < 64 && (status = take(0, f.info.max_alloc_bytes, 0, &memories[count], &err)) == GM_OK) {
    held += memories[count++].bytes;
  }
  assert_int_equal(status, GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_true(held <= f.info.total_bytes && held + f.info.max_alloc_bytes > f.info.total_bytes);
  assert_int_equal(err.native_code, 0);
  opencl_fixture_free(&f, &memories[--count]);
  assert_int_equal(take(0, f.info.max_alloc_bytes, 0, &another, NULL), GM_OK);
  opencl_fixture_free(&f, &another);
  while (count > 0) opencl_fixture_free(&f, &memories[--count]);
}

static void test_memory_has_no_address_and_a_native_buffer(void **state) {
  (void)state;
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  const gm_memory memory = opencl_fixture_alloc(&f, 0, 4096);
  assert_int_equal(memory.address, 0);
  assert_null(memory.host);
  assert_int_equal(f.ops->memory_native(f.device, &memory, 256, 100, &native.head, NULL), GM_OK);
  assert_int_not_equal(native.memory, 0);
  assert_int_equal(native.offset, 256);
  assert_int_equal(native.bytes, 100);
  assert_int_equal(native.view, 0);
  native.head.api = GM_API_VULKAN;
  assert_int_equal(f.ops->memory_native(f.device, &memory, 0, 1, &native.head, NULL), GM_ERR_INVALID_ARGUMENT);
  native.head = (gm_native_memory){8, GM_API_OPENCL};
  assert_int_equal(f.ops->memory_native(f.device, &memory, 0, 1, &native.head, NULL), GM_ERR_INVALID_ARGUMENT);
  opencl_fixture_free(&f, &memory);
}

static void test_views_begin_at_the_alignment(void **state) {
  (void)state;
  uint64_t view = 0;
  gm_error err;
  const gm_memory memory = opencl_fixture_alloc(&f, 0, 65536);
  assert_int_equal(f.ops->view_create(f.device, &memory, f.info.alignment, 100, 0, &view, NULL), GM_OK);
  assert_int_not_equal(view, 0);
  assert_int_equal(f.ops->view_destroy(f.device, view, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(f.ops->view_create(f.device, &memory, f.info.alignment + 1, 100, 0, &view, &err),
                   GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "alignment"));
  assert_int_equal(f.ops->view_create(f.device, &memory, 0, 0, 0, &view, NULL), GM_ERR_INVALID_ARGUMENT);
  opencl_fixture_free(&f, &memory);
}

static void test_a_point_orders_two_streams(void **state) {
  (void)state;
  void *second = NULL;
  gm_stream_kind kind;
  gm_backend_point point;
  uint32_t round = 0, got = 0;
  gm_memory memory = opencl_fixture_alloc(&f, 0, sizeof round);
  assert_int_equal(f.ops->stream_create(f.device, &second, &kind, NULL), GM_OK);
  for (round = 1; round <= 200; round++) {
    gm_backend_point filled;
    assert_int_equal(f.ops->fill(f.device, f.stream, &memory, 0, 4, &round, 4, &filled, NULL), GM_OK);
    assert_int_equal(f.ops->point_record(f.device, f.stream, &point, NULL), GM_OK);
    assert_int_equal(f.ops->point_wait_on(f.device, second, &point, NULL), GM_OK);
    assert_int_equal(f.ops->copy_to_host(f.device, second, &memory, 0, &got, 4, NULL, NULL), GM_OK);
    assert_int_equal(got, round);
    f.ops->point_release(f.device, &point, GM_CLOSE_NORMAL);
    f.ops->point_release(f.device, &filled, GM_CLOSE_NORMAL);
  }
  f.ops->stream_close(f.device, second, GM_CLOSE_NORMAL);
  opencl_fixture_free(&f, &memory);
}

static void test_the_zero_point_has_passed(void **state) {
  (void)state;
  const gm_backend_point none = {0};
  bool done = false;
  assert_int_equal(f.ops->point_done(f.device, &none, &done, NULL), GM_OK);
  assert_true(done);
  assert_int_equal(f.ops->point_wait(f.device, &none, 0, NULL), GM_OK);
  assert_int_equal(f.ops->point_wait_on(f.device, f.stream, &none, NULL), GM_OK);
  f.ops->point_release(f.device, &none, GM_CLOSE_NORMAL);
}

static void test_flush_sync_barrier_and_state(void **state) {
  (void)state;
  assert_int_equal(f.ops->stream_flush(f.device, f.stream, NULL), GM_OK);
  assert_int_equal(f.ops->stream_barrier(f.device, f.stream, NULL), GM_OK);
  assert_int_equal(f.ops->stream_sync(f.device, f.stream, NULL), GM_OK);
  assert_int_equal(f.ops->device_state(f.device, NULL), GM_OK);
}

static void test_the_driver_opens_again_after_it_was_closed(void **state) {
  (void)state;
  for (int round = 0; round < 20; round++) {
    opencl_fixture again;
    opencl_fixture_open(&again);
    assert_memory_equal(again.info.uuid, f.info.uuid, sizeof f.info.uuid);
    opencl_fixture_close(&again);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_passive_probe_finds_the_library_without_loading_a_driver),
      cmocka_unit_test(test_the_active_probe_counts_devices),
      cmocka_unit_test(test_a_loader_without_a_registered_driver_is_told_apart),
      cmocka_unit_test(test_a_library_that_is_not_there_is_named),
      cmocka_unit_test(test_switches_are_refused_by_name),
      cmocka_unit_test(test_the_device_is_described),
      cmocka_unit_test(test_equal_devices_have_different_uuids),
      cmocka_unit_test(test_a_device_that_is_not_listed_is_not_found),
      cmocka_unit_test(test_figures_are_raw),
      cmocka_unit_test(test_memory_types_are_sane),
      cmocka_unit_test(test_a_bad_request_names_the_argument),
      cmocka_unit_test(test_more_than_one_allocation_may_have_is_refused_before_the_driver),
      cmocka_unit_test(test_the_sum_of_allocations_stays_below_the_device),
      cmocka_unit_test(test_memory_has_no_address_and_a_native_buffer),
      cmocka_unit_test(test_views_begin_at_the_alignment),
      cmocka_unit_test(test_a_point_orders_two_streams),
      cmocka_unit_test(test_the_zero_point_has_passed),
      cmocka_unit_test(test_flush_sync_barrier_and_state),
      cmocka_unit_test(test_the_driver_opens_again_after_it_was_closed),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
