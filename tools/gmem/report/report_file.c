#include "tools/gmem/report/report_file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/gmem/output/unfinished.h"

enum { FILE_MODE = 0666, FILE_BITS = 07777 };

typedef struct report_place {
  const char *path;      /* as it was typed; borrowed */
  char target[PATH_MAX]; /* links are followed */
  char temporary[PATH_MAX];
  mode_t mode;
} report_place;

static gm_status file_fail(gm_error *err, gm_status status, const char *path, const char *why) {
  if (!err) return status;
  *err = (gm_error){.status = status};
  snprintf(err->message, sizeof err->message, "%.300s: %s", path, why);
  return status;
}

static gm_status file_fail_code(gm_error *err, const char *path, int code) {
  if (code == ENOENT) return file_fail(err, GM_ERR_NOT_FOUND, path, "there is no such folder");
  return file_fail(err, GM_ERR_IO, path, strerror(code));
}

/* A file that is there keeps its mode. */
static gm_status file_look(report_place *place, const char *name, gm_error *err) {
  struct stat there, read;
  const mode_t mask = umask(0);
  umask(mask);
  place->mode = FILE_MODE & ~mask;
  if (stat(place->path, &there) != 0) {
    int length = snprintf(place->target, sizeof place->target, "%s", place->path);
    return length < PATH_MAX ? GM_OK : file_fail_code(err, place->path, ENAMETOOLONG);
  }
  if (!S_ISREG(there.st_mode)) return file_fail(err, GM_ERR_IO, place->path, "is no regular file");
  if (stat(name, &read) == 0 && read.st_dev == there.st_dev && read.st_ino == there.st_ino) {
    return file_fail(err, GM_ERR_INVALID_ARGUMENT, place->path, "is the recording itself: -o needs another file");
  }
  place->mode = there.st_mode & FILE_BITS;
  if (!realpath(place->path, place->target)) return file_fail_code(err, place->path, errno);
  return access(place->target, W_OK) == 0 ? GM_OK : file_fail_code(err, place->path, errno);
}

static gm_status file_make(report_place *place, FILE **out, gm_error *err) {
  int length = snprintf(place->temporary, sizeof place->temporary, "%s.XXXXXX", place->target);
  if (length >= PATH_MAX) return file_fail_code(err, place->path, ENAMETOOLONG);
  int fd = unfinished_make(place->temporary, 0, place->mode);
  if (fd < 0) return file_fail_code(err, place->path, errno);
  *out = fdopen(fd, "w");
  if (*out) return GM_OK;
  int code = errno;
  close(fd);
  unlink(place->temporary);
  unfinished_end();
  return file_fail_code(err, place->path, code);
}

/* Closes the file. A failure of it goes into `err` unless the format failed before. */
static gm_status file_close(FILE *file, const char *path, gm_status status, gm_error *err) {
  bool failed = ferror(file);
  int code = failed ? errno : 0; /* that of the last write */
  if (!failed && fflush(file) != 0) {
    failed = true;
    code = errno;
  }
  if (fclose(file) != 0 && !failed) {
    failed = true;
    code = errno;
  }
  if (status != GM_OK || !failed) return status;
  return file_fail(err, GM_ERR_IO, path, code ? strerror(code) : "not everything could be written");
}

gm_status report_file_write(const char *path, const char *name, const report_events *events, report_write write,
                            gm_error *err) {
  FILE *file = NULL;
  report_place place = {.path = path};
  gm_status status = file_look(&place, name, err);
  if (status == GM_OK) status = file_make(&place, &file, err);
  if (status != GM_OK) return status;
  status = write(file, name, events, err);
  status = file_close(file, path, status, err);
  if (status == GM_OK && rename(place.temporary, place.target) != 0) status = file_fail_code(err, path, errno);
  if (status != GM_OK) unlink(place.temporary);
  unfinished_end();
  return status;
}
