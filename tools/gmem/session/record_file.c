#include "tools/gmem/session/record_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/gmem/output/unfinished.h"

enum { RECORD_MODE = 0666, RECORD_BITS = 07777 };

static gm_status record_fail(gm_error *err, gm_status status, const char *path, const char *why) {
  if (!err) return status;
  *err = (gm_error){.status = status};
  snprintf(err->message, sizeof err->message, "%.300s: %s", path, why);
  return status;
}

static gm_status record_no_file(gm_error *err, const char *path, int code) {
  char why[128];
  snprintf(why, sizeof why, "its folder takes no file: %s", code == ENOENT ? "no such folder" : strerror(code));
  return record_fail(err, code == ENOENT ? GM_ERR_NOT_FOUND : GM_ERR_IO, path, why);
}

/* Where it is to be, and its mode: those of what is there, if anything is. */
static gm_status record_look(record_file *out, const char *path, const char *input, mode_t *out_mode, gm_error *err) {
  struct stat there, read;
  if (stat(path, &there) != 0) {
    const mode_t mask = umask(0);
    umask(mask);
    *out_mode = RECORD_MODE & ~mask;
    const int length = snprintf(out->path, sizeof out->path, "%s", path);
    const bool fits = length > 0 && length < RECORD_FILE_PATH;
    return fits ? GM_OK : record_no_file(err, path, length > 0 ? ENAMETOOLONG : ENOENT);
  }
  if (stat(input, &read) == 0 && read.st_dev == there.st_dev && read.st_ino == there.st_ino) {
    return record_fail(err, GM_ERR_INVALID_ARGUMENT, path, "is what is read: --record needs another file");
  }
  if (S_ISDIR(there.st_mode)) return record_fail(err, GM_ERR_IO, path, "is a folder, a regular file is needed");
  if (!S_ISREG(there.st_mode)) {
    return record_fail(err, GM_ERR_IO, path, "is a device or a pipe, a regular file is needed");
  }
  char *whole = realpath(path, NULL);
  const bool fits = whole && strlen(whole) < sizeof out->path;
  if (fits) snprintf(out->path, sizeof out->path, "%s", whole);
  free(whole);
  *out_mode = there.st_mode & RECORD_BITS;
  if (!fits || access(path, W_OK) != 0) return record_fail(err, GM_ERR_IO, path, "may not be written");
  return GM_OK;
}

/* Packed or not goes by the ending. */
static gm_status record_make(record_file *out, const char *path, mode_t mode, gm_error *err) {
  const size_t length = strlen(out->path);
  const char *ending = length > 3 && strcmp(out->path + length - 3, ".gz") == 0 ? ".gz" : "";
  const int written = snprintf(out->temporary, sizeof out->temporary, "%s.XXXXXX%s", out->path, ending);
  const bool fits = written > 0 && written < RECORD_FILE_PATH;
  if (!fits) return record_no_file(err, path, ENAMETOOLONG);
  const int fd = unfinished_make(out->temporary, (int)strlen(ending), mode);
  if (fd < 0) return record_no_file(err, path, errno);
  close(fd);
  return GM_OK;
}

gm_status record_file_begin(record_file *out, gm_pool *pool, const char *path, const char *input, gm_error *err) {
  mode_t mode = 0;
  *out = (record_file){.temporary = ""};
  gm_status status = record_look(out, path, input, &mode, err);
  if (status == GM_OK) status = record_make(out, path, mode, err);
  if (status != GM_OK) return status;
  status = gm_pool_record_begin(pool, out->temporary, err);
  if (status == GM_OK) return GM_OK;
  unlink(out->temporary);
  unfinished_end();
  return status;
}

gm_status record_file_end(record_file *self, gm_pool *pool, gm_status status, gm_recording *out, gm_error *err) {
  const gm_status ended = gm_pool_record_end(pool, out, status == GM_OK ? err : NULL);
  if (status == GM_OK) status = ended;
  if (status == GM_OK && rename(self->temporary, self->path) != 0) {
    status = record_fail(err, GM_ERR_IO, self->path, strerror(errno));
  }
  if (status != GM_OK) unlink(self->temporary);
  unfinished_end();
  return status;
}
