/* Model files: their contents, without reading the weights. gm reads safetensors (single and sharded) and GGUF (single
 * and split), and arrays of NumPy (.npy, .npz). The first bytes of a file tell which it is. A file without a header is
 * described by the caller (gm_model_open_raw).
 *
 * gm accepts a safetensors file when all of this holds:
 * - the header's length fits the file, and is at most 100 MB;
 * - the header is one strict JSON object in UTF-8, nested at most 32 deep;
 * - no tensor, no key of a tensor and no key of __metadata__ comes twice;
 * - gm knows each dtype;
 * - shape and dtype give the bytes between the offsets;
 * - a tensor begins at a multiple of its element;
 * - the tensors cover the data without gap or overlap.
 *
 * gm ignores unknown keys of a tensor. An index and its shards must name the same tensors in the same places. Shards
 * are plain file names.
 *
 * An .npy file is one tensor, named as the file without ".npy". In an .npz archive each member is one, named as the
 * member without ".npy". gm reads numbers and booleans with rows first and the low byte first, of members that are not
 * compressed (numpy.savez, not savez_compressed). */
#ifndef GM_MODEL_H
#define GM_MODEL_H

#include <stdint.h>

#include "gm/dtype.h"
#include "gm/services.h"
#include "gm/status.h"

GM_BEGIN_DECLS

enum { GM_TENSOR_MAX_RANK = 16 };

/* The table of contents of one model. It never changes after gm_model_open, so it is thread-safe. It holds no file
 * open. It costs the text of the headers, and about 100 bytes for each tensor. */
typedef struct gm_model gm_model;

/* One tensor. `file_offset` counts from the first byte of its shard's file. */
typedef struct gm_tensor_info {
  uint32_t struct_size; /* set by the caller: sizeof(gm_tensor_info) */
  gm_dtype dtype;
  uint32_t rank;                      /* 0 for a scalar */
  uint32_t shard;                     /* number of its file: gm_model_shard_path */
  uint64_t shape[GM_TENSOR_MAX_RANK]; /* outermost first; 0 behind `rank` */
  uint64_t file_offset;
  uint64_t bytes;   /* 0 when a dimension is */
  const char *name; /* borrowed from the model */
} gm_tensor_info;

/* Reads the headers of the model at `path`, following symbolic links:
 * - a file whose name ends in ".json" is the index of a sharded model, whose shards are in its folder;
 * - any other file is one safetensors, GGUF or NumPy file. Any part of a split GGUF model leads to all of them. A
 *   safetensors file that is one shard of several leads to its index;
 * - in a folder gm takes model.safetensors, else model.safetensors.index.json, else the only index. Without these it
 *   takes the only safetensors file, else the only GGUF model. A projector, an adapter and the like do not count.
 *
 * `services` may be NULL (malloc). gm copies them, and uses their functions until gm_model_close.
 *
 * Errors: OUT_OF_HOST_MEMORY. NOT_FOUND: nothing is there, or a part is missing; the message names it. IO: it is no
 * regular file, may not be read, or changed while gm read it. FORMAT: it is no valid model. The message has file, byte
 * and key, or says what else it is: a pointer of Git LFS, a web page, a pickle. NOT_SUPPORTED: a tensor has too many
 * dimensions. NOT_SUPPORTED also: a GGUF file is big-endian, newer than gm, or has a type that the format has removed.
 * NOT_SUPPORTED also: an array of NumPy holds objects, structures, a type that gm has not, or numbers with the high
 * byte first. NOT_SUPPORTED also: its columns come first, or a member of an archive is compressed or encrypted.
 * INVALID_ARGUMENT: `path` or `out` is NULL, `path` is empty, or a folder holds several models. */
GM_API gm_status gm_model_open(const gm_services *services, const char *path, gm_model **out, gm_error *err);

/* Reads headers as gm_model_open does, of files that hold only their header, or have their data cut off. gm does not
 * check the end of the file. Such a model cannot be loaded. */
GM_API gm_status gm_model_open_header(const gm_services *services, const char *path, gm_model **out, gm_error *err);

/* Opens a file that is nothing but numbers, or begins with something that gm does not know. `tensor` describes the one
 * tensor in it: name, dtype, rank, shape, and file_offset, where its first byte is. `bytes` is 0, or what dtype and
 * shape give. Its `shard` is ignored. gm copies the name. Bytes behind the tensor are ignored.
 *
 * Errors: OUT_OF_HOST_MEMORY. NOT_FOUND, IO: as gm_model_open. FORMAT: the file ends before the tensor does.
 * INVALID_ARGUMENT: `path`, `tensor`, its name, or `out` is NULL, or a string is empty. INVALID_ARGUMENT also: rank,
 * dtype or `bytes` is wrong, or gm does not know struct_size. */
GM_API gm_status gm_model_open_raw(const gm_services *services, const char *path, const gm_tensor_info *tensor,
                                   gm_model **out, gm_error *err);

/* Frees a model. NULL is allowed. */
GM_API void gm_model_close(gm_model *model);

/* Returns the number of tensors. 0 for NULL. */
GM_API uint64_t gm_model_tensor_count(const gm_model *model);
/* Returns the bytes of all tensors. 0 for NULL. */
GM_API uint64_t gm_model_tensor_bytes(const gm_model *model);

/* Returns tensor number `index`. Tensors are numbered shard by shard, in the order of the file, so that reading them in
 * turn is sequential. INVALID_ARGUMENT: an argument is NULL, gm does not know struct_size, or `index` is not below the
 * count. */
GM_API gm_status gm_model_tensor(const gm_model *model, uint64_t index, gm_tensor_info *out, gm_error *err);

/* Finds the index of a tensor by its name. NOT_FOUND: there is no such tensor. INVALID_ARGUMENT: an argument is NULL.
 */
GM_API gm_status gm_model_find(const gm_model *model, const char *name, uint64_t *out, gm_error *err);

/* Returns the number of files of the model. They are numbered by name. */
GM_API uint32_t gm_model_shard_count(const gm_model *model);
/* Returns the path of a file. It is borrowed from the model. NULL: `shard` is not below the count. */
GM_API const char *gm_model_shard_path(const gm_model *model, uint32_t shard);

/* Returns the number of strings in the `__metadata__` of a shard. A model with one file has shard 0. 0: there are
 * none. For GGUF these are the values that are strings; gm/model_value.h has all values. */
GM_API uint64_t gm_model_metadata_count(const gm_model *model, uint32_t shard);
/* Returns string number `index` of a shard, in the order of the file. The strings are borrowed. INVALID_ARGUMENT: there
 * is no such string. */
GM_API gm_status gm_model_metadata(const gm_model *model, uint32_t shard, uint64_t index, const char **out_key,
                                   const char **out_value, gm_error *err);

GM_END_DECLS

#endif
