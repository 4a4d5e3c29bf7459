#include "core/tier/disk/disk_file.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/checksum.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/tier/disk/disk_side.h"

/* Invariant: a file has its name only when its beginning is on the disk, so no crash leaves half a beginning there. */

static gm_status disk_file_new(const gm__disk_tier *tier, gm__disk_file **out, gm_error *err) {
  *out = gm__alloc(gm__disk_services(tier), sizeof **out);
  if (!*out) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_open", "no host memory for a file");
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
  gm__disk_super_write(start, file->store);
  gm_status status = gm__data_file_write(&file->file, tier->path, 0, start, sizeof start, err);
  if (!status) status = gm__data_file_sync(&file->file, tier->path, err);
  return status;
}

gm_status gm__disk_file_make(gm__disk_tier *tier, gm__disk_file **out, gm_error *err) {
  char side[GM__DATA_NAME_SIZE];
  gm_status status = disk_file_new(tier, out, err);
  if (status) return status;
  (*out)->store = disk_file_number(tier);
  gm__disk_side_name(tier, (*out)->store, side);
  status = gm__data_place_side(&tier->place, tier->path, side, &(*out)->file, err);
  if (!status) status = disk_file_begin(tier, *out, err);
  if (!status) return GM_OK;
  gm__disk_file_discard(tier, *out);
  *out = NULL;
  return status;
}

void gm__disk_file_discard(gm__disk_tier *tier, gm__disk_file *file) {
  char side[GM__DATA_NAME_SIZE];
  gm__disk_side_name(tier, file->store, side);
  if (file->file.fd >= 0) gm__data_place_remove(&tier->place, side);
  gm__disk_file_drop(tier, file);
}

gm_status gm__disk_file_give(gm__disk_tier *tier, gm__disk_file *file, const gm__disk_file *old, gm_error *err) {
  char side[GM__DATA_NAME_SIZE];
  gm__disk_side_name(tier, file->store, side);
  if (old) gm__data_file_resemble(&file->file, &old->file);
  const gm_status status =
      gm__data_place_give(&tier->place, tier->path, side, &file->file, old ? &old->file : NULL, err);
  if (!status) tier->name_synced = false;
  return status;
}

/* Makes the tier's file, in the place of an empty one or of none. */
static gm_status disk_file_create(gm__disk_tier *tier, const gm__disk_file *empty, gm__disk_file **out, gm_error *err) {
  gm_status status = gm__disk_file_make(tier, out, err);
  if (status) return status;
  status = gm__disk_file_give(tier, *out, empty, err);
  if (!status) return GM_OK;
  gm__disk_file_discard(tier, *out);
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
  if (status) return status;
  file->start_is_whole = gm__disk_start_is_whole(start, file->store);
  if (there == sizeof start) return GM_OK;
  return gm__fail(err, GM_ERR_FORMAT, "disk tier", "%.300s: is cut short in its beginning", tier->path);
}

/* Opens the file that is there. *out_bytes is 0 where it is empty, and is to be begun. */
static gm_status disk_file_find(gm__disk_tier *tier, gm__disk_file *file, uint64_t *out_bytes, gm_error *err) {
  const bool writes = !tier->params.read_only;
  gm_status status = gm__data_place_file(&tier->place, tier->path, writes, &file->file, err);
  if (!status) status = disk_file_read_start(tier, file, out_bytes, err);
  if (status || *out_bytes || writes) return status;
  return gm__fail(err, GM_ERR_FORMAT, "disk tier", "%.300s: is empty", tier->path);
}

gm_status gm__disk_file_open(gm__disk_tier *tier, gm__disk_file **out, gm_error *err) {
  const bool writes = !tier->params.read_only;
  uint64_t bytes = 0;
  gm__disk_file *file;
  gm_status status = disk_file_new(tier, &file, err);
  if (status) return status;
  status = disk_file_find(tier, file, &bytes, err);
  const bool missing = status == GM_ERR_NOT_FOUND && file->file.fd < 0;
  if (writes && (!status || missing)) gm__disk_side_tidy(tier);
  if (!status && bytes) {
    *out = file;
    return GM_OK;
  }
  if (writes && (!status || missing)) status = disk_file_create(tier, missing ? NULL : file, out, err);
  gm__disk_file_drop(tier, file);
  return status;
}
