/* Writing files that a stranger named: regular files only. Thread-safe on different files; the calls with an offset
 * also on one. `path` is for messages. */
#ifndef GM_CORE_BASE_OUTPUT_FILE_H
#define GM_CORE_BASE_OUTPUT_FILE_H

#include <stdint.h>

#include "gm/status.h"

typedef struct gm__output_file {
  int fd; /* -1: not open */
} gm__output_file;

/* Make `path`, or empty what is there. GM_ERR_NOT_FOUND: its folder is not there; GM_ERR_IO: not permitted, no room, or
 * no regular file (none other is written or waited for). */
gm_status gm__output_file_open(const char *path, gm__output_file *out, gm_error *err);

/* An empty file without a name, on the disk that `path` is on; it goes when it is closed. The same failures. */
gm_status gm__output_file_scratch(const char *path, gm__output_file *out, gm_error *err);

/* Exactly `bytes` at `at`, once more where a signal came between. GM_ERR_IO: the disk is full, a limit of the process,
 * the file ends before. */
gm_status gm__output_file_write_at(const gm__output_file *file, const char *path, uint64_t at, const void *from,
                                   uint64_t bytes, gm_error *err);
gm_status gm__output_file_read_at(const gm__output_file *file, const char *path, uint64_t at, void *to, uint64_t bytes,
                                  gm_error *err);

/* Leave nothing in it, as far as that is possible. */
void gm__output_file_empty(const gm__output_file *file);

/* Close it; again is GM_OK. GM_ERR_IO: what was written did not arrive (a disk of the network). */
gm_status gm__output_file_close(gm__output_file *file, const char *path, gm_error *err);

#endif
