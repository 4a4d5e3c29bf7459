/* Host memory of the caller on Vulkan (VK_EXT_external_memory_host): ranges registered for copies, and memory wrapped
 * as a block. Validation is on. Some tests change what it says of itself: those are simulated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>

#include "support/vulkan_fixture.h"
/* after the fixture */
#include "backends/vulkan/vulkan_host.h"
#include "gm/copy.h"
#include "support/pool_bench.h"

enum { PAGE = 4096, BYTES = 5 * PAGE };

/* ---- what the driver says ---- */

static struct {
  PFN_vkGetPhysicalDeviceProperties2 properties;
  PFN_vkGetMemoryHostPointerPropertiesEXT pointer;
  uint64_t align; /* 0: as the driver says */
  bool no_types, no_entry;
} played;

static VKAPI_ATTR void VKAPI_CALL played_properties(VkPhysicalDevice physical, VkPhysicalDeviceProperties2 *out) {
  played.properties(physical, out);
  for (VkBaseOutStructure *item = out->pNext; item && played.align; item = item->pNext) {
    if (item->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT) continue;
    ((VkPhysicalDeviceExternalMemoryHostPropertiesEXT *)item)->minImportedHostPointerAlignment = played.align;
  }
}

static VKAPI_ATTR VkResult VKAPI_CALL played_pointer(VkDevice device, VkExternalMemoryHandleTypeFlagBits kind,
                                                     const void *pointer, VkMemoryHostPointerPropertiesEXT *out) {
  const VkResult result = played.pointer(device, kind, pointer, out);
  if (played.no_types) out->memoryTypeBits = 0;
  return result;
}

static void *played_hook(void *user, const char *backend, const char *symbol, void *real) {
  PFN_vkVoidFunction mine = NULL;
  (void)user, (void)backend;
  if (!strcmp(symbol, "vkGetPhysicalDeviceProperties2")) {
    memcpy(&played.properties, &real, sizeof real);
    mine = (PFN_vkVoidFunction)played_properties;
  } else if (!strcmp(symbol, "vkGetMemoryHostPointerPropertiesEXT")) {
    memcpy(&played.pointer, &real, sizeof real);
    mine = (PFN_vkVoidFunction)played_pointer;
    if (played.no_entry) return NULL;
  }
  void *entry = real;
  if (mine) memcpy(&entry, &mine, sizeof entry);
  return entry;
}

static void played_open(vulkan_fixture *fixture) {
  gm_error err = {0};
  vulkan_fixture_host(fixture, "");
  fixture->host.symbol_hook = played_hook;
  if (fixture->ops->init(&fixture->host, &fixture->driver, &err) != GM_OK) vulkan_fixture_absent(err.message);
  assert_int_equal(fixture->ops->device_open(fixture->driver, 0, &fixture->device, &err), GM_OK);
  fixture->stream = NULL;
}

static uint64_t capabilities(const vulkan_fixture *fixture) {
  gm_device_info info = {.struct_size = sizeof info};
  assert_int_equal(fixture->ops->device_info(fixture->driver, 0, fixture->device, &info, NULL), GM_OK);
  return info.capabilities;
}

static void test_units_that_cannot_be(void **state) {
  (void)state;
  static const uint64_t units[] = {3, UINT64_C(1) << 31, UINT64_MAX, 5000};
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
    vulkan_fixture fixture;
    unsigned char memory[64];
    gm_error err = {0};
    memset(&played, 0, sizeof played);
    played.align = units[i];
    played_open(&fixture);
    assert_false(capabilities(&fixture) & GM_CAP_REGISTRATION);
    assert_int_equal(fixture.ops->host_register(fixture.device, memory, 64, &err), GM_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(err.message, "VK_EXT_external_memory_host"));
    vulkan_fixture_close(&fixture);
  }
}

