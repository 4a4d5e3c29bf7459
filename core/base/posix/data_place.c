/* Invariants: nothing here waits for a peer (O_NONBLOCK, LOCK_NB). No descriptor outlives an exec. gm changes a file
 * only after it has seen that the descriptor is a regular file's, and has locked it. A lock counts only where the name
 * is still that of the locked file. Before gm gives the name to another file, it has locked both. */
#include "core/base/data_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/posix/path_error.h"

enum { PLACE_MODE = 0600, PLACE_LINKS_MOST = 40, PLACE_TRIES = 100, PLACE_NO_REPLACE = 1 /* of renameat2 */ };
enum { PLACE_FLAGS = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static gm_status place_fail(const char *path, const char *op, int code, gm_error *err) {
  return gm__fail_native(err, gm__path_error_status(code), code, op, "%.300s: %s", path, gm__path_error_text(code));
}

static gm_status place_busy(const char *path, gm_error *err) {
  return gm__fail_native(err, GM_ERR_BUSY, EWOULDBLOCK, "flock", "%.300s: somebody has it open", path);
}

/* ---- looking up a path ---- */

/* A folder that may be passed and not read can be used, too. */
static int place_open_folder(int at, const char *folder) {
  int fd = openat(at, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0 && errno == EACCES) fd = openat(at, folder, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  return fd;
}

/* Opens the folder of `path`, which begins at the folder `at`. -1: errno says why not. `path` is cut. */
static int place_enter(int at, char *path, char *out_name) {
  char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  const size_t length = strlen(name);
  if (!length || length >= GM__DATA_NAME_SIZE) {
    errno = length ? ENAMETOOLONG : EISDIR;
    return -1;
  }
  memcpy(out_name, name, length + 1);
  if (!slash) return place_open_folder(at, ".");
  slash[slash == path] = '\0';
  return place_open_folder(at, path);
}

/* Is the name a symbolic link? Then its text is in `text`. */
static bool place_follows(const gm__data_place *place, char *text, size_t size) {
  const ssize_t length = readlinkat(place->folder, place->name, text, size);
  if (length <= 0 || (size_t)length == size) return false; /* where a link is too long, the opening tells */
  text[length] = '\0';
  return true;
}

gm_status gm__data_place_open(const char *path, gm__data_place *out, gm_error *err) {
  char text[GM__FILE_PATH_SIZE];
  gm__data_place place;
  if ((size_t)snprintf(text, sizeof text, "%s", path) >= sizeof text)
    return place_fail(path, "open", ENAMETOOLONG, err);
  for (int links = 0, at = AT_FDCWD; links < PLACE_LINKS_MOST; links++) {
    place.folder = place_enter(at, text, place.name);
    const int code = errno;
    if (at >= 0) close(at);
    if (place.folder < 0) return place_fail(path, "open", code, err);
    if (!place_follows(&place, text, sizeof text)) {
      *out = place;
      return GM_OK;
    }
    at = place.folder;
  }
  close(place.folder);
  return place_fail(path, "open", ELOOP, err);
}

void gm__data_place_close(gm__data_place *place) {
  if (place->folder >= 0) close(place->folder);
  place->folder = -1;
}

/* ---- the file that has the name ---- */

bool gm__data_place_has(const gm__data_place *place, const gm__data_file *file) {
  struct stat of_name, of_file;
  if (fstatat(place->folder, place->name, &of_name, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (fstat(file->fd, &of_file) != 0) return false;
  return of_name.st_dev == of_file.st_dev && of_name.st_ino == of_file.st_ino;
}

static gm_status place_lock(const gm__data_file *file, const char *path, bool writes, gm_error *err) {
  struct stat st;
  if (fstat(file->fd, &st) != 0) return place_fail(path, "fstat", errno, err);
  if (!S_ISREG(st.st_mode)) return gm__fail(err, GM_ERR_IO, "open", "%.300s: is no regular file", path);
  if (flock(file->fd, (writes ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) return GM_OK;
  return errno == EWOULDBLOCK ? place_busy(path, err) : place_fail(path, "flock", errno, err);
}

static gm_status place_take(const gm__data_place *place, const char *path, const char *name, int flags,
                            gm__data_file *out, gm_error *err) {
  do out->fd = openat(place->folder, name, flags, PLACE_MODE);
  while (out->fd < 0 && errno == EINTR);
  if (out->fd < 0) return place_fail(path, "open", errno, err);
  const gm_status status = place_lock(out, path, flags & O_RDWR, err);
  if (!status) return GM_OK;
  if (flags & O_EXCL) unlinkat(place->folder, name, 0);
  gm__data_file_close(out, false);
  return status;
}

gm_status gm__data_place_file(const gm__data_place *place, const char *path, bool writes, gm__data_file *out,
                              gm_error *err) {
  for (int tries = 0; tries < PLACE_TRIES; tries++) {
    gm__data_file file;
    const int flags = writes ? PLACE_FLAGS : (PLACE_FLAGS & ~O_RDWR) | O_RDONLY;
    const gm_status status = place_take(place, path, place->name, flags, &file, err);
    if (status) return status;
    if (gm__data_place_has(place, &file)) {
      *out = file;
      return GM_OK;
    }
    gm__data_file_close(&file, true); /* another file got the name before the lock: this one says nothing about it */
  }
  return place_busy(path, err);
}

/* ---- another file for the name ---- */

gm_status gm__data_place_side(const gm__data_place *place, const char *path, const char *side, gm__data_file *out,
                              gm_error *err) {
  return place_take(place, path, side, PLACE_FLAGS | O_CREAT | O_EXCL, out, err);
}

bool gm__data_place_side_direct(const gm__data_place *place, const char *side, const gm__data_file *file,
                                gm__data_file *out) {
  struct stat first, second;
  do out->fd = openat(place->folder, side, PLACE_FLAGS | O_DIRECT, 0);
  while (out->fd < 0 && errno == EINTR);
  const bool same = out->fd >= 0 && fstat(file->fd, &first) == 0 && fstat(out->fd, &second) == 0 &&
                    first.st_dev == second.st_dev && first.st_ino == second.st_ino;
  if (!same) gm__data_file_close(out, false);
  return same;
}

/* A name that no file may have. Some file systems and sandboxes know no renameat2; they have second names for a file.
 */
static int place_give_new(const gm__data_place *place, const char *side) {
  if (syscall(SYS_renameat2, place->folder, side, place->folder, place->name, PLACE_NO_REPLACE) == 0) return 0;
  if (errno == EEXIST || linkat(place->folder, side, place->folder, place->name, 0) != 0) return -1;
  unlinkat(place->folder, side, 0);
  return 0;
}

gm_status gm__data_place_give(const gm__data_place *place, const char *path, const char *side,
                              const gm__data_file *file, const gm__data_file *old, gm_error *err) {
  if (old && !gm__data_place_has(place, old)) {
    return gm__fail(err, GM_ERR_IO, "rename", "%.300s: somebody moved or removed it", path);
  }
  const int answer = old ? renameat(place->folder, side, place->folder, place->name) : place_give_new(place, side);
  const int code = errno;
  if (answer == 0 || gm__data_place_has(place, file)) return GM_OK; /* some servers do it, and answer a failure */
  return code == EEXIST ? place_busy(path, err) : place_fail(path, "rename", code, err);
}

void gm__data_place_remove(const gm__data_place *place, const char *side) { unlinkat(place->folder, side, 0); }

gm_status gm__data_place_sync(const gm__data_place *place, const gm__data_file *file, const char *path, gm_error *err) {
  if (fsync(place->folder) == 0) return GM_OK;
  if (errno == EBADF || errno == EINVAL) { /* it may not be read, or the file system syncs no folder */
    if (syncfs(file->fd) == 0) return GM_OK;
  }
  return place_fail(path, "fsync", errno, err);
}

void gm__data_place_names(const gm__data_place *place, gm__data_place_visit visit, void *user) {
  const int fd = openat(place->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  DIR *stream = fd < 0 ? NULL : fdopendir(fd);
  if (!stream) {
    if (fd >= 0) close(fd);
    return;
  }
  for (struct dirent *entry; (entry = readdir(stream));) visit(user, entry->d_name);
  closedir(stream);
}
