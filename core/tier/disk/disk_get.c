#include "core/tier/disk/disk_get.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/tier/disk/disk_codec.h"
#include "core/tier/disk/disk_file.h"
#include "core/tier/disk/disk_front.h"

/* Invariant: no byte goes out of a chunk whose checksum is not right. */

typedef struct disk_value {
  gm__disk_file *file;
  gm__disk_record record;
  unsigned char *front;
  uint64_t front_bytes;
  uint64_t *chunk_at; /* where each chunk lies in the file */
} disk_value;

static gm_status get_lost(const gm__disk_tier *tier, gm_error *err) {
  return gm__fail(err, GM_ERR_DAMAGED, "gm_tier_value_open", "%.200s: the value of that key is damaged", tier->path);
}

static void get_count_damage(gm__disk_tier *tier) {
  gm__mutex_lock(&tier->lock);
  tier->stats.damaged++;
  gm__mutex_unlock(&tier->lock);
}

/* Finds the record of a key, and begins to use the file. */
static gm_status get_find(gm__disk_tier *tier, const void *key, size_t key_bytes, gm__disk_file **file, uint64_t *at,
                          uint64_t *value_bytes, gm_error *err) {
  gm__mutex_lock(&tier->lock);
  const gm__disk_entry *entry = (gm__disk_entry *)gm__key_map_find(&tier->entries, key, key_bytes);
  const bool found = entry != NULL, damaged = entry && entry->damaged;
  if (found && !damaged) {
    *at = entry->at;
    *value_bytes = entry->value_bytes;
    *file = tier->file;
    atomic_fetch_add(&tier->file->users, 1);
  }
  tier->stats.gets += found;
  tier->stats.misses += !found;
  gm__mutex_unlock(&tier->lock);
  if (damaged) return get_lost(tier, err);
  return found ? GM_OK : gm__fail(err, GM_ERR_NOT_FOUND, "gm_tier_value_open", "the tier has no value of that key");
}

static void get_end(const gm__disk_tier *tier, disk_value *value) {
  const gm_services *services = gm__disk_services(tier);
  if (!value) return;
  if (value->front) gm__release(services, value->front, (size_t)value->front_bytes);
  if (value->chunk_at) gm__release(services, value->chunk_at, value->record.chunks * sizeof(uint64_t));
  gm__disk_file_drop(tier, value->file);
  gm__release(services, value, sizeof *value);
}

static gm_status get_places(const gm__disk_tier *tier, disk_value *value, gm_error *err) {
  uint64_t at = value->record.at + value->front_bytes;
  if (!value->record.chunks) return GM_OK;
  value->chunk_at = gm__alloc_array(gm__disk_services(tier), value->record.chunks, sizeof(uint64_t));
  if (!value->chunk_at) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_value_open", "no host memory for a value");
  }
  for (uint32_t i = 0; i < value->record.chunks; i++) {
    value->chunk_at[i] = at;
    at += gm__disk_chunk_read(value->front, &value->record, i).bytes;
  }
  return GM_OK;
}

/* Reads the front of the record at `at`, which is to be of that key. */
static gm_status get_record(const gm__disk_tier *tier, disk_value *value, uint64_t at, const void *key,
                            size_t key_bytes, uint64_t value_bytes, gm_error *err) {
  value->record = (gm__disk_record){.key_bytes = (uint32_t)key_bytes, .chunks = gm__disk_chunks_of(value_bytes)};
  value->front_bytes = gm__disk_front_bytes(&value->record);
  gm_status status = gm__disk_front_load(tier, value->file, at, value->front_bytes, &value->record, &value->front, err);
  if (status) {
    value->record.chunks = 0;
    return status;
  }
  if (value->record.value_bytes != value_bytes || memcmp(value->front + GM__DISK_HEAD, key, key_bytes) != 0) {
    return get_lost(tier, err);
  }
  return get_places(tier, value, err);
}

gm_status gm__disk_value_open(void *own, const void *key, size_t key_bytes, void **out_value, uint64_t *out_bytes,
                              gm_error *err) {
  gm__disk_tier *tier = own;
  uint64_t at = 0, value_bytes = 0;
  disk_value *value = gm__alloc(gm__disk_services(tier), sizeof *value);
  if (!value) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_value_open", "no host memory for a value");
  gm_status status = get_find(tier, key, key_bytes, &value->file, &at, &value_bytes, err);
  if (!status) {
    status = get_record(tier, value, at, key, key_bytes, value_bytes, err);
    if (status == GM_ERR_DAMAGED) get_count_damage(tier);
  }
  if (status) {
    get_end(tier, value);
    return status;
  }
  *out_value = value;
  *out_bytes = value_bytes;
  return GM_OK;
}

void gm__disk_value_close(void *own, void *value) { get_end(own, value); }

/* The codec is chosen for a whole value. Chunks that it makes no smaller are kept as they were put. */
void gm__disk_value_info(void *own, void *opened, gm_tier_value_info *out) {
  const disk_value *value = opened;
  (void)own;
  out->stored_bytes = 0;
  for (uint32_t i = 0; i < value->record.chunks; i++) {
    const gm__disk_chunk chunk = gm__disk_chunk_read(value->front, &value->record, i);
    if (chunk.codec != GM_TIER_CODEC_NONE) out->codec = (gm_tier_codec)chunk.codec;
    out->stored_bytes += chunk.bytes;
  }
}

