#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/tier/disk_codec.h"
#include "core/tier/disk_tier.h"

/* Invariants. A record counts from the moment when its front is written, which comes last. All that may fail for want
 * of memory comes before. After a failure the file ends where it ended before.
 *
 * The record of a value that was replaced is marked dead only once its successor is on the disk (disk_flush.c). */

enum { DISK_SAMPLE = 1 << 16, DISK_FLUSH_EVERY = 64 << 20 };

static gm_status disk_no_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_tier_put", "no host memory for a record");
}

gm_status gm__disk_buffers(gm__disk_tier *tier, gm_error *err) {
  if (!tier->chunk) tier->chunk = gm__alloc(gm__disk_services(tier), GM__DISK_CHUNK);
  if (!tier->packed) tier->packed = gm__alloc(gm__disk_services(tier), GM__DISK_CHUNK);
  return tier->chunk && tier->packed ? GM_OK : disk_no_memory(err);
}

gm_status gm__disk_replaced_reserve(gm__disk_tier *tier, gm_error *err) {
  const size_t capacity = tier->replaced_capacity ? tier->replaced_capacity * 2 : 64;
  if (tier->replaced_count < tier->replaced_capacity) return GM_OK;
  if (!gm__grow(gm__disk_services(tier), &tier->replaced, tier->replaced_capacity * sizeof(uint64_t),
                capacity * sizeof(uint64_t))) {
    return disk_no_memory(err);
  }
  tier->replaced_capacity = capacity;
  return GM_OK;
}

/* ---- the bytes of a value, from its parts ---- */

typedef struct disk_source {
  const gm_tier_part *parts; /* the part that comes next, or is under way */
  uint64_t offset;           /* in it */
} disk_source;

/* The next `bytes` bytes: where they lie, or copied into `room` where they lie in several parts. */
static const unsigned char *disk_source_next(disk_source *source, uint32_t bytes, unsigned char *room) {
  for (uint32_t done = 0; done < bytes;) {
    const gm_tier_part *part = source->parts;
    const uint64_t left = part->bytes - source->offset;
    const unsigned char *from = (const unsigned char *)part->data + source->offset;
    const uint32_t count = (uint32_t)gm__min(bytes - done, left);
    if (count == bytes) {
      source->offset += count;
      return from;
    }
    if (count) memcpy(room + done, from, count);
    done += count;
    source->offset += count;
    if (source->offset == part->bytes) *source = (disk_source){part + 1, 0};
  }
  return room;
}

/* ---- writing one record ---- */

typedef struct disk_writing {
  gm__disk_record record;
  unsigned char *front; /* gm__disk_front_bytes of the record */
  gm_tier_codec codec;
  uint64_t at; /* where the next chunk goes */
} disk_writing;

static gm_status disk_begin(gm__disk_tier *tier, gm__disk_kind kind, const void *key, size_t key_bytes,
                            uint64_t value_bytes, disk_writing *out, gm_error *err) {
  if (tier->stuck) {
    return gm__fail(err, GM_ERR_IO, 0, "gm_tier_put",
                    "%.200s: an earlier write failed, and could not be undone: close and open the tier", tier->path);
  }
  *out = (disk_writing){.record = {.at = tier->end,
                                   .value_bytes = value_bytes,
                                   .sequence = tier->sequence + 1,
                                   .state = GM__DISK_LIVE,
                                   .kind = kind,
                                   .key_bytes = (uint32_t)key_bytes,
                                   .chunks = gm__disk_chunks_of(value_bytes)}};
  const uint64_t front_bytes = gm__disk_front_bytes(&out->record);
  out->front = gm__alloc(gm__disk_services(tier), (size_t)front_bytes);
  if (!out->front) return disk_no_memory(err);
  if (key_bytes) memcpy(out->front + GM__DISK_HEAD, key, key_bytes);
  out->at = tier->end + front_bytes;
  return GM_OK;
}

static gm_status disk_write_chunk(gm__disk_tier *tier, disk_writing *writing, uint32_t index,
                                  const unsigned char *plain, gm_error *err) {
  const uint32_t bytes = gm__disk_chunk_plain(&writing->record, index);
  gm__disk_chunk chunk = {.bytes = bytes, .codec = GM_TIER_CODEC_NONE};
  const uint32_t packed = gm__disk_pack(writing->codec, plain, bytes, tier->packed);
  if (packed) chunk = (gm__disk_chunk){.bytes = packed, .codec = writing->codec};
  const unsigned char *from = packed ? tier->packed : plain;
  chunk.checksum = gm__disk_chunk_checksum(&writing->record, index, from, chunk.bytes);
  gm__disk_chunk_write(writing->front, &writing->record, index, &chunk);
  const gm_status status = gm__data_file_write(&tier->file->file, tier->path, writing->at, from, chunk.bytes, err);
  writing->at += chunk.bytes;
  return status;
}

static gm_status disk_write_value(gm__disk_tier *tier, disk_writing *writing, const gm_tier_part *parts,
                                  gm_error *err) {
  disk_source source = {parts, 0};
  gm_status status = GM_OK;
  for (uint32_t i = 0; !status && i < writing->record.chunks; i++) {
    const uint32_t bytes = gm__disk_chunk_plain(&writing->record, i);
    const unsigned char *plain = disk_source_next(&source, bytes, tier->chunk);
    if (i == 0) {
      const uint32_t sample = (uint32_t)gm__min(bytes, DISK_SAMPLE);
      writing->codec = gm__disk_codec_choose(tier->params.codec, plain, sample, tier->packed);
    }
    status = disk_write_chunk(tier, writing, i, plain, err);
  }
  return status;
}

