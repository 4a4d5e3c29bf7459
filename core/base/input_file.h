/* Reading files that a stranger named: opened without blocking, regular files only, and known again when they are
 * opened once more. Names are followed through symbolic links (model caches are made of them). Thread-safe on different
 * files; gm__input_file_read_at also on one. */
#ifndef GM_CORE_BASE_INPUT_FILE_H
#define GM_CORE_BASE_INPUT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/status.h"

typedef struct gm__input_file {
  int fd; /* -1: not open */
  uint64_t bytes;
  uint64_t device; /* with inode and times: which file this is, and in which state */
  uint64_t inode;
  int64_t modified_s;
  int64_t modified_ns;
} gm__input_file;

/* Open `path` for reading. GM_ERR_NOT_FOUND: nothing is there; GM_ERR_IO: not permitted, or no regular file (a folder,
 * pipe, socket or device: none of them is read or waited for); the message names the path and what is there. */
gm_status gm__input_file_open(const char *path, gm__input_file *out, gm_error *err);

/* Close it; again is harmless. */
void gm__input_file_close(gm__input_file *file);

/* Read exactly `bytes` at `at`. GM_ERR_IO, with the offset, where the file ends before (it shrank) or a read fails.
 * `path` is for messages. */
gm_status gm__input_file_read_at(const gm__input_file *file, const char *path, uint64_t at, void *out, uint64_t bytes,
                                 gm_error *err);

/* GM_ERR_IO when the open file no longer has the size it was opened with. */
gm_status gm__input_file_check_size(const gm__input_file *file, const char *path, gm_error *err);

/* Map the whole file for reading; `bytes` of the file must not be 0. gm__input_file_unmap gives it back. A page behind
 * the end of a file that shrank ends the process when it is touched: see gm__input_file_touch. */
gm_status gm__input_file_map(const gm__input_file *file, const char *path, const void **out, gm_error *err);
void gm__input_file_unmap(const gm__input_file *file, const void *mapping);

/* Before a part of a mapping is read: the file still has its size, and its pages are brought in where the system can
 * (Linux 5.14), which then also fails here and not at the touch. GM_ERR_IO. What shrinks later is not found. */
gm_status gm__input_file_touch(const gm__input_file *file, const char *path, const void *mapping, uint64_t at,
                               uint64_t bytes, gm_error *err);

/* The same file in the same state: device, inode, size and time of change are equal. */
bool gm__input_file_same(const gm__input_file *a, const gm__input_file *b);

/* Whether `path` is a folder. GM_ERR_NOT_FOUND: nothing is there; GM_ERR_IO: it cannot be looked at. */
gm_status gm__input_is_folder(const char *path, bool *out, gm_error *err);

/* Call `visit` with the name of every entry of the folder, in no order, until it answers false. */
gm_status gm__input_folder_each(const char *path, bool (*visit)(void *user, const char *name), void *user,
                                gm_error *err);

#endif
