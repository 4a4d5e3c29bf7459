/* Invariants: a side file has a name of its own, which no other thread or process takes. Its maker has it locked, so
 * one that nobody has locked is of a process that ended. No page is written past the page cache and through it at a
 * time.
 */
#include "core/file/side_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checksum.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

enum { SIDE_NAME_MOST = 228 /* of the path's name; with what follows it fits into a name */ };

static void side_file_name(const gm__side_file *file, uint64_t number, char out[GM__DATA_NAME_SIZE]) {
  (void)snprintf(out, GM__DATA_NAME_SIZE, "%.*s.%016" PRIx64 ".gm-save", SIDE_NAME_MOST, file->place.name, number);
}

/* A number that no other side file has. */
static uint64_t side_file_number(const gm__side_file *file) {
  const uint64_t seeds[] = {gm__now_ns(), (uint64_t)(uintptr_t)file};
  return gm__checksum(file->path, strlen(file->path), gm__checksum(seeds, sizeof seeds, 0));
}

static bool side_file_is(const gm__side_file *file, const char *name) {
  char same[GM__DATA_NAME_SIZE];
  const size_t before = strnlen(file->place.name, SIDE_NAME_MOST) + 1;
  if (strlen(name) <= before) return false;
  side_file_name(file, strtoull(name + before, NULL, 16), same);
  return strcmp(name, same) == 0;
}

/* Removes a side file that nobody has locked. */
static void side_file_tidy(void *user, const char *name) {
  const gm__side_file *file = user;
  gm__data_place side = {.folder = file->place.folder};
  gm__data_file left;
  if (!side_file_is(file, name)) return;
  (void)snprintf(side.name, sizeof side.name, "%s", name);
  if (gm__data_place_file(&side, file->path, true, &left, NULL)) return; /* its maker is at work */
  gm__data_place_remove(&file->place, name);
  gm__data_file_close(&left, true);
}

/* The file that is there keeps everybody else away from the name, so it is locked first. */
static gm_status side_file_open_old(gm__side_file *file, gm_error *err) {
  const gm_status status = gm__data_place_file(&file->place, file->path, true, &file->old, err);
  if (!status) return GM_OK;
  file->old.fd = -1;
  return status == GM_ERR_NOT_FOUND ? GM_OK : status;
}

static gm_status side_file_make(gm__side_file *file, gm_error *err) {
  gm__data_place_names(&file->place, side_file_tidy, file);
  side_file_name(file, side_file_number(file), file->side_name);
  const gm_status status = gm__data_place_side(&file->place, file->path, file->side_name, &file->side, err);
  if (status) file->side.fd = -1;
  if (!status) (void)gm__data_place_side_direct(&file->place, file->side_name, &file->side, &file->direct);
  return status;
}

gm_status gm__side_file_open(const char *path, gm__side_file *out, gm_error *err) {
  *out = (gm__side_file){.path = path, .place = {.folder = -1}, .old = {-1}, .side = {-1}, .direct = {-1}};
  gm_status status = gm__data_place_open(path, &out->place, err);
  if (!status) status = side_file_open_old(out, err);
  if (!status) status = side_file_make(out, err);
  if (!status && out->old.fd >= 0) gm__data_file_resemble(&out->side, &out->old);
  if (status) gm__side_file_close(out);
  return status;
}

bool gm__side_file_is_direct(const gm__side_file *file) {
  return file->direct.fd >= 0 && gm__data_file_is_direct(&file->direct);
}

/* Whole pages at a page of memory. */
static gm_status side_file_write_pages(const gm__side_file *file, uint64_t at, const unsigned char *from,
                                       uint64_t bytes, uint64_t *out_direct, gm_error *err) {
  const gm_status status = gm__data_file_write(&file->direct, file->path, at, from, bytes, err);
  if (!status && gm__data_file_is_direct(&file->direct)) *out_direct += bytes;
  return status;
}

gm_status gm__side_file_write(const gm__side_file *file, uint64_t at, const void *from, uint64_t bytes,
                              uint64_t *out_direct, gm_error *err) {
  enum { PAGE = GM__DATA_FILE_DIRECT };
  const unsigned char *data = from;
  const uint64_t lead = gm__min(bytes, (PAGE - at % PAGE) % PAGE), middle = (bytes - lead) / PAGE * PAGE;
  *out_direct = 0;
  if (!middle || (uintptr_t)(data + lead) % PAGE || !gm__side_file_is_direct(file)) {
    return gm__data_file_write(&file->side, file->path, at, data, bytes, err);
  }
  gm_status status = GM_OK;
  if (lead) status = gm__data_file_write(&file->side, file->path, at, data, lead, err);
  if (!status) status = side_file_write_pages(file, at + lead, data + lead, middle, out_direct, err);
  const uint64_t done = lead + middle;
  if (status || done == bytes) return status;
  return gm__data_file_write(&file->side, file->path, at + done, data + done, bytes - done, err);
}

gm_status gm__side_file_give(gm__side_file *file, gm_error *err) {
  const gm__data_file *old = file->old.fd >= 0 ? &file->old : NULL;
  gm_status status = gm__data_file_sync(&file->side, file->path, err);
  if (!status) status = gm__data_place_give(&file->place, file->path, file->side_name, &file->side, old, err);
  if (!status) status = gm__data_place_sync(&file->place, &file->side, file->path, err);
  return status;
}

void gm__side_file_close(gm__side_file *file) {
  if (file->side.fd >= 0) {
    gm__data_place_remove(&file->place, file->side_name); /* where it got the path's name there is none */
    gm__data_file_close(&file->side, true);
  }
  gm__data_file_close(&file->direct, false);
  if (file->old.fd >= 0) gm__data_file_close(&file->old, true);
  gm__data_place_close(&file->place);
}
