/* The part of gm_host_info_read that concerns memory. */
#ifndef GM_CORE_DEVICE_HOST_INFO_H
#define GM_CORE_DEVICE_HOST_INFO_H

#include "gm/memory_info.h"

/* Total, free and what bounds them, below `root` ("" for the real one), read now. Processor and stall figures are left
 * out: they cost as much again, and the files of a machine with many cores are long. */
void gm__host_memory_read(const char *root, gm_host_info *out);

#endif
