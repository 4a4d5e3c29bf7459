/* A file of gm's own that is read and written in place, by one process at a time. Only regular files: data_place.h and
 * shared_file.h open them. The calls with an offset are thread-safe on one file. `path` is for messages. */
#ifndef GM_CORE_BASE_DATA_FILE_H
#define GM_CORE_BASE_DATA_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/inner.h"
#include "gm/status.h"

typedef struct gm__data_file {
  int fd; /* -1: not open */
} gm__data_file;

/* Close the file. With `unlock` its lock goes, even where a forked child has the file open, too. */
GM__INNER void gm__data_file_close(gm__data_file *file, bool unlock);

/* The bytes that the file has now. */
GM__INNER gm_status gm__data_file_size(const gm__data_file *file, const char *path, uint64_t *out, gm_error *err);

/* Read exactly `bytes` at `at`. FORMAT: the file ends before. */
GM__INNER gm_status gm__data_file_read(const gm__data_file *file, const char *path, uint64_t at, void *to,
                                       uint64_t bytes, gm_error *err);

/* Write exactly `bytes` at `at`. IO: the disk is full, or a limit of the process; part of the bytes may be written. A
 * limit on the size of files ends no process. */
GM__INNER gm_status gm__data_file_write(const gm__data_file *file, const char *path, uint64_t at, const void *from,
                                        uint64_t bytes, gm_error *err);

/* Take room on the disk for a file of `bytes` bytes, which it has afterwards. GM_OK also where the file system gives
 * none beforehand. IO: the disk has no room, or as for a write. */
GM__INNER gm_status gm__data_file_reserve(const gm__data_file *file, const char *path, uint64_t bytes, gm_error *err);

/* Whether writes go past the page cache. They begin and end at multiples of GM__DATA_FILE_DIRECT then, in the file and
 * in memory. Where the file system refuses one later, gm__data_file_write makes it through the cache, and so are those
 * behind it. */
enum { GM__DATA_FILE_DIRECT = 4096 };
bool gm__data_file_is_direct(const gm__data_file *file);

/* Cut the file to `bytes`, or make it longer with zeros. */
GM__INNER gm_status gm__data_file_cut(const gm__data_file *file, const char *path, uint64_t bytes, gm_error *err);

/* Wait until the file's bytes are on the disk. */
GM__INNER gm_status gm__data_file_sync(const gm__data_file *file, const char *path, gm_error *err);

/* Give the file the owner, group and mode of another one, as far as the system lets. It is never open to more users
 * than the other one. */
GM__INNER void gm__data_file_resemble(const gm__data_file *file, const gm__data_file *other);

#endif
