#include "core/tier/disk/disk_put.h"

#include <inttypes.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/tier/disk/disk_flush.h"
#include "core/tier/disk/disk_record.h"

/* Invariant: the record of a value that was replaced is marked dead only once its successor is on the disk
 * (disk_flush.c). The index has all that it will need before a record is written. */

static gm_status disk_no_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_put", "no host memory for a key");
}

/* The entry of a key. The writer is the only one who changes entries, so it stays what it is. */
static gm__disk_entry *disk_entry_find(gm__disk_tier *tier, const void *key, size_t key_bytes) {
  gm__mutex_lock(&tier->lock);
  gm__disk_entry *entry = (gm__disk_entry *)gm__key_map_find(&tier->entries, key, key_bytes);
  gm__mutex_unlock(&tier->lock);
  return entry;
}

/* The record of an entry is dead. REQUIRES: both locks; room for a place. */
static void disk_entry_dies(gm__disk_tier *tier, const gm__disk_entry *entry) {
  if (entry->at) tier->replaced[tier->replaced_count++] = entry->at;
  tier->dead_bytes += entry->bytes;
  tier->stats.values--;
  tier->stats.value_bytes -= entry->value_bytes;
}

static gm_status disk_bound(const gm__disk_tier *tier, const gm__disk_entry *old, uint64_t bytes, gm_error *err) {
  const uint64_t kept = tier->stats.value_bytes - (old ? old->value_bytes : 0); /* only the writer changes it */
  const uint64_t most = tier->params.max_bytes ? tier->params.max_bytes : UINT64_MAX;
  if (bytes > GM__DISK_VALUE_MOST) {
    return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, "gm_tier_put", "a value has at most 2^50 bytes");
  }
  if (kept <= most && bytes <= most - kept) return GM_OK;
  return gm__fail(err, GM_ERR_OVER_LIMIT, "gm_tier_put",
                  "%" PRIu64 " bytes beside %" PRIu64 " are more than the tier's %" PRIu64, bytes, kept, most);
}

/* Makes what the index will need: `entry` is the key's own, or a new one that is not linked. */
static gm_status disk_entry_ready(gm__disk_tier *tier, const void *key, size_t key_bytes, gm__disk_entry **entry,
                                  gm_error *err) {
  if (*entry) return gm__disk_replaced_reserve(tier, err);
  gm__disk_entry *fresh = gm__alloc(gm__disk_services(tier), sizeof *fresh);
  if (!fresh) return disk_no_memory(err);
  gm__mutex_lock(&tier->lock);
  const bool ready = gm__key_map_prepare(&tier->entries, &fresh->head, key, key_bytes);
  gm__mutex_unlock(&tier->lock);
  if (!ready) {
    gm__release(gm__disk_services(tier), fresh, sizeof *fresh);
    return disk_no_memory(err);
  }
  *entry = fresh;
  return GM_OK;
}

static void disk_entry_set(gm__disk_tier *tier, gm__disk_entry *entry, bool fresh, const gm__disk_record *record) {
  gm__mutex_lock(&tier->lock);
  if (!fresh) disk_entry_dies(tier, entry);
  entry->at = record->at;
  entry->bytes = record->bytes;
  entry->value_bytes = record->value_bytes;
  entry->damaged = false;
  if (fresh) gm__key_map_link(&tier->entries, &entry->head);
  tier->stats.values++;
  tier->stats.value_bytes += record->value_bytes;
  tier->stats.written_bytes += record->bytes;
  tier->stats.puts++;
  gm__mutex_unlock(&tier->lock);
}

static gm_status disk_put(gm__disk_tier *tier, const void *key, size_t key_bytes, const gm_tier_part *parts,
                          uint64_t bytes, gm_error *err) {
  gm__disk_record record;
  gm__disk_entry *entry = disk_entry_find(tier, key, key_bytes);
  const bool fresh = !entry;
  gm_status status = disk_bound(tier, entry, bytes, err);
  if (!status) status = gm__disk_buffers(tier, bytes, err);
  if (!status) status = disk_entry_ready(tier, key, key_bytes, &entry, err);
  if (status) return status;
  status = gm__disk_write(tier, GM__DISK_PUT, key, key_bytes, parts, bytes, &record, err);
  if (!status) {
    disk_entry_set(tier, entry, fresh, &record);
  } else if (fresh) {
    gm__key_map_drop(&tier->entries, &entry->head);
    gm__release(gm__disk_services(tier), entry, sizeof *entry);
  }
  return status;
}

gm_status gm__disk_put(void *own, const void *key, size_t key_bytes, const gm_tier_part *parts, size_t count,
                       gm_error *err) {
  gm__disk_tier *tier = own;
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; i++) bytes += parts[i].bytes;
  gm__mutex_lock(&tier->writer);
  const gm_status status = disk_put(tier, key, key_bytes, parts, bytes, err);
  if (!status) gm__disk_flush_after(tier);
  gm__mutex_unlock(&tier->writer);
  return status;
}

static gm_status disk_remove(gm__disk_tier *tier, const void *key, size_t key_bytes, gm_error *err) {
  gm__disk_entry *entry = disk_entry_find(tier, key, key_bytes);
  if (!entry) return gm__fail(err, GM_ERR_NOT_FOUND, "gm_tier_remove", "the tier has no value of that key");
  gm_status status = gm__disk_replaced_reserve(tier, err);
  if (!status) status = gm__disk_append(tier, GM__DISK_REMOVE, key, key_bytes, err);
  if (status) return status;
  gm__mutex_lock(&tier->lock);
  disk_entry_dies(tier, entry);
  tier->stats.removes++;
  gm__key_map_remove(&tier->entries, &entry->head);
  gm__mutex_unlock(&tier->lock);
  gm__release(gm__disk_services(tier), entry, sizeof *entry);
  return GM_OK;
}

gm_status gm__disk_remove(void *own, const void *key, size_t key_bytes, gm_error *err) {
  gm__disk_tier *tier = own;
  gm__mutex_lock(&tier->writer);
  const gm_status status = disk_remove(tier, key, key_bytes, err);
  if (!status) gm__disk_flush_after(tier);
  gm__mutex_unlock(&tier->writer);
  return status;
}
