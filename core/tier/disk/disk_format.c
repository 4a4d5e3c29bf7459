#include "core/tier/disk/disk_format.h"

#include <string.h>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/little.h"
#include "core/base/saturate.h"

/* Invariants. All numbers are little-endian. A record that was read fits into its file, and its chunks fill it.
 * docs/inside/disk-tier.md has the places of all members. */

enum { SEAL_EVEN = 512, SEAL_ODD = 2560 }; /* in sectors of their own */
enum { SUPER_COPY = 2048, SUPER_BYTES = 32, DISK_VERSION = 1, HEAD_SUMMED = 16, HEAD_SUM = 72 };

static const unsigned char super_magic[8] = {'g', 'm', 't', 'i', 'e', 'r', '\r', '\n'};
static const unsigned char record_magic[8] = {'g', 'm', 'r', 'e', 'c', '\0', '\r', '\n'};

/* ---- the beginning of a file ---- */

void gm__disk_super_write(unsigned char *out, uint64_t store) {
  memset(out, 0, GM__DISK_START);
  for (unsigned char *copy = out; copy <= out + SUPER_COPY; copy += SUPER_COPY) {
    memcpy(copy, super_magic, sizeof super_magic);
    gm__le_put(copy + 8, DISK_VERSION, 4);
    gm__le_put(copy + 12, gm__checksum_kind_here(), 4);
    gm__le_put(copy + 16, store, 8);
    gm__le_put(copy + 24, gm__checksum(copy, SUPER_BYTES - 8, 0), 8);
  }
}

static gm_status super_read_copy(const unsigned char *in, const char *path, uint64_t *out_store, gm_error *err) {
  static const char op[] = "disk tier";
  if (memcmp(in, super_magic, sizeof super_magic) != 0) {
    return gm__fail(err, GM_ERR_FORMAT, op, "%.300s: is no file of a disk tier", path);
  }
  if ((uint32_t)gm__le_get(in + 8, 4) != DISK_VERSION) {
    return gm__fail(err, GM_ERR_FORMAT, op, "%.300s: has version %u, this gm reads %d", path,
                    (uint32_t)gm__le_get(in + 8, 4), DISK_VERSION);
  }
  if ((uint32_t)gm__le_get(in + 12, 4) != (uint32_t)gm__checksum_kind_here()) {
    return gm__fail(err, GM_ERR_FORMAT, op, "%.300s: was written by a gm built %s xxHash, this one is built %s", path,
                    (uint32_t)gm__le_get(in + 12, 4) == GM__CHECKSUM_XXH3 ? "with" : "without",
                    gm__checksum_kind_here() == GM__CHECKSUM_XXH3 ? "with" : "without");
  }
  if (gm__le_get(in + 24, 8) != gm__checksum(in, SUPER_BYTES - 8, 0)) {
    return gm__fail(err, GM_ERR_FORMAT, op, "%.300s: its beginning is damaged", path);
  }
  *out_store = gm__le_get(in + 16, 8);
  return GM_OK;
}

gm_status gm__disk_super_read(const unsigned char *in, const char *path, uint64_t *out_store, gm_error *err) {
  if (super_read_copy(in, path, out_store, NULL) == GM_OK) return GM_OK;
  if (super_read_copy(in + SUPER_COPY, path, out_store, NULL) == GM_OK) return GM_OK;
  return super_read_copy(in, path, out_store, err);
}

static bool start_is_zero(const unsigned char *in, int from, int to) {
  for (int i = from; i < to; i++) {
    if (in[i]) return false;
  }
  return true;
}

bool gm__disk_start_is_whole(const unsigned char *in, uint64_t store) {
  uint64_t first = 0, second = 0;
  if (super_read_copy(in, "", &first, NULL) || super_read_copy(in + SUPER_COPY, "", &second, NULL)) return false;
  if (first != store || second != store) return false;
  return start_is_zero(in, SUPER_BYTES, SEAL_EVEN) && start_is_zero(in, SEAL_EVEN + GM__DISK_SEAL_BYTES, SUPER_COPY) &&
         start_is_zero(in, SUPER_COPY + SUPER_BYTES, SEAL_ODD) &&
         start_is_zero(in, SEAL_ODD + GM__DISK_SEAL_BYTES, GM__DISK_START);
}

/* ---- seals ---- */

uint64_t gm__disk_seal_at(uint64_t number) { return number % GM__DISK_SEALS ? SEAL_ODD : SEAL_EVEN; }

void gm__disk_seal_write(unsigned char *out, const gm__disk_seal *seal, uint64_t store) {
  gm__le_put(out, seal->end, 8);
  gm__le_put(out + 8, seal->number, 8);
  gm__le_put(out + 16, store, 8);
  gm__le_put(out + 24, gm__checksum(out, GM__DISK_SEAL_BYTES - 8, 0), 8);
}

gm__disk_seal gm__disk_seal_read(const unsigned char *in, uint64_t store) {
  const bool right =
      gm__le_get(in + 16, 8) == store && gm__le_get(in + 24, 8) == gm__checksum(in, GM__DISK_SEAL_BYTES - 8, 0);
  return right ? (gm__disk_seal){gm__le_get(in, 8), gm__le_get(in + 8, 8)} : (gm__disk_seal){0, 0};
}

/* ---- records ---- */

uint32_t gm__disk_chunks_of(uint64_t value_bytes) {
  return (uint32_t)(value_bytes / GM__DISK_CHUNK + (value_bytes % GM__DISK_CHUNK != 0));
}

uint32_t gm__disk_chunk_plain(const gm__disk_record *record, uint32_t index) {
  return (uint32_t)gm__min(record->value_bytes - (uint64_t)index * GM__DISK_CHUNK, GM__DISK_CHUNK);
}

