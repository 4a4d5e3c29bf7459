/* Invariants: nothing here waits for a peer (with O_NONBLOCK a FIFO without a writer opens at once, and gm refuses it).
 * No descriptor outlives an exec. gm reads the file that fstat saw on the descriptor, never one that stat saw by name.
 */
#include "core/base/input_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/error.h"
#include "core/base/posix/path_error.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14; glibc knows it from 2.35 on */
#endif

static gm_status input_fail(const char *path, const char *op, int code, gm_error *err) {
  return gm__fail_native(err, gm__path_error_status(code), code, op, "%.300s: %s", path, gm__path_error_text(code));
}

static const char *input_kind(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no regular file";
}

static gm__input_file input_describe(int fd, const struct stat *st) {
  return (gm__input_file){
      .fd = fd,
      .bytes = (uint64_t)st->st_size,
      .device = (uint64_t)st->st_dev,
      .inode = (uint64_t)st->st_ino,
      .modified_s = (int64_t)st->st_mtim.tv_sec,
      .modified_ns = (int64_t)st->st_mtim.tv_nsec,
      .align = GM__INPUT_BLOCK,
  };
}

static gm_status input_refuse(int fd, const char *path, const struct stat *st, gm_error *err) {
  close(fd);
  return gm__fail(err, GM_ERR_IO, "open", "%.300s: is %s, a regular file is needed", path, input_kind(st->st_mode));
}

static int input_open(const char *path, int flags) {
  int fd;
  do fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
  while (fd < 0 && errno == EINTR);
  return fd;
}

gm_status gm__input_file_open(const char *path, gm__input_file *out, gm_error *err) {
  int fd = input_open(path, 0);
  /* Nobody can open a socket, and a device may have no driver. */
  if (fd < 0 && errno == ENXIO)
    return gm__fail_native(err, GM_ERR_IO, ENXIO, "open", "%.300s: is a socket or a device", path);
  if (fd < 0) return input_fail(path, "open", errno, err);
  struct stat st;
  if (fstat(fd, &st) != 0) {
    int code = errno;
    close(fd);
    return input_fail(path, "fstat", code, err);
  }
  if (!S_ISREG(st.st_mode)) return input_refuse(fd, path, &st, err);
  *out = input_describe(fd, &st);
  return GM_OK;
}

void gm__input_file_close(gm__input_file *file) {
  if (file->fd < 0) return;
  close(file->fd);
  file->fd = -1;
}

/* Read at most 1 GiB (Linux stops at 2 GiB). Try again after a signal. */
gm_status gm__input_file_read_some(const gm__input_file *file, const char *path, uint64_t at, void *out, uint64_t bytes,
                                   uint64_t *out_got, gm_error *err) {
  size_t wanted = bytes < (1U << 30) ? (size_t)bytes : (size_t)1 << 30;
  ssize_t got;
  do got = pread(file->fd, out, wanted, (off_t)at);
  while (got < 0 && errno == EINTR);
  const int code = errno;
  *out_got = got > 0 ? (uint64_t)got : 0;
  if (got >= 0) return GM_OK;
  return gm__fail_native(err, GM_ERR_IO, code, "pread", "%.300s: at byte %llu: %s", path, (unsigned long long)at,
                         gm__path_error_text(code));
}

gm_status gm__input_file_read_at(const gm__input_file *file, const char *path, uint64_t at, void *out, uint64_t bytes,
                                 gm_error *err) {
  for (uint64_t done = 0, got = 0; done < bytes; done += got) {
    gm_status status = gm__input_file_read_some(file, path, at + done, (char *)out + done, bytes - done, &got, err);
    if (status != GM_OK) return status;
    if (got == 0) {
      return gm__fail(err, GM_ERR_IO, "pread", "%.300s: ends at byte %llu, it had %llu when it was opened", path,
                      (unsigned long long)(at + done), (unsigned long long)file->bytes);
    }
  }
  return GM_OK;
}

static gm_status input_check_replaced(const gm__input_file *file, const char *path, gm__input_file *again,
                                      gm_error *err) {
  if (gm__input_file_same(file, again)) return GM_OK;
  gm__input_file_close(again);
  return gm__fail(err, GM_ERR_IO, "open", "%.300s: was replaced or has changed since it was opened", path);
}

/* How memory must be aligned for direct reads of a file. Linux tells from 6.1 on: a disk may take any 4 bytes. */
static uint32_t input_direct_align(int fd) {
#ifdef STATX_DIOALIGN
  struct statx st = {.stx_mask = 0};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) != 0 || !(st.stx_mask & STATX_DIOALIGN)) return GM__INPUT_BLOCK;
  const uint32_t align = st.stx_dio_mem_align;
  const bool good = align && (align & (align - 1)) == 0 && align <= GM__INPUT_BLOCK;
  return good && st.stx_dio_offset_align <= GM__INPUT_BLOCK ? align : GM__INPUT_BLOCK;
#else
  (void)fd;
  return GM__INPUT_BLOCK;
#endif
}

gm_status gm__input_file_open_direct(const gm__input_file *file, const char *path, gm__input_file *out, gm_error *err) {
  const int fd = input_open(path, O_DIRECT);
  if (fd < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) {
    return gm__fail_native(err, GM_ERR_NOT_SUPPORTED, errno, "open", "%.200s: its file system has no direct reads",
                           path);
  }
  if (fd < 0) return input_fail(path, "open", errno, err);
  struct stat st;
  if (fstat(fd, &st) != 0) {
    const int code = errno;
    close(fd);
    return input_fail(path, "fstat", code, err);
  }
  *out = input_describe(fd, &st);
  out->align = input_direct_align(fd);
  return input_check_replaced(file, path, out, err);
}

