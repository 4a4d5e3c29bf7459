/* gm_file_create, gm_file_write and gm_file_commit. */
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/file/file.h"

static const char create_op[] = "gm_file_create", write_op[] = "gm_file_write";

gm_status gm_file_create(const char *path, uint64_t bytes, gm_way way, gm_file **out, gm_error *err) {
  GM__UNCANCELLED();
  gm_file *file = NULL;
  if (!path) return gm__bad_argument(err, create_op, "`path` is NULL");
  if (!out) return gm__bad_argument(err, create_op, "`out` is NULL");
  if (way != GM_WAY_AUTO && way != GM_WAY_CACHE && way != GM_WAY_DIRECT) {
    return gm__bad_argument(err, create_op, "`way` is %d: new files are written through the page cache or past it",
                            (int)way);
  }
  gm_status status = gm__file_make(NULL, path, way, &file, err);
  if (status == GM_OK) status = gm__new_file_begin(file->services, file->path, bytes, way, &file->fresh, err);
  if (status != GM_OK) return gm_file_close(file), status;
  *out = file;
  return GM_OK;
}

static gm_status write_check(const gm_file *file, const char *op, gm_error *err) {
  if (!file) return gm__bad_argument(err, op, "`file` is NULL");
  if (!file->fresh) return gm__bad_argument(err, op, "`file` is not from gm_file_create");
  return file->fresh->committed ? gm__bad_argument(err, op, "`file` was committed") : GM_OK;
}

gm_status gm_file_write(gm_file *file, uint64_t offset, const void *from, uint64_t bytes, gm_error *err) {
  GM__UNCANCELLED();
  const gm_status status = write_check(file, write_op, err);
  if (status != GM_OK) return status;
  if (!from && bytes) return gm__bad_argument(err, write_op, "`from` is NULL");
  if (bytes > INT64_MAX || offset > INT64_MAX - bytes) {
    return gm__bad_argument(err, write_op, "%llu bytes at %llu are behind the end of every file",
                            (unsigned long long)bytes, (unsigned long long)offset);
  }
  return bytes ? gm__new_file_write(file->fresh, offset, from, bytes, err) : GM_OK;
}

gm_status gm_file_commit(gm_file *file, gm_error *err) {
  GM__UNCANCELLED();
  const gm_status status = write_check(file, "gm_file_commit", err);
  return status == GM_OK ? gm__new_file_commit(file->fresh, err) : status;
}
