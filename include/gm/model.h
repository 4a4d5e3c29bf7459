/* Model files: what is in them, without reading the weights. Safetensors, single and sharded, and GGUF, single and
 * split; which of the two a file is, its first bytes say.
 *
 * A safetensors file is accepted when all of this holds: the header's length fits the file and is at most 100 MB; the
 * header is one strict JSON object, nested at most 32 deep, in UTF-8; no tensor, no key of a tensor and no key of
 * __metadata__ is there twice; each dtype is known; shape and dtype make the bytes between the offsets; a tensor begins
 * at a multiple of its element; the tensors cover the data without hole or overlap. Keys of a tensor that the format
 * does not know are read over. An index and its shards must name the same tensors in the same places, and shards are
 * plain file names. */
#ifndef GM_MODEL_H
#define GM_MODEL_H

#include <stdint.h>

#include "gm/dtype.h"
#include "gm/services.h"
#include "gm/status.h"

GM_BEGIN_DECLS

enum { GM_TENSOR_MAX_RANK = 16 };

/* The table of contents of one model. Thread-safe: it never changes after gm_model_open. It holds no file open; what it
 * costs is the headers' text and about 100 bytes for each tensor. */
typedef struct gm_model gm_model;

/* One tensor. `file_offset` counts from the first byte of its shard's file. */
typedef struct gm_tensor_info {
  uint32_t struct_size; /* set by the caller: sizeof(gm_tensor_info) */
  gm_dtype dtype;
  uint32_t rank;                      /* 0 for a scalar */
  uint32_t shard;                     /* see gm_model_shard_path */
  uint64_t shape[GM_TENSOR_MAX_RANK]; /* outermost first; 0 behind `rank` */
  uint64_t file_offset;
  uint64_t bytes;   /* 0 when a dimension is */
  const char *name; /* borrowed from the model */
} gm_tensor_info;

/* Read the headers of the model at `path`, symbolic links followed:
 * - a file whose name ends in ".json": the index of a sharded model, whose shards lie in the same folder;
 * - any other file: one safetensors or GGUF file; any part of a split GGUF model leads to all of them;
 * - a folder: its model.safetensors, else model.safetensors.index.json, else its only index, else its only safetensors,
 *   else its only GGUF model.
 * `services` may be NULL (malloc); they are copied, and their functions used until gm_model_close.
 * GM_ERR_NOT_FOUND: nothing is there, or a part is missing, by name; GM_ERR_IO: it is no regular file, may not be read,
 * or changed while it was read; GM_ERR_FORMAT: not a valid model, with file, byte and key; GM_ERR_NOT_SUPPORTED: a
 * tensor has too many dimensions, or a GGUF file is big-endian, newer than gm, or of a type that was taken out of the
 * format; GM_ERR_INVALID_ARGUMENT: path or out is NULL, path is empty, or a folder holds several models;
 * GM_ERR_OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_model_open(const gm_services *services, const char *path, gm_model **out, gm_error *err);

/* The same of files that hold their header alone, or with their data cut off: nothing is held against the file's end.
 * Such a model cannot be loaded. */
GM_API gm_status gm_model_open_header(const gm_services *services, const char *path, gm_model **out, gm_error *err);

/* Free it. NULL is harmless. */
GM_API void gm_model_close(gm_model *model);

/* Number of tensors, and the bytes of all of them. 0 for NULL. */
GM_API uint64_t gm_model_tensor_count(const gm_model *model);
GM_API uint64_t gm_model_tensor_bytes(const gm_model *model);

/* Tensor `index`; they are numbered shard by shard in the order of the file, so that reading them in turn is
 * sequential. GM_ERR_INVALID_ARGUMENT: an argument is NULL, struct_size is none that gm knows, or index is not below
 * the count. */
GM_API gm_status gm_model_tensor(const gm_model *model, uint64_t index, gm_tensor_info *out, gm_error *err);

/* The index of the tensor with this name. GM_ERR_NOT_FOUND, GM_ERR_INVALID_ARGUMENT (an argument is NULL). */
GM_API gm_status gm_model_find(const gm_model *model, const char *name, uint64_t *out, gm_error *err);

/* The files of the model, numbered by name. The path is borrowed, NULL when `shard` is not below the count. */
GM_API uint32_t gm_model_shard_count(const gm_model *model);
GM_API const char *gm_model_shard_path(const gm_model *model, uint32_t shard);

/* The strings of the `__metadata__` of one shard, in the order of the file; of GGUF its values that are strings (all of
 * them: gm/model_value.h). Those of a model with one file are shard 0's. Strings are borrowed. 0 or
 * GM_ERR_INVALID_ARGUMENT where there is none. */
GM_API uint64_t gm_model_metadata_count(const gm_model *model, uint32_t shard);
GM_API gm_status gm_model_metadata(const gm_model *model, uint32_t shard, uint64_t index, const char **out_key,
                                   const char **out_value, gm_error *err);

GM_END_DECLS

#endif
