/* The CPU backend between processes: this program starts itself once more, hands it a descriptor, and both see the
 * same bytes. Descriptors may be something else: none may be able to end this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>

#include "support/cpu_fixture.h"
#include "support/share_other.h"

enum { SHARE_WHOLE = 1 << 20 };

static char *self; /* this program */

static share_device device_of(const cpu_fixture *f) { return (share_device){.ops = f->ops, .device = f->device}; }

static int other_process(bool physical) {
  cpu_fixture f;
  gm_shared shared = {.struct_size = sizeof shared};
  if (!share_read(&shared)) return SHARE_OTHER_UNREAD;
  cpu_begin(&f);
  const share_device device = device_of(&f);
  const int result = physical ? share_other_physical(&device, &shared) : share_other_memory(&device, &shared);
  cpu_end(&f);
  return result;
}

static gm_memory share_memory(cpu_fixture *f, uint64_t bytes, gm_share_kind kind) {
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = bytes, .align = 1 << 16, .share = kind};
  gm_memory memory = {0};
  assert_int_equal(f->ops->memory_alloc(f->device, &params, &memory, &f->err), GM_OK);
  assert_int_equal(memory.address % (1 << 16), 0);
  return memory;
}

static void share_free(cpu_fixture *f, const gm_memory *memory) {
  assert_int_equal(f->ops->memory_free(f->device, memory, GM_CLOSE_NORMAL, &f->err), GM_OK);
}

static void test_memory_in_two_processes(void **state) {
  (void)state;
  cpu_fixture f;
  gm_shared shared = {.struct_size = sizeof shared};
  cpu_begin(&f);
  const share_device device = device_of(&f);
  const gm_memory memory = share_memory(&f, SHARE_BYTES, GM_SHARE_FD);
  share_fill(&device, &memory);
  assert_int_equal(f.ops->share_export(f.device, &memory, GM_SHARE_FD, &shared, &f.err), GM_OK);
  assert_true(fcntl(shared.fd, F_GETFD) & FD_CLOEXEC);
  assert_int_equal(share_with_other(self, "memory", shared), 0);
  share_check_after(&device, &memory);
  close(shared.fd);
  share_free(&f, &memory);
  cpu_end(&f);
}

/* A part of it, which begins in the middle of a page. */
static void test_a_part_in_two_processes(void **state) {
  (void)state;
  cpu_fixture f;
  gm_shared shared = {.struct_size = sizeof shared};
  cpu_begin(&f);
  const share_device device = device_of(&f);
  const gm_memory memory = share_memory(&f, SHARE_BYTES + 10000, GM_SHARE_FD);
  const gm_memory part = {.handle = memory.address + 9001, .address = memory.address + 9001, .bytes = SHARE_BYTES};
  share_fill(&device, &part);
  assert_int_equal(f.ops->share_export(f.device, &memory, GM_SHARE_FD, &shared, &f.err), GM_OK);
  shared.offset = 9001;
  shared.bytes = SHARE_BYTES;
  assert_int_equal(share_with_other(self, "memory", shared), 0);
  share_check_after(&device, &part);
  close(shared.fd);
  share_free(&f, &memory);
  cpu_end(&f);
}

