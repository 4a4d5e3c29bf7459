/* Memory figures of the host: one part of gm_host_info_read. */
#ifndef GM_CORE_HOST_HOST_INFO_H
#define GM_CORE_HOST_HOST_INFO_H

#include <stdbool.h>

#include "gm/memory_info.h"
#include "gm/services.h"

/* Read total and free memory now, with what bounds them, below `root` ("" for the real one). Processor and stall
 * figures stay empty: they cost as much again, because files of a machine with many cores are long. The list of
 * nodes stays empty where the kernel says that no node with memory was left out: their files are not read then. False:
 * there is no host memory to read the figures with. Then all is unknown. */
bool gm__host_memory_read(const gm_services *services, const char *root, gm_host_info *out);

#endif
