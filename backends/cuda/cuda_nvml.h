/* NVML, as far as gm asks it: a device's memory before there is a context, and whether a UUID is a slice's. Optional: a
 * machine without it, or where it fails, has no figures. Thread-safe, the one owner closes it. */
#ifndef GM_BACKENDS_CUDA_NVML_H
#define GM_BACKENDS_CUDA_NVML_H

#include "core/base/dynlib.h"
#include "gm/backend.h"

typedef struct gm__nvml gm__nvml;

/* Load and start it; `library` NULL: under its own names. NULL: not there, too old, will not start, or no host memory;
 * nothing depends on it. */
gm__nvml *gm__nvml_open(const gm_backend_host *host, const char *library);

/* NULL: nothing. ABANDON: host memory only. */
void gm__nvml_close(gm__nvml *nvml, gm_close_mode mode);

/* True when NVML knows the UUID as that of a MIG slice. NULL `nvml`: false. */
bool gm__nvml_is_slice(const gm__nvml *nvml, const uint8_t *uuid);

/* Memory and other processes' use of the device, or slice, with this UUID; the parent of a slice is never asked. */
void gm__nvml_figures(const gm__nvml *nvml, const uint8_t *uuid, bool slice, gm_raw_nvml *out);

#endif
