/* Invariant: no number of a checksum file is believed before it is held against the file's size. */
#include "core/load/sum_file.h"

#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/little.h"
#include "core/base/saturate.h"
#include "core/file/side_file.h"

enum { SUM_HEAD = 32, SUM_NUMBER = 8, SUM_OF_ALL = 24 /* where the checksum of all else is */ };

static const char sum_magic[SUM_NUMBER] = {'G', 'M', 'S', 'U', 'M', 0, 0, 2};

static gm_status sum_no_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "checksums", "no host memory for a file's checksums");
}

/* ---- making them ---- */

uint64_t gm__sums_of(const void *bytes, uint64_t count, uint64_t at) {
  uint64_t sum = 0;
  for (uint64_t done = 0, page; done < count; done += page) {
    page = gm__min(count - done, GM__SUM_PAGE);
    sum += gm__checksum((const unsigned char *)bytes + done, page, (at + done) / GM__SUM_PAGE);
  }
  return sum;
}

gm_status gm__sums_begin(gm__sums *sums, const gm_services *services, uint64_t most, gm_error *err) {
  const uint64_t blocks = gm__sums_blocks(most);
  *sums = (gm__sums){.services = services, .capacity = blocks};
  sums->sums = gm__alloc_array(services, (size_t)blocks, sizeof *sums->sums);
  return sums->sums ? GM_OK : sum_no_memory(err);
}

void gm__sums_end(gm__sums *sums) {
  gm__release(sums->services, sums->sums, (size_t)sums->capacity * sizeof *sums->sums);
  sums->sums = NULL;
}

void gm__sums_add(gm__sums *sums, const void *bytes, uint64_t count) {
  const unsigned char *at = bytes;
  for (uint64_t part; count; count -= part, at += part) {
    uint64_t *sum = &sums->sums[sums->bytes / GM__SUM_BLOCK];
    part = gm__min(count, GM__SUM_BLOCK - sums->bytes % GM__SUM_BLOCK);
    *sum += gm__sums_of(at, part, sums->bytes);
    sums->bytes += part;
  }
}

/* Makes the checksum of the stale block anew. */
static gm_status sum_refresh(gm__sums *sums, const gm__data_file *file, const char *path, gm_error *err) {
  if (!sums->stale) return GM_OK;
  const uint64_t block = sums->stale - 1, at = block * GM__SUM_BLOCK, count = gm__min(GM__SUM_BLOCK, sums->bytes - at);
  unsigned char *bytes = gm__alloc(sums->services, GM__SUM_BLOCK);
  if (!bytes) return sum_no_memory(err);
  const gm_status status = gm__data_file_read(file, path, at, bytes, count, err);
  if (!status) sums->sums[block] = gm__sums_of(bytes, count, at);
  gm__release(sums->services, bytes, GM__SUM_BLOCK);
  sums->stale = 0;
  return status;
}

gm_status gm__sums_again(gm__sums *sums, const gm__data_file *file, const char *path, uint64_t at, uint64_t count,
                         gm_error *err) {
  gm_status status = GM_OK;
  for (uint64_t block = at / GM__SUM_BLOCK; block < gm__sums_blocks(at + count) && !status; block++) {
    if (sums->stale == block + 1) continue;
    status = sum_refresh(sums, file, path, err);
    sums->stale = block + 1;
  }
  return status;
}

/* ---- the file ---- */

static bool sum_path(const char *path, char out[GM__FILE_PATH_SIZE]) {
  return (size_t)snprintf(out, GM__FILE_PATH_SIZE, "%s.gmsum", path) < GM__FILE_PATH_SIZE;
}

static gm_status sum_path_too_long(const char *path, gm_error *err) {
  return gm__fail(err, GM_ERR_IO, "checksums", "%.300s: its path leaves no room for that of a checksum file", path);
}

/* The checksum of a checksum file of `bytes` bytes, but for its own place. */
static uint64_t sum_of_all(const unsigned char *text, uint64_t bytes) {
  return gm__checksum(text + SUM_HEAD, bytes - SUM_HEAD, gm__checksum(text, SUM_OF_ALL, 0));
}

