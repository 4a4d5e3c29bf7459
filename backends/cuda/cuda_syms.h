/* The entries of CUDA's driver API that gm calls, found at run time. cuda_syms.def lists them. gm links nothing of CUDA
 * and makes each call through this table, so a hook can see and fail every call. */
#ifndef GM_BACKENDS_CUDA_SYMS_H
#define GM_BACKENDS_CUDA_SYMS_H

#include "backends/cuda/cuda_abi.h"
#include "core/base/dynlib.h"
#include "gm/backend.h"

typedef struct gm__cuda_syms {
#define X(need, fault, symbol, base, since, parameters, arguments) CUresult(*symbol) parameters;
#include "backends/cuda/cuda_syms.def"
#undef X
  void *simulated; /* an entry that only the simulated driver of gm's tests has; never called */
} gm__cuda_syms;

/* Which library gm opens: host->library or the default names. */
gm__dynlib_spec gm__cuda_library(const gm_backend_host *host);

/* Fill *out. Each entry comes from cuGetProcAddress, which is asked for the version of its prototype. Otherwise the
 * library gives it under its full name. UNAVAILABLE names an entry that is missing. Calls only cuGetProcAddress and
 * cuDriverGetVersion. */
gm_status gm__cuda_resolve(const gm_backend_host *host, const gm__dynlib *lib, gm__cuda_syms *out, gm_error *err);

#endif
