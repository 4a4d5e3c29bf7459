/* Tensors to and from other libraries by DLPack, 0.x and 1.x, without its headers.
 *
 * Exporting hands a block of gm's to another library, which frees it through gm when it is done. Importing makes a
 * block of another library's tensor. Neither copies. */
#ifndef GM_INTEGRATIONS_DLPACK_GM_DLPACK_H
#define GM_INTEGRATIONS_DLPACK_GM_DLPACK_H

#include "gm/gm.h"

GM_BEGIN_DECLS

/* DLPack's numbers for kinds of devices. */
enum { GM_DL_CPU = 1, GM_DL_CUDA = 2, GM_DL_OPENCL = 4, GM_DL_ROCM = 10 };

/* DLPack's DLDevice. Never grows. */
typedef struct gm_dl_device {
  int32_t kind;
  int32_t index;
} gm_dl_device;

/* DLPack's DLDataType: `code` is 0 for signed, 1 for unsigned integers and 2 for floating point. Never grows. */
typedef struct gm_dl_type {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} gm_dl_type;

/* DLPack's DLTensor. Never grows. */
typedef struct gm_dl_tensor {
  void *data;
  gm_dl_device device;
  int32_t rank;
  gm_dl_type type;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: compact, the last dimension runs fastest */
  uint64_t byte_offset;
} gm_dl_tensor;

/* DLPack's DLManagedTensor, of the versions before 1.0. Never grows. */
typedef struct gm_dl_managed {
  gm_dl_tensor tensor;
  void *owner;
  void (*deleter)(struct gm_dl_managed *self);
} gm_dl_managed;

/* DLPack's DLManagedTensorVersioned, of 1.x. Never grows. */
typedef struct gm_dl_versioned {
  uint32_t major, minor;
  void *owner;
  void (*deleter)(struct gm_dl_versioned *self);
  uint64_t flags; /* bit 0: read only; bit 1: a copy */
  gm_dl_tensor tensor;
} gm_dl_versioned;

/* The look of a tensor in a block. Never grows. */
typedef struct gm_dl_view {
  uint64_t offset; /* bytes from the block's begin */
  gm_dl_type type;
  int32_t rank;         /* 0 to GM_DL_MAX_RANK */
  const int64_t *shape; /* copied */
} gm_dl_view;

enum { GM_DL_MAX_RANK = 16 };

/* Exports a tensor that lies in `block`, as DLPack 0.x. From GM_OK on the tensor owns the block. Its deleter frees
 * the block in the order of `stream`, which may be NULL and must stay open until then. The pool must live until then.
 * Errors: INVALID_ARGUMENT: the view does not fit into the block. NOT_SUPPORTED: DLPack has no such device, or the
 * block has several memories. OUT_OF_HOST_MEMORY, FORKED. Thread-safe. */
GM_API gm_status gm_dlpack_export(gm_pool *pool, const gm_block *block, const gm_dl_view *view, gm_stream *stream,
                                  gm_dl_managed **out, gm_error *err);
/* Like gm_dlpack_export, for a consumer that knows DLPack 1.x. */
GM_API gm_status gm_dlpack_export_versioned(gm_pool *pool, const gm_block *block, const gm_dl_view *view,
                                            gm_stream *stream, gm_dl_versioned **out, gm_error *err);

/* Makes a block of a tensor of another library. The caller frees the block, and then calls the tensor's deleter.
 * INVALID_ARGUMENT: the tensor is not compact, its size is impossible, or it is on another kind of device than the
 * pool. Other errors are those of gm_block_wrap. Thread-safe. */
GM_API gm_status gm_dlpack_import(gm_pool *pool, const gm_dl_tensor *tensor, gm_block *out, gm_error *err);

/* For Python: exports `bytes` new bytes of the shared pool of host memory, viewed as `view` says. NULL:
 * gm_engines_why has the reason. */
GM_API gm_dl_managed *gm_dlpack_host_tensor(const gm_dl_view *view);
/* Like gm_dlpack_host_tensor, for DLPack 1.x. */
GM_API gm_dl_versioned *gm_dlpack_host_versioned(const gm_dl_view *view);
/* For Python: what a capsule of such a tensor is destroyed with. One that nobody consumed still owns its tensor. The
 * caller holds the interpreter's lock. An exception may be set, and stays as it is. */
GM_API void gm_dlpack_host_drop(void *capsule);
/* For Python: makes a block of a tensor in host memory, in the shared pool. Returns 0, or a gm_status. */
GM_API int gm_dlpack_host_import(const gm_dl_tensor *tensor, gm_block *out);
/* For Python: frees such a block, so that the tensor's deleter may be called. Returns 0, or a gm_status. */
GM_API int gm_dlpack_host_release(const gm_block *block);

GM_END_DECLS

#endif
