/* Invariant: `direct`, if it is open, is the file of `input` in the same state. */
#include "core/file/file.h"

#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"

enum { FILE_DIRECT_UNTRIED, FILE_DIRECT_OPEN, FILE_DIRECT_NONE };

static const char file_open_op[] = "gm_file_open";

static gm_status file_check_way(gm_way way, gm_error *err) {
  switch (way) {
    case GM_WAY_AUTO:
    case GM_WAY_CACHE:
    case GM_WAY_DIRECT:
    case GM_WAY_MAP: return GM_OK;
    case GM_WAY_GDS:
      return gm__fail(err, GM_ERR_NOT_SUPPORTED, file_open_op,
                      "the way gds (GPUDirect Storage) comes with a later version of gm");
  }
  return gm__bad_argument(err, file_open_op, "`way` is %d, no gm_way", (int)way);
}

static gm_status file_open_ways(gm_file *file, gm_error *err) {
  gm_status status = gm__input_file_open(file->path, &file->input, err);
  if (status == GM_OK && file->way == GM_WAY_MAP && file->input.bytes) {
    status = gm__input_file_map(&file->input, file->path, &file->mapping, err);
  }
  return status;
}

gm_status gm__file_make(const gm_services *services, const char *path, gm_way way, gm_file **out, gm_error *err) {
  if (!services) services = gm__default_services();
  gm_file *file = gm__alloc(services, sizeof *file);
  char *copy = file ? gm__alloc(services, strlen(path) + 1) : NULL;
  if (!copy) {
    gm__release(services, file, sizeof *file);
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, file_open_op, "no host memory for an open file");
  }
  memcpy(copy, path, strlen(path) + 1);
  file->services = services;
  file->path = copy;
  file->way = way;
  file->input.fd = file->direct.fd = -1;
  gm__mutex_init(&file->lock, GM__RANK_LEAF);
  *out = file;
  return GM_OK;
}

gm_status gm__file_open(const gm_services *services, const char *path, gm_way way, gm_file **out, gm_error *err) {
  gm_file *file = NULL;
  gm_status status = file_check_way(way, err);
  if (status == GM_OK) status = gm__file_make(services, path, way, &file, err);
  if (status == GM_OK) status = file_open_ways(file, err);
  if (status != GM_OK) return gm_file_close(file), status;
  *out = file;
  return GM_OK;
}

gm_status gm_file_open(const char *path, gm_way way, gm_file **out, gm_error *err) {
  GM__UNCANCELLED();
  if (!path) return gm__bad_argument(err, file_open_op, "`path` is NULL");
  if (!out) return gm__bad_argument(err, file_open_op, "`out` is NULL");
  return gm__file_open(NULL, path, way, out, err);
}

void gm_file_close(gm_file *file) {
  GM__UNCANCELLED();
  if (!file) return;
  gm__new_file_end(file->fresh);
  gm__input_file_unmap(&file->input, file->mapping);
  gm__input_file_close(&file->direct);
  gm__input_file_close(&file->input);
  gm__mutex_destroy(&file->lock);
  gm__release(file->services, file->path, strlen(file->path) + 1);
  gm__release(file->services, file, sizeof *file);
}

uint64_t gm_file_size(const gm_file *file) {
  if (file && file->fresh) return atomic_load(&file->fresh->end);
  return file ? file->input.bytes : 0;
}

const char *gm_file_why(const gm_file *file) {
  if (file && file->fresh) return gm__new_file_why(file->fresh);
  return file && atomic_load(&file->direct_is) == FILE_DIRECT_NONE ? file->why : "";
}

/* REQUIRES: file lock */
static gm_status file_open_direct(gm_file *file, gm_error *err) {
  gm_error refusal = {.status = GM_OK};
  const gm_status status = gm__input_file_open_direct(&file->input, file->path, &file->direct, &refusal);
  if (status != GM_OK) file->direct.fd = -1;
  if (status == GM_ERR_NOT_SUPPORTED) snprintf(file->why, sizeof file->why, "%.190s", refusal.message);
  if (status == GM_OK || status == GM_ERR_NOT_SUPPORTED) {
    atomic_store(&file->direct_is, status == GM_OK ? FILE_DIRECT_OPEN : FILE_DIRECT_NONE);
    return GM_OK;
  }
  if (err) *err = refusal;
  return status;
}

gm_status gm__file_direct(gm_file *file, const gm__input_file **out, gm_error *err) {
  gm_status status = GM_OK;
  if (atomic_load(&file->direct_is) == FILE_DIRECT_UNTRIED) {
    gm__mutex_lock(&file->lock);
    if (atomic_load(&file->direct_is) == FILE_DIRECT_UNTRIED) status = file_open_direct(file, err);
    gm__mutex_unlock(&file->lock);
  }
  *out = atomic_load(&file->direct_is) == FILE_DIRECT_OPEN ? &file->direct : NULL;
  return status;
}

gm_way gm__file_way(gm_file *file, uint64_t at, uint64_t bytes) {
  uint64_t resident = 0;
  if (file->way != GM_WAY_AUTO) return file->way;
  if (atomic_load(&file->direct_is) == FILE_DIRECT_NONE) return GM_WAY_CACHE;
  if (!gm__input_file_resident(&file->input, at, bytes, &resident)) return GM_WAY_CACHE;
  return resident < bytes - resident ? GM_WAY_DIRECT : GM_WAY_CACHE;
}
