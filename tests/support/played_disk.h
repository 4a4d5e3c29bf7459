/* A disk that is played. The calls with which gm changes files are wrapped by the linker: they change real files, and
 * are noted. From the notes a test makes what is left where the process ends at a call, or where the power goes. A call
 * may fail, too. Only for one folder of few files. Several threads may write at a time. tests/unit/CMakeLists.txt has
 * the calls.
 *
 * The disk has what was synced. It has some of the rest, whole or in part, in any order; but the names of a folder
 * change in theirs. A sync that fails drops what it could not write, as Linux does. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_PLAYED_DISK_H
#define GM_TESTS_SUPPORT_PLAYED_DISK_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/random.h"

enum {
  PLAYED_CALLS = 2000,
  PLAYED_FILES = 64,
  PLAYED_NAMES = 8,
  PLAYED_NAME = 80,
  PLAYED_FDS = 1024,
  PLAYED_NOTE = 96,
  PLAYED_ENDED = 77
};

typedef enum played_kind {
  PLAYED_WRITE,
  PLAYED_CUT,
  PLAYED_SYNC,
  PLAYED_FOLDER, /* the names are synced */
  PLAYED_MAKE,
  PLAYED_NAME_GIVEN,
  PLAYED_NAME_GONE,
  PLAYED_OTHER /* what changes nothing that is played: it may fail */
} played_kind;

typedef struct played_call {
  played_kind kind;
  bool failed;
  int file;
  size_t at, bytes;
  unsigned char *data;
  char name[PLAYED_NAME], from[PLAYED_NAME];
  unsigned char note[PLAYED_NOTE]; /* what the test knew before the call */
} played_call;

static struct {
  bool on;
  int fail_at, fail_code; /* the number of the call that fails; 0: none */
  bool fails_half;        /* the write before it writes the half */
  int end_at;             /* the number of the call before which the process ends, with PLAYED_ENDED; 0: none */
  bool kills, ends_half;  /* it is killed; and has made the half of a write before */
  bool takes_no_direct;   /* the file system refuses writes past its cache */
  played_call calls[PLAYED_CALLS];
  int count, files;
  _Atomic bool direct[PLAYED_FDS]; /* what O_DIRECT was asked for; threads write through one descriptor */
  int of_fd[PLAYED_FDS];           /* 1 + the number of the file; 0: none of the disk's */
  ino_t inodes[PLAYED_FILES];
  const void *note; /* PLAYED_NOTE bytes of the test's; NULL: none */
} played;

static pthread_mutex_t played_lock = PTHREAD_MUTEX_INITIALIZER; /* for calls that threads make */

/* Forgets all calls, and begins. */
static inline void played_begin(const void *note) {
  for (int i = 0; i < played.count; i++) free(played.calls[i].data);
  memset(&played, 0, sizeof played);
  played.note = note;
  played.on = true;
}

/* A call of the tier's. It is noted when it is there. */
static inline played_call *played_next(played_kind kind, int fd) {
  assert_true(played.count < PLAYED_CALLS);
  if (played.count + 1 == played.end_at && played.kills) raise(SIGKILL);
  if (played.count + 1 == played.end_at) _exit(PLAYED_ENDED);
  played_call *call = &played.calls[played.count++];
  const int file = fd >= 0 && fd < PLAYED_FDS ? played.of_fd[fd] - 1 : -1;
  *call = (played_call){.kind = kind, .file = file, .failed = played.count == played.fail_at};
  if (played.note) memcpy(call->note, played.note, PLAYED_NOTE);
  if (call->failed) errno = played.fail_code;
  return call;
}

static inline bool played_half_now(void) { return played.fails_half && played.count + 1 == played.fail_at; }

static inline void played_give(const char *from, const char *name) {
  played_call *call = &played.calls[played.count - 1];
  snprintf(call->name, sizeof call->name, "%s", name);
  snprintf(call->from, sizeof call->from, "%s", from ? from : "");
}

/* ---- the wrapped calls ---- */

