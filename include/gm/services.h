/* Services that the host program lends to gm: memory, a log, and a hook on driver symbols for tests and tracing. */
#ifndef GM_SERVICES_H
#define GM_SERVICES_H

#include <stddef.h>

#include "gm/export.h"

GM_BEGIN_DECLS

/* Severity of a log line. A higher number matters less to an operator. */
typedef enum gm_log_level { GM_LOG_ERROR = 0, GM_LOG_WARN = 1, GM_LOG_INFO = 2, GM_LOG_DEBUG = 3 } gm_log_level;

/* Hooks of the host program. The hooks and `user` stay valid until the context that received them is destroyed. gm may
 * call a hook from any thread, at any time, and from several threads at once. A hook must be thread-safe, must not
 * call gm, and must not throw. */
typedef struct gm_services {
  /* Allocates `bytes` (> 0) of host memory at a multiple of `align`, a power of two. The contents are undefined. A NULL
   * answer makes gm answer OUT_OF_HOST_MEMORY. Where the hook is NULL, `release` must be NULL too. gm then uses the C
   * library. From 1 MiB on it maps memory itself, which grows without a copy. */
  void *(*alloc)(void *user, size_t bytes, size_t align);
  /* Releases memory of `alloc`, with the `bytes` that it was allocated with. `ptr` is never NULL. */
  void (*release)(void *user, void *ptr, size_t bytes);
  /* Receives one line, without line end or control characters. `level` is a gm_log_level. Where the hook is NULL gm
   * logs nothing. */
  void (*log)(void *user, int level, const char *line);
  void *user;                /* passed unchanged to each hook */
  void (*reserved[2])(void); /* NULL */
} gm_services;

/* Replaces entries of a driver's symbol table, for fault injection and call tracing. gm calls it once for each entry
 * when it loads the table. `backend` is, for example, "cuda", and `symbol` "cuMemAlloc_v2". `real` is the driver's
 * function, or NULL where the driver has none. gm uses the returned pointer in its place: `real`, a function of the
 * same type, or NULL for a driver without the entry. The hook must not throw. */
typedef void *(*gm_symbol_hook)(void *user, const char *backend, const char *symbol, void *real);

GM_END_DECLS

#endif