/* ---- reading ---- */

static gm_status get_stored(gm__disk_tier *tier, const disk_value *value, uint32_t index, const gm__disk_chunk *chunk,
                            unsigned char *to, gm_error *err) {
  gm_status status = gm__data_file_read(&value->file->file, tier->path, value->chunk_at[index], to, chunk->bytes, err);
  if (!status && gm__disk_chunk_checksum(&value->record, index, to, chunk->bytes) == chunk->checksum) return GM_OK;
  if (status && status != GM_ERR_FORMAT) return status;
  get_count_damage(tier);
  return gm__fail(err, GM_ERR_DAMAGED, "gm_tier_value_read", "%.200s: the value is damaged", tier->path);
}

/* Reads a whole chunk, unpacked, into `plain`. `stored` has room for the chunk as it is in the file. */
static gm_status get_chunk(gm__disk_tier *tier, const disk_value *value, uint32_t index, unsigned char *plain,
                           unsigned char *stored, gm_error *err) {
  const gm__disk_chunk chunk = gm__disk_chunk_read(value->front, &value->record, index);
  if (chunk.codec == GM_TIER_CODEC_NONE) return get_stored(tier, value, index, &chunk, plain, err);
  if (!gm__disk_codec_is_there((gm_tier_codec)chunk.codec)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_tier_value_read",
                    "the value is packed by %s, which gm was built without, or whose library is missing",
                    gm__disk_codec_name((gm_tier_codec)chunk.codec));
  }
  const gm_status status = get_stored(tier, value, index, &chunk, stored, err);
  if (status) return status;
  const uint32_t bytes = gm__disk_chunk_plain(&value->record, index);
  if (gm__disk_unpack((gm_tier_codec)chunk.codec, stored, chunk.bytes, plain, bytes)) return GM_OK;
  get_count_damage(tier);
  return gm__fail(err, GM_ERR_DAMAGED, "gm_tier_value_read", "%.200s: the value does not unpack", tier->path);
}

/* Memory for chunks that cannot be read straight into the caller's. */
typedef struct get_room {
  unsigned char *stored; /* a chunk as it is in the file */
  unsigned char *plain;  /* a chunk of which the range has a part only; NULL: there is none */
  size_t bytes;
} get_room;

static bool get_any_packed(const disk_value *value, uint64_t offset, uint64_t bytes) {
  const uint32_t end = gm__disk_chunks_of(offset + bytes);
  for (uint32_t i = (uint32_t)(offset / GM__DISK_CHUNK); i < end; i++) {
    if (gm__disk_chunk_read(value->front, &value->record, i).codec != GM_TIER_CODEC_NONE) return true;
  }
  return false;
}

static gm_status get_room_make(const gm__disk_tier *tier, const disk_value *value, uint64_t offset, uint64_t bytes,
                               get_room *room, gm_error *err) {
  const uint64_t end = offset + bytes, all = value->record.value_bytes;
  const size_t chunk = (size_t)gm__min(all, GM__DISK_CHUNK);
  const size_t stored = get_any_packed(value, offset, bytes) ? chunk : 0;
  const bool whole = !(offset % GM__DISK_CHUNK) && (end == all || !(end % GM__DISK_CHUNK));
  *room = (get_room){.bytes = stored + (whole ? 0 : chunk)};
  if (!room->bytes) return GM_OK;
  room->stored = gm__alloc(gm__disk_services(tier), room->bytes);
  if (!room->stored) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_value_read", "no host memory for a chunk");
  }
  if (!whole) room->plain = room->stored + stored;
  return GM_OK;
}

/* Reads the bytes of the range that lie in one chunk. */
static gm_status get_piece(gm__disk_tier *tier, const disk_value *value, uint64_t offset, unsigned char *dst,
                           uint64_t bytes, const get_room *room, gm_error *err) {
  const uint32_t index = (uint32_t)(offset / GM__DISK_CHUNK);
  const uint64_t within = offset % GM__DISK_CHUNK;
  if (!room->plain || (!within && bytes == gm__disk_chunk_plain(&value->record, index))) {
    return get_chunk(tier, value, index, dst, room->stored, err);
  }
  const gm_status status = get_chunk(tier, value, index, room->plain, room->stored, err);
  if (!status) memcpy(dst, room->plain + within, (size_t)bytes);
  return status;
}

gm_status gm__disk_value_read(void *own, void *opened, uint64_t offset, void *dst, uint64_t bytes, gm_error *err) {
  gm__disk_tier *tier = own;
  const disk_value *value = opened;
  get_room room;
  gm_status status = get_room_make(tier, value, offset, bytes, &room, err);
  for (uint64_t done = 0; !status && done < bytes;) {
    const uint64_t piece = gm__min(bytes - done, GM__DISK_CHUNK - (offset + done) % GM__DISK_CHUNK);
    status = get_piece(tier, value, offset + done, (unsigned char *)dst + done, piece, &room, err);
    done += piece;
  }
  if (room.stored) gm__release(gm__disk_services(tier), room.stored, room.bytes);
  gm__mutex_lock(&tier->lock);
  if (!status) tier->stats.read_bytes += bytes;
  gm__mutex_unlock(&tier->lock);
  return status;
}
