/* The memory nodes of the host. hwloc tells them where gm is built with it, else the kernel's files. */
#ifndef GM_BACKENDS_CPU_CPU_NODES_H
#define GM_BACKENDS_CPU_CPU_NODES_H

#include <stddef.h>

#include "core/base/id_set.h"
#include "gm/status.h"

/* The nodes with memory that this process may use. NOT_SUPPORTED when the system tells none. hwloc follows its own
 * environment variables (HWLOC_SYNTHETIC, HWLOC_XMLFILE). A process with more rights than its user asks only the
 * kernel. */
gm_status gm__cpu_nodes_read(gm__id_set *out, gm_error *err);

/* Write `nodes` as "0-1,3", as far as it fits. */
void gm__cpu_nodes_text(const gm__id_set *nodes, char *out, size_t capacity);

#endif
