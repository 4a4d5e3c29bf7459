#include "core/load/save_format.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/model/gguf_write.h"
#include "core/model/json_scan.h"
#include "core/model/npy_write.h"
#include "core/model/safetensors_write.h"

/* ---- safetensors ---- */

static gm_status format_begin(const gm__save_source *source, gm__save_sink *sink,
                              gm_status (*make)(const gm__file_table *, char **, uint64_t *, gm_error *),
                              gm_error *err) {
  char *begin = NULL;
  uint64_t bytes = 0;
  gm_status status = make(&source->table, &begin, &bytes, err);
  if (!status) status = gm__save_sink_write(sink, begin, bytes, err);
  gm__release(source->table.services, begin, (size_t)bytes);
  return status;
}

static gm_status format_safetensors(const gm__save_source *source, gm__save_sink *sink, gm_error *err) {
  const gm__file_table *table = &source->table;
  if (table->count) qsort(table->tensors, table->count, sizeof *table->tensors, gm__safetensors_order);
  gm_status status = format_begin(source, sink, gm__safetensors_begin, err);
  for (size_t i = 0; i < table->count && !status; i++) status = source->data(source->user, i, sink, err);
  return status;
}

/* ---- GGUF ---- */

static gm_status format_gguf(const gm__save_source *source, gm__save_sink *sink, gm_error *err) {
  gm_status status = format_begin(source, sink, gm__gguf_begin, err);
  for (size_t i = 0; i < source->table.count && !status; i++) {
    status = source->data(source->user, i, sink, err);
    if (!status) status = gm__save_sink_pad(sink, GM__FILE_ALIGN, err);
  }
  return status;
}

/* ---- NumPy ---- */

static bool format_npy_holds(const gm__file_value *value) {
  (void)value;
  return false;
}

static gm_status format_array(const gm__save_source *source, size_t row, gm__save_sink *sink, gm_error *err) {
  char begin[GM__NPY_BEGIN_MOST];
  const size_t bytes = gm__npy_begin(&source->table.tensors[row], sink->at, begin);
  const gm_status status = gm__save_sink_write(sink, begin, bytes, err);
  return status ? status : source->data(source->user, row, sink, err);
}

static gm_status format_npy(const gm__save_source *source, gm__save_sink *sink, gm_error *err) {
  const gm__file_table *table = &source->table;
  if (table->count == 1) return format_array(source, 0, sink, err);
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, table->op,
                  "an .npy file holds one tensor, here are %zu; an .npz file holds them all", table->count);
}

static const char *format_npz_refuses(const gm__file_tensor *tensor) {
  const char *why = gm__npy_refuses(tensor), *name = tensor->name;
  if (why) return why;
  if (strlen(name) > GM__NPZ_NAME_MOST) return "has a name that is too long";
  return gm__utf8_is(name, strlen(name)) ? NULL : "has a name that is not UTF-8";
}

/* The record is written once more when the checksum of what follows it is known. */
static gm_status format_member(const gm__save_source *source, size_t row, gm__npz_member *member, gm__save_sink *sink,
                               gm_error *err) {
  char record[GM__NPZ_RECORD_MOST];
  *member = (gm__npz_member){.name = source->table.tensors[row].name, .at = sink->at};
  const size_t bytes = gm__npz_record(member, record);
  gm_status status = gm__save_sink_write(sink, record, bytes, err);
  sink->crc = 0;
  if (!status) status = format_array(source, row, sink, err);
  if (status) return status;
  member->bytes = sink->at - member->at - bytes;
  member->crc = sink->crc;
  gm__npz_record(member, record);
  return gm__save_sink_again(sink, member->at, record, bytes, err);
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
  const gm__file_table *table = &source->table;
  gm__npz_member *members = gm__alloc_array(table->services, table->count, sizeof *members);
  gm_status status = GM_OK;
  if (!members) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, table->op, "no host memory for a file's list");
  for (size_t i = 0; i < table->count && !status; i++) status = format_member(source, i, &members[i], sink, err);
  if (!status) status = format_list(members, table->count, sink, err);
  gm__release(table->services, members, table->count * sizeof *members);
  return status;
}

/* ---- which one ---- */

const gm__save_format *gm__save_format_of(const char *path) {
  static const gm__save_format formats[] = {{".npy", gm__npy_refuses, format_npy_holds, format_npy},
                                            {".npz", format_npz_refuses, format_npy_holds, format_npz},
                                            {".gguf", gm__gguf_refuses, gm__gguf_holds, format_gguf},
                                            {"", gm__safetensors_refuses, gm__safetensors_holds, format_safetensors}};
  const size_t length = strlen(path);
  const gm__save_format *format = formats;
  while (length < strlen(format->end) || strcmp(path + length - strlen(format->end), format->end) != 0) format++;
  return format;
}

gm_status gm__save_whole(const gm__save_source *source, const gm__save_format *format, const char *path,
                         gm_error *err) {
  gm__save_file file;
  gm__save_sink sink;
  gm_status status = gm__save_file_open(path, &file, err);
  if (status) return status;
  status = gm__save_sink_begin(&sink, source->table.services, &file, err);
  if (!status) status = format->write(source, &sink, err);
  gm__save_sink_end(&sink);
  if (!status) status = gm__save_file_give(&file, err);
  gm__save_file_close(&file);
  return status;
}
