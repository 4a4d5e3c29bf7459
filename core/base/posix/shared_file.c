/* Invariants: nothing here waits without an end (O_NONBLOCK, F_OFD_SETLK). No descriptor outlives an exec. gm looks at
 * the file that it has opened, never at a name: who swaps the name meanwhile gains nothing. */
#include "core/base/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/poll.h"
#include "core/base/posix/path_error.h"

enum { SHARED_MODE = 0600, SHARED_FOLDER_MODE = 0700, SHARED_OTHERS = 0077 };

bool gm__shared_file_folder(const char *folder) { return faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0; }

static gm_status shared_fail(const char *path, const char *op, int code, gm_error *err) {
  return gm__fail_native(err, gm__path_error_status(code), code, op, "%.300s: %s", path, gm__path_error_text(code));
}

gm_status gm__shared_file_make_folder(const char *folder, gm_error *err) {
  if (mkdir(folder, SHARED_FOLDER_MODE) == 0 || errno == EEXIST) return GM_OK;
  return shared_fail(folder, "mkdir", errno, err);
}

gm_status gm__shared_file_path(const char *folder, const char *stem, char *out, size_t capacity, gm_error *err) {
  const int length = snprintf(out, capacity, "%s/%s-%lu", folder, stem, (unsigned long)geteuid());
  if (length >= 0 && (size_t)length < capacity) return GM_OK;
  return gm__bad_argument(err, "open", "the folder's name is too long: %.300s", folder);
}

/* Why gm does not trust the file; NULL: it does. */
static const char *shared_doubt(const struct stat *st) {
  if (!S_ISREG(st->st_mode)) return "is no regular file";
  if (st->st_uid != geteuid()) return "belongs to another user";
  return st->st_mode & SHARED_OTHERS ? "other users may open it" : NULL;
}

static gm_status shared_look(int fd, const char *path, gm_error *err) {
  struct stat st;
  if (fstat(fd, &st) != 0) return shared_fail(path, "fstat", errno, err);
  const char *doubt = shared_doubt(&st);
  return doubt ? gm__fail(err, GM_ERR_IO, "open", "%.300s: %s", path, doubt) : GM_OK;
}

gm_status gm__shared_file_open(const char *path, bool create, gm__data_file *out, gm_error *err) {
  const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (create ? O_CREAT : 0);
  gm__data_file file;
  do file.fd = open(path, flags, SHARED_MODE);
  while (file.fd < 0 && errno == EINTR);
  if (file.fd < 0) return shared_fail(path, "open", errno, err);
  const gm_status status = shared_look(file.fd, path, err);
  if (status) {
    close(file.fd);
  } else {
    *out = file;
  }
  return status;
}

bool gm__shared_file_same(const gm__data_file *a, const gm__data_file *b) {
  struct stat of_a, of_b;
  if (fstat(a->fd, &of_a) != 0 || fstat(b->fd, &of_b) != 0) return false;
  return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

static struct flock shared_byte(short kind, uint64_t at) {
  return (struct flock){.l_type = kind, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = 1};
}

gm_status gm__shared_file_lock(const gm__data_file *file, const char *path, uint64_t at, uint64_t deadline,
                               gm_error *err) {
  for (gm__poll poll = gm__poll_until(deadline);;) {
    struct flock lock = shared_byte(F_WRLCK, at);
    if (fcntl(file->fd, F_OFD_SETLK, &lock) == 0) return GM_OK;
    const int code = errno;
    if (code != EAGAIN && code != EACCES && code != EINTR) return shared_fail(path, "fcntl", code, err);
    if (!gm__poll_again(&poll)) {
      return gm__fail_native(err, GM_ERR_TIMEOUT, code, "fcntl", "%.300s: another process holds its lock", path);
    }
  }
}

void gm__shared_file_unlock(const gm__data_file *file, uint64_t at) {
  struct flock lock = shared_byte(F_UNLCK, at);
  fcntl(file->fd, F_OFD_SETLK, &lock);
}

bool gm__shared_file_is_locked(const gm__data_file *file, uint64_t at, uint64_t bytes) {
  struct flock lock = shared_byte(F_WRLCK, at);
  lock.l_len = (off_t)bytes;
  return fcntl(file->fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}
