/* Virtual memory: ranges of addresses with nothing behind them, and memfds, or private pages, that are placed there.
 * Misuse (a range that is not reserved, is mapped twice, or is unmapped in part) is INVALID_ARGUMENT: a fixed mapping
 * in the wrong place would take away the host's memory. Entry 16. Thread-safe. */
#ifndef GM_BACKENDS_CPU_CPU_VMM_H
#define GM_BACKENDS_CPU_CPU_VMM_H

#include "backends/cpu/cpu_device.h"

/* One piece of physical memory: the handle points here. */
typedef struct gm__cpu_physical {
  int fd; /* -1: exclusive, and of private pages (cpu_movable.h) */
  uint64_t bytes;
  bool shareable;
  /* The rest is for private pages, under the device's vmm_lock. */
  unsigned char *at;   /* where they are mapped; NULL: nowhere */
  unsigned char *home; /* where they are while they are mapped nowhere; NULL: nobody has used them so far */
  bool destroyed;      /* the handle is gone, the mapping not yet */
} gm__cpu_physical;

void gm__cpu_vmm_init(gm__cpu_device *device);
void gm__cpu_vmm_clear(gm__cpu_device *device, gm_close_mode mode); /* lets go of ranges that are still reserved */

/* 2 MiB: so few pieces that the limits of a process (descriptors, mappings) are far, and a whole huge page each. */
uint64_t gm__cpu_vmm_granule(void);

/* A handle for `fd`, which belongs to it from then on. OUT_OF_HOST_MEMORY: not yet. */
gm_status gm__cpu_vmm_handle(gm__cpu_device *device, int fd, uint64_t bytes, bool shareable, uint64_t *out_handle,
                             gm_error *err);

/* Exclusive memory: NOT_SUPPORTED where the system cannot move pages, or with the option `memfd` has none; and where
 * the process's addresses are limited. */
gm_status gm__cpu_vmm_granularity(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err);
gm_status gm__cpu_vmm_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err);

/* GM_ERR_BUSY while something is mapped there. */
gm_status gm__cpu_vmm_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err);

/* The bytes are taken now, exclusive ones at first use; given back when neither the handle nor a mapping is left. */
gm_status gm__cpu_vmm_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out_handle,
                             gm_error *err);
gm_status gm__cpu_vmm_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err);

/* The same bytes may be mapped at several addresses. Open for reading and writing from the start. */
gm_status gm__cpu_vmm_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                          gm_error *err);
gm_status gm__cpu_vmm_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err);
gm_status gm__cpu_vmm_access(void *device, uint64_t address, uint64_t bytes, gm_error *err);

/* Entry 20. */
gm_status gm__cpu_vmm_memory(void *device, uint64_t address, uint64_t bytes, uint32_t type, gm_memory *out,
                             gm_error *err);

#endif
