/* Driver libraries, found and loaded at run time, and their symbol tables. */
#ifndef GM_CORE_BASE_DYNLIB_H
#define GM_CORE_BASE_DYNLIB_H

#include <stdbool.h>
#include <stddef.h>

#include "gm/services.h"
#include "gm/status.h"

/* A loaded library. Immutable but for gm__dynlib_keep, so thread-safe; closed by its one owner. */
typedef struct gm__dynlib gm__dynlib;

/* Which library a backend wants; only borrowed. `path` (gm_backend_host.library: the operator's GM_<BACKEND>_LIBRARY or
 * the program's word) goes before `names`; one that cannot be loaded is an error, `names` are not tried then. It is an
 * absolute path or a bare name; NULL and "" are none. */
typedef struct gm__dynlib_spec {
  const char *backend;      /* "cuda" */
  const char *const *names; /* ended by NULL, in the order to try: versioned before plain */
  const char *path;         /* NULL: none */
  const char *advice;       /* ends the reason: "install the NVIDIA driver"; NULL: none */
} gm__dynlib_spec;

/* Load the first that can be. GM_ERR_UNAVAILABLE names each one tried and, where a file was there, why it could not be
 * loaded; GM_ERR_INVALID_ARGUMENT for a relative override; GM_ERR_OUT_OF_HOST_MEMORY. */
gm_status gm__dynlib_open(const gm_services *services, const gm__dynlib_spec *spec, gm__dynlib **out, gm_error *err);

/* NULL: nothing. Unloads it, unless it is kept. */
void gm__dynlib_close(gm__dynlib *lib);

/* From now on the driver stays loaded until the process ends, even after gm__dynlib_close: call when a device was
 * opened. */
void gm__dynlib_keep(gm__dynlib *lib);

/* The file that was loaded; the name that was asked for where the system does not say. Valid until closed. */
const char *gm__dynlib_path(const gm__dynlib *lib);

/* Where gm__dynlib_open would probably find it, by looking at files alone: no vendor code runs. False: nowhere, or
 * longer than `capacity`; then `out` is untouched. */
bool gm__dynlib_find(const gm__dynlib_spec *spec, char *out, size_t capacity);

/* One entry of a driver's table: a function pointer at `offset` of the table's struct. */
typedef struct gm__symbol {
  const char *name;
  size_t offset;
  bool required;
} gm__symbol;

/* Fill the function pointers of `table`: each the library's symbol or what `hook` (NULL: none) puts in its place;
 * missing and optional is NULL. GM_ERR_UNAVAILABLE names the first missing required one; then every listed pointer is
 * NULL. */
gm_status gm__dynlib_resolve(const gm__dynlib *lib, const gm__symbol *symbols, size_t count, void *table,
                             gm_symbol_hook hook, void *hook_user, gm_error *err);

/* The same from any source of pointers (vkGetInstanceProcAddr, cuGetProcAddress): `look_up` returns NULL for "has
 * none". `from` names it in the reason. */
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
