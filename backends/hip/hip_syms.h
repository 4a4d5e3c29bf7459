/* The entries of HIP's runtime API that gm calls, found at run time. hip_syms.def lists them. gm links nothing of HIP
 * and makes each call through this table, so a hook can see and fail every call. */
#ifndef GM_BACKENDS_HIP_SYMS_H
#define GM_BACKENDS_HIP_SYMS_H

#include "backends/hip/hip_abi.h"
#include "core/base/dynlib.h"
#include "gm/backend.h"

typedef struct gm__hip_syms {
#define X(need, fault, symbol, parameters, arguments) hipError_t(*symbol) parameters;
#include "backends/hip/hip_syms.def"
#undef X
  void *simulated; /* an entry that only the simulated library of gm's tests has; never called */
} gm__hip_syms;

/* Which library gm opens: host->library or the default names, newest first. */
gm__dynlib_spec gm__hip_library(const gm_backend_host *host);

/* Fill *out. UNAVAILABLE names an entry that is missing. Calls nothing of HIP. */
gm_status gm__hip_resolve(const gm_backend_host *host, const gm__dynlib *lib, gm__hip_syms *out, gm_error *err);

#endif
