/* How a heap is made and ended. */
#ifndef GM_CORE_HEAP_HEAP_OPEN_H
#define GM_CORE_HEAP_HEAP_OPEN_H

#include "core/heap/heap.h"

/* The parameters of a heap. */
typedef struct gm__heap_params {
  const gm_pool_params *pool;
  gm_strategy strategy;
  bool checked, guarded;
  uint32_t class_bits;       /* of the buckets' size classes */
  gm__fixed_sizes fixed;     /* the sizes of such a pool, whose strategy is best fit here */
  uint64_t max_bytes;        /* UINT64_MAX: no cap */
  void *owner;               /* the pool: gm__arena_set.owner */
  bool (*reap)(void *guard); /* gm__heap.reap; NULL: no guard */
  void *guard;
} gm__heap_params;

/* Prepares the heap. gm__heap_clear must follow in any case. OUT_OF_HOST_MEMORY. INVALID_ARGUMENT, NOT_SUPPORTED: no
 * memory is as the pool's parameters wish. */
GM__MUST_USE gm_status gm__heap_init(gm__heap *heap, gm_device *device, const gm__heap_params *params, gm_error *err);
void gm__heap_clear(gm__heap *heap, bool forked);

/* The heap's idle memory serves the device's other pools from gm__heap_open to gm__heap_close. gm__heap_close returns
 * false when another pool keeps the heap busy for too long. */
void gm__heap_open(gm__heap *heap);
bool gm__heap_close(gm__heap *heap);

/* Asks the points at which the engine freed blocks (gm_free_at) which streams have done their work. */
void gm__heap_settle_given(gm__heap *heap);

/* Waits for all work on freed memory. BUSY names a stream that nothing can wait for. */
GM__MUST_USE gm_status gm__heap_drain(gm__heap *heap, const char *op, gm_error *err);

#endif
