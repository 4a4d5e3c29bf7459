/* Known and possible pitfalls of addresses, shared memory and sparse buffers, played by the simulated driver and met at
 * the seam. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <unistd.h>

#include "support/vulkan_fixture.h"

/* Opens a device of the simulated driver that plays `script`. */
static void memory_open(vulkan_fixture *f, const char *script) {
  assert_int_equal(setenv("GM_VULKAN_LIBRARY", SIM_LIBRARY, 1), 0);
  assert_int_equal(setenv("SIMVK", script, 1), 0);
  vulkan_fixture_open(f, "");
}

static bool memory_device_has(const vulkan_fixture *f, uint64_t capability) {
  gm_device_info info = {.struct_size = sizeof info};
  assert_int_equal(f->ops->device_info(f->driver, 0, f->device, &info, NULL), GM_OK);
  assert_true(info.simulated);
  return info.capabilities & capability;
}

static void test_address_of_zero(void **state) {
  (void)state;
  vulkan_fixture f;
  gm_error err = {0};
  gm_memory memory;
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 4096};
  memory_open(&f, "null=vkGetBufferDeviceAddress");
  assert_int_equal(f.ops->memory_alloc(f.device, &params, &memory, &err), GM_ERR_DRIVER);
  assert_non_null(strstr(err.message, "vkGetBufferDeviceAddress"));
  assert_int_equal(vulkan_fixture_held(&f), 0);
  vulkan_fixture_close(&f);
}

static void test_no_addresses(void **state) {
  (void)state;
  vulkan_fixture f;
  memory_open(&f, "no_address");
  assert_false(memory_device_has(&f, GM_CAP_ADDRESS));
  gm_memory memory = vulkan_fixture_alloc(&f, 0, 4096);
  assert_int_equal(memory.address, 0);
  vulkan_fixture_free(&f, &memory);
  vulkan_fixture_close(&f);
}

static void test_descriptor_of_minus_one(void **state) {
  (void)state;
  vulkan_fixture f;
  gm_error err = {0};
  gm_memory memory;
  gm_shared shared = {.struct_size = sizeof shared, .fd = -7};
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 4096, .share = GM_SHARE_FD};
  memory_open(&f, "null=vkGetMemoryFdKHR");
  assert_int_equal(f.ops->memory_alloc(f.device, &params, &memory, NULL), GM_OK);
  assert_int_equal(f.ops->share_export(f.device, &memory, GM_SHARE_FD, &shared, &err), GM_ERR_DRIVER);
  assert_int_equal(shared.fd, -7);
  vulkan_fixture_free(&f, &memory);
  vulkan_fixture_close(&f);
}

static void test_nothing_can_be_shared(void **state) {
  (void)state;
  vulkan_fixture f;
  gm_memory memory;
  gm_memory_type type = {.struct_size = sizeof type};
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 4096, .share = GM_SHARE_FD};
  memory_open(&f, "no_share");
  assert_false(memory_device_has(&f, GM_CAP_SHARE));
  assert_int_equal(f.ops->memory_type(f.device, 0, &type, NULL), GM_OK);
  assert_int_equal(type.share_kinds, 0);
  assert_int_equal(f.ops->memory_alloc(f.device, &params, &memory, NULL), GM_ERR_NOT_SUPPORTED);
  vulkan_fixture_close(&f);
}