static void test_a_driver_without_the_entry_or_a_type(void **state) {
  (void)state;
  unsigned char memory[64];
  vulkan_fixture fixture;
  gm_error err = {0};
  memset(&played, 0, sizeof played);
  played.no_entry = true;
  played_open(&fixture);
  assert_false(capabilities(&fixture) & GM_CAP_REGISTRATION);
  vulkan_fixture_close(&fixture);
  memset(&played, 0, sizeof played);
  played.no_types = true;
  played_open(&fixture);
  assert_true(capabilities(&fixture) & GM_CAP_REGISTRATION);
  assert_int_equal(fixture.ops->host_register(fixture.device, memory, 64, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "no coherent memory type"));
  assert_int_equal(fixture.ops->host_unregister(fixture.device, memory, GM_CLOSE_NORMAL, &err), GM_ERR_NOT_FOUND);
  vulkan_fixture_close(&fixture);
}

/* ---- registered ranges ---- */

static unsigned char *host_memory(void) {
  unsigned char *memory = aligned_alloc(PAGE, BYTES);
  assert_non_null(memory);
  for (int i = 0; i < BYTES; i++) memory[i] = (unsigned char)(i * 13 + i / 256);
  return memory;
}

static bool has_staging(const vulkan_fixture *fixture) {
  return ((const gm__vulkan_device *)fixture->device)->staging.count > 0;
}

/* Where the host sees no memory, bytes of a registered range go to the device and back without staging; others do
 * not. */
static void test_registered_bytes_take_no_staging(void **state) {
  (void)state;
  vulkan_fixture fixture;
  vulkan_fixture_open(&fixture, "validation,no_host_visible");
  const gm_backend_ops *ops = fixture.ops;
  unsigned char *host = host_memory(), *want = host_memory();
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, BYTES);
  assert_int_equal(ops->host_register(fixture.device, host + 100, BYTES - 200, NULL), GM_OK);
  assert_int_equal(ops->copy_to_device(fixture.device, fixture.stream, &memory, 0, host + 100, BYTES - 200, NULL, NULL),
                   GM_OK);
  memset(host, 0, BYTES);
  gm_backend_point point = {0};
  assert_int_equal(ops->copy_to_host(fixture.device, fixture.stream, &memory, 0, host + 100, BYTES - 200, &point, NULL),
                   GM_OK);
  assert_true(point.handle != 0); /* it has not waited */
  assert_int_equal(ops->point_wait(fixture.device, &point, UINT64_MAX, NULL), GM_OK);
  assert_memory_equal(host + 100, want + 100, BYTES - 200);
  assert_false(has_staging(&fixture));
  assert_int_equal(ops->copy_to_device(fixture.device, fixture.stream, &memory, 0, host + 99, 10, NULL, NULL), GM_OK);
  assert_true(has_staging(&fixture));
  assert_int_equal(ops->host_unregister(fixture.device, host + 100, GM_CLOSE_NORMAL, NULL), GM_OK);
  vulkan_fixture_free(&fixture, &memory);
  vulkan_fixture_close(&fixture);
  free(host);
  free(want);
}

