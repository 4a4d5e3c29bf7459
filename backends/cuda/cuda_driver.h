/* CUDA's driver library and the devices that it lists, found once at init. Thread-safe after init; the one owner closes
 * it. Listing makes no context. */
#ifndef GM_BACKENDS_CUDA_DRIVER_H
#define GM_BACKENDS_CUDA_DRIVER_H

#include "backends/cuda/cuda_nvml.h"
#include "backends/cuda/cuda_syms.h"

typedef struct gm__cuda_driver {
  const gm_services *services;
  gm__dynlib *lib;
  gm__cuda_syms cu;
  gm__nvml *nvml; /* NULL: there is none */
  bool wddm;      /* WSL2: Windows decides what is resident */
  int version;    /* 13000 is CUDA 13.0 */
  uint32_t count;
  gm_device_info *infos; /* by ordinal, which is the index */
} gm__cuda_driver;

/* Load the library, start it (cuInit) and list the devices. UNAVAILABLE: no library, a toolkit's stub, no device.
 * INVALID_ARGUMENT: a switch in host->options other than "nvml=LIBRARY". The driver stays loaded for the life of the
 * process. */
gm_status gm__cuda_driver_open(const gm_backend_host *host, gm__cuda_driver **out, gm_error *err);

/* NULL: nothing. ABANDON: host memory only. */
void gm__cuda_driver_close(gm__cuda_driver *driver, gm_close_mode mode);

/* "580.65.06, CUDA 13.0"; the first part where the kernel's driver tells it. */
void gm__cuda_driver_version(const gm__cuda_driver *driver, char *out, size_t capacity);

#endif
