/* The header of one safetensors file: read, checked, and turned into a table of tensors. Pure: no device, no file but
 * the one handed in. Every check of the format is made here: the header's length against the file's before anything is
 * allocated, no key twice, known types, a shape that agrees with the offsets, and tensors that cover the data without a
 * hole or an overlap. Not thread-safe while parsing; read-only after. */
#ifndef GM_CORE_MODEL_SAFETENSORS_H
#define GM_CORE_MODEL_SAFETENSORS_H

#include "core/base/input_file.h"
#include "core/model/json_scan.h"
#include "gm/model.h"
#include "gm/services.h"

enum { GM__SAFETENSORS_LENGTH_BYTES = 8 };       /* little-endian length of the header, in front of it */
enum { GM__SAFETENSORS_HEADER_MAX = 100000000 }; /* the format's own limit */

typedef struct gm__tensor {
  gm__json_text name;
  uint64_t begin; /* in the data, which starts behind the header */
  uint64_t bytes;
  uint64_t shape_at; /* its first dimension in gm__safetensors.dims */
  uint32_t shard;
  uint32_t rank;
  gm_dtype dtype;
} gm__tensor;

typedef struct gm__metadata {
  gm__json_text key;
  gm__json_text value;
} gm__metadata;

typedef struct gm__safetensors {
  char *header; /* owns the text that the names and strings below point into */
  uint64_t header_bytes;
  uint64_t data_bytes;
  gm__tensor *tensors; /* as the header lists them */
  uint64_t tensor_count, tensor_capacity;
  uint32_t *by_place; /* their numbers in the order of the data */
  uint64_t *dims;
  uint64_t dim_count, dim_capacity;
  gm__metadata *metadata;
  uint64_t metadata_count, metadata_capacity;
} gm__safetensors;

/* Read and check the header of an open file; `path` is for messages. On failure *out is all zero. GM_ERR_FORMAT names
 * the path, the byte in the file, and the key; GM_ERR_IO, GM_ERR_OUT_OF_HOST_MEMORY and, for a tensor with more than
 * GM_TENSOR_MAX_RANK dimensions, GM_ERR_NOT_SUPPORTED are the others. */
gm_status gm__safetensors_read(const gm_services *services, const gm__input_file *file, const char *path,
                               gm__safetensors *out, gm_error *err);

/* The same from a whole file in memory, which is not kept. */
gm_status gm__safetensors_parse(const gm_services *services, const void *bytes, uint64_t length, const char *path,
                                gm__safetensors *out, gm_error *err);

/* Free all of it; an all-zero one is harmless. */
void gm__safetensors_free(const gm_services *services, gm__safetensors *contents);

/* Where the data starts in the file. */
uint64_t gm__safetensors_data_at(const gm__safetensors *contents);

/* "PATH: byte AT: …" into err; of a long path its end. Returns `status`. */
gm_status gm__model_fail(gm_error *err, gm_status status, const char *path, uint64_t at, const char *format, ...)
    GM_PRINTF(5, 6);
#ifdef __clang_analyzer__ /* as for gm__fail */
#define gm__model_fail(err, status, ...) ((void)gm__model_fail((err), (status), __VA_ARGS__), (status))
#endif

/* Order of two strings by bytes; a shorter one that the other begins with comes first. */
int gm__json_text_compare(const gm__json_text *a, const gm__json_text *b);

#endif
