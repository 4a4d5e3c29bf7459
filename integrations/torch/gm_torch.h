/* The functions that torch.cuda.memory.CUDAPluggableAllocator wants, with all of its hooks, in plain C.
 *
 * The names of two of them are arguments of CUDAPluggableAllocator. gm_torch.py sets the others by their addresses. On
 * ROCm torch calls the same functions. An allocation that fails returns NULL, and writes the reason to standard error,
 * because torch tells nobody. Every call is thread-safe. */
#ifndef GM_INTEGRATIONS_TORCH_GM_TORCH_H
#define GM_INTEGRATIONS_TORCH_GM_TORCH_H

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
/* Caps a card's pool at a share of the card's memory. */
GM_API void gm_torch_memory_fraction(double fraction, int ordinal);
/* Finds the driver's allocation around an address, and its size. NULL: there is none. */
GM_API void *gm_torch_base_alloc(void *pointer, size_t *out_bytes);
/* Notes that a stream uses the memory, too: its reuse waits for the work there. */
GM_API void gm_torch_record_stream(void *pointer, void *stream);

/* Begins to serve a card's allocations from a pool of their own: memory of a graph stays with the graph. `filter` says
 * which streams are meant. It is a C++ object that C cannot call, so all streams of the card are.
 *
 * A driver gives no memory during a capture. So the pool takes memory here, before the capture begins. It takes
 * GM_TORCH_CAPTURE_BYTES of the environment, or as much as the card's pool has had in use. */
GM_API void gm_torch_begin_allocate_to_pool(int ordinal, gm_torch_pool_id id, const void *filter);
/* Ends that. The pool and its memory stay as they are. */
GM_API void gm_torch_end_allocate_to_pool(int ordinal, gm_torch_pool_id id);
/* Says that the graphs of a pool are gone. Its memory goes back once the last of its blocks is freed. */
GM_API void gm_torch_release_pool(int ordinal, gm_torch_pool_id id);

GM_END_DECLS

#endif
