/* The header of one safetensors file: read, checked, and turned into a table of tensors. Pure: no device, no file but
 * the one handed in. Every check of the format is made here: the header's length against the file's before anything is
 * allocated, no key twice, known types, a shape that agrees with the offsets, and tensors that cover the data without a
 * hole or an overlap. Not thread-safe while parsing; read-only after. */
#ifndef GM_CORE_MODEL_SAFETENSORS_H
#define GM_CORE_MODEL_SAFETENSORS_H

#include "core/base/input_file.h"
#include "core/model/contents.h"

enum { GM__SAFETENSORS_LENGTH_BYTES = 8 };       /* little-endian length of the header, in front of it */
enum { GM__SAFETENSORS_HEADER_MAX = 100000000 }; /* the format's own limit */

/* Read and check the header of an open file; `path` is for messages. With `header_only` the data may be cut off. On
 * failure *out is all zero. GM_ERR_FORMAT names
 * the path, the byte in the file, and the key; GM_ERR_IO, GM_ERR_OUT_OF_HOST_MEMORY and, for a tensor with more than
 * GM_TENSOR_MAX_RANK dimensions, GM_ERR_NOT_SUPPORTED are the others. */
gm_status gm__safetensors_read(const gm_services *services, const gm__input_file *file, const char *path,
                               bool header_only, gm__contents *out, gm_error *err);

/* The same from a whole file in memory, which is not kept. */
gm_status gm__safetensors_parse(const gm_services *services, const void *bytes, uint64_t length, const char *path,
                                gm__contents *out, gm_error *err);

#endif