#define PLAYED_WRAP(answer, name, ...) \
  answer __real_##name(__VA_ARGS__);   \
  answer __wrap_##name(__VA_ARGS__);   \
  answer __wrap_##name(__VA_ARGS__)
/* The names of these calls where a library's flags ask for offsets of 64 bits are other ones. */
#define PLAYED_WRAP_64(answer, name, parameters, arguments) \
  answer __wrap_##name##64 parameters;                      \
  answer __wrap_##name##64 parameters { return __wrap_##name arguments; }

ssize_t __real_pwrite(int fd, const void *from, size_t bytes, off_t at);

static inline ssize_t played_write(int fd, const void *from, size_t bytes, off_t at) {
  if (played_half_now() && bytes > 1) bytes /= 2;
  if (played.ends_half && played.count + 1 == played.end_at) (void)!__real_pwrite(fd, from, bytes / 2, at);
  played_call *call = played_next(PLAYED_WRITE, fd);
  call->at = (size_t)at;
  call->bytes = bytes;
  if (call->failed) return -1;
  call->data = malloc(bytes + 1);
  assert_non_null(call->data);
  memcpy(call->data, from, bytes);
  assert_int_equal(__real_pwrite(fd, from, bytes, at), bytes);
  return (ssize_t)bytes;
}

PLAYED_WRAP(ssize_t, pwrite, int fd, const void *from, size_t bytes, off_t at) {
  if (!played.on) return __real_pwrite(fd, from, bytes, at);
  pthread_mutex_lock(&played_lock);
  const ssize_t answer = played_write(fd, from, bytes, at);
  const int code = errno;
  pthread_mutex_unlock(&played_lock);
  errno = code;
  return answer;
}
PLAYED_WRAP_64(ssize_t, pwrite, (int fd, const void *from, size_t bytes, off_t at), (fd, from, bytes, at))

PLAYED_WRAP(int, ftruncate, int fd, off_t bytes) {
  if (!played.on) return __real_ftruncate(fd, bytes);
  played_call *call = played_next(PLAYED_CUT, fd);
  call->at = (size_t)bytes;
  return call->failed ? -1 : __real_ftruncate(fd, bytes);
}
PLAYED_WRAP_64(int, ftruncate, (int fd, off_t bytes), (fd, bytes))

/* Room for a file makes it longer, by zeros. */
PLAYED_WRAP(int, fallocate, int fd, int mode, off_t from, off_t bytes) {
  if (!played.on) return __real_fallocate(fd, mode, from, bytes);
  played_call *call = played_next(PLAYED_CUT, fd);
  call->at = (size_t)(from + bytes);
  return call->failed ? -1 : __real_ftruncate(fd, from + bytes);
}
PLAYED_WRAP_64(int, fallocate, (int fd, int mode, off_t from, off_t bytes), (fd, mode, from, bytes))

/* The played disk has no cache to write past. It takes the flag, and writes of any size. */
int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...);
static inline int played_fcntl(int fd, int command, va_list list) {
  if (command == F_GETFL && played.on && played.direct[fd]) return __real_fcntl(fd, command) | O_DIRECT;
  if (command == F_GETFL || command == F_GETFD) return __real_fcntl(fd, command);
  if (command != F_SETFL && command != F_DUPFD_CLOEXEC) return __real_fcntl(fd, command, va_arg(list, void *));
  const int value = va_arg(list, int);
  if (command != F_SETFL) return __real_fcntl(fd, command, value);
  if (played.on) played.direct[fd] = value & O_DIRECT;
  return __real_fcntl(fd, command, value & ~O_DIRECT);
}
int __wrap_fcntl(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  const int answer = played_fcntl(fd, command, list);
  va_end(list);
  return answer;
}
int __wrap_fcntl64(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  const int answer = played_fcntl(fd, command, list);
  va_end(list);
  return answer;
}

/* Nobody waits for the real disk, ever. */
PLAYED_WRAP(int, fdatasync, int fd) { return played.on ? -played_next(PLAYED_SYNC, fd)->failed : 0; }
PLAYED_WRAP(int, fsync, int fd) { return played.on ? -played_next(PLAYED_FOLDER, fd)->failed : 0; }

