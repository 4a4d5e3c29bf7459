/* The functions that torch.cuda.memory.CUDAPluggableAllocator wants, with all of its hooks, in plain C.
 *
 * The names of two of them are arguments of CUDAPluggableAllocator. gm_torch.py sets the others by their addresses. On
 * ROCm torch calls the same functions. An allocation that fails returns NULL, and writes the reason to standard error,
 * because torch tells nobody. Every call is thread-safe. */
#ifndef GM_INTEGRATIONS_TORCH_GM_TORCH_H
#define GM_INTEGRATIONS_TORCH_GM_TORCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/export.h"

GM_BEGIN_DECLS

/* torch's MempoolId_t: a pair of numbers. Never grows. */
typedef struct gm_torch_pool_id {
  uint64_t first, second;
} gm_torch_pool_id;

/* Allocates `bytes` on a card in the order of a stream. NULL: there is no memory, or `bytes` is 0. */
GM_API void *gm_torch_alloc(ptrdiff_t bytes, int ordinal, void *stream);
/* Frees in the order of the stream that the memory was allocated on. NULL is allowed. */
GM_API void gm_torch_free(void *pointer, ptrdiff_t bytes, int ordinal, void *stream);

/* Opens the first `count` cards. */
GM_API void gm_torch_init(int count);
/* Gives back all memory that no work uses: torch.cuda.empty_cache(). */
GM_API void gm_torch_reset(void);
/* Caps a card's pool at a share of the card's memory. Private pools that are made later take memory only while the
 * process holds less than that share. */
GM_API void gm_torch_memory_fraction(double fraction, int ordinal);
/* Finds the driver's allocation around an address, and its size. NULL: there is none. */
GM_API void *gm_torch_base_alloc(void *pointer, size_t *out_bytes);
/* Notes that a stream uses the memory, too: its reuse waits for the work there. */
GM_API void gm_torch_record_stream(void *pointer, void *stream);

/* Says which allocations of a card a private pool is for, as torch's filter does. Never grows.
 *
 * `wants` is called for each allocation while the pool is begun, one call at a time; it calls nothing of this header.
 * NULL: all are meant. `drop` is called once, when the pool needs the filter no more; NULL: nothing is called. */
typedef struct gm_torch_filter {
  bool (*wants)(void *user, void *stream);
  void (*drop)(void *user);
  void *user;
} gm_torch_filter;

/* Begins to serve allocations of a card from a private pool: memory of a graph stays with the graph. New memory comes
 * from the driver also during a capture. `filter` NULL: all allocations of the card are meant. Otherwise it is the
 * library's, and `drop` is called also after a failure, which is written to standard error.
 *
 * torch calls gm_torch_begin_allocate_to_pool instead (gm_torch_graphs.cpp), because its own filter is a C++ object. */
GM_API void gm_torch_pool_begin(int ordinal, gm_torch_pool_id id, const gm_torch_filter *filter);
/* Ends that. The pool and its memory stay as they are. An unknown id is ignored, here and below. */
GM_API void gm_torch_end_allocate_to_pool(int ordinal, gm_torch_pool_id id);
/* Says that a graph of a pool is gone. torch begins a pool once for each graph. After the last graph the memory goes
 * back once no block is left, and no capture that freed one is under way. */
GM_API void gm_torch_release_pool(int ordinal, gm_torch_pool_id id);

GM_END_DECLS

#endif
