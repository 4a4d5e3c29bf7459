#include "backends/cpu/cpu_nodes.h"

#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/file.h"

#if GM_HAVE_HWLOC
#include <sys/auxv.h>

#include "core/base/optional.h"

/* The calls of hwloc 2 that gm makes. A set of nodes is a bitmap there. */
typedef struct nodes_topology nodes_topology;
typedef struct nodes_bitmap nodes_bitmap;
typedef struct nodes_hwloc {
  int (*init)(nodes_topology **topology);
  int (*set_filter)(nodes_topology *topology, int filter);
  int (*load)(nodes_topology *topology);
  void (*destroy)(nodes_topology *topology);
  const nodes_bitmap *(*allowed)(nodes_topology *topology);
  int (*next)(const nodes_bitmap *nodes, int before); /* -1 before the first one, and behind the last */
} nodes_hwloc;

enum { NODES_KEEP_NONE = 1 }; /* HWLOC_TYPE_FILTER_KEEP_NONE */

static nodes_hwloc nodes_calls;
static void nodes_load(void);
static const gm__symbol nodes_symbols[] = {
    {"hwloc_topology_init", offsetof(nodes_hwloc, init), true},
    {"hwloc_topology_set_all_types_filter", offsetof(nodes_hwloc, set_filter), true},
    {"hwloc_topology_load", offsetof(nodes_hwloc, load), true},
    {"hwloc_topology_destroy", offsetof(nodes_hwloc, destroy), true},
    {"hwloc_topology_get_allowed_nodeset", offsetof(nodes_hwloc, allowed), true},
    {"hwloc_bitmap_next", offsetof(nodes_hwloc, next), true}};
static gm__optional nodes_library = GM__OPTIONAL("hwloc", "libhwloc.so.15", "GM_HWLOC_LIBRARY", "install libhwloc 2",
                                                 nodes_symbols, &nodes_calls, nodes_load);

static void nodes_load(void) { gm__optional_load(&nodes_library); }

static bool nodes_by_hwloc(gm__id_set *out) {
  nodes_topology *topology;
  const nodes_hwloc *hwloc = getauxval(AT_SECURE) ? NULL : gm__optional_open(&nodes_library, NULL);
  if (!hwloc || hwloc->init(&topology) != 0) return false;
  hwloc->set_filter(topology, NODES_KEEP_NONE); /* hwloc always keeps nodes */
  const bool good = hwloc->load(topology) == 0;
  if (good) {
    const nodes_bitmap *nodes = hwloc->allowed(topology);
    for (int id = hwloc->next(nodes, -1); id >= 0 && id < GM__ID_SET_MAX; id = hwloc->next(nodes, id)) {
      out->bits[id / 64] |= UINT64_C(1) << id % 64;
    }
  }
  hwloc->destroy(topology);
  return good && gm__id_set_count(out, NULL) > 0;
}
#else
static bool nodes_by_hwloc(gm__id_set *out) {
  (void)out;
  return false;
}
#endif

gm_status gm__cpu_nodes_read(gm__id_set *out, gm_error *err) {
  char text[4096];
  memset(out, 0, sizeof *out);
  if (nodes_by_hwloc(out)) return GM_OK;
  const char *const files[] = {"/sys/devices/system/node/has_memory", "/sys/devices/system/node/online"};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    if (gm__file_text("", files[i], text, sizeof text) == GM__FILE_OK && gm__id_set_parse(text, out)) return GM_OK;
  }
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "numa", "the system does not tell which memory nodes it has");
}

void gm__cpu_nodes_text(const gm__id_set *nodes, char *out, size_t capacity) {
  size_t used = 0;
  out[0] = 0;
  for (uint64_t first = 0; first < GM__ID_SET_MAX && used < capacity; first++) {
    if (!gm__id_set_has(nodes, first)) continue;
    uint64_t last = first;
    while (last + 1 < GM__ID_SET_MAX && gm__id_set_has(nodes, last + 1)) last++;
    const char *comma = used ? "," : "";
    const int length = first == last
                           ? snprintf(out + used, capacity - used, "%s%u", comma, (unsigned)first)
                           : snprintf(out + used, capacity - used, "%s%u-%u", comma, (unsigned)first, (unsigned)last);
    used += length > 0 ? (size_t)length : 0;
    first = last;
  }
}
