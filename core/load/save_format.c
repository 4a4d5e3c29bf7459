#include "core/load/save_format.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/utf8.h"
#include "core/model/gguf_write.h"
#include "core/model/npy_write.h"
#include "core/model/safetensors_write.h"

/* The bytes of all tensors, each up to a multiple of `align` and with `more` beside it. */
static uint64_t format_bytes(const gm__file_table *table, uint64_t align, uint64_t more) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < table->count; i++) {
    bytes = gm__add_sat(bytes, gm__add_sat(gm__round_up(table->tensors[i].bytes, align), more));
  }
  return bytes;
}

/* ---- safetensors ---- */

static gm_status format_begin(const gm__save_source *source, gm__save_sink *sink,
                              gm_status (*make)(const gm__file_table *, char **, uint64_t *, gm_error *),
                              uint64_t align, gm_error *err) {
  char *begin = NULL;
  uint64_t bytes = 0;
  const uint64_t data = format_bytes(&source->table, align, 0);
  gm_status status = make(&source->table, &begin, &bytes, err);
  if (!status) status = gm__save_sink_reserve(sink, source->table.services, gm__add_sat(bytes, data), err);
  if (!status) status = gm__save_sink_write(sink, begin, bytes, err);
  gm__release(source->table.services, begin, (size_t)bytes);
  return status;
}

static gm_status format_safetensors(const gm__save_source *source, gm__save_sink *sink, gm_error *err) {
  const gm__file_table *table = &source->table;
  if (table->count) qsort(table->tensors, table->count, sizeof *table->tensors, gm__safetensors_order);
  gm_status status = format_begin(source, sink, gm__safetensors_begin, 1, err);
  for (size_t i = 0; i < table->count && !status; i++) status = source->data(source->user, i, sink, err);
  return status ? status : gm__save_sink_finish(sink, err);
}

/* ---- GGUF ---- */

static gm_status format_gguf(const gm__save_source *source, gm__save_sink *sink, gm_error *err) {
  gm_status status = format_begin(source, sink, gm__gguf_begin, GM__FILE_ALIGN, err);
  for (size_t i = 0; i < source->table.count && !status; i++) {
    status = source->data(source->user, i, sink, err);
    if (!status) status = gm__save_sink_pad(sink, GM__FILE_ALIGN, err);
  }
  return status ? status : gm__save_sink_finish(sink, err);
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
  if (table->count != 1) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, table->op,
                    "an .npy file holds one tensor, here are %zu; an .npz file holds them all", table->count);
  }
  gm_status status = gm__save_sink_reserve(sink, table->services, format_bytes(table, 1, GM__NPY_BEGIN_MOST), err);
  if (!status) status = format_array(source, 0, sink, err);
  return status ? status : gm__save_sink_finish(sink, err);
}

static const char *format_npz_refuses(const gm__file_tensor *tensor) {
  const char *why = gm__npy_refuses(tensor), *name = tensor->name;
  if (why) return why;
  if (strlen(name) > GM__NPZ_NAME_MOST) return "has a name that is too long";
  return gm__utf8_is(name, strlen(name)) ? NULL : "has a name that is not UTF-8";
}

static gm_status format_member(const gm__save_source *source, size_t row, gm__npz_member *member, gm__save_sink *sink,
                               gm_error *err) {
  char record[GM__NPZ_RECORD_MOST];
  *member = (gm__npz_member){.name = source->table.tensors[row].name, .at = sink->at};
  const size_t bytes = gm__npz_record(member, record);
  gm_status status = gm__save_sink_write(sink, record, bytes, err);
  sink->crc = 0;
  if (!status) status = format_array(source, row, sink, err);
  member->bytes = sink->at - member->at - bytes;
  member->crc = sink->crc;
  return status;
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

/* The records are written once more when the checksums of what follows them are known. */
static gm_status format_records(const gm__npz_member *members, size_t count, gm__save_sink *sink, gm_error *err) {
  char record[GM__NPZ_RECORD_MOST];
  gm_status status = gm__save_sink_finish(sink, err);
  for (size_t i = 0; i < count && !status; i++) {
    status = gm__save_sink_again(sink, members[i].at, record, gm__npz_record(&members[i], record), err);
  }
  return status;
}

static gm_status format_npz(const gm__save_source *source, gm__save_sink *sink, gm_error *err) {
  enum { BESIDE = GM__NPY_BEGIN_MOST + 2 * GM__NPZ_RECORD_MOST };
  const gm__file_table *table = &source->table;
  gm__npz_member *members = gm__alloc_array(table->services, table->count, sizeof *members);
  if (!members) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, table->op, "no host memory for a file's list");
  sink->has_crc = true;
  gm_status status =
      gm__save_sink_reserve(sink, table->services, gm__add_sat(format_bytes(table, 1, BESIDE), BESIDE), err);
  for (size_t i = 0; i < table->count && !status; i++) status = format_member(source, i, &members[i], sink, err);
  if (!status) status = format_list(members, table->count, sink, err);
  if (!status) status = format_records(members, table->count, sink, err);
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

static gm_status save_through(const gm__save_source *source, const gm__save_format *format, gm__side_file *file,
                              gm__save_sink *sink, gm__save_figures *out, gm_error *err) {
  gm__save_writer *writer = NULL;
  const uint64_t piece_bytes = source->piece_bytes ? source->piece_bytes : GM__SAVE_PIECE_BYTES;
  gm_status status = gm__save_writer_begin(source->table.services, file, piece_bytes, source->ring, &writer, err);
  if (status) return status;
  gm__save_sink_begin(sink, file, writer, piece_bytes);
  sink->has_sums = source->sums;
  status = format->write(source, sink, err);
  gm__save_writer_figures(writer, &out->writer);
  out->file_bytes = sink->at;
  gm__save_writer_end(writer);
  return status;
}

static gm_status save_check_source(const gm__save_source *source, gm_status status, gm_error *err) {
  gm_error changed = {.status = GM_OK};
  if (!source->stands || source->stands(source->user, &changed) == GM_OK) return status;
  if (err) *err = changed;
  return changed.status;
}

/* The checksum file of an earlier file goes first: it would be wrong beside the new one. */
gm_status gm__save_whole(const gm__save_source *source, const gm__save_format *format, const char *path,
                         gm__save_figures *out, gm_error *err) {
  gm__side_file file;
  gm__save_sink sink = {.at = 0};
  gm_status status = gm__side_file_open(path, &file, err);
  if (status) return status;
  status = save_check_source(source, save_through(source, format, &file, &sink, out, err), err);
  if (!status) status = gm__sums_forget(path, err);
  if (!status) status = gm__side_file_give(&file, err);
  if (!status && source->sums) status = gm__sums_save(&sink.sums, &file.side, path, err);
  gm__save_sink_end(&sink);
  gm__side_file_close(&file);
  return status;
}
