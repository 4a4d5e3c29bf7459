/* Memory between processes: this program starts itself once more, hands it a descriptor, and both see the same bytes.
 * The words of another process are input. On the real driver, and once more behind the shim. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "support/share_other.h"
#include "support/vulkan_fixture.h"

static char *self; /* this program */

static share_device device_of(const vulkan_fixture *f) {
  return (share_device){.ops = f->ops, .device = f->device, .stream = f->stream};
}

/* The other process: what is shared comes over standard input, the descriptor is where it was. */
static int other_process(const char *options) {
  vulkan_fixture f;
  gm_shared shared = {.struct_size = sizeof shared};
  if (!share_read(&shared)) return SHARE_OTHER_UNREAD;
  vulkan_fixture_open(&f, options);
  const share_device device = device_of(&f);
  const int result = share_other_memory(&device, &shared);
  vulkan_fixture_close(&f);
  return result;
}

static bool share_has(const vulkan_fixture *f, uint32_t type, gm_share_kind kind) {
  gm_memory_type found = {.struct_size = sizeof found};
  assert_int_equal(f->ops->memory_type(f->device, type, &found, NULL), GM_OK);
  return found.share_kinds >> kind & 1;
}

static gm_memory share_alloc(const vulkan_fixture *f, uint32_t type, gm_share_kind kind, uint64_t align) {
  const gm_memory_params params = {
      .struct_size = sizeof params, .type = type, .bytes = SHARE_BYTES, .align = align, .share = kind};
  gm_memory memory = {0};
  gm_error err = {0};
  if (f->ops->memory_alloc(f->device, &params, &memory, &err) != GM_OK) fail_msg("%s", err.message);
  return memory;
}

static gm_shared share_out(const vulkan_fixture *f, const gm_memory *memory, gm_share_kind kind) {
  gm_shared shared = {.struct_size = sizeof shared};
  gm_error err = {0};
  if (f->ops->share_export(f->device, memory, kind, &shared, &err) != GM_OK) fail_msg("%s", err.message);
  assert_true(shared.fd >= 0 && shared.kind == kind && shared.bytes == memory->bytes);
  return shared;
}

/* The other process sees what was written here, and this one what was written there. */
static void share_between(const char *options, const char *others, gm_share_kind kind, uint64_t align) {
  vulkan_fixture f;
  vulkan_fixture_open(&f, options);
  if (!share_has(&f, 0, kind)) { /* opaque descriptors every driver of this test has */
    assert_int_equal(kind, GM_SHARE_DMABUF);
    vulkan_fixture_close(&f);
    skip();
  }
  gm_memory memory = share_alloc(&f, 0, kind, align);
  if (memory.address) assert_int_equal(memory.address % align, 0);
  const share_device device = device_of(&f);
  share_fill(&device, &memory);
  gm_shared shared = share_out(&f, &memory, kind);
  assert_int_equal(share_with_other(self, others, shared), 0);
  share_check_after(&device, &memory);
  close(shared.fd);
  vulkan_fixture_free(&f, &memory);
  vulkan_fixture_close(&f);
}

static void test_two_processes(void **state) {
  (void)state;
  share_between("validation", "validation", GM_SHARE_FD, 256);
}

/* The one goes through staging, the other does not: their lists of memory types differ. */
static void test_processes_with_other_types(void **state) {
  (void)state;
  share_between("validation", "validation,no_host_visible", GM_SHARE_FD, 256);
  share_between("validation,no_host_visible", "validation", GM_SHARE_FD, 256);
}

static void test_memory_at_an_offset(void **state) {
  (void)state;
  share_between("validation", "validation", GM_SHARE_FD, 2 << 20);
}

static void test_dmabuf(void **state) {
  (void)state;
  share_between("validation", "validation", GM_SHARE_DMABUF, 256);
}

/* By gm, before the driver sees it. */
static void refused(const vulkan_fixture *f, const gm_shared *wrong) {
  gm_memory memory = {.handle = 77};
  gm_error err = {0};
  assert_int_not_equal(f->ops->share_import(f->device, wrong, &memory, &err), GM_OK);
  assert_int_equal(memory.handle, 77);
  assert_true(err.message[0] != '\0');
  assert_string_equal(err.op, "gm_backend_ops.share_import");
  assert_int_equal(fcntl(wrong->fd < 0 ? STDIN_FILENO : wrong->fd, F_GETFD) < 0, 0);
}

