/* Values: tensors of any element type and shape, and lists and dictionaries of them.
 *
 * A value is counted and never changes once it was made. Several places and threads may hold it, each with a reference
 * of its own. The bytes of a tensor lie in a buffer of a pool, or in host memory. Every call is thread-safe. */
#ifndef GM_VALUE_H
#define GM_VALUE_H

#include "gm/buffer.h"
#include "gm/dtype.h"

GM_BEGIN_DECLS

enum {
  GM_VALUE_RANK_MOST = 16,       /* dimensions of a tensor */
  GM_VALUE_DEPTH_MOST = 32,      /* levels of a tree; a tensor alone has one */
  GM_VALUE_NODES_MOST = 1 << 20, /* tensors, lists and dictionaries of one tree */
  GM_VALUE_NAME_MOST = 4096      /* bytes of a name in a dictionary */
};

typedef struct gm_value gm_value;

typedef enum gm_value_form { GM_VALUE_TENSOR = 1, GM_VALUE_LIST = 2, GM_VALUE_DICT = 3 } gm_value_form;

/* The description of a tensor: its type, and its shape with the slowest dimension first. Zero-initialised with
 * struct_size set, it is one number of type f64. */
typedef struct gm_tensor_desc {
  uint32_t struct_size;
  gm_dtype dtype;
  uint32_t rank;                      /* 0: one element, a scalar */
  uint64_t shape[GM_VALUE_RANK_MOST]; /* a dimension may be 0: then the tensor has no bytes */
} gm_tensor_desc;

/* The description that gm_value_describe fills. */
typedef struct gm_value_info {
  uint32_t struct_size;
  gm_value_form form;
  uint64_t bytes;       /* of all its tensors */
  uint64_t items;       /* of a list or dictionary; 0 for a tensor */
  uint32_t nodes;       /* it and all below it */
  uint32_t depth;       /* levels */
  gm_location location; /* the furthest from the device of all its tensors */
  gm_dtype dtype;       /* of a tensor; the others are 0 there else */
  uint32_t rank;
  uint64_t shape[GM_VALUE_RANK_MOST];
} gm_value_info;

/* Returns the exact bytes of a tensor in *out. INVALID_ARGUMENT: there is no such type, the rank is above
 * GM_VALUE_RANK_MOST, or the bytes exceed 2^63-1. INVALID_ARGUMENT also where the last dimension is no whole number of
 * the type's blocks. A scalar of q4_0 is none. */
GM_API gm_status gm_tensor_bytes(const gm_tensor_desc *desc, uint64_t *out, gm_error *err);

/* Makes a tensor from host memory. gm copies the bytes at `data` before it returns; NULL only for 0 bytes. The tensor
 * lies in memory of `pool`, or where `fallback` allows it when the pool has none. The caller releases *out. Errors:
 * those of gm_tensor_bytes, gm_buffer_create and gm_buffer_write. */
GM_API gm_status gm_value_tensor(gm_pool *pool, const gm_tensor_desc *desc, const void *data, gm_fallback fallback,
                                 gm_stream *stream, gm_value **out, gm_error *err);
/* Makes a tensor in host memory, from bytes that gm copies. The caller releases *out. Errors: those of
 * gm_tensor_bytes, OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_value_tensor_on_host(gm_context *ctx, const gm_tensor_desc *desc, const void *data, gm_value **out,
                                         gm_error *err);
/* Makes a tensor of a buffer that exists, from its byte `offset` on. The value retains the buffer. Nobody may write
 * those bytes as long as the value lives. The caller releases *out. Errors: those of gm_tensor_bytes;
 * INVALID_ARGUMENT: the tensor reaches beyond the buffer; OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_value_tensor_of(gm_buffer *buffer, uint64_t offset, const gm_tensor_desc *desc, gm_value **out,
                                    gm_error *err);

/* Makes a list of values, each of which it retains. An empty list is allowed. The caller releases *out.
 * INVALID_ARGUMENT: an item is NULL or of another context, or the tree would be too deep or too large.
 * OUT_OF_HOST_MEMORY, FORKED. */
GM_API gm_status gm_value_list(gm_context *ctx, gm_value *const *items, size_t count, gm_value **out, gm_error *err);
/* Makes a dictionary of values, as gm_value_list does, in the order given. INVALID_ARGUMENT also: a name is NULL, is
 * there twice, or has more than GM_VALUE_NAME_MOST bytes. */
GM_API gm_status gm_value_dict(gm_context *ctx, const char *const *names, gm_value *const *items, size_t count,
                               gm_value **out, gm_error *err);

/* Adds one reference. NULL is allowed. */
GM_API void gm_value_retain(gm_value *value);
/* Releases one reference. NULL is allowed. Work that was submitted to `stream` may still read the value's buffers: gm
 * reuses their memory after it. NULL: no such work. The last release ends the value, and releases its items. */
GM_API void gm_value_release(gm_value *value, gm_stream *stream);

/* Fills `out` with what a value is. The caller sets out->struct_size. INVALID_ARGUMENT: an argument is NULL. */
GM_API gm_status gm_value_describe(const gm_value *value, gm_value_info *out, gm_error *err);

/* Finds an item of a list or dictionary by its place. *out is borrowed from the value. `out_name` may be NULL; a list
 * gives it NULL. Errors: INVALID_ARGUMENT: the value is a tensor; NOT_FOUND: it has no such place. */
GM_API gm_status gm_value_at(const gm_value *value, uint64_t index, const char **out_name, gm_value **out,
                             gm_error *err);
/* Finds an item of a dictionary by its name. *out is borrowed from the value. INVALID_ARGUMENT: the value is no
 * dictionary. NOT_FOUND: it has no such name, which the message says. */
GM_API gm_status gm_value_find(const gm_value *value, const char *name, gm_value **out, gm_error *err);

/* Copies bytes of a tensor to host memory, and waits until they have arrived. INVALID_ARGUMENT: the value is no tensor,
 * or the range reaches beyond it. Other errors are those of gm_buffer_read. */
GM_API gm_status gm_value_read(gm_value *value, uint64_t offset, void *dst, uint64_t bytes, gm_stream *stream,
                               gm_error *err);
/* Returns the buffer of a tensor, and where in it the tensor begins. The buffer is borrowed from the value.
 * NOT_SUPPORTED: the tensor has no buffer, because it is in plain host memory or has no bytes. */
GM_API gm_status gm_value_buffer(const gm_value *value, gm_buffer **out, uint64_t *out_offset, gm_error *err);

/* Locks a tensor that the host can reach, and returns the address of its first byte in *out. It stays there until
 * gm_value_unlock. Locks are counted. The caller reads the bytes; nobody may write those of a value. NULL for a tensor
 * without bytes. The rules for the pointer are those of gm_buffer_host. INVALID_ARGUMENT: the value is no tensor.
 * NOT_SUPPORTED: the host cannot reach its memory: gm_value_read. Other errors are those of gm_buffer_host. */
GM_API gm_status gm_value_lock(gm_value *value, const void **out, gm_error *err);
/* Takes one lock of gm_value_lock off. INVALID_ARGUMENT: the value is no tensor, or its buffer is not locked. Other
 * errors are those of gm_buffer_unlock without a stream. */
GM_API gm_status gm_value_unlock(gm_value *value, gm_error *err);

GM_END_DECLS

#endif
