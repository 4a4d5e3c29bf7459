/* The parts of an .npy file and of an .npz archive that are not data, for writing. Pure. An archive has, for each
 * array, a member's record, the array's header and its data; behind all of them the list and its end. Numbers stand in
 * 64 bits.
 */
#ifndef GM_CORE_MODEL_NPY_WRITE_H
#define GM_CORE_MODEL_NPY_WRITE_H

#include <stddef.h>

#include "core/model/file_tensor.h"

enum { GM__NPY_BEGIN_MOST = 1024, GM__NPZ_NAME_MOST = 8192, GM__NPZ_RECORD_MOST = GM__NPZ_NAME_MOST + 128 };

/* Why the format cannot hold a tensor, for the end of a sentence. NULL: it can. */
const char *gm__npy_refuses(const gm__file_tensor *tensor);

/* Make the header of an array that begins at byte `at` of the file. Its data begin at a multiple of 64. Returns the
 * header's bytes. REQUIRES: the type is not refused. */
size_t gm__npy_begin(const gm__file_tensor *tensor, uint64_t at, char out[GM__NPY_BEGIN_MOST]);

/* A member of an archive. */
typedef struct gm__npz_member {
  const char *name; /* of the tensor: at most GM__NPZ_NAME_MOST bytes */
  uint64_t at;      /* of its record, in the file */
  uint64_t bytes;   /* of header and data */
  uint32_t crc;     /* of them */
} gm__npz_member;

/* Make a member's record. Returns its bytes, which depend on the name alone. */
size_t gm__npz_record(const gm__npz_member *member, char out[GM__NPZ_RECORD_MOST]);

/* Make a member's entry of the list. Returns its bytes. */
size_t gm__npz_entry(const gm__npz_member *member, char out[GM__NPZ_RECORD_MOST]);

/* Make the end of an archive whose list of `count` entries is `bytes` long and begins at `at`. Returns its bytes. */
size_t gm__npz_end(uint64_t count, uint64_t at, uint64_t bytes, char out[GM__NPZ_RECORD_MOST]);

#endif