static void test_words_of_another_process(void **state) {
  (void)state;
  vulkan_fixture f;
  vulkan_fixture_open(&f, "validation");
  gm_memory memory = share_alloc(&f, 0, GM_SHARE_FD, 0);
  const gm_shared good = share_out(&f, &memory, GM_SHARE_FD);
  const uint64_t held = vulkan_fixture_held(&f);
  gm_shared wrong = good;
  wrong.device_uuid[3] ^= 1; /* another card */
  refused(&f, &wrong);
  wrong = good;
  wrong.ipc[0] ^= 1; /* another driver */
  refused(&f, &wrong);
  wrong = good;
  memset(wrong.ipc + VK_UUID_SIZE, 0xff, 4); /* a memory type that is none */
  refused(&f, &wrong);
  wrong = good;
  memset(wrong.ipc + VK_UUID_SIZE + 8, 0x7f, 8); /* a huge allocation */
  refused(&f, &wrong);
  wrong = good;
  wrong.bytes = wrong.whole_bytes = good.whole_bytes + (1 << 20); /* more than there is */
  memcpy(wrong.ipc + VK_UUID_SIZE + 8, &wrong.whole_bytes, 8);
  refused(&f, &wrong);
  wrong = good;
  wrong.offset = good.whole_bytes - 10;
  refused(&f, &wrong);
  wrong = good;
  wrong.kind = GM_SHARE_IPC;
  refused(&f, &wrong);
  wrong = good;
  wrong.fd = -1;
  refused(&f, &wrong);
  wrong.fd = open("/dev/null", O_RDWR | O_CLOEXEC); /* nobody knows how much is behind it: the driver refuses */
  gm_memory nothing;
  assert_int_equal(f.ops->share_import(f.device, &wrong, &nothing, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(close(wrong.fd), 0);
  assert_int_equal(vulkan_fixture_held(&f), held);
  close(good.fd);
  vulkan_fixture_free(&f, &memory);
  vulkan_fixture_close(&f);
}

/* Bytes that come from elsewhere are not this process's. */
static void test_imports_are_not_counted(void **state) {
  (void)state;
  vulkan_fixture f;
  vulkan_fixture_open(&f, "validation");
  gm_memory memory = share_alloc(&f, 0, GM_SHARE_FD, 0), again = {0};
  const gm_shared shared = share_out(&f, &memory, GM_SHARE_FD);
  const uint64_t held = vulkan_fixture_held(&f);
  assert_int_equal(f.ops->share_import(f.device, &shared, &again, NULL), GM_OK);
  assert_int_equal(vulkan_fixture_held(&f), held);
  gm_shared twice = {.struct_size = sizeof twice};
  assert_int_equal(f.ops->share_export(f.device, &again, GM_SHARE_FD, &twice, NULL), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(f.ops->share_close(f.device, &again, GM_CLOSE_NORMAL, NULL), GM_OK);
  assert_int_equal(vulkan_fixture_held(&f), held);
  close(shared.fd);
  gm_memory plain = vulkan_fixture_alloc(&f, 0, 100);
  assert_int_equal(f.ops->share_export(f.device, &plain, GM_SHARE_FD, &twice, NULL), GM_ERR_NOT_SUPPORTED);
  vulkan_fixture_free(&f, &plain);
  vulkan_fixture_free(&f, &memory);
  vulkan_fixture_close(&f);
}

static void test_virtual_memory_stays(void **state) {
  (void)state;
  vulkan_fixture f;
  vulkan_fixture_open(&f, "validation");
  gm_shared shared = {.struct_size = sizeof shared};
  uint64_t handle = 0;
  gm_error err = {0};
  assert_int_equal(f.ops->share_export_vmm(f.device, 1, 1, &shared, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "memory_alloc"));
  assert_int_equal(f.ops->share_import_vmm(f.device, &shared, &handle, &err), GM_ERR_NOT_SUPPORTED);
  vulkan_fixture_close(&f);
}

int main(int argc, char **argv) {
  self = argv[0];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_two_processes),
      cmocka_unit_test(test_processes_with_other_types),
      cmocka_unit_test(test_memory_at_an_offset),
      cmocka_unit_test(test_dmabuf),
      cmocka_unit_test(test_words_of_another_process),
      cmocka_unit_test(test_imports_are_not_counted),
      cmocka_unit_test(test_virtual_memory_stays),
  };
  return argc > 1 ? other_process(argv[1]) : cmocka_run_group_tests(tests, NULL, NULL);
}
