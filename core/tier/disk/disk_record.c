#include "core/tier/disk/disk_record.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/tier/disk/disk_codec.h"
#include "core/tier/disk/disk_sync.h"

/* Invariants. A record counts from the moment when its front is written, which comes last. All that may fail for want
 * of memory comes before. After a failure the file ends where it ended before. */

enum { DISK_SAMPLE = 1 << 16, DISK_BUFFER_LEAST = 1 << 12 };

static gm_status disk_no_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_put", "no host memory for a record");
}

gm_status gm__disk_buffers(gm__disk_tier *tier, uint64_t value_bytes, gm_error *err) {
  const uint64_t needed = gm__min(value_bytes, GM__DISK_CHUNK);
  uint64_t bytes = DISK_BUFFER_LEAST;
  while (bytes < needed) bytes *= 2;
  if (bytes <= tier->buffer_bytes) return GM_OK;
  unsigned char *both = gm__alloc(gm__disk_services(tier), (size_t)(2 * bytes));
  if (!both) return disk_no_memory(err);
  gm__release(gm__disk_services(tier), tier->chunk, (size_t)(2 * tier->buffer_bytes));
  tier->chunk = both;
  tier->packed = both + bytes;
  tier->buffer_bytes = bytes;
  return GM_OK;
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
  for (uint32_t done = 0; done < bytes && source->parts;) { /* a value without parts has no bytes */
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
  const gm_status status = gm__disk_is_stuck(tier, err);
  if (status) return status;
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
    status = gm__disk_sync(tier, err);
  }
  return status;
}

/* Ends the writing of a record: it stays, or the file is as it was. */
static void disk_end(gm__disk_tier *tier, const disk_writing *writing, gm_status status) {
  const gm__disk_record *record = &writing->record;
  gm__release(gm__disk_services(tier), writing->front, (size_t)gm__disk_front_bytes(record));
  if (status) {
    if (gm__data_file_cut(&tier->file->file, tier->path, tier->end, NULL) == GM_OK) return;
    if (!tier->stuck) tier->stuck = "an earlier write failed, and could not be undone";
    return;
  }
  tier->end = record->at + record->bytes;
  tier->sequence = record->sequence;
}

gm_status gm__disk_write(gm__disk_tier *tier, gm__disk_kind kind, const void *key, size_t key_bytes,
                         const gm_tier_part *parts, uint64_t value_bytes, gm__disk_record *out, gm_error *err) {
  disk_writing writing;
  gm_status status = disk_begin(tier, kind, key, key_bytes, value_bytes, &writing, err);
  if (status) return status;
  status = disk_write_value(tier, &writing, parts, err);
  if (!status) status = disk_write_front(tier, &writing, err);
  disk_end(tier, &writing, status);
  *out = writing.record;
  return status;
}

gm_status gm__disk_append(gm__disk_tier *tier, gm__disk_kind kind, const void *key, size_t key_bytes, gm_error *err) {
  gm__disk_record record;
  const gm_status status = gm__disk_write(tier, kind, key, key_bytes, NULL, 0, &record, err);
  if (status) return status;
  gm__mutex_lock(&tier->lock);
  tier->dead_bytes += record.bytes; /* a compaction leaves such records out */
  tier->stats.written_bytes += record.bytes;
  gm__mutex_unlock(&tier->lock);
  return GM_OK;
}
