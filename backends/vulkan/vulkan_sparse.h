/* Virtual memory: reserved ranges are sparse buffers, physical memory is bound to them in pieces. */
#ifndef GM_BACKENDS_VULKAN_SPARSE_H
#define GM_BACKENDS_VULKAN_SPARSE_H

#include "backends/vulkan/vulkan_syms.h"
#include "core/base/thread.h"

typedef struct gm__vulkan_device gm__vulkan_device;
typedef struct gm__vulkan_memory gm__vulkan_memory;
typedef struct gm__vulkan_range gm__vulkan_range;
typedef struct gm__vulkan_stream gm__vulkan_stream;

/* All of it under the mutex, but for what is written once before the device is anybody's. */
typedef struct gm__vulkan_sparse {
  gm__mutex mutex;    /* never held where an engine's hook is called */
  gm__mutex call;     /* held while the driver binds: within the queue's lock */
  gm__cond changed;   /* a queue is bound on no more */
  uint64_t granule;   /* written once; 0: the device has no virtual memory */
  uint32_t type_bits; /* written once: VkMemoryTypes that can lie behind sparse buffers */
  uint64_t reserved;  /* bytes of all sparse buffers */
  uint64_t next;      /* the next address, where the device has none */
  gm__vulkan_range *ranges;
  gm__vulkan_stream *binders; /* the engine's queues that may bind, on its device */
} gm__vulkan_sparse;

/* What lies where in a range. */
typedef struct gm__vulkan_mapping {
  uint64_t at, bytes; /* in the range */
  struct gm__vulkan_piece *piece;
  uint64_t offset; /* in the piece */
  bool busy;       /* a thread tells the driver of it, without the mutex */
} gm__vulkan_mapping;

/* Physical memory; gone when neither its handle nor a mapping is left. */
typedef struct gm__vulkan_piece {
  gm__vulkan_memory *memory;
  uint64_t uses;
} gm__vulkan_piece;

/* A reservation. */
struct gm__vulkan_range {
  gm__vulkan_range *next;
  VkBuffer buffer;
  uint64_t buffer_bytes;
  uint64_t buffer_at; /* of the first byte that was given out: its address is aligned */
  uint64_t address, bytes;
  gm__vulkan_mapping *mappings; /* by rising place */
  uint64_t count, capacity;
};

void gm__vulkan_sparse_init(gm__vulkan_sparse *sparse);
void gm__vulkan_sparse_destroy(gm__vulkan_sparse *sparse);

/* What the device's sparse buffers need; leaves `granule` 0 where they cannot be used. */
void gm__vulkan_sparse_ask(gm__vulkan_device *device);

/* An engine's queue may bind from now on; not any more, and nobody still does. */
void gm__vulkan_sparse_offer(gm__vulkan_stream *stream);
void gm__vulkan_sparse_withdraw(gm__vulkan_stream *stream);

/* Bind (or, with no memory, unbind), and wait until it is done. Without the mutex; the buffer must stay. */
gm_status gm__vulkan_sparse_bind(gm__vulkan_device *device, VkBuffer buffer, const VkSparseMemoryBind *bind,
                                 gm_error *err);

/* The range that holds [address, address + bytes); NULL. Under the mutex. */
gm__vulkan_range *gm__vulkan_range_find(const gm__vulkan_device *device, uint64_t address, uint64_t bytes);

/* NOT_SUPPORTED and why; INVALID_ARGUMENT for a number that is 0 or no multiple of the granule. */
gm_status gm__vulkan_sparse_check(const gm__vulkan_device *device, const char *op, gm_error *err);
gm_status gm__vulkan_sparse_check_bytes(const gm__vulkan_device *device, uint64_t bytes, const char *op, gm_error *err);

/* One use less. Under the mutex, unless abandoned. */
void gm__vulkan_piece_drop(gm__vulkan_device *device, gm__vulkan_piece *piece, gm_close_mode mode);

/* The seam's entries of group 16, and vmm_memory. */
gm_status gm__vulkan_vmm_granularity(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err);
gm_status gm__vulkan_vmm_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err);
gm_status gm__vulkan_vmm_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err);
gm_status gm__vulkan_vmm_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out_handle,
                                gm_error *err);
gm_status gm__vulkan_vmm_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err);
gm_status gm__vulkan_vmm_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                             gm_error *err);
gm_status gm__vulkan_vmm_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err);
gm_status gm__vulkan_vmm_access(void *device, uint64_t address, uint64_t bytes, gm_error *err);
gm_status gm__vulkan_vmm_memory(void *device, uint64_t address, uint64_t bytes, uint32_t type, gm_memory *out,
                                gm_error *err);

#endif