/* Only an allocation for one buffer can be shared: it has no views, and comes in as it went out. */
static void test_shares_dedicated_allocations_only(void **state) {
  (void)state;
  vulkan_fixture f;
  gm_memory memory, again;
  uint64_t view = 0;
  gm_shared shared = {.struct_size = sizeof shared};
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 4097, .share = GM_SHARE_FD};
  memory_open(&f, "dedicated_only");
  assert_int_equal(f.ops->memory_alloc(f.device, &params, &memory, NULL), GM_OK);
  assert_int_equal(f.ops->view_create(f.device, &memory, 0, 64, 0, &view, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(f.ops->share_export(f.device, &memory, GM_SHARE_FD, &shared, NULL), GM_OK);
  assert_int_equal(f.ops->share_import(f.device, &shared, &again, NULL), GM_OK);
  assert_int_equal(f.ops->view_create(f.device, &again, 0, 64, 0, &view, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(f.ops->share_close(f.device, &again, GM_CLOSE_NORMAL, NULL), GM_OK);
  close(shared.fd);
  vulkan_fixture_free(&f, &memory);
  vulkan_fixture_close(&f);
}

/* A success without an object takes nothing: the caller's descriptor stays, gm's copy is the driver's. */
static void test_import_of_nothing(void **state) {
  (void)state;
  vulkan_fixture f;
  gm_memory memory, again;
  gm_shared shared = {.struct_size = sizeof shared};
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 4097, .share = GM_SHARE_FD};
  memory_open(&f, "fail=vkAllocateMemory:2:-1000072003"); /* VK_ERROR_INVALID_EXTERNAL_HANDLE */
  assert_int_equal(f.ops->memory_alloc(f.device, &params, &memory, NULL), GM_OK);
  assert_int_equal(f.ops->share_export(f.device, &memory, GM_SHARE_FD, &shared, NULL), GM_OK);
  const int next = dup(shared.fd);
  close(next);
  assert_int_equal(f.ops->share_import(f.device, &shared, &again, NULL), GM_ERR_INVALID_ARGUMENT);
  const int after = dup(shared.fd);
  assert_int_equal(after, next); /* the copy was closed */
  close(after);
  close(shared.fd);
  vulkan_fixture_free(&f, &memory);
  vulkan_fixture_close(&f);
}

typedef struct sparse_scene {
  vulkan_fixture f;
  uint64_t granule, address, piece;
} sparse_scene;

static void sparse_open(sparse_scene *s, const char *script) {
  const gm_vmm_props props = {0};
  memory_open(&s->f, script);
  const gm_backend_ops *ops = s->f.ops;
  assert_int_equal(ops->vmm_granularity(s->f.device, &props, &s->granule, NULL), GM_OK);
  assert_int_equal(ops->vmm_reserve(s->f.device, 2 * s->granule, 0, &s->address, NULL), GM_OK);
  assert_int_equal(ops->vmm_create(s->f.device, &props, s->granule, &s->piece, NULL), GM_OK);
}

static void sparse_close(sparse_scene *s) {
  const gm_backend_ops *ops = s->f.ops;
  assert_int_equal(ops->vmm_destroy(s->f.device, s->piece, s->granule, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(ops->vmm_unreserve(s->f.device, s->address, 2 * s->granule, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_true(vulkan_fixture_held(&s->f) < s->granule || vulkan_fixture_held(&s->f) == 2 << 20); /* staging */
  vulkan_fixture_close(&s->f);
}

static gm_status sparse_map(const sparse_scene *s, gm_error *err) {
  return s->f.ops->vmm_map(s->f.device, s->address, s->granule, s->piece, 0, err);
}

static gm_status sparse_unmap(const sparse_scene *s, gm_error *err) {
  return s->f.ops->vmm_unmap(s->f.device, s->address, s->granule, err);
}

static void test_granularity_of_zero(void **state) {
  (void)state;
  vulkan_fixture f;
  const gm_vmm_props props = {0};
  uint64_t granule = 5;
  memory_open(&f, "sparse,hostile=granularity");
  assert_false(memory_device_has(&f, GM_CAP_VMM));
  assert_int_equal(f.ops->vmm_granularity(f.device, &props, &granule, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(granule, 5);
  vulkan_fixture_close(&f);
}

static void test_sparse_buffer_without_an_address(void **state) {
  (void)state;
  vulkan_fixture f;
  uint64_t address = 5;
  memory_open(&f, "sparse,null=vkGetBufferDeviceAddress");
  assert_int_equal(f.ops->vmm_reserve(f.device, 65536, 0, &address, NULL), GM_ERR_DRIVER);
  assert_int_equal(address, 5);
  vulkan_fixture_close(&f);
}

static void test_fence_that_is_none(void **state) {
  (void)state;
  sparse_scene s;
  gm_error err = {0};
  sparse_open(&s, "sparse,null=vkCreateFence");
  assert_int_equal(sparse_map(&s, &err), GM_ERR_DRIVER);
  assert_non_null(strstr(err.message, "vkCreateFence"));
  assert_int_equal(sparse_unmap(&s, NULL), GM_ERR_INVALID_ARGUMENT); /* nothing is there */
  sparse_close(&s);
}

/* Work that was submitted happens: the answer of one wait does not say that it has not. */
static void test_wait_for_a_bind_fails_once(void **state) {
  (void)state;
  sparse_scene s;
  sparse_open(&s, "sparse,fail=vkWaitForFences:1:-1");
  assert_int_equal(sparse_map(&s, NULL), GM_OK);
  assert_int_equal(sparse_unmap(&s, NULL), GM_OK);
  sparse_close(&s);
}

static void test_bind_fails(void **state) {
  (void)state;
  sparse_scene s;
  sparse_open(&s, "sparse,fail=vkQueueBindSparse:1:-2,fail=vkQueueBindSparse:3:-2");
  assert_int_equal(sparse_map(&s, NULL), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(sparse_map(&s, NULL), GM_OK);
  assert_int_equal(sparse_unmap(&s, NULL), GM_ERR_OUT_OF_DEVICE_MEMORY); /* still mapped */
  assert_int_equal(sparse_unmap(&s, NULL), GM_OK);
  sparse_close(&s);
}

/* On a lost device nobody can be told, and everything is given back all the same. */
static void test_lost_with_a_mapping(void **state) {
  (void)state;
  sparse_scene s;
  const gm_vmm_props props = {0};
  uint64_t out = 0;
  sparse_open(&s, "sparse,lost_after=1");
  assert_int_equal(sparse_map(&s, NULL), GM_OK);
  assert_int_equal(s.f.ops->stream_barrier(s.f.device, s.f.stream, NULL), GM_ERR_DEVICE_LOST);
  assert_int_equal(s.f.ops->vmm_create(s.f.device, &props, s.granule, &out, NULL), GM_ERR_DEVICE_LOST);
  assert_int_equal(s.f.ops->vmm_reserve(s.f.device, s.granule, 0, &out, NULL), GM_ERR_DEVICE_LOST);
  assert_int_equal(sparse_unmap(&s, NULL), GM_OK);
  assert_int_equal(sparse_map(&s, NULL), GM_ERR_DEVICE_LOST);
  sparse_close(&s);
}

static void test_few_sparse_addresses(void **state) {
  (void)state;
  sparse_scene s;
  uint64_t second = 0, third = 0;
  sparse_open(&s, "sparse,space=256K");
  const gm_backend_ops *ops = s.f.ops;
  assert_int_equal(ops->vmm_reserve(s.f.device, 2 * s.granule, 0, &second, NULL), GM_OK);
  assert_int_equal(ops->vmm_reserve(s.f.device, s.granule, 0, &third, NULL), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(ops->vmm_unreserve(s.f.device, second, 2 * s.granule, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(ops->vmm_reserve(s.f.device, s.granule, 0, &third, NULL), GM_OK);
  assert_int_equal(ops->vmm_unreserve(s.f.device, third, s.granule, GM_CLOSE_NORMAL, NULL), GM_OK);
  sparse_close(&s);
}

/* The simulated driver itself: where nothing is bound there is poison. */
static void test_unbound_memory_is_poison(void **state) {
  (void)state;
  sparse_scene s;
  gm_memory memory;
  unsigned char got[8] = {0};
  sparse_open(&s, "sparse");
  const gm_backend_ops *ops = s.f.ops;
  assert_int_equal(sparse_map(&s, NULL), GM_OK);
  assert_int_equal(ops->vmm_memory(s.f.device, s.address, 2 * s.granule, 0, &memory, NULL), GM_OK);
  assert_int_equal(ops->copy_to_host(s.f.device, s.f.stream, &memory, s.granule, got, 8, NULL, NULL), GM_OK);
  for (size_t i = 0; i < sizeof got; i++) assert_int_equal(got[i], 0xEE);
  vulkan_fixture_free(&s.f, &memory);
  assert_int_equal(sparse_unmap(&s, NULL), GM_OK);
  sparse_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_address_of_zero),
      cmocka_unit_test(test_no_addresses),
      cmocka_unit_test(test_descriptor_of_minus_one),
      cmocka_unit_test(test_nothing_can_be_shared),
      cmocka_unit_test(test_shares_dedicated_allocations_only),
      cmocka_unit_test(test_import_of_nothing),
      cmocka_unit_test(test_granularity_of_zero),
      cmocka_unit_test(test_sparse_buffer_without_an_address),
      cmocka_unit_test(test_fence_that_is_none),
      cmocka_unit_test(test_wait_for_a_bind_fails_once),
      cmocka_unit_test(test_bind_fails),
      cmocka_unit_test(test_lost_with_a_mapping),
      cmocka_unit_test(test_few_sparse_addresses),
      cmocka_unit_test(test_unbound_memory_is_poison),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
