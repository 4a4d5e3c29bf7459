/* Invariants: nothing here waits for a peer (O_NONBLOCK). No descriptor outlives an exec. gm empties a file only after
 * it has seen that the descriptor is a regular file's. */
#include "core/base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/posix/path_error.h"

enum { OUTPUT_MODE = 0666 /* the process's mask takes bits away */ };

/* The file itself need not exist. */
static const char *output_error_text(int code) { return code == ENOENT ? "no such folder" : gm__path_error_text(code); }

static gm_status output_fail(const char *path, const char *op, int code, gm_error *err) {
  return gm__fail_native(err, gm__path_error_status(code), code, op, "%.300s: %s", path, output_error_text(code));
}

static gm_status output_begin(const gm__output_file *file, const char *path, gm_error *err) {
  struct stat st;
  if (fstat(file->fd, &st) != 0) return output_fail(path, "fstat", errno, err);
  if (!S_ISREG(st.st_mode)) {
    return gm__fail(err, GM_ERR_IO, "open", "%.300s: is a device or a pipe, a regular file is needed", path);
  }
  return ftruncate(file->fd, 0) == 0 ? GM_OK : output_fail(path, "ftruncate", errno, err);
}

gm_status gm__output_file_open(const char *path, gm__output_file *out, gm_error *err) {
  gm__output_file file;
  do file.fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, OUTPUT_MODE);
  while (file.fd < 0 && errno == EINTR);
  if (file.fd < 0) return output_fail(path, "open", errno, err);
  gm_status status = output_begin(&file, path, err);
  if (status == GM_OK) {
    *out = file;
  } else {
    close(file.fd);
  }
  return status;
}

/* A file that never has a name, so that nothing is left where a signal ends the process. -1: the file system has none.
 */
static int output_nameless(const char *path) {
  char folder[GM__FILE_PATH_SIZE];
  const char *slash = strrchr(path, '/');
  const int length = slash ? (int)(slash - path) + (slash == path) : 1;
  snprintf(folder, sizeof folder, "%.*s", length, slash ? path : ".");
  return open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
}

gm_status gm__output_file_scratch(const char *path, gm__output_file *out, gm_error *err) {
  char name[GM__FILE_PATH_SIZE];
  const int length = snprintf(name, sizeof name, "%s.XXXXXX", path);
  if (length < 0 || length >= GM__FILE_PATH_SIZE) return output_fail(path, "mkostemp", ENAMETOOLONG, err);
  out->fd = output_nameless(path);
  if (out->fd >= 0) return GM_OK;
  out->fd = mkostemp(name, O_CLOEXEC);
  if (out->fd < 0) {
    const int code = errno;
    return gm__fail_native(err, gm__path_error_status(code), code, "mkostemp", "%.300s: its folder takes no file: %s",
                           path, output_error_text(code));
  }
  unlink(name);
  return GM_OK;
}

gm_status gm__output_file_write_at(const gm__output_file *file, const char *path, uint64_t at, const void *from,
                                   uint64_t bytes, gm_error *err) {
  if (bytes > INT64_MAX - at || !gm__limit_allows_file(at + bytes)) return output_fail(path, "pwrite", EFBIG, err);
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t put = pwrite(file->fd, (const char *)from + done, bytes - done, (off_t)(at + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return output_fail(path, "pwrite", put < 0 ? errno : EIO, err);
    done += (uint64_t)put;
  }
  return GM_OK;
}

gm_status gm__output_file_read_at(const gm__output_file *file, const char *path, uint64_t at, void *to, uint64_t bytes,
                                  gm_error *err) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t got = pread(file->fd, (char *)to + done, bytes - done, (off_t)(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return output_fail(path, "pread", got < 0 ? errno : EIO, err);
    done += (uint64_t)got;
  }
  return GM_OK;
}

void gm__output_file_empty(const gm__output_file *file) {
  if (ftruncate(file->fd, 0) != 0) return; /* the caller reports the earlier failure */
}

gm_status gm__output_file_close(gm__output_file *file, const char *path, gm_error *err) {
  const int fd = file->fd;
  file->fd = -1;
  if (fd < 0 || close(fd) == 0 || errno == EINTR) return GM_OK; /* EINTR: Linux has closed it */
  return output_fail(path, "close", errno, err);
}
