/* Grouping discovered entries into physical devices. */
#include <stdio.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/device/discovery.h"
#include "core/device/identity.h"

typedef struct group_texts {
  char uuid[2 * GM_UUID_BYTES + 1];
  char luid[2 * GM_LUID_BYTES + 1];
} group_texts;

static void group_hex(const uint8_t *bytes, size_t count, char *out) {
  for (size_t i = 0; i < count; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* A UUID that gm made up says nothing about identity. */
static gm__identity group_identity(const gm_device_entry *entry, group_texts *texts) {
  const gm_device_info *info = &entry->info;
  if (!info->uuid_derived) group_hex(info->uuid, sizeof info->uuid, texts->uuid);
  if (info->has_luid) group_hex(info->luid, sizeof info->luid, texts->luid);
  return (gm__identity){.api = entry->id.backend,
                        .vendor = info->vendor,
                        .driver = info->driver,
                        .pci = info->pci,
                        .uuid = texts->uuid,
                        .luid = texts->luid,
                        .partition = info->partition,
                        .type = info->type,
                        .parent = GM_IDENTITY_NO_PARENT,
                        .total_bytes = entry->memory.total_bytes};
}

gm_status gm__discovery_group(const gm_services *services, gm_device_entry *entries, size_t count, gm_error *err) {
  gm__identity *identities = gm__alloc_array(services, count, sizeof *identities);
  group_texts *texts = gm__alloc_array(services, count, sizeof *texts);
  bool enough = identities && texts;
  if (enough) {
    for (size_t i = 0; i < count; i++) identities[i] = group_identity(&entries[i], &texts[i]);
    gm__identity_group(identities, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
      entries[i].physical = identities[i].group;
      entries[i].host_pool = identities[i].host_pool;
      entries[i].counted = identities[i].counted;
    }
  }
  gm__release(services, texts, count * sizeof *texts);
  gm__release(services, identities, count * sizeof *identities);
  if (enough) return GM_OK;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "discover", "no host memory to group %zu devices", count);
}
