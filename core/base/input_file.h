/* Files that a caller named, for reading. gm opens only regular files, without blocking, and recognises a file that
 * it opens again. It follows symbolic links: model caches consist of them. Thread-safe on different files.
 * gm__input_file_read_at is thread-safe on one file too. */
#ifndef GM_CORE_BASE_INPUT_FILE_H
#define GM_CORE_BASE_INPUT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/inner.h"
#include "gm/status.h"

typedef struct gm__input_file {
  int fd; /* -1: not open */
  uint64_t bytes;
  uint64_t device; /* device, inode and times identify the file and its state */
  uint64_t inode;
  int64_t modified_s;
  int64_t modified_ns;
  uint32_t align; /* of memory, for reads past the page cache: a power of two, at most GM__INPUT_BLOCK */
} gm__input_file;

/* Open `path` for reading. GM_ERR_NOT_FOUND: nothing is there. GM_ERR_IO: not permitted, or no regular file. gm neither
 * reads nor waits for a folder, pipe, socket or device. The message names the path and the kind of file. */
GM__INNER gm_status gm__input_file_open(const char *path, gm__input_file *out, gm_error *err);

/* Close the file. A second close is harmless. */
GM__INNER void gm__input_file_close(gm__input_file *file);

/* Read exactly `bytes` at `at`. GM_ERR_IO, with the offset, where the file ends too early (it shrank) or a read fails.
 * `path` is for messages. */
GM__INNER gm_status gm__input_file_read_at(const gm__input_file *file, const char *path, uint64_t at, void *out,
                                           uint64_t bytes, gm_error *err);

/* Read at most `bytes` at `at`, with one call of the system. *out_got is 0 at the end of the file. GM_ERR_IO. */
gm_status gm__input_file_read_some(const gm__input_file *file, const char *path, uint64_t at, void *out, uint64_t bytes,
                                   uint64_t *out_got, gm_error *err);

/* Offsets and lengths of reads past the page cache are multiples of this. So are addresses, where the system does not
 * say that less is enough (gm__input_file.align). */
enum { GM__INPUT_BLOCK = 4096 };

/* Open the file again, for reads past the page cache (O_DIRECT). NOT_SUPPORTED: its file system has none. NOT_FOUND,
 * IO: another file has the path now, or this one has changed. */
gm_status gm__input_file_open_direct(const gm__input_file *file, const char *path, gm__input_file *out, gm_error *err);

/* How many of the bytes [at, at + bytes) lie in the page cache, in whole pages and at most `bytes`. False: the system
 * does not tell. It reads nothing. */
bool gm__input_file_resident(const gm__input_file *file, uint64_t at, uint64_t bytes, uint64_t *out);

/* GM_ERR_IO when the size of the open file has changed since it was opened. */
gm_status gm__input_file_check_size(const gm__input_file *file, const char *path, gm_error *err);

/* Does what gm__input_file_check_size does. GM_ERR_IO also when somebody wrote to the file since it was opened. */
GM__INNER gm_status gm__input_file_check_unchanged(const gm__input_file *file, const char *path, gm_error *err);

/* Map the whole file for reading. Its `bytes` must not be 0. gm__input_file_unmap unmaps it. When the file shrinks, a
 * touch of a page after its new end ends the process: see gm__input_file_touch. */
gm_status gm__input_file_map(const gm__input_file *file, const char *path, const void **out, gm_error *err);
GM__INNER void gm__input_file_unmap(const gm__input_file *file, const void *mapping);

/* Map the whole file as memory of this process: what is written there is nobody else's. gm__input_file_unmap
 * unmaps it. All else is as with gm__input_file_map. */
GM__INNER gm_status gm__input_file_map_own(const gm__input_file *file, const char *path, void **out, gm_error *err);

/* Prepare a part of a mapping for reading. It checks the size of the file. Where the system can (Linux 5.14), it brings
 * the pages in, so that a read error fails here. GM_ERR_IO. It cannot find a file that shrinks later. */
GM__INNER gm_status gm__input_file_touch(const gm__input_file *file, const char *path, const void *mapping, uint64_t at,
                                         uint64_t bytes, gm_error *err);

/* Are these the same file in the same state? Device, inode, size and time of change are compared. */
GM__INNER bool gm__input_file_same(const gm__input_file *a, const gm__input_file *b);

/* Is the open file `fd` this one, in the same state? */
bool gm__input_file_is(const gm__input_file *file, int fd);

/* Is `path` a folder? GM_ERR_NOT_FOUND: nothing is there. GM_ERR_IO: the system does not tell. */
GM__INNER gm_status gm__input_is_folder(const char *path, bool *out, gm_error *err);

/* Call `visit` with the name of every entry of the folder, in any order, until it answers false. */
GM__INNER gm_status gm__input_folder_each(const char *path, bool (*visit)(void *user, const char *name), void *user,
                                          gm_error *err);

#endif
