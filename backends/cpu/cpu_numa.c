#include "backends/cpu/cpu_numa.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <string.h>

#include "backends/cpu/cpu_nodes.h"
#include "backends/cpu/cpu_pages.h"
#include "core/base/error.h"
#include "core/base/text.h"

static gm_status numa_node(const char *text, const gm__id_set *nodes, gm__cpu_numa *out, gm_error *err) {
  uint64_t node;
  char list[200];
  const gm_status status = gm__text_u64("numa=node", text, &node, err);
  if (status) return status;
  if (!gm__id_set_has(nodes, node)) {
    gm__cpu_nodes_text(nodes, list, sizeof list);
    return gm__bad_argument(err, "cpu options", "`numa=node:%.20s`: the host has no such memory node, but: %s", text,
                            list);
  }
  out->policy = GM__CPU_NUMA_NODE;
  out->node = (uint32_t)node;
  out->nodes.bits[node / 64] = UINT64_C(1) << node % 64;
  return GM_OK;
}

gm_status gm__cpu_numa_parse(const char *text, gm__cpu_numa *out, gm_error *err) {
  gm__id_set nodes;
  gm_status status = gm__cpu_nodes_read(&nodes, err);
  if (status) return status;
  gm__cpu_numa numa = {.policy = GM__CPU_NUMA_LOCAL}; /* an empty set means the thread's own node */
  if (strncmp(text, "node:", 5) == 0) {
    status = numa_node(text + 5, &nodes, &numa, err);
  } else if (strcmp(text, "interleave") == 0) {
    numa.policy = GM__CPU_NUMA_INTERLEAVE;
    numa.nodes = nodes;
  } else if (strcmp(text, "local") != 0) {
    status = gm__bad_argument(err, "cpu options", "`numa` must be local, interleave or node:N, is `%.40s`", text);
  }
  if (status == GM_OK) *out = numa;
  return status;
}

/* The node is preferred, not bound: with a bound and full node the system would end the process. */
gm_status gm__cpu_numa_bind(const gm__cpu_numa *numa, const gm__cpu_syms *sys, void *begin, uint64_t bytes,
                            gm_error *err) {
  if (numa->policy == GM__CPU_NUMA_DEFAULT) return GM_OK;
  const bool spread = numa->policy == GM__CPU_NUMA_INTERLEAVE;
  if (sys->mbind(begin, bytes, spread ? MPOL_INTERLEAVE : MPOL_PREFERRED, numa->nodes.bits, GM__ID_SET_MAX) == 0) {
    return GM_OK;
  }
  const int code = errno;
  if (code == ENOMEM) return gm__cpu_pages_refused(err, "mbind", code, bytes);
  return gm__fail_native(err, code == EPERM || code == ENOSYS ? GM_ERR_NOT_SUPPORTED : GM_ERR_SYSTEM, code, "mbind",
                         "the system does not place memory on nodes: %s%s", strerror(code),
                         code == EPERM ? " (a container needs the capability SYS_NICE for it)" : "");
}

gm_status gm__cpu_numa_try(const gm__cpu_numa *numa, const gm__cpu_syms *sys, gm_error *err) {
  if (numa->policy == GM__CPU_NUMA_DEFAULT) return GM_OK;
  const uint64_t page = gm__cpu_page();
  unsigned char *begin = gm__cpu_pages_map(sys, GM__CPU_PAGES_MEMORY, page, page);
  if (!begin) return gm__cpu_pages_refused(err, "mmap", errno, page);
  const gm_status status = gm__cpu_numa_bind(numa, sys, begin, page, err);
  sys->munmap(begin, page);
  return status;
}
