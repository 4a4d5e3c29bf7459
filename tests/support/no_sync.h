/* Nobody waits for the real disk: these tests look at what processes see, and no power goes. The linker wraps the calls
 * (tests/unit/CMakeLists.txt). */
#ifndef GM_TESTS_SUPPORT_NO_SYNC_H
#define GM_TESTS_SUPPORT_NO_SYNC_H

#include <errno.h>
#include <fcntl.h>

int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd) { return fd < 0 ? -1 : 0; }
int __wrap_fsync(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags >= 0 && !(flags & O_PATH)) return 0;
  errno = EBADF;
  return -1;
}

#endif
