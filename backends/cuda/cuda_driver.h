/* CUDA's driver library: gm starts it at init and lists its devices. Listing makes no context. */
#ifndef GM_BACKENDS_CUDA_DRIVER_H
#define GM_BACKENDS_CUDA_DRIVER_H

#include "backends/cuda/cuda_nvml.h"
#include "backends/cuda/cuda_syms.h"
#include "backends/shared/runtime/runtime.h"

typedef struct gm__cuda_driver {
  gm__runtime_driver base; /* first */
  gm__cuda_syms cu;
  gm__nvml *nvml; /* NULL: there is none */
  int version;    /* 13000 is CUDA 13.0 */
  bool wddm;      /* WSL2: Windows decides what is resident */
} gm__cuda_driver;

/* check_options, start and stop of CUDA's table. The one switch is "nvml=LIBRARY". Start finds the entries, starts the
 * driver (cuInit) and lists the devices. UNAVAILABLE: the library is a toolkit's stub, or there is no device. The
 * driver stays loaded for the life of the process. */
gm_status gm__cuda_check_options(const char *options, gm_error *err);
gm_status gm__cuda_start(gm__runtime_driver *driver, gm_error *err);
void gm__cuda_stop(gm__runtime_driver *driver, gm_close_mode mode);

#endif
