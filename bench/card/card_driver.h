/* The driver's own calls, on the primary context of device 0: what gm's figures and times are compared with. */
#ifndef GM_BENCH_CARD_DRIVER_H
#define GM_BENCH_CARD_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct card_driver {
  int (*init)(unsigned flags);
  int (*device_get)(int *out, int ordinal);
  int (*context_retain)(void **out, int device);
  int (*context_set)(void *context);
  int (*info)(size_t *out_free, size_t *out_total);
  int (*alloc)(uint64_t *out, size_t bytes);
  int (*free)(uint64_t pointer);
  int (*stream_create)(void **out, unsigned flags);
  int (*stream_wait)(void *stream);
  int (*alloc_async)(uint64_t *out, size_t bytes, void *stream); /* NULL: a driver without pools */
  int (*free_async)(uint64_t pointer, void *stream);
  int (*pool_default)(void **out, int device);
  int (*pool_set)(void *pool, int attribute, void *value);
  int (*pool_trim)(void *pool, size_t keep_bytes);
  void *stream, *pool;
} card_driver;

/* Opens GM_CUDA_LIBRARY or libcuda.so.1. The pool keeps what is freed, as PyTorch's setting for it does. NULL, or why
 * not. */
const char *card_driver_open(card_driver *out);

/* The free bytes that cuMemGetInfo tells; 0 when it fails. */
uint64_t card_driver_free_bytes(const card_driver *driver);

#endif
