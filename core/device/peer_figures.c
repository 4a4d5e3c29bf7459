/* The figure that another API has for the same card (rule D10 b). Locks of drivers are only tried for, never waited
 * for: the caller may hold its own driver's. */
#include <string.h>

#include "core/device/device_figures.h"
#include "core/device/pci.h"

/* The same card for certain: by full address and partition, or by a UUID that the APIs gave. */
static bool peer_is_same(const gm_device_info *a, const gm_device_info *b) {
  if (strcmp(a->partition, b->partition) != 0) return false;
  gm__pci at = gm__pci_parse(a->pci), other = gm__pci_parse(b->pci);
  if (at.form == GM__PCI_FULL && other.form == GM__PCI_FULL) return gm__pci_same(at, other);
  return !a->uuid_derived && !b->uuid_derived && memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0;
}

/* A figure that was itself put together from others' is none. */
static bool peer_has_figure(const gm_memory_info *memory) {
  return memory->free_state != GM_FIGURE_UNKNOWN && memory->free_source != GM_SOURCE_OWN_ACCOUNTING &&
         memory->free_source != GM_SOURCE_PEER_API;
}

/* The peer's lock is held. OpenCL entries are no peers: they have no figure of their own, and would ask back. */
static bool peer_read(gm__driver *peer, const gm_device_info *info, gm_memory_info *out) {
  if (!peer->handle || peer->info.status != GM_OK || peer->info.api == GM_API_OPENCL) return false;
  for (uint32_t i = 0; i < peer->entry_count; i++) {
    const gm__figures_subject subject = {.driver = peer, .info = &peer->entries[i].info};
    if (!peer_is_same(info, subject.info)) continue;
    return gm__device_figures(&subject, out, NULL) == GM_OK && peer_has_figure(out);
  }
  return false;
}

bool gm__peer_figures(gm__driver *driver, const gm_device_info *info, gm_memory_info *out) {
  gm__registry *registry = NULL;
  bool found = false;
  if (info->type == GM_DEVICE_TYPE_CPU || gm__registry_get(driver->ctx, &registry, NULL) != GM_OK) return false;
  for (uint32_t i = 0; i < registry->count && !found; i++) {
    gm__driver *peer = registry->drivers[i];
    if (peer == driver || !gm__mutex_try_lock(&peer->lock)) continue;
    found = peer_read(peer, info, out);
    gm__mutex_unlock(&peer->lock);
  }
  return found;
}