/* A box whose rows are all in the range, and one that ends a byte behind it. */
static void check_box(uint64_t less) {
  vulkan_fixture fixture;
  vulkan_fixture_open(&fixture, "validation,no_host_visible");
  const gm_backend_ops *ops = fixture.ops;
  unsigned char *host = host_memory(), back[42];
  gm_memory memory = vulkan_fixture_alloc(&fixture, 0, BYTES);
  const gm_rect rect = {
      .row_bytes = 7, .rows = 3, .slices = 2, .src_offset = 11, .src_row_pitch = 50, .src_slice_pitch = 200};
  const uint64_t whole = 11 + 200 + 100 + 7;
  assert_int_equal(ops->host_register(fixture.device, host, whole - less, NULL), GM_OK);
  assert_int_equal(ops->rect_to_device(fixture.device, fixture.stream, &memory, host, &rect, NULL, NULL), GM_OK);
  assert_int_equal(has_staging(&fixture), less);
  assert_int_equal(ops->host_unregister(fixture.device, host, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(ops->copy_to_host(fixture.device, fixture.stream, &memory, 0, back, 42, NULL, NULL), GM_OK);
  for (int i = 0; i < 42; i++) assert_int_equal(back[i], host[11 + i / 21 * 200 + i % 21 / 7 * 50 + i % 7]);
  vulkan_fixture_free(&fixture, &memory);
  vulkan_fixture_close(&fixture);
  free(host);
}

static void test_boxes(void **state) {
  (void)state;
  check_box(0);
  check_box(1);
}

/* Many streams copy from one range, and it is given back at once: the driver's objects go behind all of that. */
static void test_unregistered_with_copies_under_way(void **state) {
  (void)state;
  enum { STREAMS = 12 };
  vulkan_fixture fixture;
  vulkan_fixture_open(&fixture, "validation,no_host_visible");
  const gm_backend_ops *ops = fixture.ops;
  unsigned char *host = host_memory(), *back = malloc(BYTES);
  gm_memory memory[STREAMS];
  void *streams[STREAMS];
  gm_stream_kind kind;
  assert_int_equal(ops->host_register(fixture.device, host, BYTES, NULL), GM_OK);
  for (int i = 0; i < STREAMS; i++) {
    assert_int_equal(ops->stream_create(fixture.device, &streams[i], &kind, NULL), GM_OK);
    memory[i] = vulkan_fixture_alloc(&fixture, 0, BYTES);
  }
  for (int i = 0; i < 3 * STREAMS; i++) {
    gm_backend_point point;
    const int at = i % STREAMS;
    assert_int_equal(ops->copy_to_device(fixture.device, streams[at], &memory[at], 0, host, BYTES, &point, NULL),
                     GM_OK);
    ops->point_release(fixture.device, &point, GM_CLOSE_NORMAL);
  }
  assert_int_equal(ops->host_unregister(fixture.device, host, GM_CLOSE_NORMAL, NULL), GM_OK);
  for (int i = 0; i < STREAMS; i++) {
    assert_int_equal(ops->copy_to_host(fixture.device, streams[i], &memory[i], 0, back, BYTES, NULL, NULL), GM_OK);
    assert_memory_equal(back, host, BYTES);
    ops->stream_close(fixture.device, streams[i], GM_CLOSE_NORMAL);
    vulkan_fixture_free(&fixture, &memory[i]);
  }
  vulkan_fixture_close(&fixture);
  free(host);
  free(back);
}

/* A copy of another thread that is about to be submitted keeps the range. */
static void test_a_range_in_use_is_busy(void **state) {
  (void)state;
  vulkan_fixture fixture;
  gm_error err = {0};
  uint64_t offset = 0;
  const gm_backend_point none = {0};
  vulkan_fixture_open(&fixture, "validation");
  unsigned char *host = host_memory();
  assert_null(gm__vulkan_host_take(fixture.device, host, 1, &offset));
  assert_int_equal(fixture.ops->host_register(fixture.device, host + 1, 100, NULL), GM_OK);
  assert_null(gm__vulkan_host_take(fixture.device, host, 1, &offset));
  assert_null(gm__vulkan_host_take(fixture.device, host + 2, 100, &offset));
  assert_null(gm__vulkan_host_take(fixture.device, host + 2, UINT64_MAX, &offset));
  gm__vulkan_host_range *range = gm__vulkan_host_take(fixture.device, host + 2, 99, &offset);
  assert_non_null(range);
  assert_int_equal(offset, 1);
  assert_int_equal(fixture.ops->host_unregister(fixture.device, host + 1, GM_CLOSE_NORMAL, &err), GM_ERR_BUSY);
  assert_non_null(strstr(err.message, "another thread"));
  gm__vulkan_host_give(fixture.device, range, &none);
  assert_int_equal(fixture.ops->host_unregister(fixture.device, host + 1, GM_CLOSE_NORMAL, &err), GM_OK);
  vulkan_fixture_close(&fixture);
  free(host);
}

typedef struct worker {
  const vulkan_fixture *fixture;
  bool failed;
} worker;

static void *register_and_copy(void *user) {
  worker *self = user;
  const gm_backend_ops *ops = self->fixture->ops;
  void *device = self->fixture->device, *stream;
  unsigned char *host = host_memory(), *want = host_memory();
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = BYTES};
  gm_memory memory;
  gm_stream_kind kind;
  self->failed = ops->stream_create(device, &stream, &kind, NULL) || ops->memory_alloc(device, &params, &memory, NULL);
  for (int i = 0; i < 20 && !self->failed; i++) {
    self->failed = ops->host_register(device, host, BYTES, NULL) ||
                   ops->copy_to_device(device, stream, &memory, 0, host, BYTES, NULL, NULL);
    memset(host, 0, BYTES);
    self->failed = self->failed || ops->copy_to_host(device, stream, &memory, 0, host, BYTES, NULL, NULL) ||
                   ops->host_unregister(device, host, GM_CLOSE_NORMAL, NULL) || memcmp(host, want, BYTES) != 0;
  }
  ops->stream_close(device, stream, GM_CLOSE_NORMAL);
  ops->memory_free(device, &memory, GM_CLOSE_NORMAL, NULL);
  free(host);
  free(want);
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  vulkan_fixture fixture;
  vulkan_fixture_open(&fixture, "no_host_visible");
  pthread_t threads[3];
  worker workers[3];
  for (int i = 0; i < 3; i++) {
    workers[i] = (worker){.fixture = &fixture};
    assert_int_equal(pthread_create(&threads[i], NULL, register_and_copy, &workers[i]), 0);
  }
  for (int i = 0; i < 3; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_false(workers[i].failed);
  }
  vulkan_fixture_close(&fixture);
}

/* ---- wrapped memory ---- */

/* A block of the caller's own memory: the device writes to it, the host reads it at its own address. */
static void test_wrapped_host_memory(void **state) {
  (void)state;
  vulkan_fixture fixture; /* skips the test where there is no Vulkan */
  pool_bench bench;
  unsigned char *host = host_memory();
  gm_block block, other, again;
  void *mapped = NULL;
  gm_error why = {0};
  vulkan_fixture_init(&fixture, "");
  vulkan_fixture_close(&fixture);
  pool_bench_open(&bench, "vulkan", "vulkan:validation", NULL);
  gm_vulkan_memory native = {.head = {sizeof native, GM_API_VULKAN}, .mapped = host, .bytes = BYTES - 5};
  pool_bench_ok(gm_block_wrap(bench.pool, &native.head, &block, err));
  assert_int_equal(block.bytes, BYTES - 5);
  gm_vulkan_memory told = {.head = {sizeof told, GM_API_VULKAN}}, part = told;
  pool_bench_ok(gm_block_native(bench.pool, &block, &told.head, err));
  assert_ptr_equal(told.mapped, host);
  assert_true(told.buffer && told.memory);
  pool_bench_ok(gm_block_object(bench.pool, &block, 1024, 512, &part.head, err));
  assert_ptr_equal(part.mapped, host + 1024);
  const gm_request request = {.bytes = BYTES};
  assert_true(gm_acquired(gm_alloc(bench.pool, &request, &other)));
  pool_bench_ok(gm_block_copy(bench.pool, &other, 0, bench.pool, &block, 0, BYTES - 5, NULL, NULL, err));
  memset(host, 0, BYTES);
  pool_bench_ok(gm_block_copy(bench.pool, &block, 1, bench.pool, &other, 0, 3000, NULL, NULL, err));
  unsigned char *want = host_memory();
  assert_int_equal(host[0], 0);
  assert_memory_equal(host + 1, want, 3000);
  pool_bench_ok(gm_block_map(bench.pool, &block, 8, 16, GM_MAP_READ | GM_MAP_NO_WAIT, NULL, &mapped, err));
  assert_ptr_equal(mapped, host + 8);
  pool_bench_ok(gm_block_unmap(bench.pool, &block, mapped, NULL, err));
  native.mapped = host + 1;
  assert_int_equal(gm_block_wrap(bench.pool, &native.head, &again, &why), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(why.message, "alignment"));
  native.mapped = host, native.bytes = 0;
  assert_int_equal(gm_block_wrap(bench.pool, &native.head, &again, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &other, NULL), GM_OK);
  pool_bench_close(&bench);
  assert_memory_equal(host + 1, want, 3000); /* it is the caller's */
  free(host);
  free(want);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_units_that_cannot_be),
      cmocka_unit_test(test_a_driver_without_the_entry_or_a_type),
      cmocka_unit_test(test_registered_bytes_take_no_staging),
      cmocka_unit_test(test_boxes),
      cmocka_unit_test(test_unregistered_with_copies_under_way),
      cmocka_unit_test(test_a_range_in_use_is_busy),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_wrapped_host_memory),
  };
  return cmocka_run_group_tests_name("vulkan_host", tests, NULL, NULL);
}