uint64_t gm__disk_front_bytes(const gm__disk_record *record) {
  return GM__DISK_HEAD + (uint64_t)record->key_bytes + (uint64_t)record->chunks * GM__DISK_ENTRY;
}

static uint64_t front_checksum(const unsigned char *front, const gm__disk_record *record) {
  const uint64_t head = gm__checksum(front + HEAD_SUMMED, HEAD_SUM - HEAD_SUMMED, 0);
  return gm__checksum(front + GM__DISK_HEAD, gm__disk_front_bytes(record) - GM__DISK_HEAD, head);
}

/* Are the members of a head such as gm writes? */
static bool head_is_possible(const gm__disk_record *record, uint64_t file_bytes) {
  const bool has_key = record->kind == GM__DISK_PUT || record->kind == GM__DISK_REMOVE;
  if (!has_key && record->kind != GM__DISK_FLUSHED) return false;
  if (has_key ? record->key_bytes == 0 || record->key_bytes > GM_TIER_KEY_MOST : record->key_bytes != 0) return false;
  if (record->kind != GM__DISK_PUT && record->value_bytes != 0) return false;
  if (record->value_bytes > GM__DISK_VALUE_MOST || record->chunks != gm__disk_chunks_of(record->value_bytes)) {
    return false;
  }
  if (record->bytes % GM__DISK_UNIT != 0 || record->bytes < gm__disk_front_bytes(record)) return false;
  return record->at <= file_bytes && record->bytes <= file_bytes - record->at;
}

bool gm__disk_head_read(const unsigned char *head, uint64_t at, uint64_t store, uint64_t file_bytes,
                        gm__disk_record *out) {
  if (memcmp(head, record_magic, sizeof record_magic) != 0) return false;
  if ((uint32_t)gm__le_get(head + 28, 4) != 0 || gm__le_get(head + 56, 8) != store || gm__le_get(head + 64, 8) != at)
    return false;
  *out = (gm__disk_record){.at = at,
                           .bytes = gm__le_get(head + 40, 8),
                           .value_bytes = gm__le_get(head + 32, 8),
                           .sequence = gm__le_get(head + 48, 8),
                           .state = gm__le_get(head + GM__DISK_STATE_AT, 8),
                           .kind = (uint32_t)gm__le_get(head + 16, 4),
                           .key_bytes = (uint32_t)gm__le_get(head + 20, 4),
                           .chunks = (uint32_t)gm__le_get(head + 24, 4)};
  return head_is_possible(out, file_bytes);
}

static bool chunk_is_possible(const gm__disk_chunk *chunk, uint32_t plain) {
  switch (chunk->codec) {
    case GM_TIER_CODEC_NONE: return chunk->bytes == plain;
    case GM_TIER_CODEC_LZ4:
    case GM_TIER_CODEC_ZSTD: return chunk->bytes > 0 && chunk->bytes < plain;
    default: return false;
  }
}

bool gm__disk_front_is_right(const unsigned char *front, const gm__disk_record *record) {
  if (gm__le_get(front + HEAD_SUM, 8) != front_checksum(front, record)) return false;
  uint64_t end = gm__disk_front_bytes(record);
  for (uint32_t i = 0; i < record->chunks; i++) {
    const gm__disk_chunk chunk = gm__disk_chunk_read(front, record, i);
    if (!chunk_is_possible(&chunk, gm__disk_chunk_plain(record, i))) return false;
    end += chunk.bytes;
  }
  return gm__round_up(end, GM__DISK_UNIT) == record->bytes;
}

void gm__disk_front_finish(unsigned char *front, const gm__disk_record *record, uint64_t store) {
  memcpy(front, record_magic, sizeof record_magic);
  gm__disk_state_write(front + GM__DISK_STATE_AT, record->state);
  gm__le_put(front + 16, record->kind, 4);
  gm__le_put(front + 20, record->key_bytes, 4);
  gm__le_put(front + 24, record->chunks, 4);
  gm__le_put(front + 28, 0, 4);
  gm__le_put(front + 32, record->value_bytes, 8);
  gm__le_put(front + 40, record->bytes, 8);
  gm__le_put(front + 48, record->sequence, 8);
  gm__le_put(front + 56, store, 8);
  gm__le_put(front + 64, record->at, 8);
  gm__le_put(front + HEAD_SUM, front_checksum(front, record), 8);
}

gm__disk_chunk gm__disk_chunk_read(const unsigned char *front, const gm__disk_record *record, uint32_t index) {
  const unsigned char *in = front + GM__DISK_HEAD + record->key_bytes + (uint64_t)index * GM__DISK_ENTRY;
  return (gm__disk_chunk){.bytes = (uint32_t)gm__le_get(in, 4),
                          .codec = (uint32_t)gm__le_get(in + 4, 4),
                          .checksum = gm__le_get(in + 8, 8)};
}

void gm__disk_chunk_write(unsigned char *front, const gm__disk_record *record, uint32_t index,
                          const gm__disk_chunk *chunk) {
  unsigned char *out = front + GM__DISK_HEAD + record->key_bytes + (uint64_t)index * GM__DISK_ENTRY;
  gm__le_put(out, chunk->bytes, 4);
  gm__le_put(out + 4, chunk->codec, 4);
  gm__le_put(out + 8, chunk->checksum, 8);
}

uint64_t gm__disk_chunk_checksum(const gm__disk_record *record, uint32_t index, const void *bytes, uint32_t count) {
  return gm__checksum(bytes, count, record->sequence ^ (uint64_t)index << 40);
}

void gm__disk_state_write(unsigned char *out, uint64_t state) { gm__le_put(out, state, 8); }
