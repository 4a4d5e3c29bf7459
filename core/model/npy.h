/* Arrays of NumPy: the header of one array (the .npy format, versions 1 to 3), in a file of its own or within another.
 * Every length is held against the file before it is believed. Pure but for reading. Not thread-safe while reading. */
#ifndef GM_CORE_MODEL_NPY_H
#define GM_CORE_MODEL_NPY_H

#include "core/base/input_file.h"
#include "core/model/contents.h"

enum { GM__NPY_MAGIC_BYTES = 6 };

/* Where the bytes come from: an open file, or memory where `file` is NULL. */
typedef struct gm__npy_source {
  const gm_services *services;
  const gm__input_file *file;
  const unsigned char *bytes;
  uint64_t length;
  const char *path; /* for messages */
} gm__npy_source;

/* Does a file begin with these bytes? */
bool gm__npy_is(const unsigned char first[GM__NPY_MAGIC_BYTES]);

/* Read `bytes` at `at`. REQUIRES: they lie within the length. IO: see gm__input_file_read_at. */
gm_status gm__npy_take(const gm__npy_source *source, uint64_t at, void *out, uint64_t bytes, gm_error *err);

/* The format's name of a type, without the byte order: "f4". NULL: it has none. */
const char *gm__npy_type(gm_dtype dtype);

/* Read the header of the array that lies from `at` to `end`. Fills type, rank, bytes and begin (from the file's first
 * byte) of *out, and `dims`. With `cut` the data may end later than `end`. Errors: FORMAT, with the byte.
 * NOT_SUPPORTED: numbers with the high byte first, columns first, objects, structures, types that gm has not, more than
 * GM_TENSOR_MAX_RANK dimensions. IO, OUT_OF_HOST_MEMORY. */
gm_status gm__npy_header(const gm__npy_source *source, uint64_t at, uint64_t end, bool cut, gm__tensor *out,
                         uint64_t dims[GM_TENSOR_MAX_RANK], gm_error *err);

/* Read a file that is one array. Its tensor has the name of the file, without ".npy". On failure *out is all zero.
 * Errors: those of gm__npy_header. */
gm_status gm__npy_read(const gm__npy_source *source, bool header_only, gm__contents *out, gm_error *err);

#endif
