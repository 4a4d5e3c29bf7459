/* What the host program lends to gm: memory, a log, and (for tests and tracing) a look at each driver entry. */
#ifndef GM_SERVICES_H
#define GM_SERVICES_H

#include <stddef.h>

#include "gm/export.h"

GM_BEGIN_DECLS

/* The higher the number, the less it matters to an operator. */
typedef enum gm_log_level { GM_LOG_ERROR = 0, GM_LOG_WARN = 1, GM_LOG_INFO = 2, GM_LOG_DEBUG = 3 } gm_log_level;

/* Hooks lent by the host program; they and `user` stay valid until the context that got them is destroyed. They may be
 * called from any thread at any time, several at once: each must be thread-safe, and none may call gm. */
typedef struct gm_services {
  /* `bytes` (> 0) of host memory at a multiple of `align` (a power of two), contents free; NULL when there is none,
   * which gm answers with GM_ERR_OUT_OF_HOST_MEMORY. NULL hook: the C library; then `release` must be NULL too. */
  void *(*alloc)(void *user, size_t bytes, size_t align);
  /* Takes back what `alloc` gave, with the same `bytes`; `ptr` is never NULL. */
  void (*release)(void *user, void *ptr, size_t bytes);
  /* One line without line end and control characters; `level` is a gm_log_level. NULL: nothing is logged. */
  void (*log)(void *user, int level, const char *line);
  void *user;                /* handed to each hook as it is */
  void (*reserved[2])(void); /* NULL */
} gm_services;

/* Called once for each entry of a driver's symbol table when it is loaded: `backend` "cuda", `symbol` "cuMemAlloc_v2",
 * `real` the driver's function or NULL where it has none. What it returns is used in its place: `real` to leave it,
 * NULL to play a driver without it, or a function of the same type. For fault injection and call tracing. */
typedef void *(*gm_symbol_hook)(void *user, const char *backend, const char *symbol, void *real);

GM_END_DECLS

#endif
