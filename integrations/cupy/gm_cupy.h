/* The two functions that cupy.cuda.CFunctionAllocator wants. Thread-safe. */
#ifndef GM_INTEGRATIONS_CUPY_GM_CUPY_H
#define GM_INTEGRATIONS_CUPY_GM_CUPY_H

#include <stddef.h>

#include "gm/export.h"

GM_BEGIN_DECLS

/* Allocates on a card. CuPy names no stream here: the order is that of the legacy default stream, which is CuPy's own
 * unless a program chooses another one. `user` is ignored. NULL: there is no memory. */
GM_API void *gm_cupy_malloc(void *user, size_t bytes, int ordinal);
/* Frees in the order of that stream. NULL is allowed. */
GM_API void gm_cupy_free(void *user, void *pointer, int ordinal);

GM_END_DECLS

#endif
