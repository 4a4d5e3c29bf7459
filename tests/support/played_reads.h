/* Reads of files that are played. The linker wraps open, pread and syscall (tests/unit/CMakeLists.txt). Files are real;
 * reads of them come short, late or not at all, and the page cache has what the test says. Calls are counted. Other
 * calls of the same names go through. Thread-safe while `played_reads` does not change. Needs cmocka.h included before.
 */
#ifndef GM_TESTS_SUPPORT_PLAYED_READS_H
#define GM_TESTS_SUPPORT_PLAYED_READS_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { PLAYED_CACHESTAT = 451, PLAYED_NOTHING = -1, PLAYED_REAL = -2 };

static struct {
  bool on;
  bool no_direct;    /* the file system has no direct reads */
  bool short_reads;  /* each read brings the half; a direct one in whole blocks, if there are several */
  bool odd_direct;   /* each direct read brings one byte less than it could */
  bool interrupts;   /* each second call is interrupted by a signal */
  int direct_code;   /* errno of all direct reads; 0: they work */
  int64_t broken_at; /* no read of this byte works: EIO; PLAYED_NOTHING: all do */
  int64_t resident;  /* of each thousand bytes; PLAYED_NOTHING: the system does not know cachestat; PLAYED_REAL */
  int64_t act_at;    /* before the read with this number, from 1 on, `act` is called */
  void (*act)(void);
  atomic_int reads, direct_reads, now, most; /* `most`: at the same time */
  atomic_llong direct_bytes, cached_bytes;
} played_reads;

static inline void played_reads_begin(void) {
  memset(&played_reads, 0, sizeof played_reads);
  played_reads.on = true;
  played_reads.broken_at = PLAYED_NOTHING;
  played_reads.resident = PLAYED_REAL;
}

static inline void played_reads_end(void) { played_reads.on = false; }

ssize_t __real_pread(int fd, void *to, size_t bytes, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t bytes, off_t at);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static inline ssize_t played_fail(int code) {
  errno = code;
  return -1;
}

/* The bytes that a read may bring. */
static inline size_t played_length(bool direct, size_t bytes) {
  if (!played_reads.short_reads || bytes < 2) return bytes;
  return direct ? (bytes / 2 + 4095) / 4096 * 4096 : bytes / 2;
}

static inline ssize_t played_pread(int fd, void *to, size_t bytes, off_t at) {
  static atomic_int calls;
  const bool direct = (fcntl(fd, F_GETFL) & O_DIRECT) != 0;
  if (played_reads.interrupts && atomic_fetch_add(&calls, 1) % 2 == 0) return played_fail(EINTR);
  const int number = atomic_fetch_add(&played_reads.reads, 1) + 1;
  if (number == played_reads.act_at) played_reads.act();
  if (direct) atomic_fetch_add(&played_reads.direct_reads, 1);
  if (direct && played_reads.direct_code) return played_fail(played_reads.direct_code);
  bytes = played_length(direct, bytes);
  const int64_t broken = played_reads.broken_at;
  if (broken >= at && broken < at + (int64_t)bytes) {
    if (broken == at || direct) return played_fail(EIO);
    bytes = (size_t)(broken - at);
  }
  ssize_t got = __real_pread(fd, to, bytes, at);
  if (direct && played_reads.odd_direct && got > 1) got--;
  if (got > 0) atomic_fetch_add(direct ? &played_reads.direct_bytes : &played_reads.cached_bytes, (long long)got);
  return got;
}

ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t at) {
  if (!played_reads.on) return __real_pread(fd, to, bytes, at);
  const int now = atomic_fetch_add(&played_reads.now, 1) + 1;
  int most = atomic_load(&played_reads.most);
  while (now > most && !atomic_compare_exchange_weak(&played_reads.most, &most, now)) {}
  const ssize_t got = played_pread(fd, to, bytes, at);
  const int code = errno;
  atomic_fetch_sub(&played_reads.now, 1);
  errno = code;
  return got;
}

ssize_t __wrap_pread64(int fd, void *to, size_t bytes, off_t at) { return __wrap_pread(fd, to, bytes, at); }

static inline int played_open(const char *path, int flags, mode_t mode) {
  if (played_reads.on && played_reads.no_direct && (flags & O_DIRECT)) return (int)played_fail(EINVAL);
  return __real_open(path, flags, mode);
}

#define PLAYED_OPEN(name)                                           \
  int name(const char *path, int flags, ...) {                      \
    va_list args;                                                   \
    va_start(args, flags);                                          \
    const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0; \
    va_end(args);                                                   \
    return played_open(path, flags, mode);                          \
  }
PLAYED_OPEN(__wrap_open)
PLAYED_OPEN(__wrap_open64)

long __wrap_syscall(long number, ...) {
  long args[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) args[i] = va_arg(list, long);
  va_end(list);
  const bool mine = played_reads.on && number == PLAYED_CACHESTAT && played_reads.resident != PLAYED_REAL;
  if (!mine) return __real_syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]);
  if (played_reads.resident == PLAYED_NOTHING) return played_fail(ENOSYS);
  const uint64_t *range = (const uint64_t *)(uintptr_t)args[1]; /* offset, bytes */
  uint64_t *stat = (uint64_t *)(uintptr_t)args[2];
  stat[0] = (range[1] + 4095) / 4096 * (uint64_t)played_reads.resident / 1000;
  return 0;
}

#endif
