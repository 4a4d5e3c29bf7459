/* Invariant: a file that takes the place of another one is never open to more users than that one was. */
#include "core/base/data_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/limits.h"
#include "core/base/posix/path_error.h"

enum { DATA_MODES = 0777, DATA_LIST_MOST = 4096, DATA_MOST = 1 << 30 /* in one call: Linux stops at 2 GiB */ };

static gm_status data_fail(const char *path, const char *op, int code, gm_error *err) {
  return gm__fail_native(err, gm__path_error_status(code), code, op, "%.300s: %s", path, gm__path_error_text(code));
}

void gm__data_file_close(gm__data_file *file, bool unlock) {
  if (file->fd >= 0 && unlock) flock(file->fd, LOCK_UN);
  if (file->fd >= 0) close(file->fd);
  file->fd = -1;
}

gm_status gm__data_file_size(const gm__data_file *file, const char *path, uint64_t *out, gm_error *err) {
  struct stat st;
  if (fstat(file->fd, &st) != 0) return data_fail(path, "fstat", errno, err);
  *out = (uint64_t)st.st_size;
  return GM_OK;
}

gm_status gm__data_file_read(const gm__data_file *file, const char *path, uint64_t at, void *to, uint64_t bytes,
                             gm_error *err) {
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t wanted = bytes - done < DATA_MOST ? bytes - done : DATA_MOST;
    const ssize_t got = pread(file->fd, (char *)to + done, wanted, (off_t)(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return data_fail(path, "pread", errno, err);
    if (got == 0) {
      return gm__fail(err, GM_ERR_FORMAT, "pread", "%.300s: ends at byte %llu", path, (unsigned long long)(at + done));
    }
    done += (uint64_t)got;
  }
  return GM_OK;
}

static void data_file_end_direct(const gm__data_file *file) {
  const int flags = fcntl(file->fd, F_GETFL);
  if (flags >= 0) (void)fcntl(file->fd, F_SETFL, flags & ~O_DIRECT);
}

gm_status gm__data_file_write(const gm__data_file *file, const char *path, uint64_t at, const void *from,
                              uint64_t bytes, gm_error *err) {
  if (bytes > INT64_MAX - at || !gm__limit_allows_file(at + bytes)) return data_fail(path, "pwrite", EFBIG, err);
  bool tried = false;
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t wanted = bytes - done < DATA_MOST ? bytes - done : DATA_MOST;
    const ssize_t put = pwrite(file->fd, (const char *)from + done, wanted, (off_t)(at + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EINVAL && !tried) { /* it takes no such write, or a short one ended beside a block */
      tried = true;
      data_file_end_direct(file);
      continue;
    }
    if (put <= 0) return data_fail(path, "pwrite", put < 0 ? errno : EIO, err);
    done += (uint64_t)put;
  }
  return GM_OK;
}

gm_status gm__data_file_reserve(const gm__data_file *file, const char *path, uint64_t bytes, gm_error *err) {
  int answer;
  if (!gm__limit_allows_file(bytes)) return data_fail(path, "fallocate", EFBIG, err);
  if (!bytes) return GM_OK;
  do answer = fallocate(file->fd, 0, 0, (off_t)bytes);
  while (answer != 0 && errno == EINTR);
  const bool unknown = answer != 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL || errno == EPERM);
  return answer == 0 || unknown ? GM_OK : data_fail(path, "fallocate", errno, err);
}

bool gm__data_file_is_direct(const gm__data_file *file) {
  const int flags = fcntl(file->fd, F_GETFL);
  return flags >= 0 && flags & O_DIRECT;
}

gm_status gm__data_file_cut(const gm__data_file *file, const char *path, uint64_t bytes, gm_error *err) {
  int answer;
  if (!gm__limit_allows_file(bytes)) return data_fail(path, "ftruncate", EFBIG, err);
  do answer = ftruncate(file->fd, (off_t)bytes);
  while (answer != 0 && errno == EINTR);
  return answer == 0 ? GM_OK : data_fail(path, "ftruncate", errno, err);
}

gm_status gm__data_file_sync(const gm__data_file *file, const char *path, gm_error *err) {
  int answer;
  do answer = fdatasync(file->fd);
  while (answer != 0 && errno == EINTR);
  return answer == 0 ? GM_OK : data_fail(path, "fdatasync", errno, err);
}

/* Gives `to` the list of who may use `from`, or none where `from` has none. False: it could not. */
static bool data_same_list(int to, int from) {
  static const char list[] = "system.posix_acl_access";
  char text[DATA_LIST_MOST];
  const ssize_t bytes = fgetxattr(from, list, text, sizeof text);
  if (bytes > 0) return fsetxattr(to, list, text, (size_t)bytes, 0) == 0;
  if (bytes < 0 && errno != ENODATA && errno != ENOTSUP) return false;
  return fremovexattr(to, list) == 0 || errno == ENODATA || errno == ENOTSUP;
}

void gm__data_file_resemble(const gm__data_file *file, const gm__data_file *other) {
  struct stat st;
  if (fstat(other->fd, &st) != 0) return;
  const bool owner = fchown(file->fd, st.st_uid, st.st_gid) == 0;
  const bool group = owner || fchown(file->fd, (uid_t)-1, st.st_gid) == 0;
  const bool same = data_same_list(file->fd, other->fd) && group;
  const mode_t mode = st.st_mode & (same ? DATA_MODES : DATA_MODES & ~S_IRWXG);
  fchmod(file->fd, mode); /* where it fails the file stays as it was made, for the user alone */
}
