/* The CUDA backend between processes: this program starts itself once more, hands it memory, and both see the same
 * bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "support/cuda_fixture.h"
#include "support/share_other.h"

static char *self; /* this program */

static share_device device_of(const cuda_fixture *f) {
  return (share_device){.ops = f->ops, .device = f->device, .stream = f->stream};
}

static int other_process(void) {
  cuda_fixture f;
  gm_shared shared = {.struct_size = sizeof shared};
  if (!share_read(&shared)) return SHARE_OTHER_UNREAD;
  cuda_begin(&f);
  cuda_open(&f);
  const share_device device = device_of(&f);
  const int result =
      shared.kind == GM_SHARE_IPC ? share_other_memory(&device, &shared) : share_other_physical(&device, &shared);
  cuda_end(&f);
  return result;
}

static void test_memory_in_two_processes(void **state) {
  (void)state;
  cuda_fixture f;
  gm_shared shared = {.struct_size = sizeof shared};
  cuda_begin(&f);
  cuda_open(&f);
  const share_device device = device_of(&f);
  gm_memory memory = cuda_memory(&f, 0, SHARE_BYTES);
  share_fill(&device, &memory);
  assert_int_equal(f.ops->share_export(f.device, &memory, GM_SHARE_IPC, &shared, &f.err), GM_OK);
  assert_int_equal(share_with_other(self, "other", shared), 0);
  share_check_after(&device, &memory);
  cuda_free(&f, &memory);
  cuda_end(&f);
}

/* FIELD: what is to be exported must be made for it. */
static void test_physical_memory_in_two_processes(void **state) {
  (void)state;
  cuda_fixture f;
  const gm_vmm_props props = {.shareable = true}, plain = {0};
  gm_shared shared = {.struct_size = sizeof shared};
  uint64_t granule = 0, handle = 0, address = 0, private_handle = 0;
  cuda_begin(&f);
  cuda_open(&f);
  const share_device device = device_of(&f);
  assert_int_equal(f.ops->vmm_granularity(f.device, &props, &granule, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_create(f.device, &plain, granule, &private_handle, &f.err), GM_OK);
  assert_int_not_equal(f.ops->share_export_vmm(f.device, private_handle, granule, &shared, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_destroy(f.device, private_handle, granule, GM_CLOSE_NORMAL, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_create(f.device, &props, granule, &handle, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_reserve(f.device, granule, 0, &address, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_map(f.device, address, granule, handle, 0, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_access(f.device, address, granule, &f.err), GM_OK);
  const gm_memory memory = {.handle = address, .address = address, .bytes = granule, .wrapped = true};
  share_fill(&device, &memory);
  assert_int_equal(f.ops->share_export_vmm(f.device, handle, granule, &shared, &f.err), GM_OK);
  assert_int_equal(share_with_other(self, "other", shared), 0);
  close(shared.fd);
  share_check_after(&device, &memory);
  assert_int_equal(f.ops->vmm_unmap(f.device, address, granule, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_destroy(f.device, handle, granule, GM_CLOSE_NORMAL, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_unreserve(f.device, address, granule, GM_CLOSE_NORMAL, &f.err), GM_OK);
  cuda_end(&f);
}

/* The words of another process are input. */
static void test_bad_handles(void **state) {
  (void)state;
  cuda_fixture f;
  gm_memory memory, untouched;
  uint64_t handle = 7;
  memset(&memory, 0x5a, sizeof memory);
  memset(&untouched, 0x5a, sizeof untouched);
  cuda_begin(&f);
  cuda_open(&f);
  gm_shared shared = {.struct_size = sizeof shared, .kind = GM_SHARE_IPC, .bytes = 100, .fd = -1};
  assert_int_not_equal(f.ops->share_import(f.device, &shared, &memory, &f.err), GM_OK); /* a handle of zeros */
  assert_memory_equal(&memory, &untouched, sizeof memory);
  shared.kind = GM_SHARE_FD;
  assert_int_equal(f.ops->share_import_vmm(f.device, &shared, &handle, &f.err), GM_ERR_INVALID_ARGUMENT);
  shared.fd = open("/dev/null", O_RDONLY);
  assert_int_not_equal(f.ops->share_import_vmm(f.device, &shared, &handle, &f.err), GM_OK);
  assert_int_equal(handle, 7);
  close(shared.fd);
  gm_memory pinned = cuda_memory(&f, 1, 4096);
  assert_int_equal(f.ops->share_export(f.device, &pinned, GM_SHARE_IPC, &shared, &f.err), GM_ERR_NOT_SUPPORTED);
  cuda_free(&f, &pinned);
  cuda_end(&f);
}

int main(int argc, char **argv) {
  self = argv[0];
  if (argc > 1 && strcmp(argv[1], "other") == 0) return other_process();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory_in_two_processes),
      cmocka_unit_test(test_physical_memory_in_two_processes),
      cmocka_unit_test(test_bad_handles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
