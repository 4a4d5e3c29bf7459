/* The Vulkan backend through its table, on a real driver, validation on: memory, mapping, streams, points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/vulkan_fixture.h"

static void test_probe(void **state) {
  (void)state;
  vulkan_fixture fixture;
  gm_error err = {0};
  vulkan_fixture_host(&fixture, "");
  gm_driver_info info = {.struct_size = sizeof info};
  if (fixture.ops->probe(&fixture.host, GM_PROBE_PASSIVE, &info, &err) != GM_OK) vulkan_fixture_absent(err.message);
  assert_non_null(strstr(info.library, "libvulkan"));
  assert_int_equal(info.device_count, 0);
  assert_int_equal(fixture.ops->probe(&fixture.host, GM_PROBE_ACTIVE, &info, &err), GM_OK);
  assert_true(info.device_count >= 1);
  assert_non_null(strstr(info.library, "libvulkan"));
  assert_non_null(strstr(info.version, "loader 1."));
  counted_services_check(&fixture.services);
}

static void test_probe_without_library(void **state) {
  (void)state;
  vulkan_fixture fixture;
  gm_error err = {0};
  gm_driver_info info = {.struct_size = sizeof info};
  vulkan_fixture_host(&fixture, "");
  fixture.host.library = "libnosuchvulkan.so";
  assert_int_equal(fixture.ops->probe(&fixture.host, GM_PROBE_ACTIVE, &info, &err), GM_ERR_UNAVAILABLE);
  assert_non_null(strstr(err.message, "libnosuchvulkan.so"));
  assert_int_equal(fixture.ops->probe(&fixture.host, GM_PROBE_PASSIVE, &info, &err), GM_ERR_UNAVAILABLE);
  assert_int_equal(info.device_count, 0);
  counted_services_check(&fixture.services);
}

static void test_options(void **state) {
  (void)state;
  vulkan_fixture fixture;
  gm_error err = {0};
  void *driver = NULL;
  vulkan_fixture_host(&fixture, "validation,frobnicate");
  assert_int_equal(fixture.ops->init(&fixture.host, &driver, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "frobnicate"));
  assert_null(driver);
  counted_services_check(&fixture.services);
}

static void test_device_info(void **state) {
  (void)state;
  vulkan_fixture fixture;
  static const uint8_t none[GM_UUID_BYTES] = {0};
  vulkan_fixture_open(&fixture, "validation");
  gm_device_info closed = {.struct_size = sizeof closed}, open = closed;
  assert_int_equal(fixture.ops->device_info(fixture.driver, 0, NULL, &closed, NULL), GM_OK);
  assert_int_equal(fixture.ops->device_info(fixture.driver, 99, fixture.device, &open, NULL), GM_OK);
  assert_int_equal(fixture.ops->device_info(fixture.driver, 99, NULL, &open, NULL), GM_ERR_NOT_FOUND);
  assert_string_equal(closed.name, open.name);
  assert_memory_equal(closed.uuid, open.uuid, sizeof open.uuid);
  assert_memory_not_equal(closed.uuid, none, sizeof none);
  assert_int_equal(closed.api, GM_API_VULKAN);
  assert_true(closed.total_bytes > 0 && closed.max_alloc_bytes > 0);
  assert_true(closed.alignment >= 256 && !(closed.alignment & (closed.alignment - 1)));
  assert_non_null(strstr(closed.capability, "Vulkan 1."));
  if (!strcmp(closed.driver, "llvmpipe")) {
    assert_int_equal(closed.type, GM_DEVICE_TYPE_CPU);
    assert_string_equal(closed.vendor, "mesa");
    assert_true(closed.unified);
  }
  vulkan_fixture_close(&fixture);
}

static void test_types(void **state) {
  (void)state;
  vulkan_fixture fixture;
  vulkan_fixture_open(&fixture, "validation,no_host_visible");
  uint32_t count = 0;
  bool visible = false;
  assert_int_equal(fixture.ops->memory_type_count(fixture.device, &count, NULL), GM_OK);
  assert_true(count >= 2);
  for (uint32_t i = 0; i < count; i++) {
    gm_memory_type type = {.struct_size = sizeof type};
    assert_int_equal(fixture.ops->memory_type(fixture.device, i, &type, NULL), GM_OK);
    assert_false((type.flags & GM_MEMORY_DEVICE_LOCAL) && (type.flags & GM_MEMORY_HOST_VISIBLE));
    assert_true(type.max_alloc_bytes <= type.heap_bytes);
    assert_true(type.atom_bytes >= 1);
    visible = visible || (type.flags & GM_MEMORY_HOST_VISIBLE);
  }
  assert_true(visible);
  gm_memory_type type = {.struct_size = sizeof type};
  assert_int_equal(fixture.ops->memory_type(fixture.device, 0, &type, NULL), GM_OK);
  assert_true(type.flags & GM_MEMORY_DEVICE_LOCAL);
  assert_int_equal(fixture.ops->memory_type(fixture.device, count, &type, NULL), GM_ERR_INVALID_ARGUMENT);
  vulkan_fixture_close(&fixture);
}

static void test_limits(void **state) {
  (void)state;
  vulkan_fixture fixture;
  gm_error err = {0};
  vulkan_fixture_open(&fixture, "validation");
  gm_memory_type type = {.struct_size = sizeof type};
  assert_int_equal(fixture.ops->memory_type(fixture.device, 0, &type, NULL), GM_OK);
  gm_memory_params params = {.struct_size = sizeof params, .bytes = type.max_alloc_bytes + 1};
  gm_memory memory = {0};
  assert_int_equal(fixture.ops->memory_alloc(fixture.device, &params, &memory, &err), GM_ERR_ALLOCATION_TOO_LARGE);
  params.bytes = UINT64_MAX;
  assert_int_equal(fixture.ops->memory_alloc(fixture.device, &params, &memory, &err), GM_ERR_ALLOCATION_TOO_LARGE);
  params.bytes = 0;
  assert_int_equal(fixture.ops->memory_alloc(fixture.device, &params, &memory, &err), GM_ERR_INVALID_ARGUMENT);
  params.bytes = 1, params.type = 77;
  assert_int_equal(fixture.ops->memory_alloc(fixture.device, &params, &memory, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(memory.handle, 0);
  assert_int_equal(vulkan_fixture_held(&fixture), 0);
  vulkan_fixture_close(&fixture);
}

/* Software drivers hand out more than the heap has; gm's own count does not. */
static void test_heap_full(void **state) {
  (void)state;
  vulkan_fixture fixture;
  gm_error err = {0};
  vulkan_fixture_open(&fixture, "validation");
  gm_memory_type type = {.struct_size = sizeof type};
  assert_int_equal(fixture.ops->memory_type(fixture.device, 0, &type, NULL), GM_OK);
  uint64_t third = type.heap_bytes / 3 + (1 << 20);
  if (third > type.max_alloc_bytes) third = type.max_alloc_bytes;
  gm_memory first = vulkan_fixture_alloc(&fixture, 0, third);
  gm_memory second = vulkan_fixture_alloc(&fixture, 0, third);
  assert_true(vulkan_fixture_held(&fixture) >= 2 * third);
  gm_memory_params params = {.struct_size = sizeof params, .bytes = third};
  gm_memory none = {0};
  assert_int_equal(fixture.ops->memory_alloc(fixture.device, &params, &none, &err), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_non_null(strstr(err.message, "heap"));
  assert_int_equal(none.handle, 0);
  vulkan_fixture_free(&fixture, &first);
  gm_memory again = vulkan_fixture_alloc(&fixture, 0, third);
  vulkan_fixture_free(&fixture, &again);
  vulkan_fixture_free(&fixture, &second);
  assert_int_equal(vulkan_fixture_held(&fixture), 0);
  vulkan_fixture_close(&fixture);
}

static uint32_t visible_type(const vulkan_fixture *fixture) {
  uint32_t count = 0;
  assert_int_equal(fixture->ops->memory_type_count(fixture->device, &count, NULL), GM_OK);
  for (uint32_t i = 0; i < count; i++) {
    gm_memory_type type = {.struct_size = sizeof type};
    assert_int_equal(fixture->ops->memory_type(fixture->device, i, &type, NULL), GM_OK);
    if (type.flags & GM_MEMORY_HOST_VISIBLE) return i;
  }
  fail_msg("no host-visible type");
  return 0;
}

static void test_mapping(void **state) {
  (void)state;
  vulkan_fixture fixture;
  gm_error err = {0};
  vulkan_fixture_open(&fixture, "validation,no_host_visible");
  const gm_backend_ops *ops = fixture.ops;
  gm_memory memory = vulkan_fixture_alloc(&fixture, visible_type(&fixture), 8192);
  gm_memory local = vulkan_fixture_alloc(&fixture, 0, 8192);
  void *host = NULL, *again = NULL;
  const uint8_t byte = 0x5a;
  gm_backend_point point = {0};
  assert_int_equal(ops->fill(fixture.device, fixture.stream, &local, 0, 8192, &byte, 1, &point, &err), GM_OK);
  const gm_copy_item item = {.src = &local, .dst = &memory, .bytes = 8192};
  assert_int_equal(ops->copy(fixture.device, fixture.stream, &item, &point, &err), GM_OK);
  assert_int_equal(ops->map(fixture.device, fixture.stream, &memory, 100, 50, GM_MAP_READ, &host, &err), GM_OK);
  assert_int_equal(*(uint8_t *)host, 0x5a); /* map waited for the copy */
  assert_int_equal(ops->map(fixture.device, fixture.stream, &memory, 0, 8192, GM_MAP_WRITE, &again, &err), GM_OK);
  assert_ptr_equal((uint8_t *)again + 100, host);
  memset(again, 7, 8192);
  assert_int_equal(ops->flush(fixture.device, &memory, 0, 8192, &err), GM_OK);
  assert_int_equal(ops->invalidate(fixture.device, &memory, 0, 8192, &err), GM_OK);
  assert_int_equal(ops->unmap(fixture.device, fixture.stream, &memory, again, &err), GM_OK);
  assert_int_equal(ops->unmap(fixture.device, fixture.stream, &memory, &host, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->unmap(fixture.device, fixture.stream, &memory, host, &err), GM_OK);
  assert_int_equal(ops->unmap(fixture.device, fixture.stream, &memory, host, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(ops->map(fixture.device, fixture.stream, &local, 0, 16, GM_MAP_READ, &host, &err),
                   GM_ERR_NOT_SUPPORTED);
  vulkan_fixture_free(&fixture, &local);
  vulkan_fixture_free(&fixture, &memory);
  vulkan_fixture_close(&fixture);
}

static void test_commit(void **state) {
  (void)state;
  vulkan_fixture fixture;
  vulkan_fixture_open(&fixture, "validation,no_host_visible");
  gm_memory_params params = {.struct_size = sizeof params, .bytes = 10000, .flags = GM_ALLOC_COMMIT};
  gm_memory memory = {0};
  uint8_t bytes[10000];
  const uint8_t byte = 3;
  assert_int_equal(fixture.ops->memory_alloc(fixture.device, &params, &memory, NULL), GM_OK);
  assert_int_equal(fixture.ops->fill(fixture.device, fixture.stream, &memory, 0, 10000, &byte, 1, NULL, NULL), GM_OK);
  assert_int_equal(fixture.ops->commit(fixture.device, fixture.stream, &memory, 1, 9999, NULL), GM_OK);
  assert_int_equal(
      fixture.ops->copy_to_host(fixture.device, fixture.stream, &memory, 0, bytes, sizeof bytes, NULL, NULL), GM_OK);
  for (size_t i = 0; i < sizeof bytes; i++) assert_int_equal(bytes[i], 3);
  vulkan_fixture_free(&fixture, &memory);
  vulkan_fixture_close(&fixture);
}

static void test_native_and_views(void **state) {
  (void)state;
  vulkan_fixture fixture;
  gm_error err = {0};
  vulkan_fixture_open(&fixture, "validation");
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, 65536);
  gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}};
  assert_int_equal(fixture.ops->memory_native(fixture.device, &memory, 512, 1024, &native.head, &err), GM_OK);
  assert_true(native.buffer && native.memory);
  assert_int_equal(native.buffer_offset, 512);
  assert_int_equal(native.bytes, 1024);
  gm_native_memory wrong = {sizeof wrong, GM_API_OPENCL};
  assert_int_equal(fixture.ops->memory_native(fixture.device, &memory, 0, 1, &wrong, &err), GM_ERR_INVALID_ARGUMENT);
  uint64_t view = 0;
  assert_int_equal(fixture.ops->view_create(fixture.device, &memory, 4096, 100, 0, &view, &err), GM_OK);
  assert_true(view != 0);
  assert_int_equal(fixture.ops->view_destroy(fixture.device, view, GM_CLOSE_NORMAL, &err), GM_OK);
  assert_int_equal(fixture.ops->view_create(fixture.device, &memory, 1, 100, 0, &view, &err), GM_ERR_INVALID_ARGUMENT);
  gm_memory_params params = {.struct_size = sizeof params, .bytes = 4096, .flags = GM_ALLOC_DEDICATED};
  gm_memory dedicated = {0};
  assert_int_equal(fixture.ops->memory_alloc(fixture.device, &params, &dedicated, &err), GM_OK);
  assert_int_equal(fixture.ops->view_create(fixture.device, &dedicated, 0, 100, 0, &view, &err), GM_ERR_NOT_SUPPORTED);
  vulkan_fixture_free(&fixture, &dedicated);
  vulkan_fixture_free(&fixture, &memory);
  vulkan_fixture_close(&fixture);
}

static void test_points(void **state) {
  (void)state;
  vulkan_fixture fixture;
  gm_error err = {0};
  vulkan_fixture_open(&fixture, "validation");
  const gm_backend_ops *ops = fixture.ops;
  void *other = NULL;
  gm_stream_kind kind;
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, 4 << 20);
  gm_backend_point none = {0}, point = {0}, copied = {0};
  bool done = false;
  assert_int_equal(ops->point_record(fixture.device, fixture.stream, &none, &err), GM_OK);
  assert_int_equal(ops->point_done(fixture.device, &none, &done, &err), GM_OK);
  assert_true(done); /* nothing was submitted yet */
  assert_int_equal(ops->stream_create(fixture.device, &other, &kind, &err), GM_OK);
  const gm_copy_item item = {.src = &memory, .dst = &memory, .dst_offset = 2 << 20, .bytes = 2 << 20};
  assert_int_equal(ops->copy(fixture.device, fixture.stream, &item, &copied, &err), GM_OK);
  assert_int_equal(ops->point_record(fixture.device, fixture.stream, &point, &err), GM_OK);
  assert_int_equal(point.value, copied.value); /* the copy's own point stands for it */
  assert_int_equal(ops->point_wait_on(fixture.device, other, &point, &err), GM_OK);
  assert_int_equal(ops->stream_barrier(fixture.device, other, &err), GM_OK);
  assert_int_equal(ops->stream_sync(fixture.device, other, &err), GM_OK);
  assert_int_equal(ops->point_done(fixture.device, &point, &done, &err), GM_OK);
  assert_true(done);
  gm_backend_point future = {point.handle, point.value + 1};
  assert_int_equal(ops->point_done(fixture.device, &future, &done, &err), GM_OK);
  assert_false(done);
  assert_int_equal(ops->point_wait(fixture.device, &future, 1000000, &err), GM_ERR_TIMEOUT);
  assert_int_equal(ops->point_wait(fixture.device, &point, UINT64_MAX, &err), GM_OK);
  ops->stream_close(fixture.device, other, GM_CLOSE_NORMAL);
  assert_int_equal(ops->stream_create(fixture.device, &other, &kind, &err), GM_OK); /* takes over the semaphore */
  assert_int_equal(ops->point_done(fixture.device, &point, &done, &err), GM_OK);
  assert_true(done);
  ops->point_release(fixture.device, &point, GM_CLOSE_NORMAL);
  ops->stream_close(fixture.device, other, GM_CLOSE_NORMAL);
  vulkan_fixture_free(&fixture, &memory);
  vulkan_fixture_close(&fixture);
}

