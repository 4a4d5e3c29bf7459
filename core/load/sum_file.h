/* Checksums of a file, in a file beside it: PATH.gmsum. There is one for each MiB of the file. It is the sum of those
 * of the pages of that MiB, each with its number in the file as its seed. So it can be made while the file is written
 * or read, in any order. One thread.
 *
 * Its numbers have the low byte first. It begins with "GMSUM", two zeros, and 2. In 32 bits each follow the kind of
 * checksum (checksum.h) and the bytes of a block. In 64 bits each follow the bytes of the file, and the checksum of all
 * else here. The checksums of the blocks are the rest. */
#ifndef GM_CORE_LOAD_SUM_FILE_H
#define GM_CORE_LOAD_SUM_FILE_H

#include <stdbool.h>

#include "core/base/data_file.h"
#include "core/base/input_file.h"
#include "gm/services.h"

enum { GM__SUM_BLOCK = 1 << 20, GM__SUM_PAGE = 4096 };

typedef struct gm__sums {
  const gm_services *services;
  uint64_t *sums; /* NULL: none are made */
  uint64_t capacity;
  uint64_t bytes; /* of the file so far */
  uint64_t stale; /* the number of a block that was written once more, and one; 0: none */
} gm__sums;

/* Returns what bytes of a file add to the checksum of their MiB: `count` bytes at `at`, which is a multiple of
 * GM__SUM_PAGE. They lie in one MiB. The last page of a file may be shorter. Thread-safe. */
uint64_t gm__sums_of(const void *bytes, uint64_t count, uint64_t at);

static inline uint64_t gm__sums_blocks(uint64_t bytes) { return bytes / GM__SUM_BLOCK + (bytes % GM__SUM_BLOCK != 0); }

/* For a file of at most `most` bytes. OUT_OF_HOST_MEMORY. gm__sums_end ends them. */
gm_status gm__sums_begin(gm__sums *sums, const gm_services *services, uint64_t most, gm_error *err);
void gm__sums_end(gm__sums *sums);

/* The next bytes of the file: whole pages, but at its end. */
void gm__sums_add(gm__sums *sums, const void *bytes, uint64_t count);

/* These bytes of the file are other ones now. The calls go on in the order of the file. */
gm_status gm__sums_again(gm__sums *sums, const gm__data_file *file, const char *path, uint64_t at, uint64_t count,
                         gm_error *err);

/* Write the checksum file of `path`, on the disk, whole or not at all. `file` is that of `path`. */
gm_status gm__sums_save(gm__sums *sums, const gm__data_file *file, const char *path, gm_error *err);

/* Remove the checksum file of `path`, also from the disk, if there is one: the file is going to be another one. */
gm_status gm__sums_forget(const char *path, gm_error *err);

/* The checksums that the checksum file of `path` has for a file of `file_bytes` bytes: gm__sums_blocks of them, of the
 * services. NULL: there is no checksum file. Errors: those of gm__sums_check. */
gm_status gm__sums_load(const gm_services *services, const char *path, uint64_t file_bytes, uint64_t **out,
                        gm_error *err);

/* The failure that a MiB of a file, the one with byte `at`, is not as its checksum file says. */
gm_status gm__sums_differ(const char *path, uint64_t file_bytes, uint64_t at, gm_error *err);

/* Compare a file with its checksum file. *out_found is false where it has none. `step` is called after each block.
 * IO: they differ, and the message has the place. FORMAT: it is no checksum file, or is damaged. NOT_SUPPORTED: this
 * build has no checksums of that kind. */
gm_status gm__sums_check(const gm_services *services, const gm__input_file *file, const char *path,
                         gm_status (*step)(void *user, uint64_t bytes, gm_error *err), void *user, bool *out_found,
                         gm_error *err);

#endif