/* A file that is there keeps its number; a new one gets one. */
static inline void played_opened(int fd, bool fresh) {
  struct stat st;
  assert_true(fd < PLAYED_FDS && fstat(fd, &st) == 0);
  played.of_fd[fd] = 0;
  if (!S_ISREG(st.st_mode)) return;
  int file = played.files - 1;
  while (!fresh && file >= 0 && played.inodes[file] != st.st_ino) file--;
  if (fresh) {
    file = played.files++;
    assert_true(file < PLAYED_FILES);
    played.inodes[file] = st.st_ino;
  }
  if (file < 0 && played.kills) return; /* nobody reads the notes */
  assert_true(file >= 0);               /* it was made while the disk was played */
  played.of_fd[fd] = file + 1;
}

int __real_openat(int folder, const char *name, int flags, ...);
int __wrap_openat(int folder, const char *name, int flags, mode_t mode);
int __wrap_openat64(int folder, const char *name, int flags, mode_t mode);
static inline int played_open(int folder, const char *name, int flags, mode_t mode) {
  const bool fresh = flags & O_CREAT;
  played_call *call = played_next(fresh ? PLAYED_MAKE : PLAYED_OTHER, -1);
  played_give(NULL, name);
  if (call->failed) return -1;
  if (flags & O_DIRECT && played.takes_no_direct) errno = EINVAL;
  const int fd = flags & O_DIRECT && played.takes_no_direct ? -1 : __real_openat(folder, name, flags & ~O_DIRECT, mode);
  played.direct[fd >= 0 && fd < PLAYED_FDS ? fd : 0] = fd >= 0 && flags & O_DIRECT;
  call->failed = fd < 0;
  if (fd >= 0) played_opened(fd, fresh);
  if (fd >= 0 && fresh) call->file = played.of_fd[fd] - 1;
  return fd;
}
int __wrap_openat(int folder, const char *name, int flags, mode_t mode) {
  if (!played.on) return __real_openat(folder, name, flags, mode);
  pthread_mutex_lock(&played_lock);
  const int fd = played_open(folder, name, flags, mode), code = errno;
  pthread_mutex_unlock(&played_lock);
  errno = code;
  return fd;
}
int __wrap_openat64(int folder, const char *name, int flags, mode_t mode) {
  return __wrap_openat(folder, name, flags, mode);
}

