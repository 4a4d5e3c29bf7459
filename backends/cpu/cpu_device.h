/* Driver and device of the CPU backend: one device, the host. */
#ifndef GM_BACKENDS_CPU_CPU_DEVICE_H
#define GM_BACKENDS_CPU_CPU_DEVICE_H

#include "backends/cpu/cpu_options.h"
#include "backends/cpu/cpu_spans.h"
#include "core/base/map.h"
#include "core/base/thread.h"
#include "gm/backend.h"

#define GM__CPU_CAPABILITIES                                                                                           \
  (GM_CAP_STREAMS | GM_CAP_POINTS | GM_CAP_MAPPING | GM_CAP_VMM | GM_CAP_SHARE | GM_CAP_REGISTRATION | GM_CAP_COMMIT | \
   GM_CAP_ADDRESS)

/* Blocks are carved on cache lines. */
#define GM__CPU_ALIGNMENT 64u

typedef struct gm__cpu_driver {
  const gm_services *services;
  gm__cpu_syms sys;
  gm__cpu_options options;
} gm__cpu_driver;

typedef struct gm__cpu_device {
  const gm_services *services;
  const gm__cpu_syms *sys;        /* the driver's */
  const gm__cpu_options *options; /* the driver's */
  gm__mutex lock;                 /* of `pinned` */
  struct gm__cpu_pinned *pinned;  /* registered host ranges, newest first */
  gm__mutex vmm_lock;             /* of all below, and of what is mapped there */
  unsigned char *vmm_spare;       /* mappings given up where giving back takes some; NULL: none */
  gm__cpu_spans reserved, mapped; /* addresses of virtual memory; what of it has memory behind it */
  gm__map movable;                /* address of a mapping to its gm__cpu_physical, where that is exclusive */
} gm__cpu_device;

/* Entries 2 to 4 and 6 of the seam. */
gm_status gm__cpu_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err);
gm_status gm__cpu_init(const gm_backend_host *host, void **out_driver, gm_error *err);
void gm__cpu_fini(void *driver, gm_close_mode mode);
gm_status gm__cpu_device_count(void *driver, uint32_t *out, gm_error *err);
gm_status gm__cpu_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err);
gm_status gm__cpu_device_open(void *driver, uint32_t index, void **out_device, gm_error *err);
void gm__cpu_device_close(void *device, gm_close_mode mode);
gm_status gm__cpu_device_state(void *device, gm_error *err);
gm_status gm__cpu_device_native(void *device, gm_native_device *out, gm_error *err);
gm_status gm__cpu_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err);

#endif
