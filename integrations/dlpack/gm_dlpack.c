/* A tensor that gm exports is one piece of host memory: DLPack's struct, the shape, and what its deleter needs. */
#include "gm_dlpack.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../shared/engines.h"
#include "gm/native_cpu.h"
#include "gm/native_cuda.h"
#include "gm/native_hip.h"
#include "gm/native_opencl.h"

_Static_assert(sizeof(void *) != 8 || sizeof(gm_dl_tensor) == 48, "as DLPack has it");
_Static_assert(sizeof(void *) != 8 || sizeof(gm_dl_managed) == 64, "as DLPack has it");
_Static_assert(sizeof(void *) != 8 || sizeof(gm_dl_versioned) == 80, "as DLPack has it");

typedef struct exported {
  union {
    gm_dl_managed managed;
    gm_dl_versioned versioned;
  };
  gm_pool *pool;
  gm_stream *stream;
  gm_block block;
  int64_t shape[GM_DL_MAX_RANK];
} exported;

static gm_status refuse(gm_error *err, gm_status status, const char *message) {
  if (err) {
    *err = (gm_error){.status = status, .op = "gm_dlpack"};
    (void)snprintf(err->message, sizeof err->message, "%s", message);
  }
  return status;
}

static void release(exported *tensor) {
  (void)gm_free(tensor->pool, &tensor->block, tensor->stream);
  free(tensor);
}

static void delete_managed(gm_dl_managed *self) { release(self->owner); }
static void delete_versioned(gm_dl_versioned *self) { release(self->owner); }

/* The bytes of a compact tensor; false: impossible. */
static bool bytes_of(gm_dl_type type, int32_t rank, const int64_t *shape, uint64_t *out) {
  uint64_t bits = (uint64_t)type.bits * type.lanes;
  if (bits == 0 || rank < 0 || rank > GM_DL_MAX_RANK || (rank && !shape)) return false;
  for (int32_t i = 0; i < rank; i++) {
    if (shape[i] < 0) return false;
    if (shape[i] && bits > (uint64_t)INT64_MAX / (uint64_t)shape[i]) return false;
    bits *= (uint64_t)shape[i];
  }
  *out = bits / CHAR_BIT + (bits % CHAR_BIT != 0);
  return true;
}

static bool is_compact(const gm_dl_tensor *tensor) {
  uint64_t step = 1;
  for (int32_t i = tensor->rank; tensor->strides && i-- > 0;) {
    if (tensor->shape[i] != 1 && (uint64_t)tensor->strides[i] != step) return false;
    step *= (uint64_t)tensor->shape[i]; /* bytes_of has found no overflow */
  }
  return true;
}

static int32_t kind_of(gm_api api) {
  switch (api) {
    case GM_API_CPU: return GM_DL_CPU;
    case GM_API_CUDA: return GM_DL_CUDA;
    case GM_API_HIP: return GM_DL_ROCM;
    case GM_API_OPENCL: return GM_DL_OPENCL;
    default: return 0;
  }
}

static gm_dl_device device_of(gm_pool *pool) {
  const gm_device_info *info = gm_device_get_info(gm_pool_device(pool));
  return (gm_dl_device){kind_of(info->api), info->api == GM_API_CPU ? 0 : (int32_t)info->index};
}

/* Where the bytes are: for OpenCL a buffer and an offset, else an address. */
static gm_status locate(gm_pool *pool, const gm_block *block, gm_dl_tensor *tensor, gm_error *err) {
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  if (block->address == 0) return refuse(err, GM_ERR_NOT_SUPPORTED, "the block has several memories");
  tensor->data =
      (void *)(uintptr_t)block->address; /* NOLINT(performance-no-int-to-ptr): an address is a number in gm */
  if (tensor->device.kind != GM_DL_OPENCL) return GM_OK;
  const gm_status status = gm_block_native(pool, block, &native.head, err);
  tensor->data = (void *)(native.memory ? native.memory : native.pointer); /* NOLINT(performance-no-int-to-ptr) */
  tensor->byte_offset += native.offset;
  return status;
}

