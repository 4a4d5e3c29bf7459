/* Memory between processes: a test program starts itself once more, hands it over standard input what is shared, and
 * both see the same bytes. Needs cmocka.h included before.
 *
 *   share_fill(...), share_export
 *   assert_int_equal(share_with_other(argv[0] of main, "a word", shared), 0);
 *   share_check_after(...)
 * and in the other process, whose main has the word as argv[1]:
 *   if (!share_read(&shared)) return SHARE_OTHER_UNREAD;
 *   return share_other_memory(...) or share_other_physical(...); */
#ifndef GM_TESTS_SUPPORT_SHARE_OTHER_H
#define GM_TESTS_SUPPORT_SHARE_OTHER_H

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gm/backend.h"

enum { SHARE_BYTES = 50001, SHARE_BEFORE = 0x11, SHARE_AFTER = 0x22, SHARE_OTHER_UNREAD = 2 };

extern char **environ;

/* A device of the backend under test. */
typedef struct share_device {
  const gm_backend_ops *ops;
  void *device, *stream;
} share_device;

/* ---- the other process; each answer is an exit code, 0 is good ---- */

static inline bool share_read(gm_shared *out) { return read(STDIN_FILENO, out, sizeof *out) == (ssize_t)sizeof *out; }

static inline int share_other_check(const share_device *d, const gm_memory *memory) {
  static unsigned char got[SHARE_BYTES];
  const unsigned char after = SHARE_AFTER;
  if (d->ops->copy_to_host(d->device, d->stream, memory, 0, got, SHARE_BYTES, NULL, NULL) != GM_OK) return 12;
  for (size_t i = 0; i < SHARE_BYTES; i++) {
    if (got[i] != SHARE_BEFORE) return 13;
  }
  return d->ops->fill(d->device, d->stream, memory, 0, SHARE_BYTES, &after, 1, NULL, NULL) == GM_OK ? 0 : 14;
}

static inline int share_other_memory(const share_device *d, const gm_shared *shared) {
  gm_memory memory;
  gm_error err = {0};
  if (d->ops->share_import(d->device, shared, &memory, &err) != GM_OK) {
    printf("%s\n", err.message);
    return 10;
  }
  int result = memory.wrapped && memory.bytes == shared->bytes ? share_other_check(d, &memory) : 11;
  if (d->ops->share_close(d->device, &memory, GM_CLOSE_NORMAL, NULL) != GM_OK) result = 15;
  if (shared->kind != GM_SHARE_IPC && fcntl(shared->fd, F_GETFD) < 0) result = 16; /* an import does not take it */
  return result;
}

static inline int share_other_physical(const share_device *d, const gm_shared *shared) {
  uint64_t handle = 0, address = 0;
  if (d->ops->share_import_vmm(d->device, shared, &handle, NULL) != GM_OK) return 20;
  if (d->ops->vmm_reserve(d->device, shared->bytes, 0, &address, NULL) != GM_OK) return 21;
  if (d->ops->vmm_map(d->device, address, shared->bytes, handle, 0, NULL) != GM_OK) return 22;
  if (d->ops->vmm_access && d->ops->vmm_access(d->device, address, shared->bytes, NULL) != GM_OK) return 23;
  const gm_memory memory = {.handle = address, .address = address, .bytes = shared->bytes, .wrapped = true};
  const int result = share_other_check(d, &memory);
  d->ops->vmm_unmap(d->device, address, shared->bytes, NULL);
  d->ops->vmm_destroy(d->device, handle, shared->bytes, GM_CLOSE_NORMAL, NULL);
  d->ops->vmm_unreserve(d->device, address, shared->bytes, GM_CLOSE_NORMAL, NULL);
  return result;
}

/* ---- this process ---- */

/* Gives `shared` to another process, which inherits a copy of its descriptor, and returns the exit code. `self` is
 * this program: not /proc/self/exe, which under valgrind is another. */
static inline int share_with_other(char *self, const char *word, gm_shared shared) {
  char said[64];
  char *const argv[] = {self, said, NULL};
  const bool descriptor = shared.kind != GM_SHARE_IPC;
  posix_spawn_file_actions_t actions;
  int ends[2], result = -1;
  pid_t pid;
  snprintf(said, sizeof said, "%s", word);
  if (descriptor) shared.fd = dup(shared.fd);
  assert_int_equal(pipe(ends), 0);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  assert_int_equal(write(ends[1], &shared, sizeof shared), sizeof shared);
  assert_int_equal(posix_spawn(&pid, self, &actions, NULL, argv, environ), 0);
  assert_int_equal(waitpid(pid, &result, 0), pid);
  posix_spawn_file_actions_destroy(&actions);
  if (descriptor) close(shared.fd);
  close(ends[0]);
  close(ends[1]);
  return WIFEXITED(result) ? WEXITSTATUS(result) : 100 + WTERMSIG(result);
}

static inline void share_fill(const share_device *d, const gm_memory *memory) {
  const unsigned char before = SHARE_BEFORE;
  assert_int_equal(d->ops->fill(d->device, d->stream, memory, 0, SHARE_BYTES, &before, 1, NULL, NULL), GM_OK);
}

static inline void share_check_after(const share_device *d, const gm_memory *memory) {
  static unsigned char got[SHARE_BYTES];
  assert_int_equal(d->ops->copy_to_host(d->device, d->stream, memory, 0, got, SHARE_BYTES, NULL, NULL), GM_OK);
  for (size_t i = 0; i < SHARE_BYTES; i++) assert_int_equal(got[i], SHARE_AFTER);
}

#endif
