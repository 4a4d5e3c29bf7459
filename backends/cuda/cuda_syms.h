/* The entries of CUDA's driver API that gm calls, found at run time: cuda_syms.def is the list. Nothing of CUDA is
 * linked, and no call goes past this table, so that a hook sees, and can fail, every one of them. */
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

/* Load the library (host->library or the default names) and fill *out: each entry from cuGetProcAddress, asked for the
 * version that brought its prototype, else under its full name from the library. The caller closes *out_lib.
 * UNAVAILABLE lists what was tried. Calls nothing of the driver but cuGetProcAddress and cuDriverGetVersion. */
gm_status gm__cuda_load(const gm_backend_host *host, gm__dynlib **out_lib, gm__cuda_syms *out, gm_error *err);

/* Where the library is, told from files alone; UNAVAILABLE when it is nowhere. */
gm_status gm__cuda_find(const gm_backend_host *host, char *out, size_t capacity, gm_error *err);

#endif
