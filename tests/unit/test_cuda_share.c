/* The CUDA backend between processes: this program starts itself once more, hands it memory, and both see the same
 * bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cuda_fixture.h"

enum { SHARE_BYTES = 50000, SHARE_BEFORE = 0x11, SHARE_AFTER = 0x22 };

extern char **environ;

/* The other process: what is shared comes over standard input. Returns the exit code. */
static int other_check(cuda_fixture *f, const gm_memory *memory) {
  static unsigned char got[SHARE_BYTES];
  const unsigned char after = SHARE_AFTER;
  if (f->ops->copy_to_host(f->device, NULL, memory, 0, got, SHARE_BYTES, NULL, &f->err) != GM_OK) return 12;
  for (size_t i = 0; i < SHARE_BYTES; i++) {
    if (got[i] != SHARE_BEFORE) return 13;
  }
  return f->ops->fill(f->device, NULL, memory, 0, SHARE_BYTES, &after, 1, NULL, &f->err) == GM_OK ? 0 : 14;
}

static int other_ipc(cuda_fixture *f, const gm_shared *shared) {
  gm_memory memory;
  if (f->ops->share_import(f->device, shared, &memory, &f->err) != GM_OK) return 10;
  if (!memory.wrapped || memory.bytes != SHARE_BYTES) return 11;
  const int result = other_check(f, &memory);
  return f->ops->share_close(f->device, &memory, GM_CLOSE_NORMAL, &f->err) == GM_OK ? result : 15;
}

static int other_fd(cuda_fixture *f, const gm_shared *shared) {
  uint64_t handle = 0, address = 0;
  if (f->ops->share_import_vmm(f->device, shared, &handle, &f->err) != GM_OK) return 20;
  if (f->ops->vmm_reserve(f->device, shared->bytes, 0, &address, &f->err) != GM_OK) return 21;
  if (f->ops->vmm_map(f->device, address, shared->bytes, handle, 0, &f->err) != GM_OK) return 22;
  if (f->ops->vmm_access(f->device, address, shared->bytes, &f->err) != GM_OK) return 23;
  const gm_memory memory = {.handle = address, .address = address, .bytes = shared->bytes, .wrapped = true};
  const int result = other_check(f, &memory);
  f->ops->vmm_unmap(f->device, address, shared->bytes, &f->err);
  f->ops->vmm_destroy(f->device, handle, shared->bytes, GM_CLOSE_NORMAL, &f->err);
  f->ops->vmm_unreserve(f->device, address, shared->bytes, GM_CLOSE_NORMAL, &f->err);
  return result;
}

static int other_process(void) {
  cuda_fixture f;
  gm_shared shared;
  if (read(STDIN_FILENO, &shared, sizeof shared) != (ssize_t)sizeof shared) return 2;
  cuda_begin(&f);
  cuda_open(&f);
  const int result = shared.kind == GM_SHARE_IPC ? other_ipc(&f, &shared) : other_fd(&f, &shared);
  cuda_end(&f);
  return result;
}

/* Gives `shared` to another process and returns its exit code. */
static int share_with_other(const gm_shared *shared) {
  char self[] = "/proc/self/exe", other[] = "other";
  char *const argv[] = {self, other, NULL};
  posix_spawn_file_actions_t actions;
  int ends[2], result = -1;
  pid_t pid;
  assert_int_equal(pipe(ends), 0);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  assert_int_equal(write(ends[1], shared, sizeof *shared), sizeof *shared);
  assert_int_equal(posix_spawn(&pid, self, &actions, NULL, argv, environ), 0);
  assert_int_equal(waitpid(pid, &result, 0), pid);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[0]);
  close(ends[1]);
  return WIFEXITED(result) ? WEXITSTATUS(result) : 100 + WTERMSIG(result);
}

static void share_check_after(cuda_fixture *f, const gm_memory *memory) {
  static unsigned char got[SHARE_BYTES];
  assert_int_equal(f->ops->copy_to_host(f->device, f->stream, memory, 0, got, SHARE_BYTES, NULL, &f->err), GM_OK);
  for (size_t i = 0; i < SHARE_BYTES; i++) assert_int_equal(got[i], SHARE_AFTER);
}

static void test_memory_in_two_processes(void **state) {
  (void)state;
  cuda_fixture f;
  const unsigned char before = SHARE_BEFORE;
  gm_shared shared = {.struct_size = sizeof shared};
  cuda_begin(&f);
  cuda_open(&f);
  gm_memory memory = cuda_memory(&f, 0, SHARE_BYTES);
  assert_int_equal(f.ops->fill(f.device, f.stream, &memory, 0, SHARE_BYTES, &before, 1, NULL, &f.err), GM_OK);
  assert_int_equal(f.ops->share_export(f.device, &memory, GM_SHARE_IPC, &shared, &f.err), GM_OK);
  assert_int_equal(share_with_other(&shared), 0);
  share_check_after(&f, &memory);
  cuda_free(&f, &memory);
  cuda_end(&f);
}

/* FIELD: what is to be exported must be made for it. */
static void test_physical_memory_in_two_processes(void **state) {
  (void)state;
  cuda_fixture f;
  const unsigned char before = SHARE_BEFORE;
  const gm_vmm_props props = {.shareable = true}, plain = {0};
  gm_shared shared = {.struct_size = sizeof shared};
  uint64_t granule = 0, handle = 0, address = 0, private_handle = 0;
  cuda_begin(&f);
  cuda_open(&f);
  assert_int_equal(f.ops->vmm_granularity(f.device, &props, &granule, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_create(f.device, &plain, granule, &private_handle, &f.err), GM_OK);
  assert_int_not_equal(f.ops->share_export_vmm(f.device, private_handle, granule, &shared, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_destroy(f.device, private_handle, granule, GM_CLOSE_NORMAL, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_create(f.device, &props, granule, &handle, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_reserve(f.device, granule, 0, &address, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_map(f.device, address, granule, handle, 0, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_access(f.device, address, granule, &f.err), GM_OK);
  const gm_memory memory = {.handle = address, .address = address, .bytes = granule, .wrapped = true};
  assert_int_equal(f.ops->fill(f.device, f.stream, &memory, 0, granule, &before, 1, NULL, &f.err), GM_OK);
  assert_int_equal(f.ops->share_export_vmm(f.device, handle, granule, &shared, &f.err), GM_OK);
  const int kept = shared.fd;
  shared.fd = dup(kept); /* one that the other process inherits */
  assert_int_equal(share_with_other(&shared), 0);
  close(kept);
  close(shared.fd);
  share_check_after(&f, &memory);
  assert_int_equal(f.ops->vmm_unmap(f.device, address, granule, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_destroy(f.device, handle, granule, GM_CLOSE_NORMAL, &f.err), GM_OK);
  assert_int_equal(f.ops->vmm_unreserve(f.device, address, granule, GM_CLOSE_NORMAL, &f.err), GM_OK);
  cuda_end(&f);
}

/* What another process sends is input. */
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
  if (argc > 1 && strcmp(argv[1], "other") == 0) return other_process();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory_in_two_processes),
      cmocka_unit_test(test_physical_memory_in_two_processes),
      cmocka_unit_test(test_bad_handles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
