#include "core/load/save_format.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/crc32.h"
#include "core/base/error.h"
#include "core/model/json_scan.h"
#include "core/model/npy_write.h"
#include "core/model/safetensors_write.h"

static const char format_op[] = "gm_store_save";

gm_status gm__save_sink_write(gm__save_sink *sink, const void *bytes, uint64_t count, gm_error *err) {
  const gm_status status = gm__data_file_write(&sink->file->side, sink->file->path, sink->at, bytes, count, err);
  if (status) return status;
  sink->at += count;
  sink->crc = gm__crc32(sink->crc, bytes, count);
  return GM_OK;
}

/* ---- safetensors ---- */

static gm_status format_safetensors(const gm__save_source *source, gm__save_sink *sink, gm_error *err) {
  char *begin = NULL;
  uint64_t bytes = 0;
  qsort(source->rows, source->count, sizeof *source->rows, gm__safetensors_order);
  gm_status status = gm__safetensors_begin(source->services, source->rows, source->count, &begin, &bytes, err);
  if (!status) status = gm__save_sink_write(sink, begin, bytes, err);
  gm__release(source->services, begin, (size_t)bytes);
  for (size_t i = 0; i < source->count && !status; i++) status = source->data(source->user, i, sink, err);
  return status;
}

/* ---- NumPy ---- */

static const char *format_npy_refuses(const char *name, gm_dtype dtype) {
  (void)name;
  return gm__npy_refuses(dtype);
}

static gm_status format_array(const gm__save_source *source, size_t row, gm__save_sink *sink, gm_error *err) {
  char begin[GM__NPY_BEGIN_MOST];
  const size_t bytes = gm__npy_begin(&source->rows[row], sink->at, begin);
  const gm_status status = gm__save_sink_write(sink, begin, bytes, err);
  return status ? status : source->data(source->user, row, sink, err);
}

static gm_status format_npy(const gm__save_source *source, gm__save_sink *sink, gm_error *err) {
  if (source->count == 1) return format_array(source, 0, sink, err);
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, format_op,
                  "an .npy file holds one tensor, %zu keys are below the prefix; an .npz file holds them all",
                  source->count);
}

static const char *format_npz_refuses(const char *name, gm_dtype dtype) {
  const char *why = gm__npy_refuses(dtype);
  if (why) return why;
  if (strlen(name) > GM__NPZ_NAME_MOST) return "has a name that is too long";
  return gm__utf8_is(name, strlen(name)) ? NULL : "has a name that is not UTF-8";
}

/* The record is written once more when the checksum of what follows it is known. */
static gm_status format_member(const gm__save_source *source, size_t row, gm__npz_member *member, gm__save_sink *sink,
                               gm_error *err) {
  char record[GM__NPZ_RECORD_MOST];
  *member = (gm__npz_member){.name = source->rows[row].name, .at = sink->at};
  const size_t bytes = gm__npz_record(member, record);
  gm_status status = gm__save_sink_write(sink, record, bytes, err);
  sink->crc = 0;
  if (!status) status = format_array(source, row, sink, err);
  if (status) return status;
  member->bytes = sink->at - member->at - bytes;
  member->crc = sink->crc;
  gm__npz_record(member, record);
  return gm__data_file_write(&sink->file->side, sink->file->path, member->at, record, bytes, err);
}

static gm_status format_list(const gm__npz_member *members, size_t count, gm__save_sink *sink, gm_error *err) {
  char record[GM__NPZ_RECORD_MOST];
  const uint64_t at = sink->at;
  gm_status status = GM_OK;
  for (size_t i = 0; i < count && !status; i++) {
    status = gm__save_sink_write(sink, record, gm__npz_entry(&members[i], record), err);
  }
  if (status) return status;
  return gm__save_sink_write(sink, record, gm__npz_end(count, at, sink->at - at, record), err);
}

static gm_status format_npz(const gm__save_source *source, gm__save_sink *sink, gm_error *err) {
  gm__npz_member *members = gm__alloc(source->services, source->count * sizeof *members);
  gm_status status = GM_OK;
  if (!members) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, format_op, "no host memory for a file's list");
  for (size_t i = 0; i < source->count && !status; i++) status = format_member(source, i, &members[i], sink, err);
  if (!status) status = format_list(members, source->count, sink, err);
  gm__release(source->services, members, source->count * sizeof *members);
  return status;
}

/* ---- which one ---- */

const gm__save_format *gm__save_format_of(const char *path) {
  static const gm__save_format formats[] = {{".npy", format_npy_refuses, format_npy},
                                            {".npz", format_npz_refuses, format_npz},
                                            {"", gm__safetensors_refuses, format_safetensors}};
  const size_t length = strlen(path);
  const gm__save_format *format = formats;
  while (length < strlen(format->end) || strcmp(path + length - strlen(format->end), format->end) != 0) format++;
  return format;
}