PLAYED_WRAP(int, renameat, int from_folder, const char *from, int folder, const char *name) {
  if (!played.on) return __real_renameat(from_folder, from, folder, name);
  played_call *call = played_next(PLAYED_NAME_GIVEN, -1);
  played_give(from, name);
  if (!call->failed) call->failed = __real_renameat(from_folder, from, folder, name) != 0;
  return -call->failed;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
  long a[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  if (!played.on || number != SYS_renameat2) return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  played_call *call = played_next(PLAYED_NAME_GIVEN, -1);
  played_give((const char *)a[1], (const char *)a[3]);
  if (!call->failed) call->failed = __real_syscall(number, a[0], a[1], a[2], a[3], a[4]) != 0;
  return -call->failed;
}

PLAYED_WRAP(int, linkat, int from_folder, const char *from, int folder, const char *name, int flags) {
  if (!played.on) return __real_linkat(from_folder, from, folder, name, flags);
  played_call *call = played_next(PLAYED_NAME_GIVEN, -1); /* what is unlinked next has no name in the notes any more */
  played_give(from, name);
  if (!call->failed) call->failed = __real_linkat(from_folder, from, folder, name, flags) != 0;
  return -call->failed;
}

PLAYED_WRAP(int, unlinkat, int folder, const char *name, int flags) {
  if (!played.on) return __real_unlinkat(folder, name, flags);
  played_call *call = played_next(PLAYED_NAME_GONE, -1);
  played_give(NULL, name);
  if (!call->failed) call->failed = __real_unlinkat(folder, name, flags) != 0;
  return -call->failed;
}

PLAYED_WRAP(int, flock, int fd, int how) {
  if (!played.on || how & LOCK_UN) return __real_flock(fd, how);
  return played_next(PLAYED_OTHER, fd)->failed ? -1 : __real_flock(fd, how);
}

PLAYED_WRAP(int, fchmod, int fd, mode_t mode) {
  if (!played.on) return __real_fchmod(fd, mode);
  return played_next(PLAYED_OTHER, fd)->failed ? -1 : __real_fchmod(fd, mode);
}

/* ---- what is left ---- */

typedef struct played_bytes {
  unsigned char *bytes;
  size_t count, room;
} played_bytes;

typedef struct played_names {
  struct {
    char name[PLAYED_NAME];
    int file;
  } at[PLAYED_NAMES];
  int count;
} played_names;

/* After some of the calls: `seen` is what processes see, `disk` what the disk has for sure. */
typedef struct played_state {
  int calls;
  struct {
    played_bytes seen, disk;
    int unsynced[PLAYED_CALLS / 4], count;
  } files[PLAYED_FILES];
  played_names seen, disk;
  int unsynced[PLAYED_CALLS / 4], count; /* calls that changed names */
} played_state;

static inline void played_reach(played_bytes *file, size_t count) {
  if (count > file->room) {
    file->room = count * 2;
    file->bytes = realloc(file->bytes, file->room);
    assert_non_null(file->bytes);
  }
  if (count > file->count) memset(file->bytes + file->count, 0, count - file->count);
}

/* Applies a call to a file, or the first bytes of it. */
static inline void played_apply(played_bytes *file, const played_call *call, size_t bytes) {
  const size_t end = call->kind == PLAYED_CUT ? call->at : call->at + bytes;
  played_reach(file, end);
  if (call->kind == PLAYED_WRITE) memcpy(file->bytes + call->at, call->data, bytes);
  if (end > file->count || call->kind == PLAYED_CUT) file->count = end;
}

static inline int played_find(const played_names *names, const char *name) {
  int i = 0;
  while (i < names->count && strcmp(names->at[i].name, name) != 0) i++;
  return i;
}

static inline void played_drop(played_names *names, const char *name) {
  const int i = played_find(names, name);
  if (i < names->count) names->at[i] = names->at[--names->count];
}

static inline void played_apply_name(played_names *names, const played_call *call) {
  int file = call->file;
  if (call->kind == PLAYED_NAME_GIVEN) {
    const int from = played_find(names, call->from);
    if (from == names->count) return; /* the name it comes from is not on the disk */
    file = names->at[from].file;
    played_drop(names, call->from);
  }
  played_drop(names, call->name);
  if (call->kind == PLAYED_NAME_GONE) return;
  assert_true(names->count < PLAYED_NAMES);
  snprintf(names->at[names->count].name, PLAYED_NAME, "%s", call->name);
  names->at[names->count++].file = file;
}

static inline void played_sync_names(played_state *state) {
  for (int i = 0; i < state->count; i++) played_apply_name(&state->disk, &played.calls[state->unsynced[i]]);
  state->count = 0;
}

static inline void played_sync(played_state *state, const played_call *call) {
  for (int i = 0; i < state->files[call->file].count && !call->failed; i++) {
    const played_call *write = &played.calls[state->files[call->file].unsynced[i]];
    played_apply(&state->files[call->file].disk, write, write->bytes);
  }
  state->files[call->file].count = 0; /* after a failure, too: they are dropped */
}

/* Applies the next call. */
static inline void played_step(played_state *state) {
  const played_call *call = &played.calls[state->calls];
  const int number = state->calls++;
  switch (call->kind) {
    case PLAYED_SYNC: played_sync(state, call); return;
    case PLAYED_FOLDER:
      if (!call->failed) played_sync_names(state);
      return;
    case PLAYED_OTHER: return;
    default: break;
  }
  if (call->failed) return;
  if (call->kind == PLAYED_WRITE || call->kind == PLAYED_CUT) {
    played_apply(&state->files[call->file].seen, call, call->bytes);
    state->files[call->file].unsynced[state->files[call->file].count++] = number;
  } else {
    played_apply_name(&state->seen, call);
    state->unsynced[state->count++] = number;
  }
}

static inline void played_state_free(played_state *state) {
  for (int i = 0; i < PLAYED_FILES; i++) {
    free(state->files[i].seen.bytes);
    free(state->files[i].disk.bytes);
  }
  memset(state, 0, sizeof *state);
}

/* ---- a folder that has it ---- */

/* Removes the folder's files, and returns how many there were. */
static inline int played_empty(const char *folder) {
  int count = 0;
  DIR *stream = opendir(folder);
  assert_non_null(stream);
  for (struct dirent *entry; (entry = readdir(stream));) {
    if (entry->d_name[0] != '.') count += __real_unlinkat(dirfd(stream), entry->d_name, 0) == 0;
  }
  closedir(stream);
  return count;
}

/* Writes a file. Pages of zeros become holes, so that large files cost little. */
static inline void played_file_write(const char *folder, const char *name, const played_bytes *file) {
  enum { PAGE = 4096 };
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  assert_true(fd >= 0);
  for (size_t at = 0; at < file->count; at += PAGE) {
    const unsigned char *page = file->bytes + at;
    const size_t bytes = file->count - at < PAGE ? file->count - at : PAGE;
    if (page[0] == 0 && memcmp(page, page + 1, bytes - 1) == 0) continue;
    assert_int_equal(__real_pwrite(fd, page, bytes, (off_t)at), bytes);
  }
  assert_int_equal(__real_ftruncate(fd, (off_t)file->count), 0);
  close(fd);
}

/* A copy that can be changed, in memory that is used again and again: fresh pages cost more than the copy. */
static inline played_bytes *played_copy(const played_bytes *file) {
  static played_bytes copy;
  copy.count = 0;
  played_reach(&copy, file->count + 1);
  if (file->count) memcpy(copy.bytes, file->bytes, file->count);
  copy.count = file->count;
  return &copy;
}

/* The folder where the process ends before the next call, or, with `half`, in the middle of a write. */
static inline void played_end(const played_state *state, bool half, const char *folder) {
  const played_call *next = &played.calls[state->calls];
  const bool grows = half && next->kind == PLAYED_WRITE && !next->failed;
  played_empty(folder);
  for (int i = 0; i < state->seen.count; i++) {
    const int number = state->seen.at[i].file;
    played_bytes *file = played_copy(&state->files[number].seen);
    if (grows && next->file == number) played_apply(file, next, next->bytes / 2);
    played_file_write(folder, state->seen.at[i].name, file);
  }
}

/* A file, with some of the writes that were not synced, in part or whole. */
static inline const played_bytes *played_luck(const played_state *state, int file, uint64_t *seed) {
  played_bytes *copy = played_copy(&state->files[file].disk);
  for (int i = 0; i < state->files[file].count; i++) {
    const played_call *call = &played.calls[state->files[file].unsynced[i]];
    const uint64_t luck = test_random(seed) % 4;
    if (luck == 0) continue;
    const bool part = luck == 1 && call->kind == PLAYED_WRITE;
    played_apply(copy, call, part ? test_random(seed) % (call->bytes + 1) : call->bytes);
  }
  return copy;
}

/* The folder where the power goes before the next call. */
static inline void played_power_goes(const played_state *state, uint64_t seed, const char *folder) {
  played_names names = state->disk;
  const int changed = state->count ? (int)(test_random(&seed) % (uint64_t)(state->count + 1)) : 0;
  for (int i = 0; i < changed; i++) played_apply_name(&names, &played.calls[state->unsynced[i]]);
  played_empty(folder);
  for (int i = 0; i < names.count; i++) {
    played_file_write(folder, names.at[i].name, played_luck(state, names.at[i].file, &seed));
  }
}

#endif