static void test_figures(void **state) {
  (void)state;
  vulkan_fixture fixture;
  vulkan_fixture_open(&fixture, "validation");
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, 1 << 20);
  gm_raw_figures figures = {.struct_size = sizeof figures};
  assert_int_equal(fixture.ops->figures(fixture.driver, 9, fixture.device, &figures, NULL), GM_OK);
  assert_int_equal(figures.rules, GM_RAW_VULKAN);
  assert_true(figures.heap_count >= 1);
  assert_true(vulkan_fixture_held(&fixture) >= 1 << 20);
  assert_int_equal(fixture.ops->figures(fixture.driver, 9, NULL, &figures, NULL), GM_ERR_NOT_FOUND);
  vulkan_fixture_free(&fixture, &memory);
  vulkan_fixture_close(&fixture);
}

/* In the child: all of the parent's is abandoned; 0 when it gave back every byte of host memory. */
static int abandon_all(vulkan_fixture *fixture, const gm_memory *memory) {
  gm_status status = fixture->ops->memory_free(fixture->device, memory, GM_CLOSE_ABANDON, NULL);
  fixture->ops->stream_close(fixture->device, fixture->stream, GM_CLOSE_ABANDON);
  fixture->ops->device_close(fixture->device, GM_CLOSE_ABANDON);
  fixture->ops->fini(fixture->driver, GM_CLOSE_ABANDON);
  return status || atomic_load(&fixture->services.live_blocks) || atomic_load(&fixture->services.wrong_releases);
}

static void test_abandon(void **state) {
  (void)state;
  vulkan_fixture fixture;
  vulkan_fixture_open(&fixture, "validation,no_host_visible");
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, 4096);
  const uint8_t zero = 0;
  assert_int_equal(fixture.ops->fill(fixture.device, fixture.stream, &memory, 1, 77, &zero, 1, NULL, NULL), GM_OK);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(abandon_all(&fixture, &memory));
  int result = -1;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  assert_int_equal(fixture.ops->fill(fixture.device, fixture.stream, &memory, 0, 4096, &zero, 1, NULL, NULL), GM_OK);
  vulkan_fixture_free(&fixture, &memory);
  vulkan_fixture_close(&fixture);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_probe),     cmocka_unit_test(test_probe_without_library),
      cmocka_unit_test(test_options),   cmocka_unit_test(test_device_info),
      cmocka_unit_test(test_types),     cmocka_unit_test(test_limits),
      cmocka_unit_test(test_heap_full), cmocka_unit_test(test_mapping),
      cmocka_unit_test(test_commit),    cmocka_unit_test(test_native_and_views),
      cmocka_unit_test(test_points),    cmocka_unit_test(test_figures),
      cmocka_unit_test(test_abandon),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
