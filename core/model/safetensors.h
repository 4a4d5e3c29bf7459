/* The header of one safetensors file: read, checked, and turned into a table of tensors. Pure: no device, no file
 * but the one handed in. Every check of the format is made here. The header's length is held against the file's
 * before anything is allocated. No key is there twice, types are known, and a shape agrees with its offsets. Tensors
 * cover the data without a gap or an overlap. Not thread-safe while parsing; read-only after. */
#ifndef GM_CORE_MODEL_SAFETENSORS_H
#define GM_CORE_MODEL_SAFETENSORS_H

#include "core/base/input_file.h"
#include "core/model/contents.h"

enum { GM__SAFETENSORS_LENGTH_BYTES = 8 };       /* little-endian length of the header, in front of it */
enum { GM__SAFETENSORS_HEADER_MAX = 100000000 }; /* the format's own limit */

/* Read and check the header of an open file; `path` is for messages. With `header_only` the data may be cut off. On
 * failure *out is all zero. GM_ERR_FORMAT names the path, the byte in the file, and the key. GM_ERR_NOT_SUPPORTED: a
 * tensor with more than GM_TENSOR_MAX_RANK dimensions. GM_ERR_IO, GM_ERR_OUT_OF_HOST_MEMORY. */
gm_status gm__safetensors_read(const gm_services *services, const gm__input_file *file, const char *path,
                               bool header_only, gm__contents *out, gm_error *err);

/* Like gm__safetensors_read, from a whole file in memory, which is not kept. */
gm_status gm__safetensors_parse(const gm_services *services, const void *bytes, uint64_t length, const char *path,
                                gm__contents *out, gm_error *err);

/* Fill tensors, dims and metadata from the JSON in contents->header, which is written to. Each tensor is checked by
 * itself: its keys, type, shape, size and offsets within the data. On failure contents keeps what is filled so far, for
 * gm__contents_free. */
gm_status gm__safetensors_header_parse(const gm_services *services, const char *path, gm__contents *contents,
                                       gm_error *err);

/* The format's name of a type. NULL: it has none. */
const char *gm__safetensors_dtype(gm_dtype dtype);
/* The alignment of a tensor's first byte in the data. */
uint64_t gm__safetensors_align(gm_dtype dtype);

#endif
