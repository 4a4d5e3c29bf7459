/* The other side of isolated discovery: what the helper program gm-probe runs. An engine that ships its own helper
 * calls this from it. */
#ifndef GM_PROBE_H
#define GM_PROBE_H

#include "gm/export.h"
#include "gm/status.h"

GM_BEGIN_DECLS

/* Discover one backend ACTIVE and write what was found to the file descriptor `fd`, in the form that a gm of the same
 * version reads. `library` and `options` are as in gm_context_params, for this backend; NULL: default. GM_OK also when
 * the backend is unavailable: that is the finding. INVALID_ARGUMENT, NOT_FOUND (no such backend), IO,
 * OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_probe_serve(const char *backend, const char *library, const char *options, int fd, gm_error *err);

GM_END_DECLS

#endif
