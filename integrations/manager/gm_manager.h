/* The default manager: one gm for the whole process, for callbacks that carry no context, such as those of PyTorch and
 * CuPy. It is no part of libgm: an engine compiles gm_manager.c into its own library.
 *
 * The first call begins the manager. Each device has one pool, which opens when it is first asked for. Every call is
 * thread-safe. In a forked child every call but gm_manager_end answers FORKED. */
#ifndef GM_MANAGER_H
#define GM_MANAGER_H

#include "gm/gm.h"

GM_BEGIN_DECLS

#define GM_MANAGER_DEVICES 64u

typedef struct gm_manager_params { /* zero-initialised with struct_size set, it is valid */
  uint32_t struct_size;
  bool no_vmm;           /* pools use driver allocations only: for engines that hand addresses to calls of the driver
                            which do not take mapped pages */
  const char *backend;   /* whose devices the numbers name, such as "cuda"; copied; NULL: that of gm_best_backend */
  const char *libraries; /* as in gm_context_params; copied */
} gm_manager_params;

/* Begins the manager, before its first use. `params` may be NULL. BUSY: it has begun already, and keeps what it has.
 * Other errors are those of gm_context_create and gm_best_backend. */
gm_status gm_manager_begin(const gm_manager_params *params, gm_error *err);

/* Returns the pool of the device number `device` of the manager's backend. Borrowed until gm_manager_end. NULL: it
 * cannot be opened, and `err` (may be NULL) says why. A later call tries again. */
gm_pool *gm_manager_pool(uint32_t device, gm_error *err);

/* Allocates `bytes` on a device, for use on `stream` at once. NULL: the request failed, and `err` (may be NULL) says
 * why. */
void *gm_manager_alloc(uint32_t device, uint64_t bytes, gm_stream *stream, gm_error *err);

/* Frees what gm_manager_alloc returned, in the order of `stream`. A NULL pointer is GM_OK. `device` is the one that it
 * was allocated on. NOT_FOUND: the manager has no pool there. Other errors are those of gm_free_ptr. */
gm_status gm_manager_free(uint32_t device, void *pointer, uint64_t bytes_or_0, gm_stream *stream);

/* Ends the manager: closes its pools, devices and context. A later call begins a new one. No other thread may be in a
 * call of the manager. BUSY: blocks, or streams of its devices, are alive; the rest is closed, and the call can be
 * repeated. In a forked child it gives back host memory only. */
gm_status gm_manager_end(gm_error *err);

GM_END_DECLS

#endif
