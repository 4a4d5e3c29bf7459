/* NumPy's data from a pool of gm's: the handler of NEP 49, as NumPy reads it, without NumPy's headers. */
#ifndef GM_INTEGRATIONS_NUMPY_GM_NUMPY_H
#define GM_INTEGRATIONS_NUMPY_GM_NUMPY_H

#include <stddef.h>
#include <stdint.h>

#include "gm/export.h"

GM_BEGIN_DECLS

/* The four functions of a handler. `user` is the first member. Never grows. */
typedef struct gm_numpy_functions {
  void *user;
  void *(*allocate)(void *user, size_t bytes);
  void *(*allocate_zeroed)(void *user, size_t count, size_t bytes_each);
  void *(*resize)(void *user, void *pointer, size_t bytes);
  void (*release)(void *user, void *pointer, size_t bytes);
} gm_numpy_functions;

/* NumPy's PyDataMem_Handler, version 1. Never grows. */
typedef struct gm_numpy_handler {
  char name[127];
  uint8_t version;
  gm_numpy_functions functions;
} gm_numpy_handler;

/* The handler called "gm". It is put into a capsule of the name "mem_handler" and given to PyDataMem_SetHandler. It
 * lives as long as the library, and is thread-safe. */
GM_API extern const gm_numpy_handler gm_numpy;

GM_END_DECLS

#endif