static void sum_write_text(const gm__sums *sums, unsigned char *text, uint64_t bytes) {
  memcpy(text, sum_magic, sizeof sum_magic);
  gm__le_put(text + 8, (uint64_t)gm__checksum_kind_here(), 4);
  gm__le_put(text + 12, GM__SUM_BLOCK, 4);
  gm__le_put(text + 16, sums->bytes, 8);
  for (uint64_t i = 0; i < gm__sums_blocks(sums->bytes); i++)
    gm__le_put(text + SUM_HEAD + i * SUM_NUMBER, sums->sums[i], 8);
  gm__le_put(text + SUM_OF_ALL, sum_of_all(text, bytes), 8);
}

static gm_status sum_write(const char *path, const unsigned char *text, uint64_t bytes, gm_error *err) {
  gm__side_file out;
  gm_status status = gm__side_file_open(path, &out, err);
  if (status) return status;
  status = gm__data_file_write(&out.side, path, 0, text, bytes, err);
  if (!status) status = gm__side_file_give(&out, err);
  gm__side_file_close(&out);
  return status;
}

gm_status gm__sums_save(gm__sums *sums, const gm__data_file *file, const char *path, gm_error *err) {
  char name[GM__FILE_PATH_SIZE];
  const uint64_t bytes = SUM_HEAD + gm__sums_blocks(sums->bytes) * SUM_NUMBER;
  if (!sum_path(path, name)) return sum_path_too_long(path, err);
  gm_status status = sum_refresh(sums, file, path, err);
  if (status) return status;
  unsigned char *text = gm__alloc(sums->services, (size_t)bytes);
  if (!text) return sum_no_memory(err);
  sum_write_text(sums, text, bytes);
  status = sum_write(name, text, bytes, err);
  gm__release(sums->services, text, (size_t)bytes);
  return status;
}

gm_status gm__sums_forget(const char *path, gm_error *err) {
  char name[GM__FILE_PATH_SIZE];
  gm__data_place place;
  gm__data_file file;
  if (!sum_path(path, name) || gm__data_place_open(name, &place, NULL)) return GM_OK; /* no file has such a name */
  gm_status status = gm__data_place_file(&place, name, true, &file, err);
  if (status == GM_OK) {
    gm__data_place_remove(&place, place.name);
    status = gm__data_place_sync(&place, &file, name, err);
    gm__data_file_close(&file, true);
  } else if (status == GM_ERR_NOT_FOUND) {
    status = GM_OK;
  }
  gm__data_place_close(&place);
  return status;
}

/* ---- comparing ---- */

static gm_status sum_check_head(const unsigned char *text, uint64_t bytes, const char *name, uint64_t file_bytes,
                                gm_error *err) {
  if (bytes < SUM_HEAD || memcmp(text, sum_magic, sizeof sum_magic) != 0 || gm__le_get(text + 12, 4) != GM__SUM_BLOCK) {
    return gm__fail(err, GM_ERR_FORMAT, "checksums", "%.300s: is no checksum file that this version knows", name);
  }
  if (gm__le_get(text + 8, 4) != (uint64_t)gm__checksum_kind_here()) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "checksums", "%.300s: has checksums of a kind that this build lacks",
                    name);
  }
  const uint64_t blocks = (bytes - SUM_HEAD) / SUM_NUMBER, described = gm__le_get(text + 16, 8);
  const bool whole = bytes % SUM_NUMBER == 0 && blocks == gm__sums_blocks(described) &&
                     gm__le_get(text + SUM_OF_ALL, 8) == sum_of_all(text, bytes);
  if (!whole) return gm__fail(err, GM_ERR_FORMAT, "checksums", "%.300s: is damaged", name);
  if (described == file_bytes) return GM_OK;
  return gm__fail(err, GM_ERR_IO, "checksums", "%.300s: is of a file of %llu bytes, the file has %llu", name,
                  (unsigned long long)described, (unsigned long long)file_bytes);
}

