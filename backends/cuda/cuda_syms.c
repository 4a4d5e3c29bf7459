#include "backends/cuda/cuda_syms.h"

/* The driver installs the first. The second may be a toolkit's stub, which answers every call with an error. */
static const char *const cuda_library_names[] = {"libcuda.so.1", "libcuda.so", NULL};

enum { CUDA_REQUIRED = true, CUDA_OPTIONAL = false };

typedef struct cuda_row {
  gm__symbol symbol;
  const char *base;
  int since;
} cuda_row;

static const cuda_row cuda_rows[] = {
#define X(need, fault, symbol, base, since, parameters, arguments) \
  {{#symbol, offsetof(gm__cuda_syms, symbol), CUDA_##need}, base, since},
#include "backends/cuda/cuda_syms.def"
#undef X
};

/* A look-up needs the library, the wanted row and the table so far. The first rows are cuGetProcAddress and
 * cuDriverGetVersion. */
typedef struct cuda_asker {
  const gm__dynlib *lib;
  const gm__cuda_syms *syms;
  const cuda_row *row;
  int version; /* of the driver; 0: not told, or not yet */
} cuda_asker;

static void *cuda_from_library(const gm__dynlib *lib, const char *name) {
  void *entry = NULL;
  const gm__symbol wanted = {name, 0, false};
  gm__dynlib_resolve(lib, &wanted, 1, &entry, NULL, NULL, NULL);
  return entry;
}

static void *cuda_look_up(void *user, const char *name) {
  const cuda_asker *asker = user;
  void *entry = NULL;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  if (asker->version && asker->row->since > asker->version) return NULL; /* exported or not, it is not for use */
  if (asker->row->since && asker->syms->cuGetProcAddress_v2) {
    const CUresult code = asker->syms->cuGetProcAddress_v2(asker->row->base, &entry, asker->row->since,
                                                           CU_GET_PROC_ADDRESS_LEGACY_STREAM, &found);
    if (code == CUDA_SUCCESS && found == CU_GET_PROC_ADDRESS_SUCCESS && entry) return entry;
  }
  return cuda_from_library(asker->lib, name);
}

gm_status gm__cuda_resolve(const gm_backend_host *host, const gm__dynlib *lib, gm__cuda_syms *out, gm_error *err) {
  cuda_asker asker = {.lib = lib, .syms = out};
  const gm__symbol_source source = {cuda_look_up, &asker, "cuda", gm__dynlib_path(lib)};
  *out = (gm__cuda_syms){0};
  for (size_t i = 0; i < sizeof cuda_rows / sizeof cuda_rows[0]; i++) {
    asker.row = &cuda_rows[i];
    const gm_status status =
        gm__symbols_resolve(&source, &cuda_rows[i].symbol, 1, out, host->symbol_hook, host->symbol_hook_user, err);
    if (status != GM_OK) return status;
    if (out->cuDriverGetVersion && !asker.version && out->cuDriverGetVersion(&asker.version) != CUDA_SUCCESS) {
      asker.version = 0;
    }
  }
  out->simulated = cuda_from_library(lib, "simCudaControl");
  return GM_OK;
}

gm__dynlib_spec gm__cuda_library(const gm_backend_host *host) {
  const gm__dynlib_spec spec = {
      .backend = "cuda", .names = cuda_library_names, .path = host->library, .advice = "install the NVIDIA driver"};
  return spec;
}
