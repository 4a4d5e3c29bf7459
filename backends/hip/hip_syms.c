#include "backends/hip/hip_syms.h"

static const char *const hip_library_names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                                "libamdhip64.so", NULL};

enum { HIP_REQUIRED = true, HIP_OPTIONAL = false };

static const gm__symbol hip_rows[] = {
#define X(need, fault, symbol, parameters, arguments) {#symbol, offsetof(gm__hip_syms, symbol), HIP_##need},
#include "backends/hip/hip_syms.def"
#undef X
};

static const gm__symbol hip_simulated_row = {"simHipControl", offsetof(gm__hip_syms, simulated), false};

gm__dynlib_spec gm__hip_library(const gm_backend_host *host) {
  const gm__dynlib_spec spec = {
      .backend = "hip", .names = hip_library_names, .path = host->library, .advice = "install ROCm's HIP runtime"};
  return spec;
}

gm_status gm__hip_resolve(const gm_backend_host *host, const gm__dynlib *lib, gm__hip_syms *out, gm_error *err) {
  *out = (gm__hip_syms){0};
  const gm_status status = gm__dynlib_resolve(lib, hip_rows, sizeof hip_rows / sizeof hip_rows[0], out,
                                              host->symbol_hook, host->symbol_hook_user, err);
  if (status != GM_OK) return status;
  return gm__dynlib_resolve(lib, &hip_simulated_row, 1, out, NULL, NULL, err);
}
