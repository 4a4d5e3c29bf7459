#include "core/tier/disk/disk_file.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/checksum.h"
#include "core/base/clock.h"
#include "core/base/error.h"

/* Invariant: a file has its name only when its beginning is on the disk, so no crash leaves half a beginning there. */

static gm_status disk_file_new(const gm__disk_tier *tier, gm__disk_file **out, gm_error *err) {
  *out = gm__alloc(gm__disk_services(tier), sizeof **out);
  if (!*out) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_tier_open", "no host memory for a file");
  (*out)->users = 1;
  (*out)->file.fd = -1;
  return GM_OK;
}

void gm__disk_file_drop(const gm__disk_tier *tier, gm__disk_file *file) {
  if (!file || atomic_fetch_sub(&file->users, 1) != 1) return;
  gm__data_file_close(&file->file, !gm__context_forked(tier->ctx));
  gm__release(gm__disk_services(tier), file, sizeof *file);
}

/* A number that no other file has, but by chance: it tells this file's records from those in a value. */
static uint64_t disk_file_number(const gm__disk_tier *tier) {
  const uint64_t seeds[] = {gm__now_ns(), (uint64_t)(uintptr_t)tier, gm__context_next_id(tier->ctx)};
  return gm__checksum(tier->path, strlen(tier->path), gm__checksum(seeds, sizeof seeds, 0));
}

static gm_status disk_file_begin(const gm__disk_tier *tier, gm__disk_file *file, gm_error *err) {
  unsigned char start[GM__DISK_START];
  file->store = disk_file_number(tier);
  gm__disk_super_write(start, file->store);
  gm_status status = gm__data_file_write(&file->file, tier->fresh_path, 0, start, sizeof start, err);
  if (!status) status = gm__data_file_sync(&file->file, tier->fresh_path, err);
  return status;
}

gm_status gm__disk_file_make(gm__disk_tier *tier, gm__disk_file **out, gm_error *err) {
  gm_status status = disk_file_new(tier, out, err);
  if (status) return status;
  status = gm__data_file_open(tier->fresh_path, GM__DATA_FILE_FRESH, &(*out)->file, err);
  if (!status) status = disk_file_begin(tier, *out, err);
  if (!status) return GM_OK;
  if (status != GM_ERR_BUSY) gm__data_file_remove(tier->fresh_path);
  gm__disk_file_drop(tier, *out);
  *out = NULL;
  return status;
}

static gm_status disk_file_create(gm__disk_tier *tier, gm__disk_file **out, gm_error *err) {
  gm_status status = gm__disk_file_make(tier, out, err);
  if (status) return status;
  status = gm__data_file_rename(tier->fresh_path, tier->path, err);
  if (!status) return GM_OK;
  gm__data_file_remove(tier->fresh_path);
  gm__disk_file_drop(tier, *out);
  *out = NULL;
  return status;
}

static gm_status disk_file_read_start(const gm__disk_tier *tier, gm__disk_file *file, uint64_t *out_bytes,
                                      gm_error *err) {
  unsigned char start[GM__DISK_START] = {0};
  gm_status status = gm__data_file_size(&file->file, tier->path, out_bytes, err);
  if (status || !*out_bytes) return status;
  const uint64_t there = *out_bytes < sizeof start ? *out_bytes : sizeof start;
  status = gm__data_file_read(&file->file, tier->path, 0, start, there, err);
  if (!status) status = gm__disk_super_read(start, tier->path, &file->store, err);
  if (status || there == sizeof start) return status;
  return gm__fail(err, GM_ERR_FORMAT, 0, "disk tier", "%.300s: is cut short in its beginning", tier->path);
}

gm_status gm__disk_file_open(gm__disk_tier *tier, gm__disk_file **out, gm_error *err) {
  const bool writes = !tier->params.read_only;
  uint64_t bytes = 0;
  gm_status status = disk_file_new(tier, out, err);
  if (status) return status;
  status = gm__data_file_open(tier->path, writes ? GM__DATA_FILE_WRITE : GM__DATA_FILE_READ, &(*out)->file, err);
  if (!status) status = disk_file_read_start(tier, *out, &bytes, err);
  const bool makes = writes && ((status == GM_ERR_NOT_FOUND && (*out)->file.fd < 0) || (!status && !bytes));
  if (!status && !bytes && !writes) {
    status = gm__fail(err, GM_ERR_FORMAT, 0, "disk tier", "%.300s: is empty", tier->path);
  }
  if (!status && !makes) {
    if (writes) gm__data_file_remove(tier->fresh_path); /* what a compaction left that did not end */
    return GM_OK;
  }
  gm__disk_file_drop(tier, *out);
  *out = NULL;
  return makes ? disk_file_create(tier, out, err) : status;
}
