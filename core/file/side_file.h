/* A file that takes the place of another one, whole or not at all. It is written beside that one, and gets the name
 * when all of it is on the disk. Writes are thread-safe, but no other call is. `path` outlives it. */
#ifndef GM_CORE_FILE_SIDE_FILE_H
#define GM_CORE_FILE_SIDE_FILE_H

#include "core/base/data_place.h"
#include "core/base/inner.h"

typedef struct gm__side_file {
  const char *path;
  gm__data_place place;
  gm__data_file old; /* -1: no file had the name */
  gm__data_file side;
  gm__data_file direct; /* the same, for writes past the page cache; -1: its file system has none */
  char side_name[GM__DATA_NAME_SIZE];
} gm__side_file;

/* Opens the side file, which is empty. A side file that an ended process left is removed. BUSY: another thread or
 * process saves to the path, or has locked the file there. NOT_FOUND: no such folder. IO: as for data_place.h. */
GM__INNER gm_status gm__side_file_open(const char *path, gm__side_file *out, gm_error *err);

/* Writes exactly `bytes` at `at`. Whole pages at pages of memory go past the page cache; *out_direct is how many bytes
 * did. Errors: those of gm__data_file_write. */
GM__INNER gm_status gm__side_file_write(const gm__side_file *file, uint64_t at, const void *from, uint64_t bytes,
                                        uint64_t *out_direct, gm_error *err);

/* Whether its file system takes writes past the page cache, as far as is known. */
GM__INNER bool gm__side_file_is_direct(const gm__side_file *file);

/* The side file is on the disk and gets the name of the path, which is on the disk, too. */
GM__INNER gm_status gm__side_file_give(gm__side_file *file, gm_error *err);

/* Closes all. A side file that did not get the name goes. */
GM__INNER void gm__side_file_close(gm__side_file *file);

#endif
