/* The entries of HIP's runtime API that gm calls, found at run time: hip_syms.def is the list. Nothing of HIP is
 * linked, and no call goes past this table, so that a hook sees, and can fail, every one of them. */
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

/* Load the library (host->library or the default names, newest first) and fill *out. The caller closes *out_lib.
 * UNAVAILABLE lists what was tried. Calls nothing of HIP. */
gm_status gm__hip_load(const gm_backend_host *host, gm__dynlib **out_lib, gm__hip_syms *out, gm_error *err);

/* Where the library is, told from files alone; UNAVAILABLE when it is nowhere. */
gm_status gm__hip_find(const gm_backend_host *host, char *out, size_t capacity, gm_error *err);

#endif
