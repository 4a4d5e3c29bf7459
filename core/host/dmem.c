/* Each level's room comes from its own files, since a group holds what all its descendants hold. Nothing is cached. */
#include "core/host/dmem.h"

#include <stdio.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/saturate.h"
#include "core/host/host_readers.h"
#include "gm/memory_info.h"

/* The device's regions in one file, added up. */
typedef struct dmem_sum {
  gm__pci address;
  bool any;
  uint64_t bytes; /* GM_UNKNOWN_BYTES: one of them is "max", or not understood */
} dmem_sum;

typedef struct dmem_walk {
  const char *root;
  gm__pci address;
  gm__host_scratch *scratch;
  gm__dmem *out;
} dmem_walk;

/* "drm/0000:03:00.0/vram0", "nvidia/0000:41:00.0/vidmem": one part is the address, the last one the kind. Regions that
 * the device only maps, or that its firmware keeps, do not count. */
static bool dmem_is_of(const char *region, size_t length, gm__pci address) {
  bool names = false, own = false;
  for (const char *at = region, *end = region + length; at < end;) {
    const size_t part = strcspn(at, "/ \t");
    char text[GM__PCI_TEXT_SIZE] = "";
    if (part < sizeof text) memcpy(text, at, part);
    names = names || gm__pci_same(gm__pci_parse(text), address);
    own = strncmp(text, "vram", 4) == 0 || strcmp(text, "vidmem") == 0;
    at += part + 1;
  }
  return names && own;
}

static bool dmem_line(void *user, char *line) {
  dmem_sum *sum = user;
  const size_t length = strcspn(line, " \t");
  uint64_t bytes = GM_UNKNOWN_BYTES;
  if (!line[length] || !dmem_is_of(line, length, sum->address)) return true;
  if (!gm__cgroup_number(line + length, &bytes)) bytes = GM_UNKNOWN_BYTES;
  sum->any = true;
  sum->bytes = gm__add_sat(sum->bytes, bytes);
  return true;
}

/* GM_UNKNOWN_BYTES: no file, no line of this device, or no number. */
static uint64_t dmem_value(const dmem_walk *walk, const char *name) {
  dmem_sum sum = {.address = walk->address};
  const char *path = gm__cgroup_file(walk->scratch, name);
  if (!path || gm__file_lines(walk->root, path, dmem_line, &sum) != GM__FILE_OK || !sum.any) return GM_UNKNOWN_BYTES;
  return sum.bytes;
}

static void dmem_offer(uint64_t *bound, char *name, uint64_t bytes, const char *directory) {
  if (bytes >= *bound) return;
  *bound = bytes;
  snprintf(name, GM__DMEM_NAME_SIZE, "dmem:%s", directory);
}

/* The last level that is read is the own group. */
static void dmem_level(void *user) {
  const dmem_walk *walk = user;
  gm__dmem *out = walk->out;
  const uint64_t limit = dmem_value(walk, "dmem.max"), held = dmem_value(walk, "dmem.current");
  const uint64_t sure = dmem_value(walk, "dmem.min");
  const bool holds = held != GM_UNKNOWN_BYTES;
  out->borrowed_bytes = holds && sure != GM_UNKNOWN_BYTES && sure > 0 ? gm__sub_sat(held, sure) : 0;
  if (limit == GM_UNKNOWN_BYTES) return;
  if (!holds) out->partly = true;
  dmem_offer(&out->total_bytes, out->total_name, limit, walk->scratch->directory);
  dmem_offer(&out->free_bytes, out->free_name, holds ? gm__sub_sat(limit, held) : limit, walk->scratch->directory);
}

bool gm__dmem_read(const gm_services *services, const char *root, gm__pci address, gm__dmem *out) {
  *out = (gm__dmem){.total_bytes = GM_UNKNOWN_BYTES, .free_bytes = GM_UNKNOWN_BYTES};
  if (address.form != GM__PCI_FULL) return true;
  gm__host_scratch *scratch = gm__host_scratch_take(services);
  if (!scratch) return false;
  dmem_walk walk = {root, address, scratch, out};
  gm__cgroup_find(root, scratch);
  if (scratch->v2.found) gm__cgroup_each_level(scratch, &scratch->v2, dmem_level, &walk);
  gm__host_scratch_give(services, scratch);
  return true;
}

void gm__dmem_own_group(const gm_services *services, const char *root, char *out, size_t capacity) {
  gm__host_scratch *scratch = gm__host_scratch_take(services);
  out[0] = 0;
  if (!scratch) return;
  gm__cgroup_find(root, scratch);
  if (scratch->v2.found) {
    const int length = snprintf(out, capacity, "%s%s", scratch->v2.mount, scratch->v2.below);
    if (length < 0 || (size_t)length >= capacity) out[0] = 0;
  }
  gm__host_scratch_give(services, scratch);
}
