/* Files that a caller named, for writing. Only regular files. Thread-safe on different files; the calls with an
 * offset are thread-safe on one file too. `path` is for messages. */
#ifndef GM_CORE_BASE_OUTPUT_FILE_H
#define GM_CORE_BASE_OUTPUT_FILE_H

#include <stdint.h>

#include "core/base/inner.h"
#include "gm/status.h"

typedef struct gm__output_file {
  int fd; /* -1: not open */
} gm__output_file;

/* Make the file `path`, or empty the file that is there. GM_ERR_NOT_FOUND: there is no such folder. GM_ERR_IO: not
 * permitted, disk full, or no regular file. gm neither writes to other files nor waits for them. */
gm_status gm__output_file_open(const char *path, gm__output_file *out, gm_error *err);

/* Make an empty file without a name, on the disk of `path`. Closing it deletes it. It fails as gm__output_file_open. */
gm_status gm__output_file_scratch(const char *path, gm__output_file *out, gm_error *err);

/* Write or read exactly `bytes` at `at`. A signal does not end the call. GM_ERR_IO: the disk is full, a limit of the
 * process, or the file ends too early. */
GM__INNER gm_status gm__output_file_write_at(const gm__output_file *file, const char *path, uint64_t at,
                                             const void *from, uint64_t bytes, gm_error *err);
GM__INNER gm_status gm__output_file_read_at(const gm__output_file *file, const char *path, uint64_t at, void *to,
                                            uint64_t bytes, gm_error *err);

/* Empty the file, as far as that is possible. */
GM__INNER void gm__output_file_empty(const gm__output_file *file);

/* Close the file. A second close is GM_OK. GM_ERR_IO: the written bytes did not arrive (on a network disk). */
GM__INNER gm_status gm__output_file_close(gm__output_file *file, const char *path, gm_error *err);

#endif
