/* The entries of OpenCL that gm calls. opencl_syms.def lists them. gm looks them up at run time and links nothing of
 * OpenCL. Every call goes through this table, so a hook sees every call and can make it fail. */
#ifndef GM_BACKENDS_OPENCL_SYMS_H
#define GM_BACKENDS_OPENCL_SYMS_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "core/base/dynlib.h"
#include "gm/backend.h"

typedef struct gm__opencl_syms {
  void *simulated; /* only the simulated drivers of gm's tests have this entry; never called */
#define X(need, fault, result, name, parameters, arguments) result(CL_API_CALL *name) parameters;
#include "backends/opencl/opencl_syms.def"
#undef X
} gm__opencl_syms;

/* The entries for unified shared memory of one platform. All NULL: the platform has none. */
typedef struct gm__opencl_usm {
#define X(need, fault, result, name, parameters, arguments) result(CL_API_CALL *name) parameters;
#include "backends/opencl/opencl_usm.def"
#undef X
} gm__opencl_usm;

/* Load the library (host->library or the default names) and fill *out. The caller closes *out_lib. UNAVAILABLE lists
 * the tried names. */
gm_status gm__opencl_load(const gm_backend_host *host, gm__dynlib **out_lib, gm__opencl_syms *out, gm_error *err);

/* Fill *out from the engine's loader. UNAVAILABLE names the missing entry. */
gm_status gm__opencl_load_from(const gm_backend_host *host, gm__symbol_look_up look_up, void *user,
                               gm__opencl_syms *out, gm_error *err);

/* Fill *out for a platform with the extension. False: a required entry is missing, and every member is NULL. */
bool gm__opencl_load_usm(const gm_backend_host *host, const gm__opencl_syms *cl, cl_platform_id platform,
                         gm__opencl_usm *out);

/* Find the library by its files alone. UNAVAILABLE: it is nowhere. */
gm_status gm__opencl_find(const gm_backend_host *host, char *out, size_t capacity, gm_error *err);

#endif