gm_status gm__sums_differ(const char *path, uint64_t file_bytes, uint64_t at, gm_error *err) {
  const uint64_t begin = at / GM__SUM_BLOCK * GM__SUM_BLOCK;
  return gm__fail(err, GM_ERR_IO, "checksums", "%.300s: bytes %llu to %llu are not those of its checksum file", path,
                  (unsigned long long)begin, (unsigned long long)gm__min(begin + GM__SUM_BLOCK, file_bytes));
}

/* The text of a checksum file, which is held against the file first. *out is `*out_bytes` of the services. */
static gm_status sum_read(const gm_services *services, const gm__input_file *sums, const char *name,
                          uint64_t file_bytes, unsigned char **out, gm_error *err) {
  if (sums->bytes > SUM_HEAD + gm__sums_blocks(file_bytes) * SUM_NUMBER) {
    return gm__fail(err, GM_ERR_IO, "checksums", "%.300s: is of a longer file, or is damaged", name);
  }
  unsigned char *text = gm__alloc(services, (size_t)sums->bytes + 1);
  if (!text) return sum_no_memory(err);
  gm_status status = gm__input_file_read_at(sums, name, 0, text, sums->bytes, err);
  if (!status) status = sum_check_head(text, sums->bytes, name, file_bytes, err);
  *out = text;
  return status;
}

static gm_status sum_take(const gm_services *services, const unsigned char *text, uint64_t blocks, uint64_t **out,
                          gm_error *err) {
  uint64_t *sums = gm__alloc_array(services, (size_t)blocks, sizeof *sums);
  if (!sums) return sum_no_memory(err);
  for (uint64_t i = 0; i < blocks; i++) sums[i] = gm__le_get(text + SUM_HEAD + i * SUM_NUMBER, 8);
  *out = sums;
  return GM_OK;
}

gm_status gm__sums_load(const gm_services *services, const char *path, uint64_t file_bytes, uint64_t **out,
                        gm_error *err) {
  char name[GM__FILE_PATH_SIZE];
  gm__input_file sums;
  unsigned char *text = NULL;
  *out = NULL;
  gm_status status = sum_path(path, name) ? gm__input_file_open(name, &sums, err) : GM_ERR_NOT_FOUND;
  if (status) return status == GM_ERR_NOT_FOUND ? GM_OK : status;
  status = sum_read(services, &sums, name, file_bytes, &text, err);
  if (!status) status = sum_take(services, text, gm__sums_blocks(file_bytes), out, err);
  gm__release(services, text, (size_t)sums.bytes + 1);
  gm__input_file_close(&sums);
  return status;
}

/* ---- all of a file ---- */

static gm_status sum_check_blocks(const gm_services *services, const gm__input_file *file, const char *path,
                                  const uint64_t *wanted, gm_status (*step)(void *, uint64_t, gm_error *), void *user,
                                  gm_error *err) {
  unsigned char *block = gm__alloc(services, GM__SUM_BLOCK);
  gm_status status = block ? GM_OK : sum_no_memory(err);
  for (uint64_t at = 0, count; at < file->bytes && !status; at += count) {
    count = gm__min(GM__SUM_BLOCK, file->bytes - at);
    status = gm__input_file_read_at(file, path, at, block, count, err);
    if (!status && gm__sums_of(block, count, at) != wanted[at / GM__SUM_BLOCK]) {
      status = gm__sums_differ(path, file->bytes, at, err);
    }
    if (!status) status = step(user, count, err);
  }
  gm__release(services, block, GM__SUM_BLOCK);
  return status;
}

gm_status gm__sums_check(const gm_services *services, const gm__input_file *file, const char *path,
                         gm_status (*step)(void *user, uint64_t bytes, gm_error *err), void *user, bool *out_found,
                         gm_error *err) {
  uint64_t *wanted;
  gm_status status = gm__sums_load(services, path, file->bytes, &wanted, err);
  *out_found = wanted != NULL;
  if (!status && wanted) status = sum_check_blocks(services, file, path, wanted, step, user, err);
  gm__release(services, wanted, (size_t)gm__sums_blocks(file->bytes) * sizeof *wanted);
  return status;
}
