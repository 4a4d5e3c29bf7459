/* APIs with pointers share these: types, checks, pieces of the right alignment, virtual memory that is tried,
 * codes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/shared/code_table.h"
#include "backends/shared/pointer_memory.h"
#include "backends/shared/vmm_try.h"

static gm_device_info info = {.name = "Card", .total_bytes = 1 << 20, .max_alloc_bytes = 1 << 19};

static void test_types(void **state) {
  (void)state;
  gm_memory_type type = {.struct_size = sizeof type};
  gm_error err;
  assert_int_equal(gm__pointer_types(&info), 2);
  assert_int_equal(gm__pointer_type("API", &info, 2, &type, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm__pointer_type("API", &info, 0, &type, &err), GM_OK);
  assert_int_equal(type.heap_bytes, info.total_bytes);
  assert_int_equal(gm__pointer_type("API", &info, 1, &type, &err), GM_OK);
  assert_int_equal(type.heap, 1);
  assert_int_equal(type.heap_bytes, 0);
  gm_device_info integrated = info;
  integrated.unified = true;
  integrated.capabilities = GM_CAP_MANAGED;
  assert_int_equal(gm__pointer_type("API", &integrated, 2, &type, &err), GM_OK);
  assert_int_equal(type.heap, 0);
  assert_true(type.flags & GM_MEMORY_MANAGED);
}

static void test_checks(void **state) {
  (void)state;
  gm_memory_params params = {.struct_size = sizeof params};
  const gm_memory pinned = {.type = 1};
  gm_error err;
  assert_int_equal(gm__pointer_check("API", &info, &params, &err), GM_ERR_INVALID_ARGUMENT);
  params.bytes = info.max_alloc_bytes + 1;
  assert_int_equal(gm__pointer_check("API", &info, &params, &err), GM_ERR_ALLOCATION_TOO_LARGE);
  params.type = GM__POINTER_PINNED;
  assert_int_equal(gm__pointer_check("API", &info, &params, &err), GM_OK);
  params.align = 3;
  assert_int_equal(gm__pointer_check("API", &info, &params, &err), GM_ERR_INVALID_ARGUMENT);
  params.align = UINT64_C(1) << 63;
  assert_int_equal(gm__pointer_check("API", &info, &params, &err), GM_ERR_ALLOCATION_TOO_LARGE);
  assert_int_equal(gm__pointer_check_wrap("API", UINT64_MAX - 9, 10, &err), GM_OK);
  assert_int_equal(gm__pointer_check_wrap("API", UINT64_MAX - 9, 11, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm__pointer_check_wrap("API", 0, 1, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm__pointer_check_managed("API", &info, &pinned, GM_MANAGED_ON_HOST, &err), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm__pointer_check_host("op", &info, &params, 1, &err), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm__pointer_check_host("op", &info, NULL, 1, &err), GM_ERR_INVALID_ARGUMENT);
}

/* A source that gives the next of a list of addresses, and counts. */
static struct source {
  gm__pointer_piece pieces[2];
  uint64_t asked[2];
  int taken, given_back;
  gm_status take_status, give_status;
} source;

static gm_status source_take(void *device, uint32_t type, uint64_t bytes, gm__pointer_piece *out, gm_error *err) {
  (void)device, (void)type, (void)err;
  if (source.taken && source.take_status) return source.take_status;
  source.asked[source.taken] = bytes;
  *out = source.pieces[source.taken++];
  return GM_OK;
}

static gm_status source_give_back(void *device, uint32_t type, uint64_t handle, gm_error *err) {
  (void)device, (void)type, (void)err;
  assert_int_equal(handle, source.pieces[source.taken - 1].handle);
  source.given_back++;
  return source.give_status;
}

static gm_status source_try(struct source wanted, gm__pointer_piece *out) {
  static const gm__pointer_source pieces = {"API", source_take, source_give_back};
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = 100, .align = 64};
  gm_error err;
  source = wanted;
  return gm__pointer_take(&pieces, NULL, &params, 16, out, &err);
}

