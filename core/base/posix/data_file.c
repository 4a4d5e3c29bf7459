/* Invariants: nothing here waits for a peer (O_NONBLOCK, LOCK_NB). No descriptor outlives an exec. gm changes a file
 * only after it has seen that the descriptor is a regular file's, and has locked it. */
#include "core/base/data_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/posix/path_error.h"

enum { DATA_MODE = 0600, DATA_MOST = 1 << 30 /* in one call: Linux stops at 2 GiB */ };

static gm_status data_fail(const char *path, const char *op, int code, gm_error *err) {
  return gm__fail(err, gm__path_error_status(code), code, op, "%.300s: %s", path, gm__path_error_text(code));
}

static int data_flags(gm__data_file_mode mode) {
  const int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  if (mode == GM__DATA_FILE_READ) return flags | O_RDONLY;
  return mode == GM__DATA_FILE_WRITE ? flags | O_RDWR : flags | O_RDWR | O_CREAT;
}

static gm_status data_begin(const gm__data_file *file, const char *path, gm__data_file_mode mode, gm_error *err) {
  struct stat st;
  if (fstat(file->fd, &st) != 0) return data_fail(path, "fstat", errno, err);
  if (!S_ISREG(st.st_mode)) return gm__fail(err, GM_ERR_IO, 0, "open", "%.300s: is no regular file", path);
  if (flock(file->fd, (mode == GM__DATA_FILE_READ ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return data_fail(path, "flock", errno, err);
    return gm__fail(err, GM_ERR_BUSY, EWOULDBLOCK, "flock", "%.300s: somebody has it open", path);
  }
  return mode == GM__DATA_FILE_FRESH ? gm__data_file_cut(file, path, 0, err) : GM_OK;
}

gm_status gm__data_file_open(const char *path, gm__data_file_mode mode, gm__data_file *out, gm_error *err) {
  gm__data_file file;
  do file.fd = open(path, data_flags(mode), DATA_MODE);
  while (file.fd < 0 && errno == EINTR);
  if (file.fd < 0) return data_fail(path, "open", errno, err);
  const gm_status status = data_begin(&file, path, mode, err);
  if (status) {
    close(file.fd);
  } else {
    *out = file;
  }
  return status;
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
      return gm__fail(err, GM_ERR_FORMAT, 0, "pread", "%.300s: ends at byte %llu", path,
                      (unsigned long long)(at + done));
    }
    done += (uint64_t)got;
  }
  return GM_OK;
}

/* The system sends a signal, which ends the process, where a write would pass this limit. */
static bool data_may_grow_to(uint64_t bytes) {
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

gm_status gm__data_file_write(const gm__data_file *file, const char *path, uint64_t at, const void *from,
                              uint64_t bytes, gm_error *err) {
  if (bytes > INT64_MAX - at || !data_may_grow_to(at + bytes)) return data_fail(path, "pwrite", EFBIG, err);
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t wanted = bytes - done < DATA_MOST ? bytes - done : DATA_MOST;
    const ssize_t put = pwrite(file->fd, (const char *)from + done, wanted, (off_t)(at + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return data_fail(path, "pwrite", put < 0 ? errno : EIO, err);
    done += (uint64_t)put;
  }
  return GM_OK;
}

gm_status gm__data_file_cut(const gm__data_file *file, const char *path, uint64_t bytes, gm_error *err) {
  int answer;
  if (!data_may_grow_to(bytes)) return data_fail(path, "ftruncate", EFBIG, err);
  do answer = ftruncate(file->fd, (off_t)bytes);
  while (answer != 0 && errno == EINTR);
  return answer == 0 ? GM_OK : data_fail(path, "ftruncate", errno, err);
}

gm_status gm__data_file_sync(const gm__data_file *file, const char *path, gm_error *err) {
  return fdatasync(file->fd) == 0 ? GM_OK : data_fail(path, "fdatasync", errno, err);
}

/* The name of a file is on the disk when its folder is. */
static gm_status data_sync_folder(const char *path, gm_error *err) {
  char folder[GM__FILE_PATH_SIZE];
  const char *slash = strrchr(path, '/');
  const int length = slash ? (int)(slash - path) + (slash == path) : 1;
  if (length >= GM__FILE_PATH_SIZE) return data_fail(path, "open", ENAMETOOLONG, err);
  snprintf(folder, sizeof folder, "%.*s", length, slash ? path : ".");
  const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return data_fail(folder, "open", errno, err);
  const int code = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return code ? data_fail(folder, "fsync", code, err) : GM_OK;
}

gm_status gm__data_file_rename(const char *from, const char *to, gm_error *err) {
  if (rename(from, to) != 0) return data_fail(to, "rename", errno, err);
  return data_sync_folder(to, err);
}

void gm__data_file_remove(const char *path) { unlink(path); }
