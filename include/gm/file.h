/* Open files, and the ways to their bytes: through the page cache, past it, or by a mapping. */
#ifndef GM_FILE_H
#define GM_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/export.h"
#include "gm/status.h"

GM_BEGIN_DECLS

/* How bytes get out of a file. */
typedef enum gm_way {
  GM_WAY_AUTO = 0,   /* CACHE for parts that lie in the page cache, DIRECT for others */
  GM_WAY_CACHE = 1,  /* through the page cache */
  GM_WAY_DIRECT = 2, /* past the page cache (O_DIRECT); CACHE where the file system has no such reads */
  /* By a mapping. gm checks the file's size before each piece. If another process cuts the file while a piece is being
   * copied, the process ends (SIGBUS). gm does not catch that. */
  GM_WAY_MAP = 3,
  GM_WAY_GDS = 4 /* from the drive to the device; comes with a later version */
} gm_way;

/* An open file. */
typedef struct gm_file gm_file;

/* Opens a regular file for reading; gm follows symbolic links. The caller closes *out. Thread-safe.
 *
 * Errors: INVALID_ARGUMENT. NOT_FOUND: nothing is there. IO: a folder, a pipe, a socket or a device; not permitted; the
 * system has no descriptor left. NOT_SUPPORTED: GM_WAY_GDS. OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_file_open(const char *path, gm_way way, gm_file **out, gm_error *err);

/* Returns the file's size in bytes, as it was when it was opened; 0 for NULL. Thread-safe. */
GM_API uint64_t gm_file_size(const gm_file *file);

/* Reads exactly `bytes` bytes at byte `offset` into host memory `to`, which the caller keeps until the call returns.
 * The call reads in pieces of at most 4 MiB, in the calling thread. On the direct way offset, size and address may be
 * any; multiples of 4096 save a copy. Thread-safe, also on one file.
 *
 * Errors: INVALID_ARGUMENT: also where the range ends behind gm_file_size. IO: the system could not read, or the file
 * shrank, grew, was replaced or written to since it was opened; the message names the byte. OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_file_read(gm_file *file, uint64_t offset, void *to, uint64_t bytes, gm_error *err);

/* Returns why a faster way was not taken so far, such as a file system without direct reads; "" where there is nothing
 * to say. The text is valid until gm_file_close. Thread-safe. */
GM_API const char *gm_file_why(const gm_file *file);

/* Closes the file. No other thread may use it any more. NULL does nothing. */
GM_API void gm_file_close(gm_file *file);

GM_END_DECLS

#endif