static void test_pieces(void **state) {
  (void)state;
  gm__pointer_piece piece;
  assert_int_equal(source_try((struct source){.pieces = {{1, 128, 0}}}, &piece), GM_OK);
  assert_int_equal(source.taken, 1);
  assert_int_equal(source_try((struct source){.pieces = {{1, 130, 0}, {2, 200, 264}}}, &piece), GM_OK);
  assert_int_equal(source.asked[1], 164);
  assert_int_equal(source.given_back, 1);
  assert_int_equal(piece.handle, 2);
  assert_int_equal(piece.address, 256);
  assert_int_equal(piece.host, 320);
  /* host and device disagree: all is given back */
  assert_int_equal(source_try((struct source){.pieces = {{1, 130, 0}, {2, 200, 265}}}, &piece), GM_ERR_DRIVER);
  assert_int_equal(source.given_back, 2);
  const struct source full = {.pieces = {{1, 130, 0}}, .take_status = GM_ERR_OUT_OF_DEVICE_MEMORY};
  assert_int_equal(source_try(full, &piece), GM_ERR_OUT_OF_DEVICE_MEMORY);
  assert_int_equal(source.given_back, 1);
  const struct source stuck = {.pieces = {{1, 130, 0}}, .give_status = GM_ERR_DRIVER};
  assert_int_equal(source_try(stuck, &piece), GM_ERR_DRIVER);
  assert_int_equal(source.taken, 1);
}

/* Every entry of the group may be the one that fails; what was made before goes back. */
static int vmm_fails_at, vmm_calls, vmm_out;
static gm_status vmm_failure;

static gm_status vmm_step(int change) {
  if (++vmm_calls == vmm_fails_at) return vmm_failure;
  vmm_out += change;
  return GM_OK;
}

static gm_status vmm_granularity(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err) {
  (void)device, (void)props, (void)err;
  *out = 4096;
  return vmm_step(0);
}

static gm_status vmm_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out, gm_error *err) {
  (void)device, (void)bytes, (void)align, (void)err;
  *out = 4096;
  return vmm_step(1);
}

static gm_status vmm_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  (void)device, (void)address, (void)bytes, (void)mode, (void)err;
  vmm_out--;
  return GM_OK;
}

static gm_status vmm_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out, gm_error *err) {
  (void)device, (void)props, (void)bytes, (void)err;
  *out = 7;
  return vmm_step(1);
}

static gm_status vmm_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                         gm_error *err) {
  (void)device, (void)address, (void)bytes, (void)handle, (void)offset, (void)err;
  return vmm_step(1);
}

static gm_status vmm_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  (void)device, (void)address, (void)bytes, (void)err;
  vmm_out--;
  return GM_OK;
}

static gm_status vmm_access(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  (void)device, (void)address, (void)bytes, (void)err;
  return vmm_step(0);
}

static void test_virtual_memory_is_tried(void **state) {
  (void)state;
  const gm_backend_ops ops = {.vmm_granularity = vmm_granularity,
                              .vmm_reserve = vmm_reserve,
                              .vmm_unreserve = vmm_unreserve,
                              .vmm_create = vmm_create,
                              .vmm_destroy = vmm_unreserve,
                              .vmm_map = vmm_map,
                              .vmm_unmap = vmm_unmap,
                              .vmm_access = vmm_access};
  for (vmm_fails_at = 0; vmm_fails_at <= 5; vmm_fails_at++) {
    gm_device_info claims = {.capabilities = GM_CAP_VMM | GM_CAP_PEER};
    vmm_calls = vmm_out = 0;
    vmm_failure = vmm_fails_at % 2 ? GM_ERR_NOT_SUPPORTED : GM_ERR_OUT_OF_DEVICE_MEMORY;
    gm__vmm_try(&ops, NULL, &claims);
    assert_int_equal(vmm_out, 0);
    assert_int_equal(claims.capabilities, vmm_fails_at % 2 ? GM_CAP_PEER : GM_CAP_VMM | GM_CAP_PEER);
    assert_int_equal(vmm_calls, vmm_fails_at ? vmm_fails_at : 5);
  }
  gm_device_info none = {.capabilities = GM_CAP_PEER};
  vmm_calls = 0;
  gm__vmm_try(&ops, NULL, &none);
  assert_int_equal(vmm_calls, 0);
}

static void test_codes(void **state) {
  (void)state;
  static const gm__code codes[] = {{0, GM_OK, "FINE"}, {7, GM_ERR_DEVICE_LOST, "GONE"}};
  static const gm__code_table table = {"the oracle", codes, 2};
  assert_string_equal(gm__code_find(&table, 7)->name, "GONE");
  assert_int_equal(gm__code_find(&table, 8)->status, GM_ERR_DRIVER);
  assert_int_equal(gm__code_find(&table, -1)->number, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_types),  cmocka_unit_test(test_checks),
      cmocka_unit_test(test_pieces), cmocka_unit_test(test_virtual_memory_is_tried),
      cmocka_unit_test(test_codes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
