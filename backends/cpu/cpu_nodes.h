/* Which memory nodes the host has: by hwloc where gm is built with it, else by the kernel's files. */
#ifndef GM_BACKENDS_CPU_CPU_NODES_H
#define GM_BACKENDS_CPU_CPU_NODES_H

#include <stddef.h>

#include "core/base/id_set.h"
#include "gm/status.h"

/* Nodes with memory that this process may use. NOT_SUPPORTED when the system does not tell any. hwloc follows its own
 * environment (HWLOC_SYNTHETIC, HWLOC_XMLFILE); a process with more rights than its user asks the kernel alone. */
gm_status gm__cpu_nodes_read(gm__id_set *out, gm_error *err);

/* "0-1,3" as far as it fits. */
void gm__cpu_nodes_text(const gm__id_set *nodes, char *out, size_t capacity);

#endif
