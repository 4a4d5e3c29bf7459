#include "backends/opencl/opencl_syms.h"

#include "core/base/error.h"

/* The plain name of the development package comes last: the file may be missing, or of another version. */
static const char *const opencl_library_names[] = {"libOpenCL.so.1", "libOpenCL.so", NULL};

enum { OPENCL_REQUIRED = 1, OPENCL_OPTIONAL = 0 };

static const gm__symbol opencl_symbols[] = {
#define X(need, fault, result, name, parameters, arguments) \
  {#name, offsetof(gm__opencl_syms, name), OPENCL_##need == OPENCL_REQUIRED},
#include "backends/opencl/opencl_syms.def"
#undef X
};

static const gm__symbol opencl_usm_symbols[] = {
#define X(need, fault, result, name, parameters, arguments) \
  {#name, offsetof(gm__opencl_usm, name), OPENCL_##need == OPENCL_REQUIRED},
#include "backends/opencl/opencl_usm.def"
#undef X
};

typedef struct opencl_usm_source {
  const gm__opencl_syms *cl;
  cl_platform_id platform;
} opencl_usm_source;

static void *opencl_usm_look_up(void *user, const char *name) {
  const opencl_usm_source *source = user;
  return source->cl->clGetExtensionFunctionAddressForPlatform(source->platform, name);
}

bool gm__opencl_load_usm(const gm_backend_host *host, const gm__opencl_syms *cl, cl_platform_id platform,
                         gm__opencl_usm *out) {
  opencl_usm_source from = {cl, platform};
  const gm__symbol_source source = {opencl_usm_look_up, &from, "opencl", "the platform"};
  *out = (gm__opencl_usm){0};
  if (!cl->clGetExtensionFunctionAddressForPlatform) return false;
  return gm__symbols_resolve(&source, opencl_usm_symbols, sizeof opencl_usm_symbols / sizeof opencl_usm_symbols[0], out,
                             host->symbol_hook, host->symbol_hook_user, NULL) == GM_OK;
}

static gm__dynlib_spec opencl_syms_spec(const gm_backend_host *host) {
  const gm__dynlib_spec spec = {
      .backend = "opencl",
      .names = opencl_library_names,
      .path = host->library,
      .advice = "install an OpenCL loader (Debian: ocl-icd-libopencl1) and a driver for it",
  };
  return spec;
}

gm_status gm__opencl_load(const gm_backend_host *host, gm__dynlib **out_lib, gm__opencl_syms *out, gm_error *err) {
  const gm__dynlib_spec spec = opencl_syms_spec(host);
  static const gm__symbol mark = {"gmSimulatedDriver", offsetof(gm__opencl_syms, simulated), OPENCL_OPTIONAL};
  gm__dynlib *lib = NULL;
  gm_status status = gm__dynlib_open(host->services, &spec, &lib, err);
  if (status != GM_OK) return status;
  status = gm__dynlib_resolve(lib, opencl_symbols, sizeof opencl_symbols / sizeof opencl_symbols[0], out,
                              host->symbol_hook, host->symbol_hook_user, err);
  if (status != GM_OK) {
    gm__dynlib_close(lib);
    return status;
  }
  gm__dynlib_resolve(lib, &mark, 1, out, NULL, NULL, NULL); /* optional: cannot fail */
  *out_lib = lib;
  return GM_OK;
}

gm_status gm__opencl_load_from(const gm_backend_host *host, gm__symbol_look_up look_up, void *user,
                               gm__opencl_syms *out, gm_error *err) {
  const gm__symbol_source source = {look_up, user, "opencl", "the engine's loader (get_proc)"};
  return gm__symbols_resolve(&source, opencl_symbols, sizeof opencl_symbols / sizeof opencl_symbols[0], out,
                             host->symbol_hook, host->symbol_hook_user, err);
}

gm_status gm__opencl_find(const gm_backend_host *host, char *out, size_t capacity, gm_error *err) {
  const gm__dynlib_spec spec = opencl_syms_spec(host);
  if (gm__dynlib_find(&spec, out, capacity)) return GM_OK;
  if (host->library) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, "gm_probe", "%s not found; %s", host->library, spec.advice);
  }
  return gm__fail(err, GM_ERR_UNAVAILABLE, "gm_probe", "%s not found (tried %s, %s); %s", opencl_library_names[0],
                  opencl_library_names[0], opencl_library_names[1], spec.advice);
}
