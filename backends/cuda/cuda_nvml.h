/* NVML tells a device's memory before there is a context, and whether a UUID is a slice's. It is optional: a machine
 * without NVML has no such figures. Thread-safe; one owner closes it. */
#ifndef GM_BACKENDS_CUDA_NVML_H
#define GM_BACKENDS_CUDA_NVML_H

#include "core/base/dynlib.h"
#include "gm/backend.h"

typedef struct gm__nvml gm__nvml;

/* Load NVML and start it. `library` NULL: under its own names. Returns NULL where NVML is missing, too old or will not
 * start, or where host memory is out. Nothing depends on it. */
gm__nvml *gm__nvml_open(const gm_backend_host *host, const char *library);

/* NULL: nothing. ABANDON: host memory only. */
void gm__nvml_close(gm__nvml *nvml, gm_close_mode mode);

/* True when NVML knows the UUID as that of a MIG slice. NULL `nvml`: false. */
bool gm__nvml_is_slice(const gm__nvml *nvml, const uint8_t *uuid);

/* The memory of the device or slice with this UUID, and what other processes use of it. gm never asks the parent of a
 * slice. */
void gm__nvml_figures(const gm__nvml *nvml, const uint8_t *uuid, bool slice, gm_raw_nvml *out);

/* The limits of a group on that device, by the folder of the group; NULL or "": nothing is asked. */
void gm__nvml_limits(const gm__nvml *nvml, const uint8_t *uuid, const char *group, gm_raw_limits *out);

#endif
