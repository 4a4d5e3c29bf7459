/* Small files that the processes of one user share. They are read and written as data_file.h says, and locked byte by
 * byte. A lock belongs to the opened file. It goes when that is closed, at an exec, and when its process ends. A forked
 * child that has the file open, too, keeps the lock. Thread-safe. `path` is for messages. */
#ifndef GM_CORE_BASE_SHARED_FILE_H
#define GM_CORE_BASE_SHARED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/data_file.h"

/* Whether this process may make files in that folder. */
bool gm__shared_file_folder(const char *folder);

/* Make that folder for the user alone, if its parent is there. GM_OK: also where it is there already. NOT_FOUND, IO. */
gm_status gm__shared_file_make_folder(const char *folder, gm_error *err);

/* Put "FOLDER/STEM-UID" into `out`, with the number of the effective user. INVALID_ARGUMENT: it does not fit. */
gm_status gm__shared_file_path(const char *folder, const char *stem, char *out, size_t capacity, gm_error *err);

/* Open a file for reading and writing; with `create` it is made, for the user alone. gm__data_file_close closes it.
 * NOT_FOUND: no such file or folder. IO: not permitted, a symbolic link, no regular file, of another user, or one that
 * other users may open. */
gm_status gm__shared_file_open(const char *path, bool create, gm__data_file *out, gm_error *err);

/* Whether both are open, and are one file. */
bool gm__shared_file_same(const gm__data_file *a, const gm__data_file *b);

/* Lock the byte `at`, which need not exist. Waits until `deadline` (core/base/clock.h). TIMEOUT: another opened file
 * still has it. IO: the system has no such locks. A lock that this opened file has already is fine. */
gm_status gm__shared_file_lock(const gm__data_file *file, const char *path, uint64_t at, uint64_t deadline,
                               gm_error *err);
void gm__shared_file_unlock(const gm__data_file *file, uint64_t at);

/* Whether another opened file has locked one of the bytes. True also where the system does not tell. */
bool gm__shared_file_is_locked(const gm__data_file *file, uint64_t at, uint64_t bytes);

#endif
