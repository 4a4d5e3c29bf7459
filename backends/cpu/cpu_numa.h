/* Where the memory of the CPU backend lies: the option `numa`. */
#ifndef GM_BACKENDS_CPU_CPU_NUMA_H
#define GM_BACKENDS_CPU_CPU_NUMA_H

#include "backends/cpu/cpu_syms.h"
#include "core/base/id_set.h"

typedef enum gm__cpu_numa_policy {
  GM__CPU_NUMA_DEFAULT = 0, /* as the process says */
  GM__CPU_NUMA_LOCAL,       /* near the thread that touches it first */
  GM__CPU_NUMA_INTERLEAVE,  /* page by page over all nodes */
  GM__CPU_NUMA_NODE         /* on one node, as long as it has room */
} gm__cpu_numa_policy;

typedef struct gm__cpu_numa {
  gm__cpu_numa_policy policy;
  uint32_t node;    /* GM__CPU_NUMA_NODE */
  gm__id_set nodes; /* to place memory on */
} gm__cpu_numa;

/* "local", "interleave" or "node:N". INVALID_ARGUMENT, also for a node that is not there: the reason lists those that
 * are. */
gm_status gm__cpu_numa_parse(const char *text, gm__cpu_numa *out, gm_error *err);

/* For pages that nobody has touched so far. NOT_SUPPORTED where the system does not let us (containers do not), SYSTEM.
 */
gm_status gm__cpu_numa_bind(const gm__cpu_numa *numa, const gm__cpu_syms *sys, void *begin, uint64_t bytes,
                            gm_error *err);

/* Is binding possible at all? As above, tried on a page of our own. */
gm_status gm__cpu_numa_try(const gm__cpu_numa *numa, const gm__cpu_syms *sys, gm_error *err);

#endif
