/* Grouping discovered entries into physical devices. */
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/device/discovery.h"
#include "core/device/identity.h"

static gm__identity group_identity(const gm_device_entry *entry) {
  gm__identity identity = gm__identity_of_device(&entry->info);
  identity.api = entry->id.backend;
  identity.total_bytes = entry->memory.total_bytes;
  return identity;
}

gm_status gm__discovery_group(const gm_services *services, gm_device_entry *entries, size_t count, gm_error *err) {
  gm__identity *identities = gm__alloc_array(services, count, sizeof *identities);
  bool enough = identities != NULL;
  if (enough) {
    for (size_t i = 0; i < count; i++) identities[i] = group_identity(&entries[i]);
    gm__identity_group(identities, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
      entries[i].physical = identities[i].group;
      entries[i].host_pool = identities[i].host_pool;
      entries[i].counted = identities[i].counted;
    }
  }
  gm__release(services, identities, count * sizeof *identities);
  if (enough) return GM_OK;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "discover", "no host memory to group %zu devices", count);
}