/* ---- what lies in the page cache ---- */

/* Linux 6.5. The C library does not know the call yet. */
enum { INPUT_CACHESTAT = 451 };

typedef struct input_cache_range {
  uint64_t at, bytes;
} input_cache_range;

typedef struct input_cache_stat {
  uint64_t cached, dirty, writeback, evicted, recently_evicted;
} input_cache_stat;

/* The pages of a part, before Linux 6.5. */
static bool input_count_pages(const gm__input_file *file, uint64_t at, uint64_t bytes, uint64_t page, uint64_t *out) {
  unsigned char pages[1024] = {0};
  uint64_t most = sizeof pages * page;
  for (*out = 0; bytes;) {
    const uint64_t part = bytes < most ? bytes : most;
    void *mapping = mmap(NULL, part, PROT_READ, MAP_SHARED, file->fd, (off_t)at);
    if (mapping == MAP_FAILED) return false;
    const bool told = mincore(mapping, part, pages) == 0;
    munmap(mapping, part);
    if (!told) return false;
    for (uint64_t i = 0; i < (part + page - 1) / page; i++) *out += pages[i] & 1;
    at += part;
    bytes -= part;
  }
  return true;
}

bool gm__input_file_resident(const gm__input_file *file, uint64_t at, uint64_t bytes, uint64_t *out) {
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = at / page * page;
  input_cache_range range = {start, at + bytes - start};
  input_cache_stat stat = {0};
  uint64_t pages = 0;
  if (bytes == 0) return *out = 0, true;
  if (syscall((long)INPUT_CACHESTAT, (long)file->fd, &range, &stat, 0L) == 0) {
    pages = stat.cached;
  } else if (!input_count_pages(file, start, range.bytes, page, &pages)) {
    return false;
  }
  *out = pages * page < bytes ? pages * page : bytes;
  return true;
}

static gm_status input_check(const gm__input_file *file, const char *path, bool times, gm_error *err) {
  struct stat st;
  if (fstat(file->fd, &st) != 0) return input_fail(path, "fstat", errno, err);
  const gm__input_file now = input_describe(file->fd, &st);
  if (now.bytes != file->bytes) {
    return gm__fail(err, GM_ERR_IO, "fstat", "%.300s: has %llu bytes, it had %llu when it was opened", path,
                    (unsigned long long)now.bytes, (unsigned long long)file->bytes);
  }
  if (!times || gm__input_file_same(file, &now)) return GM_OK;
  return gm__fail(err, GM_ERR_IO, "fstat", "%.300s: was written to since it was opened", path);
}

gm_status gm__input_file_check_size(const gm__input_file *file, const char *path, gm_error *err) {
  return input_check(file, path, false, err);
}

gm_status gm__input_file_check_unchanged(const gm__input_file *file, const char *path, gm_error *err) {
  return input_check(file, path, true, err);
}

gm_status gm__input_file_map(const gm__input_file *file, const char *path, const void **out, gm_error *err) {
  void *mapping = mmap(NULL, file->bytes, PROT_READ, MAP_SHARED, file->fd, 0);
  if (mapping == MAP_FAILED) return input_fail(path, "mmap", errno, err);
  *out = mapping;
  return GM_OK;
}

gm_status gm__input_file_map_own(const gm__input_file *file, const char *path, void **out, gm_error *err) {
  void *mapping = mmap(NULL, file->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file->fd, 0);
  if (mapping == MAP_FAILED) return input_fail(path, "mmap", errno, err);
  *out = mapping;
  return GM_OK;
}

void gm__input_file_unmap(const gm__input_file *file, const void *mapping) {
  if (mapping) munmap((void *)(uintptr_t)mapping, file->bytes);
}

gm_status gm__input_file_touch(const gm__input_file *file, const char *path, const void *mapping, uint64_t at,
                               uint64_t bytes, gm_error *err) {
  gm_status status = gm__input_file_check_size(file, path, err);
  if (status != GM_OK || bytes == 0) return status;
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = at / page * page;
  char *first = (char *)(uintptr_t)mapping + start;
  int failed = madvise(first, at + bytes - start, MADV_POPULATE_READ);
  if (failed == 0 || errno == EINVAL) return GM_OK; /* EINVAL: an older kernel does not know the advice */
  int code = errno;
  return gm__fail_native(err, GM_ERR_IO, code, "madvise", "%.300s: bytes %llu to %llu cannot be read from its mapping",
                         path, (unsigned long long)at, (unsigned long long)(at + bytes));
}

bool gm__input_file_same(const gm__input_file *a, const gm__input_file *b) {
  return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes && a->modified_s == b->modified_s &&
         a->modified_ns == b->modified_ns;
}

bool gm__input_file_is(const gm__input_file *file, int fd) {
  struct stat st;
  if (fstat(fd, &st) != 0) return false;
  const gm__input_file other = input_describe(fd, &st);
  return gm__input_file_same(file, &other);
}

gm_status gm__input_is_folder(const char *path, bool *out, gm_error *err) {
  struct stat st;
  if (stat(path, &st) != 0) return input_fail(path, "stat", errno, err);
  *out = S_ISDIR(st.st_mode);
  return GM_OK;
}

gm_status gm__input_folder_each(const char *path, bool (*visit)(void *user, const char *name), void *user,
                                gm_error *err) {
  DIR *folder = opendir(path);
  if (!folder) return input_fail(path, "opendir", errno, err);
  const struct dirent *entry;
  errno = 0;
  while ((entry = readdir(folder)) != NULL && visit(user, entry->d_name)) errno = 0;
  int code = entry ? 0 : errno;
  closedir(folder);
  return code == 0 ? GM_OK : input_fail(path, "readdir", code, err);
}
