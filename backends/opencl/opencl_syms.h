/* The entries of OpenCL that gm calls, found at run time: opencl_syms.def is the list. Nothing of OpenCL is linked, and
 * no call goes past this table, so that a hook sees, and can fail, every one of them. */
#ifndef GM_BACKENDS_OPENCL_SYMS_H
#define GM_BACKENDS_OPENCL_SYMS_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "core/base/dynlib.h"
#include "gm/backend.h"

typedef struct gm__opencl_syms {
  void *simulated; /* an entry that only the simulated drivers of gm's tests have; never called */
#define X(need, fault, result, name, parameters, arguments) result(CL_API_CALL *name) parameters;
#include "backends/opencl/opencl_syms.def"
#undef X
} gm__opencl_syms;

/* The same for one platform's unified shared memory; all NULL: it has none. */
typedef struct gm__opencl_usm {
#define X(need, fault, result, name, parameters, arguments) result(CL_API_CALL *name) parameters;
#include "backends/opencl/opencl_usm.def"
#undef X
} gm__opencl_usm;

/* Load the library (host->library or the default names) and fill *out. The caller closes *out_lib. UNAVAILABLE lists
 * what was tried. */
gm_status gm__opencl_load(const gm_backend_host *host, gm__dynlib **out_lib, gm__opencl_syms *out, gm_error *err);

/* The same of the engine's loader: UNAVAILABLE names the entry that it lacks. */
gm_status gm__opencl_load_from(const gm_backend_host *host, gm__symbol_look_up look_up, void *user,
                               gm__opencl_syms *out, gm_error *err);

/* Fill *out for a platform that has the extension; false, and all NULL: a required entry is missing. */
bool gm__opencl_load_usm(const gm_backend_host *host, const gm__opencl_syms *cl, cl_platform_id platform,
                         gm__opencl_usm *out);

/* Where the library is, told from files alone; UNAVAILABLE when it is nowhere. */
gm_status gm__opencl_find(const gm_backend_host *host, char *out, size_t capacity, gm_error *err);

#endif
