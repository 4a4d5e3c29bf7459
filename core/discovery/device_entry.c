#include "core/discovery/device_entry.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/discovery/answer.h"
#include "core/discovery/identity.h"

void gm__device_entry_clean(const gm__driver *driver, uint32_t index, gm_device_info *info) {
  info->struct_size = sizeof *info;
  info->index = index;
  memset(info->reserved, 0, sizeof info->reserved);
  memcpy(info->backend, driver->info.name, sizeof info->backend);
  gm__answer_mend_info(info);
  /* Not every device can do all that its backend's table has: one that tells anything is believed. */
  if (!info->capabilities) info->capabilities = driver->group_capabilities & driver->ops.capabilities;
}

void gm__device_entry_enter(const gm__driver *driver, uint32_t index, gm_device_entry *entry) {
  gm__device_entry_clean(driver, index, &entry->info);
  entry->struct_size = sizeof *entry;
  memcpy(entry->id.backend, driver->info.name, sizeof entry->id.backend);
  memcpy(entry->id.uuid, entry->info.uuid, sizeof entry->id.uuid);
  memcpy(entry->id.partition, entry->info.partition, sizeof entry->id.partition);
}

static gm__identity entry_identity(const gm_device_entry *entry) {
  gm__identity identity = gm__identity_of_device(&entry->info);
  identity.api = entry->id.backend;
  identity.total_bytes = entry->memory.total_bytes;
  return identity;
}

gm_status gm__device_entry_group(const gm_services *services, gm_device_entry *entries, size_t count, gm_error *err) {
  gm__identity *identities = gm__alloc_array(services, count, sizeof *identities);
  bool enough = identities != NULL;
  if (enough) {
    for (size_t i = 0; i < count; i++) identities[i] = entry_identity(&entries[i]);
    gm__identity_group(identities, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
      entries[i].physical = identities[i].group;
      entries[i].host_pool = identities[i].host_pool;
      entries[i].counted = identities[i].counted;
    }
  }
  gm__release(services, identities, count * sizeof *identities);
  if (enough) return GM_OK;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "discover", "no host memory to group %zu devices", count);
}
