/* Virtual memory: VA ranges without memory, and memfds or private pages that are mapped there. Misuse is
 * INVALID_ARGUMENT: a range that is not reserved, is mapped twice, or is unmapped in part. A fixed mapping in the wrong
 * place would replace the host's memory. Thread-safe. */
#ifndef GM_BACKENDS_CPU_CPU_VMM_H
#define GM_BACKENDS_CPU_CPU_VMM_H

#include "backends/cpu/cpu_device.h"

/* One piece of physical memory. The handle points to it. */
typedef struct gm__cpu_physical {
  int fd; /* -1: exclusive memory of private pages (cpu_movable.h) */
  uint64_t bytes;
  bool shareable;
  /* The members below are for private pages. The vmm lock of the device guards them. */
  unsigned char *at;   /* where the pages are mapped; NULL: nowhere */
  unsigned char *home; /* where the pages are while they are not mapped; NULL: nobody has used them so far */
  bool destroyed;      /* the handle is gone, the mapping is not */
  bool stays;          /* `home` is where the pages were mapped last: there was no mapping left for another place */
} gm__cpu_physical;

void gm__cpu_vmm_init(gm__cpu_device *device);
void gm__cpu_vmm_clear(gm__cpu_device *device, gm_close_mode mode); /* unmaps the ranges that are still reserved */

/* 2 MiB: a whole huge page, and few enough pieces to stay far from a process's limits (descriptors, mappings). */
uint64_t gm__cpu_vmm_granule(void);

/* Make a handle, which then owns `fd`. After OUT_OF_HOST_MEMORY the caller still owns it. */
gm_status gm__cpu_vmm_handle(gm__cpu_device *device, int fd, uint64_t bytes, bool shareable, uint64_t *out_handle,
                             gm_error *err);

#endif
