/* Driver libraries and their symbol tables. gm finds and loads them at run time. */
#ifndef GM_CORE_BASE_DYNLIB_H
#define GM_CORE_BASE_DYNLIB_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/inner.h"
#include "gm/services.h"
#include "gm/status.h"

/* A loaded library. Thread-safe: only gm__dynlib_keep changes it. Its one owner closes it. */
typedef struct gm__dynlib gm__dynlib;

/* The library that a backend wants. Its members are borrowed. `path` is gm_backend_host.library, the operator's
 * GM_<BACKEND>_LIBRARY or the program's choice: an absolute path or a bare name. With a `path`, `names` are not tried,
 * even where the path cannot be loaded. NULL and "" mean no path. */
typedef struct gm__dynlib_spec {
  const char *backend;      /* "cuda" */
  const char *const *names; /* in the order to try, versioned before plain; NULL ends the list */
  const char *path;         /* NULL: none */
  const char *advice;       /* ends the reason: "install the NVIDIA driver"; NULL: none */
} gm__dynlib_spec;

/* Load the first library that can be loaded. GM_ERR_UNAVAILABLE names each tried one and, where a file exists, the
 * reason. GM_ERR_INVALID_ARGUMENT for a relative path. GM_ERR_OUT_OF_HOST_MEMORY. */
gm_status gm__dynlib_open(const gm_services *services, const gm__dynlib_spec *spec, gm__dynlib **out, gm_error *err);

/* Unload the library, unless it is kept. NULL does nothing. */
void gm__dynlib_close(gm__dynlib *lib);

/* Keep the driver loaded until the process ends, even after gm__dynlib_close. Backends call it when a device was
 * opened.
 */
void gm__dynlib_keep(gm__dynlib *lib);

/* The loaded file, or the requested name where the system does not tell. Valid until closed. */
const char *gm__dynlib_path(const gm__dynlib *lib);

/* The file that gm__dynlib_open would probably load. Only files are read: no vendor code runs. False: there is none, or
 * its name is longer than `capacity`; `out` is untouched. */
GM__INNER bool gm__dynlib_find(const gm__dynlib_spec *spec, char *out, size_t capacity);

/* One entry of a driver's table: a function pointer at `offset` of the table's struct. */
typedef struct gm__symbol {
  const char *name;
  size_t offset;
  bool required;
} gm__symbol;

/* Fill the function pointers of `table` with the library's symbols. `hook` (NULL: none) may replace each. A missing
 * optional one becomes NULL. GM_ERR_UNAVAILABLE names the first missing required one, and makes every listed pointer
 * NULL. */
gm_status gm__dynlib_resolve(const gm__dynlib *lib, const gm__symbol *symbols, size_t count, void *table,
                             gm_symbol_hook hook, void *hook_user, gm_error *err);

/* gm__dynlib_resolve from any source of pointers (vkGetInstanceProcAddr, cuGetProcAddress). `look_up` returns NULL
 * where the source has no such entry. */
typedef void *(*gm__symbol_look_up)(void *user, const char *name);
typedef struct gm__symbol_source {
  gm__symbol_look_up look_up;
  void *user;
  const char *backend; /* for the hook */
  const char *from;    /* for the reason: "libvulkan.so.1" */
} gm__symbol_source;
gm_status gm__symbols_resolve(const gm__symbol_source *source, const gm__symbol *symbols, size_t count, void *table,
                              gm_symbol_hook hook, void *hook_user, gm_error *err);

#endif