static void test_physical_memory_in_two_processes(void **state) {
  (void)state;
  cpu_fixture f;
  gm_shared shared = {.struct_size = sizeof shared};
  cpu_begin(&f);
  const share_device device = device_of(&f);
  const uint64_t bytes = f.granule, address = cpu_reserve(&f, bytes), plain = cpu_physical(&f, bytes, false);
  assert_int_equal(f.ops->share_export_vmm(f.device, plain, bytes, &shared, &f.err), GM_ERR_NOT_SUPPORTED);
  f.ops->vmm_destroy(f.device, plain, bytes, GM_CLOSE_NORMAL, &f.err);
  const uint64_t handle = cpu_physical(&f, bytes, true);
  assert_int_equal(f.ops->vmm_map(f.device, address, bytes, handle, 0, &f.err), GM_OK);
  const gm_memory memory = {.handle = address, .address = address, .bytes = bytes};
  share_fill(&device, &memory);
  assert_int_equal(f.ops->share_export_vmm(f.device, handle, 2 * bytes, &shared, &f.err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(f.ops->share_export_vmm(f.device, handle, bytes, &shared, &f.err), GM_OK);
  assert_int_equal(share_with_other(self, "physical", shared), 0);
  share_check_after(&device, &memory);
  close(shared.fd);
  assert_int_equal(f.ops->vmm_unmap(f.device, address, bytes, &f.err), GM_OK);
  f.ops->vmm_destroy(f.device, handle, bytes, GM_CLOSE_NORMAL, &f.err);
  assert_int_equal(f.ops->vmm_unreserve(f.device, address, bytes, GM_CLOSE_NORMAL, &f.err), GM_OK);
  cpu_end(&f);
}

/* `fd` is closed; both imports refuse it, and write nothing. */
static void refuse(cpu_fixture *f, int fd, uint64_t bytes) {
  gm_shared shared = {
      .struct_size = sizeof shared, .kind = GM_SHARE_FD, .bytes = bytes, .whole_bytes = bytes, .fd = fd};
  gm_memory memory, untouched;
  uint64_t handle = 7;
  memset(&memory, 0x5a, sizeof memory);
  memset(&untouched, 0x5a, sizeof untouched);
  assert_int_equal(f->ops->share_import(f->device, &shared, &memory, &f->err), GM_ERR_INVALID_ARGUMENT);
  assert_memory_equal(&memory, &untouched, sizeof memory);
  shared.bytes = shared.whole_bytes = (bytes + f->granule - 1) / f->granule * f->granule;
  assert_int_equal(f->ops->share_import_vmm(f->device, &shared, &handle, &f->err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(handle, 7);
  if (fd >= 0) close(fd);
}

/* `filled`: with pages behind all of it. */
static int memfd(uint64_t bytes, bool filled, int seals) {
  const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  assert_true(fd >= 0);
  assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
  if (filled && bytes) assert_int_equal(fallocate(fd, 0, 0, (off_t)bytes), 0);
  assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
  return fd;
}

static void test_hostile_descriptors(void **state) {
  (void)state;
  cpu_fixture f;
  cpu_begin(&f);
  const uint64_t whole = f.granule;
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  refuse(&f, ends[0], 4096);
  close(ends[1]);
  refuse(&f, -1, 4096);
  refuse(&f, 100000, 4096);
  refuse(&f, open("/", O_RDONLY), 4096);
  refuse(&f, open("/dev/zero", O_RDWR), 4096);
  refuse(&f, open("/proc/self/exe", O_RDONLY), 4096);
  refuse(&f, memfd(whole, true, 0), whole);                            /* could shrink under us */
  refuse(&f, memfd(whole, true, F_SEAL_SHRINK | F_SEAL_WRITE), whole); /* cannot be written */
  refuse(&f, memfd(whole - 4096, true, F_SEAL_SHRINK), whole);         /* too small */
  refuse(&f, memfd(0, true, F_SEAL_SHRINK), whole);
  refuse(&f, memfd(whole, false, F_SEAL_SHRINK), whole); /* nothing behind it */
  cpu_end(&f);
}

static void test_a_descriptor_that_cannot_be_written(void **state) {
  (void)state;
  cpu_fixture f;
  gm_memory memory;
  char path[64];
  cpu_begin(&f);
  const int fd = memfd(f.granule, true, F_SEAL_SHRINK);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const gm_shared shared = {.struct_size = sizeof shared,
                            .kind = GM_SHARE_FD,
                            .bytes = 4096,
                            .whole_bytes = 4096,
                            .fd = open(path, O_RDONLY | O_CLOEXEC)};
  assert_true(shared.fd >= 0);
  assert_int_equal(f.ops->share_import(f.device, &shared, &memory, &f.err), GM_ERR_INVALID_ARGUMENT);
  close(shared.fd);
  close(fd);
  cpu_end(&f);
}

static void test_hostile_words(void **state) {
  (void)state;
  enum { WRONG = 9 };
  cpu_fixture f;
  gm_shared shared, wrong[WRONG];
  gm_memory imported;
  cpu_begin(&f);
  const gm_memory memory = share_memory(&f, SHARE_WHOLE, GM_SHARE_FD);
  assert_int_equal(f.ops->share_export(f.device, &memory, GM_SHARE_FD, &shared, &f.err), GM_OK);
  for (unsigned i = 0; i < WRONG; i++) wrong[i] = shared;
  wrong[0].struct_size = 8;
  wrong[1].kind = GM_SHARE_IPC;
  wrong[2].type = 1;
  wrong[3].bytes = 0;
  wrong[4].bytes = SHARE_WHOLE + 1;
  wrong[5].offset = 1;
  wrong[6].offset = UINT64_MAX;
  wrong[7].whole_bytes = wrong[7].bytes = UINT64_C(1) << 61;
  wrong[8].whole_bytes = UINT64_MAX;
  for (unsigned i = 0; i < WRONG; i++) {
    assert_int_equal(f.ops->share_import(f.device, &wrong[i], &imported, &f.err), GM_ERR_INVALID_ARGUMENT);
  }
  close(shared.fd);
  assert_int_equal(f.ops->share_close(f.device, &memory, GM_CLOSE_NORMAL, &f.err), GM_ERR_INVALID_ARGUMENT);
  share_free(&f, &memory);
  cpu_end(&f);
}

static void test_other_kinds_and_other_memory(void **state) {
  (void)state;
  cpu_fixture f;
  gm_shared shared = {.struct_size = sizeof shared};
  gm_memory memory;
  cpu_begin(&f);
  gm_memory_params params = {.struct_size = sizeof params, .bytes = 4096, .share = GM_SHARE_IPC};
  assert_int_equal(f.ops->memory_alloc(f.device, &params, &memory, &f.err), GM_ERR_NOT_SUPPORTED);
  const gm_memory plain = share_memory(&f, 4096, GM_SHARE_NONE);
  assert_int_equal(f.ops->share_export(f.device, &plain, GM_SHARE_FD, &shared, &f.err), GM_ERR_NOT_SUPPORTED);
  share_free(&f, &plain);
  const gm_memory made = share_memory(&f, 4096, GM_SHARE_FD);
  assert_int_equal(f.ops->share_export(f.device, &made, GM_SHARE_IPC, &shared, &f.err), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(f.ops->share_export(f.device, &made, GM_SHARE_DMABUF, &shared, &f.err), GM_ERR_NOT_SUPPORTED);
  share_free(&f, &made);
  cpu_end(&f);
}

int main(int argc, char **argv) {
  self = argv[0];
  if (argc > 1) return other_process(strcmp(argv[1], "physical") == 0);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory_in_two_processes),
      cmocka_unit_test(test_a_part_in_two_processes),
      cmocka_unit_test(test_physical_memory_in_two_processes),
      cmocka_unit_test(test_hostile_descriptors),
      cmocka_unit_test(test_a_descriptor_that_cannot_be_written),
      cmocka_unit_test(test_hostile_words),
      cmocka_unit_test(test_other_kinds_and_other_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