static gm_status describe(exported *self, const gm_dl_view *view, gm_dl_tensor *out, gm_error *err) {
  uint64_t bytes = 0;
  if (!bytes_of(view->type, view->rank, view->shape, &bytes) || view->offset > self->block.bytes ||
      bytes > self->block.bytes - view->offset)
    return refuse(err, GM_ERR_INVALID_ARGUMENT, "the tensor does not fit into the block");
  if (view->rank) memcpy(self->shape, view->shape, (size_t)view->rank * sizeof *self->shape);
  *out = (gm_dl_tensor){.device = device_of(self->pool),
                        .rank = view->rank,
                        .type = view->type,
                        .shape = self->shape,
                        .byte_offset = view->offset};
  if (out->device.kind == 0) return refuse(err, GM_ERR_NOT_SUPPORTED, "DLPack has no number for this device");
  return locate(self->pool, &self->block, out, err);
}

static gm_status create(gm_pool *pool, const gm_block *block, gm_stream *stream, exported **out, gm_error *err) {
  if (!pool || !block || !(*out = calloc(1, sizeof **out)))
    return refuse(err, pool && block ? GM_ERR_OUT_OF_HOST_MEMORY : GM_ERR_INVALID_ARGUMENT, "no pool, block or memory");
  (*out)->pool = pool;
  (*out)->stream = stream;
  (*out)->block = *block;
  return GM_OK;
}

gm_status gm_dlpack_export(gm_pool *pool, const gm_block *block, const gm_dl_view *view, gm_stream *stream,
                           gm_dl_managed **out, gm_error *err) {
  exported *self = NULL;
  gm_dl_tensor tensor;
  gm_status status = create(pool, block, stream, &self, err);
  if (status == GM_OK) status = describe(self, view, &tensor, err);
  if (status) return free(self), status;
  self->managed = (gm_dl_managed){.tensor = tensor, .owner = self, .deleter = delete_managed};
  *out = &self->managed;
  return GM_OK;
}

gm_status gm_dlpack_export_versioned(gm_pool *pool, const gm_block *block, const gm_dl_view *view, gm_stream *stream,
                                     gm_dl_versioned **out, gm_error *err) {
  exported *self = NULL;
  gm_dl_tensor tensor;
  gm_status status = create(pool, block, stream, &self, err);
  if (status == GM_OK) status = describe(self, view, &tensor, err);
  if (status) return free(self), status;
  self->versioned = (gm_dl_versioned){.major = 1, .owner = self, .deleter = delete_versioned, .tensor = tensor};
  *out = &self->versioned;
  return GM_OK;
}

/* The struct of the pool's API for memory of another library. */
typedef union native {
  gm_native_memory head;
  gm_cpu_memory cpu;
  gm_cuda_memory cuda;
  gm_hip_memory hip;
  gm_opencl_memory opencl;
} native;

