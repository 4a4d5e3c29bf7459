/* Private pages as exclusive physical memory: mapped as a whole, at one place at a time. The system moves them between
 * addresses with their contents. Unlike a memfd, they are taken at first use, may be transparent huge pages, are a
 * forked child's own, and cost no descriptor. REQUIRES: vmm lock, for every function but gm__cpu_movable_try. */
#ifndef GM_BACKENDS_CPU_CPU_MOVABLE_H
#define GM_BACKENDS_CPU_CPU_MOVABLE_H

#include "backends/cpu/cpu_vmm.h"

/* Can the system move pages and keep the addresses (Linux 5.7)? False: errno says why not. */
bool gm__cpu_movable_try(const gm__cpu_syms *sys);

/* Map the pages at `at`, a reserved address. Pages that do not exist yet are made, zeroed. OUT_OF_DEVICE_MEMORY, SYSTEM
 * or NOT_SUPPORTED: then nothing is mapped. */
gm_status gm__cpu_movable_place(const gm__cpu_device *device, gm__cpu_physical *physical, unsigned char *at,
                                gm_error *err);

/* Unmap the pages; the addresses stay reserved. False: errno says why, and nothing has changed. */
bool gm__cpu_movable_take(const gm__cpu_syms *sys, gm__cpu_physical *physical);

/* Unmap the pages by name alone: they stay where they are, and nobody else may use these addresses meanwhile. */
void gm__cpu_movable_stay(gm__cpu_physical *physical);

/* Bring pages that stay to a home of their own. False: errno says why, and nothing has changed. */
bool gm__cpu_movable_leave(const gm__cpu_syms *sys, gm__cpu_physical *physical);

/* Free pages that are mapped nowhere. */
void gm__cpu_movable_discard(const gm__cpu_syms *sys, gm__cpu_physical *physical);

#endif
