#include "core/load/save_sink.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/crc32.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

enum { SINK_CHUNK = 4 << 20 };

gm_status gm__save_sink_begin(gm__save_sink *sink, const gm_services *services, gm__save_file *file, gm_error *err) {
  *sink = (gm__save_sink){.services = services, .file = file, .chunk = gm__alloc(services, SINK_CHUNK)};
  return sink->chunk ? GM_OK : gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "save", "no host memory for a chunk");
}

void gm__save_sink_end(gm__save_sink *sink) {
  gm__release(sink->services, sink->chunk, SINK_CHUNK);
  sink->chunk = NULL;
}

gm_status gm__save_sink_write(gm__save_sink *sink, const void *bytes, uint64_t count, gm_error *err) {
  const gm_status status = gm__data_file_write(&sink->file->side, sink->file->path, sink->at, bytes, count, err);
  if (status) return status;
  sink->at += count;
  sink->crc = gm__crc32(sink->crc, bytes, count);
  return GM_OK;
}

gm_status gm__save_sink_fill(gm__save_sink *sink, uint64_t count, gm__save_read read, void *user, gm_error *err) {
  gm_status status = GM_OK;
  for (uint64_t at = 0, bytes; at < count && !status; at += bytes) {
    bytes = gm__min(count - at, SINK_CHUNK);
    status = read(user, at, sink->chunk, bytes, err);
    if (!status) status = gm__save_sink_write(sink, sink->chunk, bytes, err);
  }
  return status;
}

gm_status gm__save_sink_pad(gm__save_sink *sink, uint64_t align, gm_error *err) {
  const uint64_t bytes = gm__round_up(sink->at, align) - sink->at;
  memset(sink->chunk, 0, (size_t)bytes);
  return gm__save_sink_write(sink, sink->chunk, bytes, err);
}

gm_status gm__save_sink_again(gm__save_sink *sink, uint64_t at, const void *bytes, uint64_t count, gm_error *err) {
  return gm__data_file_write(&sink->file->side, sink->file->path, at, bytes, count, err);
}
