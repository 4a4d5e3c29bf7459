/* The bytes that arrive in a load are compared with the checksum files beside the model's files. Pages that lie within
 * one range are summed where they are, right after they arrived. The others are read once more at the end, and
 * compared. Ranges of runs have no part in it. */
#ifndef GM_CORE_LOAD_LOAD_SUMS_H
#define GM_CORE_LOAD_LOAD_SUMS_H

#include <stdatomic.h>

#include "core/file/read_range.h"
#include "core/load/load_files.h"

/* One file. */
typedef struct gm__load_sum {
  uint64_t *wanted;         /* by MiB; NULL: it has no checksum file */
  _Atomic(uint64_t) *found; /* by MiB */
  uint64_t blocks, bytes;   /* of the file */
} gm__load_sum;

typedef struct gm__load_sums {
  const gm_model *model;
  gm__load_sum *each; /* by shard; NULL: none is compared */
} gm__load_sums;

/* For the files that are open. A checksum file of a kind that this build lacks counts as none. gm__load_sums_end ends
 * what it filled in, also after a failure. Errors: OUT_OF_HOST_MEMORY. FORMAT, IO: a checksum file is damaged, or is of
 * another file. */
gm_status gm__load_sums_make(gm__load_sums *sums, const gm__load_files *files, gm_error *err);
void gm__load_sums_end(gm__load_sums *sums);

/* Whether a tensor's range is compared so. */
bool gm__load_sums_have(const gm__load_sums *sums, uint64_t index, const gm__read_range *range);

/* `bytes` bytes of a range have arrived, from byte `from` of it on, and are at `data`. Each byte comes once. Parts
 * begin and end with their range, or at pages of the file. Thread-safe. */
void gm__load_sums_add(const gm__load_sums *sums, uint64_t index, const gm__read_range *range, uint64_t from,
                       const unsigned char *data, uint64_t bytes);

/* Reads bytes of tensor `index` back. */
typedef gm_status (*gm__load_look)(void *user, uint64_t index, uint64_t from, void *to, uint64_t bytes, gm_error *err);

/* All have arrived. `ranges` is by tensor. The headers of files that are compared are read again, and compared, too;
 * *out_files is how many files these are. IO: some bytes are not as their checksum file says. Errors of `look`. */
gm_status gm__load_sums_finish(const gm__load_sums *sums, const gm__read_range *ranges, gm__load_look look, void *user,
                               uint64_t *out_files, gm_error *err);

uint64_t gm__load_sums_host_bytes(const gm__load_sums *sums);

#endif
