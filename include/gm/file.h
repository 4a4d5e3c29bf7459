/* Open files, and the ways to their bytes: through the page cache, past it, or by a mapping. New files come whole or
 * not at all. */
#ifndef GM_FILE_H
#define GM_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/export.h"
#include "gm/status.h"

GM_BEGIN_DECLS

/* How bytes get out of a file, or into it. */
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

/* Returns the file's size in bytes, as it was when it was opened; 0 for NULL. A file that is written has what lies
 * before the end of its last byte so far. Thread-safe. */
GM_API uint64_t gm_file_size(const gm_file *file);

/* Reads exactly `bytes` bytes at byte `offset` into host memory `to`, which the caller keeps until the call returns.
 * The call reads in pieces of at most 4 MiB, in the calling thread. On the direct way offset, size and address may be
 * any; multiples of 4096 save a copy. Thread-safe, also on one file.
 *
 * Errors: INVALID_ARGUMENT: also where the range ends behind gm_file_size, or the
 * file is from gm_file_create. IO: the system could not read, or the file
 * shrank, grew, was replaced or written to since it was opened; the message names the byte. OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_file_read(gm_file *file, uint64_t offset, void *to, uint64_t bytes, gm_error *err);

/* Begins a file that takes the place of `path`, whole or not at all, such as a checkpoint. gm writes it beside that
 * path, and gm_file_commit gives it the name. Until then, and after a crash, the earlier file is there. gm follows a
 * symbolic link at the end of `path`. The new file gets owner, group and mode of the earlier one; without one it is for
 * the user alone. A new file that an ended process left beside `path` goes. The caller closes *out. Thread-safe.
 *
 * bytes: room that the disk reserves beforehand; 0: none. The file may become shorter, and longer.
 * way: AUTO and DIRECT: whole pages go past the page cache, where the file system has such writes; CACHE: none do.
 *
 * Errors: INVALID_ARGUMENT: also another way. NOT_FOUND: no such folder. BUSY: somebody else writes to the path, or has
 * the file locked. IO: the disk has no room; a limit of the process; not permitted; no regular file has the name.
 * OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_file_create(const char *path, uint64_t bytes, gm_way way, gm_file **out, gm_error *err);

/* Writes exactly `bytes` bytes from host memory `from` at byte `offset`. Bytes that nobody writes are zero. Offset,
 * size and address may be any. Whole pages go past the page cache. gm copies them through at most 1 MiB where they are
 * not at pages of memory. Thread-safe, also on one file, for ranges that share no byte.
 *
 * Errors: INVALID_ARGUMENT: also a file that is not from gm_file_create, or was committed. IO: the disk is full, or
 * failed; a limit of the process. The file cannot be committed then. OUT_OF_HOST_MEMORY: for the copy; nothing was
 * written. */
GM_API gm_status gm_file_write(gm_file *file, uint64_t offset, const void *from, uint64_t bytes, gm_error *err);

/* Gives the file its name: gm waits until its bytes are on the disk, renames it, and waits for the folder. No other
 * thread may use the file meanwhile. Afterwards it can only be closed.
 *
 * Errors: INVALID_ARGUMENT: also a file that is not from gm_file_create, or was committed. IO: a write has failed, or
 * the disk did; somebody moved or removed the earlier file. BUSY: another process made a file of that name. The earlier
 * file is there then. Where only the last wait fails, the new one has the name, and a crash may take it back. */
GM_API gm_status gm_file_commit(gm_file *file, gm_error *err);

/* Returns why a faster way was not taken so far: a file system has no direct reads or writes. It is "" where there is
 * nothing to say. The text is valid until gm_file_close. Thread-safe. */
GM_API const char *gm_file_why(const gm_file *file);

/* Closes the file. Without gm_file_commit a new file goes, and the earlier one stays. No other thread may use it any
 * more. NULL does nothing. */
GM_API void gm_file_close(gm_file *file);

GM_END_DECLS

#endif
