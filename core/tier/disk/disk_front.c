#include "core/tier/disk/disk_front.h"

#include "core/base/alloc.h"
#include "core/base/error.h"

static gm_status front_damaged(const gm__disk_tier *tier, const char *what, uint64_t at, gm_error *err) {
  return gm__fail(err, GM_ERR_DAMAGED, "disk tier", "%.200s: the %s at byte %llu is damaged", tier->path, what,
                  (unsigned long long)at);
}

gm_status gm__disk_front_load(const gm__disk_tier *tier, const gm__disk_file *file, uint64_t at, uint64_t front_bytes,
                              gm__disk_record *record, unsigned char **out, gm_error *err) {
  unsigned char *front = gm__alloc(gm__disk_services(tier), (size_t)front_bytes);
  if (!front) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_value_open", "no host memory for a record");
  gm_status status = gm__data_file_read(&file->file, tier->path, at, front, front_bytes, err);
  if (!status && !(gm__disk_head_read(front, at, file->store, UINT64_MAX, record) &&
                   gm__disk_front_bytes(record) == front_bytes && gm__disk_front_is_right(front, record))) {
    status = front_damaged(tier, "record", at, err);
  }
  if (status) {
    gm__release(gm__disk_services(tier), front, (size_t)front_bytes);
    return status == GM_ERR_FORMAT ? front_damaged(tier, "record", at, err) : status;
  }
  *out = front;
  return GM_OK;
}

gm_status gm__disk_verify(const gm__disk_tier *tier, const gm__disk_file *file, const gm__disk_record *record,
                          const unsigned char *front, unsigned char *room, gm_error *err) {
  uint64_t at = record->at + gm__disk_front_bytes(record);
  for (uint32_t i = 0; i < record->chunks; i++) {
    const gm__disk_chunk chunk = gm__disk_chunk_read(front, record, i);
    gm_status status = gm__data_file_read(&file->file, tier->path, at, room, chunk.bytes, err);
    if (status == GM_ERR_FORMAT) return front_damaged(tier, "value", record->at, err);
    if (status) return status;
    if (gm__disk_chunk_checksum(record, i, room, chunk.bytes) != chunk.checksum) {
      return front_damaged(tier, "value", record->at, err);
    }
    at += chunk.bytes;
  }
  return GM_OK;
}

gm_status gm__disk_renew(const gm__disk_tier *tier, const gm__disk_record *record, const unsigned char *front,
                         gm_error *err) {
  const gm__data_file *file = &tier->file->file;
  const uint64_t front_bytes = gm__disk_front_bytes(record);
  gm_status status = gm__data_file_write(file, tier->path, record->at, front, front_bytes, err);
  uint64_t at = record->at + front_bytes;
  for (uint32_t i = 0; !status && i < record->chunks; i++) {
    const uint32_t bytes = gm__disk_chunk_read(front, record, i).bytes;
    status = gm__data_file_read(file, tier->path, at, tier->chunk, bytes, err);
    if (!status) status = gm__data_file_write(file, tier->path, at, tier->chunk, bytes, err);
    at += bytes;
  }
  return status;
}
