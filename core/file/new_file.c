/* Invariant: a file whose write failed gets no name. */
#include "core/file/new_file.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/mapping.h"
#include "core/base/saturate.h"

enum { NEW_COPY = 1 << 20 /* copied at once */, NEW_SMALL = 64 << 10 /* not worth memory at a page */ };
enum { NEW_PAGE = GM__DATA_FILE_DIRECT };

/* ---- begin and end ---- */

gm_status gm__new_file_begin(const gm_services *services, const char *path, uint64_t bytes, gm_way way,
                             gm__new_file **out, gm_error *err) {
  gm__new_file *file = gm__alloc(services, sizeof *file);
  if (!file) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_file_create", "no host memory for a new file");
  gm_status status = gm__side_file_open(path, &file->side, err);
  if (status != GM_OK) {
    gm__release(services, file, sizeof *file);
    return status;
  }
  file->services = services;
  file->cached = way == GM_WAY_CACHE;
  file->reserved = bytes;
  status = gm__data_file_reserve(&file->side.side, path, bytes, err);
  if (status != GM_OK) return gm__new_file_end(file), status;
  *out = file;
  return GM_OK;
}

void gm__new_file_end(gm__new_file *file) {
  if (!file) return;
  gm__side_file_close(&file->side);
  gm__release(file->services, file, sizeof *file);
}

const char *gm__new_file_why(const gm__new_file *file) {
  return file->cached || gm__side_file_is_direct(&file->side) ? "" : "the file system takes no writes past its cache";
}

/* ---- bytes ---- */

/* Whether bytes are at a page of memory where they are at one of the file. */
static bool new_fits(const unsigned char *from, uint64_t at) { return (uintptr_t)from % NEW_PAGE == at % NEW_PAGE; }

/* By way of memory that lies to pages as the file does. */
static gm_status new_write_copied(const gm__side_file *side, uint64_t at, const unsigned char *from, uint64_t bytes,
                                  gm_error *err) {
  unsigned char *memory = gm__mapping_new(NEW_COPY);
  uint64_t direct = 0;
  if (!memory) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "mmap", "no host memory for %d bytes", NEW_COPY);
  gm_status status = GM_OK;
  for (uint64_t done = 0, part; done < bytes && status == GM_OK; done += part) {
    const uint64_t lead = (at + done) % NEW_PAGE;
    part = gm__min(NEW_COPY - lead, bytes - done);
    memcpy(memory + lead, from + done, (size_t)part);
    status = gm__side_file_write(side, at + done, memory + lead, part, &direct, err);
  }
  gm__mapping_release(memory, NEW_COPY);
  return status;
}

static gm_status new_write(const gm__new_file *file, uint64_t at, const void *from, uint64_t bytes, gm_error *err) {
  const gm__side_file *side = &file->side;
  uint64_t direct = 0;
  if (file->cached) return gm__data_file_write(&side->side, side->path, at, from, bytes, err);
  if (bytes >= NEW_SMALL && !new_fits(from, at) && gm__side_file_is_direct(side)) {
    return new_write_copied(side, at, from, bytes, err);
  }
  return gm__side_file_write(side, at, from, bytes, &direct, err);
}

/* The file reaches to `end`. */
static void new_reach(gm__new_file *file, uint64_t end) {
  uint64_t known = atomic_load(&file->end);
  while (known < end && !atomic_compare_exchange_weak(&file->end, &known, end)) {}
}

gm_status gm__new_file_write(gm__new_file *file, uint64_t at, const void *from, uint64_t bytes, gm_error *err) {
  const gm_status status = new_write(file, at, from, bytes, err);
  if (status == GM_OK) new_reach(file, at + bytes);
  if (status != GM_OK && status != GM_ERR_OUT_OF_HOST_MEMORY) atomic_store(&file->failed, true);
  return status;
}

/* ---- the name ---- */

gm_status gm__new_file_commit(gm__new_file *file, gm_error *err) {
  const uint64_t end = atomic_load(&file->end);
  gm_status status = GM_OK;
  if (atomic_load(&file->failed)) {
    return gm__fail(err, GM_ERR_IO, "gm_file_commit", "%.300s: a write to the new file has failed", file->side.path);
  }
  if (file->reserved > end) status = gm__data_file_cut(&file->side.side, file->side.path, end, err);
  if (status == GM_OK) status = gm__side_file_give(&file->side, err);
  file->committed = status == GM_OK;
  if (status != GM_OK) atomic_store(&file->failed, true); /* the disk may have lost what was written before */
  return status;
}
