/* The option `numa`: the memory nodes that the CPU backend takes memory from. */
#ifndef GM_BACKENDS_CPU_CPU_NUMA_H
#define GM_BACKENDS_CPU_CPU_NUMA_H

#include "backends/cpu/cpu_syms.h"
#include "core/base/id_set.h"

typedef enum gm__cpu_numa_policy {
  GM__CPU_NUMA_DEFAULT = 0, /* the process's own policy */
  GM__CPU_NUMA_LOCAL,       /* near the thread that touches it first */
  GM__CPU_NUMA_INTERLEAVE,  /* page by page over all nodes */
  GM__CPU_NUMA_NODE         /* on one node, as long as that node has memory */
} gm__cpu_numa_policy;

typedef struct gm__cpu_numa {
  gm__cpu_numa_policy policy;
  uint32_t node;    /* for GM__CPU_NUMA_NODE */
  gm__id_set nodes; /* the nodes to take memory from */
} gm__cpu_numa;

/* Read "local", "interleave" or "node:N". INVALID_ARGUMENT otherwise. For a node that the host does not have the reason
 * lists the nodes that it has. */
gm_status gm__cpu_numa_parse(const char *text, gm__cpu_numa *out, gm_error *err);

/* Bind pages that nobody has touched so far. NOT_SUPPORTED where the system forbids it (containers do). SYSTEM. */
gm_status gm__cpu_numa_bind(const gm__cpu_numa *numa, const gm__cpu_syms *sys, void *begin, uint64_t bytes,
                            gm_error *err);

/* Try gm__cpu_numa_bind on one page, and return its answer. */
gm_status gm__cpu_numa_try(const gm__cpu_numa *numa, const gm__cpu_syms *sys, gm_error *err);

#endif
