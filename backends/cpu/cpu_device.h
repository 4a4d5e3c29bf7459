/* The driver and the device of the CPU backend. There is one device: the host. */
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

/* Blocks begin on cache lines. */
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
  gm__mutex lock;                 /* guards `pinned` */
  struct gm__cpu_pinned *pinned;  /* registered host ranges, newest first */
  gm__mutex vmm_lock;             /* guards the members below, and every mapping in the reserved ranges */
  unsigned char *vmm_spare;       /* mappings in reserve: unmapping may need some; NULL: none */
  gm__cpu_spans reserved, mapped; /* the reserved VA ranges; the parts of them that have memory */
  uint32_t staying;               /* exclusive memory whose pages stay where they were mapped last */
  gm__map movable;                /* from the address of a mapping to its exclusive gm__cpu_physical */
} gm__cpu_device;

#endif
