/* Private pages as physical memory that is mapped as a whole, at one place at a time: the system moves them between
 * addresses, with what is in them. Unlike memory with a descriptor they are taken at first use, may be transparent huge
 * pages, are a forked child's own, and cost no descriptor. Under the device's vmm_lock. */
#ifndef GM_BACKENDS_CPU_CPU_MOVABLE_H
#define GM_BACKENDS_CPU_CPU_MOVABLE_H

#include "backends/cpu/cpu_vmm.h"

/* Does the system move pages and keep the addresses (Linux 5.7)? False: errno says why not. */
bool gm__cpu_movable_try(const gm__cpu_syms *sys);

/* To `at`, which is reserved: the pages, or zeroed ones if there were none. OUT_OF_DEVICE_MEMORY, SYSTEM,
 * NOT_SUPPORTED: then nothing is there. */
gm_status gm__cpu_movable_place(const gm__cpu_device *device, gm__cpu_physical *physical, unsigned char *at,
                                gm_error *err);

/* From where they are; the addresses stay taken. False: errno says why, and all is as it was. */
bool gm__cpu_movable_take(const gm__cpu_syms *sys, gm__cpu_physical *physical);

/* Gives back pages that are mapped nowhere. */
void gm__cpu_movable_discard(const gm__cpu_syms *sys, gm__cpu_physical *physical);

#endif
