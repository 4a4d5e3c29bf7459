#include "backends/hip/hip_syms.h"

#include "core/base/error.h"

static const char *const hip_library_names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                                "libamdhip64.so", NULL};

enum { HIP_REQUIRED = true, HIP_OPTIONAL = false };

static const gm__symbol hip_rows[] = {
#define X(need, fault, symbol, parameters, arguments) {#symbol, offsetof(gm__hip_syms, symbol), HIP_##need},
#include "backends/hip/hip_syms.def"
#undef X
};

static const gm__symbol hip_simulated_row = {"simHipControl", offsetof(gm__hip_syms, simulated), false};

static gm__dynlib_spec hip_syms_spec(const gm_backend_host *host) {
  const gm__dynlib_spec spec = {
      .backend = "hip", .names = hip_library_names, .path = host->library, .advice = "install ROCm's HIP runtime"};
  return spec;
}

static gm_status hip_resolve(const gm_backend_host *host, const gm__dynlib *lib, gm__hip_syms *out, gm_error *err) {
  *out = (gm__hip_syms){0};
  const gm_status status = gm__dynlib_resolve(lib, hip_rows, sizeof hip_rows / sizeof hip_rows[0], out,
                                              host->symbol_hook, host->symbol_hook_user, err);
  if (status != GM_OK) return status;
  return gm__dynlib_resolve(lib, &hip_simulated_row, 1, out, NULL, NULL, err);
}

gm_status gm__hip_load(const gm_backend_host *host, gm__dynlib **out_lib, gm__hip_syms *out, gm_error *err) {
  const gm__dynlib_spec spec = hip_syms_spec(host);
  gm__dynlib *lib = NULL;
  gm_status status = gm__dynlib_open(host->services, &spec, &lib, err);
  if (status != GM_OK) return status;
  status = hip_resolve(host, lib, out, err);
  if (status != GM_OK) {
    gm__dynlib_close(lib);
    return status;
  }
  *out_lib = lib;
  return GM_OK;
}

gm_status gm__hip_find(const gm_backend_host *host, char *out, size_t capacity, gm_error *err) {
  const gm__dynlib_spec spec = hip_syms_spec(host);
  if (gm__dynlib_find(&spec, out, capacity)) return GM_OK;
  if (host->library) {
    return gm__fail(err, GM_ERR_UNAVAILABLE, 0, "gm_probe", "%s not found; %s", host->library, spec.advice);
  }
  return gm__fail(err, GM_ERR_UNAVAILABLE, 0, "gm_probe", "%s not found (tried %s, %s, %s, %s); %s",
                  hip_library_names[0], hip_library_names[0], hip_library_names[1], hip_library_names[2],
                  hip_library_names[3], spec.advice);
}