/* Writes the front. After GM_OK the record counts. */
static gm_status disk_write_front(gm__disk_tier *tier, disk_writing *writing, gm_error *err) {
  gm__disk_record *record = &writing->record;
  record->bytes = gm__round_up(writing->at - record->at, GM__DISK_UNIT);
  gm__disk_front_finish(writing->front, record, tier->file->store);
  gm_status status =
      gm__data_file_write(&tier->file->file, tier->path, record->at, writing->front, gm__disk_front_bytes(record), err);
  if (!status && tier->params.durability == GM_TIER_DURABLE_AT_PUT && record->kind != GM__DISK_FLUSHED) {
    status = gm__data_file_sync(&tier->file->file, tier->path, err);
  }
  return status;
}

/* Ends the writing of a record: it stays, or the file is as it was. */
static void disk_end(gm__disk_tier *tier, const disk_writing *writing, gm_status status) {
  const gm__disk_record *record = &writing->record;
  if (writing->front) gm__release(gm__disk_services(tier), writing->front, (size_t)gm__disk_front_bytes(record));
  if (status) {
    if (writing->front) tier->stuck |= gm__data_file_cut(&tier->file->file, tier->path, tier->end, NULL) != GM_OK;
    return;
  }
  tier->end = record->at + record->bytes;
  tier->sequence = record->sequence;
}

gm_status gm__disk_append(gm__disk_tier *tier, gm__disk_kind kind, const void *key, size_t key_bytes, gm_error *err) {
  disk_writing writing;
  gm_status status = disk_begin(tier, kind, key, key_bytes, 0, &writing, err);
  if (status) return status;
  status = disk_write_front(tier, &writing, err);
  disk_end(tier, &writing, status);
  if (status) return status;
  if (kind == GM__DISK_FLUSHED) tier->flushed_at = writing.record.at;
  gm__mutex_lock(&tier->lock);
  tier->dead_bytes += writing.record.bytes; /* a compaction leaves such records out */
  tier->stats.written_bytes += writing.record.bytes;
  gm__mutex_unlock(&tier->lock);
  return GM_OK;
}

/* ---- putting and removing ---- */

/* The entry of a key. The writer is the only one who changes entries, so it stays what it is. */
static gm__disk_entry *disk_entry_find(gm__disk_tier *tier, const void *key, size_t key_bytes) {
  gm__mutex_lock(&tier->lock);
  gm__disk_entry *entry = (gm__disk_entry *)gm__key_map_find(&tier->entries, key, key_bytes);
  gm__mutex_unlock(&tier->lock);
  return entry;
}

/* The record of an entry is dead. REQUIRES: both locks; room for a place. */
static void disk_entry_dies(gm__disk_tier *tier, const gm__disk_entry *entry) {
  tier->replaced[tier->replaced_count++] = entry->at;
  tier->dead_bytes += entry->bytes;
  tier->stats.values--;
  tier->stats.value_bytes -= entry->value_bytes;
}

static gm_status disk_bound(const gm__disk_tier *tier, const gm__disk_entry *old, uint64_t bytes, gm_error *err) {
  const uint64_t kept = tier->stats.value_bytes - (old ? old->value_bytes : 0); /* only the writer changes it */
  const uint64_t most = tier->params.max_bytes ? tier->params.max_bytes : UINT64_MAX;
  if (bytes > GM__DISK_VALUE_MOST) {
    return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, 0, "gm_tier_put", "a value has at most 2^50 bytes");
  }
  if (kept <= most && bytes <= most - kept) return GM_OK;
  return gm__fail(err, GM_ERR_OVER_LIMIT, 0, "gm_tier_put",
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
  disk_writing writing;
  gm__disk_entry *entry = disk_entry_find(tier, key, key_bytes);
  const bool fresh = !entry;
  gm_status status = disk_bound(tier, entry, bytes, err);
  if (!status) status = gm__disk_buffers(tier, err);
  if (!status) status = disk_entry_ready(tier, key, key_bytes, &entry, err);
  if (status) return status;
  status = disk_begin(tier, GM__DISK_PUT, key, key_bytes, bytes, &writing, err);
  if (!status) status = disk_write_value(tier, &writing, parts, err);
  if (!status) status = disk_write_front(tier, &writing, err);
  disk_end(tier, &writing, status);
  if (!status) {
    disk_entry_set(tier, entry, fresh, &writing.record);
  } else if (fresh) {
    gm__key_map_drop(&tier->entries, &entry->head);
    gm__release(gm__disk_services(tier), entry, sizeof *entry);
  }
  return status;
}

/* Each put is on the disk already, but dead records are not marked, and an opening would check all that came since. */
static void disk_tidy(gm__disk_tier *tier) {
  if (tier->params.durability != GM_TIER_DURABLE_AT_PUT) return;
  if (tier->end - tier->flushed_at >= DISK_FLUSH_EVERY) gm__disk_flush_now(tier, NULL);
}

gm_status gm__disk_put(void *own, const void *key, size_t key_bytes, const gm_tier_part *parts, size_t count,
                       gm_error *err) {
  gm__disk_tier *tier = own;
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; i++) bytes += parts[i].bytes;
  gm__mutex_lock(&tier->writer);
  const gm_status status = disk_put(tier, key, key_bytes, parts, bytes, err);
  if (!status) disk_tidy(tier);
  gm__mutex_unlock(&tier->writer);
  return status;
}

static gm_status disk_remove(gm__disk_tier *tier, const void *key, size_t key_bytes, gm_error *err) {
  gm__disk_entry *entry = disk_entry_find(tier, key, key_bytes);
  if (!entry) return gm__fail(err, GM_ERR_NOT_FOUND, 0, "gm_tier_remove", "the tier has no value of that key");
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
  if (!status) disk_tidy(tier);
  gm__mutex_unlock(&tier->writer);
  return status;
}
