/* The helper's side of isolated discovery. The program gm-probe calls this function. So does the helper of an engine
 * that ships its own. */
#ifndef GM_PROBE_H
#define GM_PROBE_H

#include "gm/export.h"
#include "gm/status.h"

GM_BEGIN_DECLS

/* Discovers one backend at the level ACTIVE, and writes the result to the file descriptor `fd`. A gm of the same
 * version reads it. `library` and `options` are as in gm_context_params, for this backend; NULL: default. GM_OK: also
 * when the backend is unusable, since that is the result. Thread-safe.
 *
 * "cufile" is no backend: gm has the helper try NVIDIA's cuFile with a file, whose path is in `options`.
 *
 * Errors: INVALID_ARGUMENT, IO, OUT_OF_HOST_MEMORY. NOT_FOUND: there is no such backend. */
GM_API gm_status gm_probe_serve(const char *backend, const char *library, const char *options, int fd, gm_error *err);

/* Does as gm_probe_serve, for a backend of a module: a shared library that exports `const gm_backend_ops
 * *gm_backend_module(void)`. `module` is its absolute path; NULL or "": gm's own backend of that name. gm starts a
 * helper with the module as its fourth argument. The module stays loaded. UNAVAILABLE: there is no such module. */
GM_API gm_status gm_probe_serve_module(const char *module, const char *backend, const char *library,
                                       const char *options, int fd, gm_error *err);

GM_END_DECLS

#endif