static native native_of(const gm_dl_tensor *tensor, uint64_t bytes) {
  native out = {.head = {0}};
  const uintptr_t at = (uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset;
  switch (tensor->device.kind) {
    case GM_DL_CUDA: out.cuda = (gm_cuda_memory){{sizeof out.cuda, GM_API_CUDA}, at, bytes}; break;
    case GM_DL_ROCM: out.hip = (gm_hip_memory){{sizeof out.hip, GM_API_HIP}, at, bytes}; break;
    case GM_DL_OPENCL:
      out.opencl = (gm_opencl_memory){.head = {sizeof out.opencl, GM_API_OPENCL},
                                      .memory = (uintptr_t)tensor->data,
                                      .offset = tensor->byte_offset,
                                      .bytes = bytes};
      break;
    default: out.cpu = (gm_cpu_memory){{sizeof out.cpu, GM_API_CPU}, (char *)tensor->data + tensor->byte_offset, bytes};
  }
  return out;
}

gm_status gm_dlpack_import(gm_pool *pool, const gm_dl_tensor *tensor, gm_block *out, gm_error *err) {
  uint64_t bytes = 0;
  if (!pool || !tensor || !out || !tensor->data) return refuse(err, GM_ERR_INVALID_ARGUMENT, "a pointer is NULL");
  if (!bytes_of(tensor->type, tensor->rank, tensor->shape, &bytes) || bytes == 0 || !is_compact(tensor))
    return refuse(err, GM_ERR_INVALID_ARGUMENT, "the tensor is empty, not compact, or its size is impossible");
  const gm_dl_device own = device_of(pool);
  if (own.kind != tensor->device.kind || own.index != tensor->device.index)
    return refuse(err, GM_ERR_INVALID_ARGUMENT, "the tensor is on another device than the pool");
  const native lent = native_of(tensor, bytes);
  return gm_block_wrap(pool, &lent.head, out, err);
}

/* A block for what `view` describes. The offset must be 0. */
static gm_pool *host_block(const gm_dl_view *view, gm_block *out) {
  uint64_t bytes = 0;
  gm_pool *pool = gm_engines_host_pool();
  if (!pool || view->offset || !bytes_of(view->type, view->rank, view->shape, &bytes)) return NULL;
  const gm_request request = {.bytes = bytes ? bytes : 1};
  if (gm_acquired(gm_alloc(pool, &request, out))) return pool;
  gm_engines_note_refusal(pool, &request);
  return NULL;
}

gm_dl_managed *gm_dlpack_host_tensor(const gm_dl_view *view) {
  gm_dl_managed *out = NULL;
  gm_error err;
  gm_block block;
  gm_pool *pool = host_block(view, &block);
  if (!pool || gm_dlpack_export(pool, &block, view, NULL, &out, &err) == GM_OK) return out;
  gm_engines_note(&err);
  (void)gm_free(pool, &block, NULL);
  return NULL;
}

gm_dl_versioned *gm_dlpack_host_versioned(const gm_dl_view *view) {
  gm_dl_versioned *out = NULL;
  gm_error err;
  gm_block block;
  gm_pool *pool = host_block(view, &block);
  if (!pool || gm_dlpack_export_versioned(pool, &block, view, NULL, &out, &err) == GM_OK) return out;
  gm_engines_note(&err);
  (void)gm_free(pool, &block, NULL);
  return NULL;
}

/* The interpreter's own functions. A process without it has none, and no capsules. */
extern int PyCapsule_IsValid(void *capsule, const char *name) __attribute__((weak));
extern void *PyCapsule_GetPointer(void *capsule, const char *name) __attribute__((weak));

void gm_dlpack_host_drop(void *capsule) {
  static const char plain[] = "dltensor", versioned[] = "dltensor_versioned";
  if (!PyCapsule_IsValid || !PyCapsule_GetPointer) return;
  if (PyCapsule_IsValid(capsule, plain)) {
    gm_dl_managed *tensor = PyCapsule_GetPointer(capsule, plain);
    tensor->deleter(tensor);
  } else if (PyCapsule_IsValid(capsule, versioned)) {
    gm_dl_versioned *tensor = PyCapsule_GetPointer(capsule, versioned);
    tensor->deleter(tensor);
  }
}

int gm_dlpack_host_import(const gm_dl_tensor *tensor, gm_block *out) {
  gm_error err = {.status = GM_ERR_UNAVAILABLE};
  gm_pool *pool = gm_engines_host_pool();
  if (pool && gm_dlpack_import(pool, tensor, out, &err) == GM_OK) return 0;
  if (pool) gm_engines_note(&err);
  return (int)err.status;
}

int gm_dlpack_host_release(const gm_block *block) { return (int)gm_free(gm_engines_host_pool(), block, NULL); }
