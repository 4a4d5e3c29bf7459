/* Sparse buffers: what the device needs for them, and the queues that bind memory to them. */
#ifndef GM_BACKENDS_VULKAN_SPARSE_H
#define GM_BACKENDS_VULKAN_SPARSE_H

#include "backends/vulkan/vulkan_syms.h"
#include "core/base/thread.h"

typedef struct gm__vulkan_device gm__vulkan_device;
typedef struct gm__vulkan_range gm__vulkan_range;
typedef struct gm__vulkan_stream gm__vulkan_stream;

typedef struct gm__vulkan_sparse {
  gm__mutex mutex;    /* the sparse lock, never held while an engine's hook runs */
  gm__mutex call;     /* held while the driver binds, within the queue lock */
  gm__cond changed;   /* a thread has ended its binding on a queue */
  uint64_t granule;   /* set before the device is used; 0: the device has no virtual memory */
  uint32_t type_bits; /* set before the device is used: VkMemoryTypes that can lie behind sparse buffers */
  uint64_t reserved;  /* bytes of all sparse buffers; guarded by the sparse lock, like the members below */
  uint64_t next;      /* the next address, where buffers have no addresses */
  gm__vulkan_range *ranges;
  gm__vulkan_stream *binders; /* the engine's queues that may bind, on an adopted device */
} gm__vulkan_sparse;

void gm__vulkan_sparse_init(gm__vulkan_sparse *sparse);
void gm__vulkan_sparse_destroy(gm__vulkan_sparse *sparse);

/* Ask what the device's sparse buffers need. `granule` stays 0 where gm cannot use them. */
void gm__vulkan_sparse_ask(gm__vulkan_device *device);

/* After offer, gm may bind on the stream of an engine's queue. Withdraw ends that, and waits for threads that bind. */
void gm__vulkan_sparse_offer(gm__vulkan_stream *stream);
void gm__vulkan_sparse_withdraw(gm__vulkan_stream *stream);

/* Bind memory, or unbind where `bind` has none, and wait until it is done. The caller keeps the buffer, and does not
 * hold the sparse lock. */
gm_status gm__vulkan_sparse_bind(gm__vulkan_device *device, VkBuffer buffer, const VkSparseMemoryBind *bind,
                                 gm_error *err);

/* NOT_SUPPORTED, with the reason, where the device has no virtual memory. INVALID_ARGUMENT when `bytes` is 0 or no
 * multiple of the granule. */
gm_status gm__vulkan_sparse_check(const gm__vulkan_device *device, const char *op, gm_error *err);
gm_status gm__vulkan_sparse_check_bytes(const gm__vulkan_device *device, uint64_t bytes, const char *op, gm_error *err);

#endif
