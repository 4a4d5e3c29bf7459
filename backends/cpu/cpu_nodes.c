#include "backends/cpu/cpu_nodes.h"

#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/file.h"

#if GM_HAVE_HWLOC
#include <hwloc.h>
#include <sys/auxv.h>

static bool nodes_by_hwloc(gm__id_set *out) {
  hwloc_topology_t topology;
  if (getauxval(AT_SECURE) || hwloc_topology_init(&topology) != 0) return false;
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE); /* hwloc always keeps nodes */
  const bool good = hwloc_topology_load(topology) == 0;
  if (good) {
    const hwloc_const_nodeset_t nodes = hwloc_topology_get_allowed_nodeset(topology);
    for (int id = hwloc_bitmap_first(nodes); id >= 0 && id < GM__ID_SET_MAX; id = hwloc_bitmap_next(nodes, id)) {
      out->bits[id / 64] |= UINT64_C(1) << id % 64;
    }
  }
  hwloc_topology_destroy(topology);
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
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "numa", "the system does not tell which memory nodes it has");
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
