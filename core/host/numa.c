/* Sums are over all allowed nodes, also those that the list has no room for. The kernel says in `has_memory` which
 * nodes have memory; without that file a node has some unless its own file says 0. */
#include "core/host/host_readers.h"

#include <stdio.h>
#include <string.h>

#include "core/base/decimal.h"
#include "core/base/saturate.h"

typedef struct numa_walk {
  const char *root;
  const gm__id_set *allowed;
  bool told; /* `has_memory` said which nodes have memory */
  gm__numa *numa;
} numa_walk;

/* Keeps the list sorted; when it is full the highest id gives way. */
static void numa_list(gm__numa *numa, const gm_host_node *node) {
  uint32_t at = numa->listed;
  while (at > 0 && numa->nodes[at - 1].id > node->id) at--;
  if (at == GM_HOST_NODES_MAX) return;
  if (numa->listed < GM_HOST_NODES_MAX) numa->listed++;
  memmove(&numa->nodes[at + 1], &numa->nodes[at], (numa->listed - 1 - at) * sizeof *node);
  numa->nodes[at] = *node;
}

static uint64_t numa_or_zero(uint64_t bytes) { return bytes == GM_UNKNOWN_BYTES ? 0 : bytes; }

static void numa_sum(gm__numa *numa, const gm__meminfo *info) {
  if (info->total == GM_UNKNOWN_BYTES || info->free_memory == GM_UNKNOWN_BYTES) numa->complete = false;
  numa->total_bytes = gm__add_sat(numa->total_bytes, numa_or_zero(info->total));
  const uint64_t parts[] = {info->free_memory, info->active_file, info->inactive_file, info->reclaimable_slab};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    numa->room_bytes = gm__add_sat(numa->room_bytes, numa_or_zero(parts[i]));
  }
}

static bool numa_name(void *user, const char *name) {
  numa_walk *walk = user;
  uint64_t id;
  const char *end;
  if (strncmp(name, "node", 4) != 0 || !gm__decimal(name + 4, &end, &id) || *end || id > UINT32_MAX) return true;
  char path[96];
  snprintf(path, sizeof path, "/sys/devices/system/node/node%u/meminfo", (unsigned)id);
  gm__meminfo info;
  if (gm__meminfo_read(walk->root, path, &info) == GM__FILE_ABSENT) return true;
  gm_host_node node = {(uint32_t)id, !walk->allowed || gm__id_set_has(walk->allowed, id), info.total, info.free_memory};
  walk->numa->count++;
  numa_list(walk->numa, &node);
  if (node.allowed) numa_sum(walk->numa, &info);
  if (!node.allowed && !walk->told && info.total != 0) walk->numa->left_out = true;
  return true;
}

/* False: the kernel does not say which nodes have memory. */
static bool numa_with_memory(const char *root, gm__host_scratch *scratch) {
  char *text = scratch->line;
  const char *path = "/sys/devices/system/node/has_memory";
  if (gm__file_text(root, path, text, sizeof scratch->line) != GM__FILE_OK) return false;
  return gm__id_set_parse(text, &scratch->some);
}

void gm__numa_read(const char *root, const gm__id_set *allowed, bool list, gm__host_scratch *scratch) {
  gm__numa *out = &scratch->numa;
  memset(out, 0, sizeof *out);
  out->complete = true;
  numa_walk walk = {root, allowed, numa_with_memory(root, scratch), out};
  if (walk.told && allowed) {
    out->left_out = gm__id_set_count(&scratch->some, allowed) < gm__id_set_count(&scratch->some, NULL);
  }
  if (walk.told && !out->left_out && !list) return; /* the nodes bound nothing: see rule H5 */
  const gm__file_answer names = gm__file_names(root, "/sys/devices/system/node", numa_name, &walk);
  out->unread = !walk.told && names != GM__FILE_OK && names != GM__FILE_ABSENT;
}
