/* Pressure stall information of the kernel for memory (rule H11). It never changes a total or a free figure. */
#ifndef GM_CORE_DEVICE_PSI_H
#define GM_CORE_DEVICE_PSI_H

#include "gm/memory_info.h"

/* Read /proc/pressure/memory; a line that is absent or not understood leaves its figure invalid. */
void gm__psi_read(const char *root, gm_host_stall *out_some, gm_host_stall *out_full);

#endif
