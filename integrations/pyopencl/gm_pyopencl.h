/* Buffers for pyopencl. Each is an OpenCL buffer of exactly the bytes that were asked for. It lies in a block of a pool
 * on the program's own context and queue. */
#ifndef GM_INTEGRATIONS_PYOPENCL_GM_PYOPENCL_H
#define GM_INTEGRATIONS_PYOPENCL_GM_PYOPENCL_H

#include <stdint.h>

#include "gm/export.h"

GM_BEGIN_DECLS

typedef struct gm_pyopencl gm_pyopencl;               /* a pool on a lent context and queue; thread-safe */
typedef struct gm_pyopencl_buffer gm_pyopencl_buffer; /* a block, and the OpenCL buffer over it */

/* Lends a cl_context, a cl_device_id of it and a cl_command_queue. `library` is a handle of dlopen: the OpenCL library
 * that the program uses. NULL: gm_engines_why has the reason. The caller closes the result. */
GM_API gm_pyopencl *gm_pyopencl_open(void *library, uintptr_t context, uintptr_t device, uintptr_t queue);
/* Closes the pool. Returns 0, or a gm_status: BUSY while buffers are left. NULL is GM_OK. */
GM_API int gm_pyopencl_close(gm_pyopencl *self);

/* Allocates a buffer in the order of the queue. *out_memory is its cl_mem, which stays gm's: whoever keeps it retains
 * it. NULL: gm_engines_why has the reason. The caller frees the buffer. */
GM_API gm_pyopencl_buffer *gm_pyopencl_alloc(gm_pyopencl *self, uint64_t bytes, uintptr_t *out_memory);
/* Frees a buffer in the order of the queue: work that was submitted there may still use it. */
GM_API void gm_pyopencl_free(gm_pyopencl *self, gm_pyopencl_buffer *buffer);

/* Gives back what the pool keeps and no work uses. Returns the bytes. */
GM_API uint64_t gm_pyopencl_trim(gm_pyopencl *self);
/* Returns a field of the pool's gm_stats by its name. UINT64_MAX: there is none. */
GM_API uint64_t gm_pyopencl_figure(gm_pyopencl *self, const char *name);

GM_END_DECLS

#endif
