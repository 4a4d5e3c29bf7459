#include "core/load/save_sink.h"

#include <string.h>

#include "core/base/crc32.h"
#include "core/base/saturate.h"

void gm__save_sink_begin(gm__save_sink *sink, gm__side_file *file, gm__save_writer *writer, uint64_t piece_bytes) {
  *sink = (gm__save_sink){.file = file, .writer = writer, .piece_bytes = piece_bytes};
}

void gm__save_sink_end(gm__save_sink *sink) {
  if (sink->sums.sums) gm__sums_end(&sink->sums);
}

gm_status gm__save_sink_reserve(gm__save_sink *sink, const gm_services *services, uint64_t bytes, gm_error *err) {
  sink->reserved = bytes;
  gm_status status = sink->has_sums ? gm__sums_begin(&sink->sums, services, bytes, err) : GM_OK;
  return status ? status : gm__data_file_reserve(&sink->file->side, sink->file->path, bytes, err);
}

static void sink_give(gm__save_sink *sink) {
  if (sink->has_sums) gm__sums_add(&sink->sums, sink->piece->from, sink->piece->bytes);
  gm__save_writer_give(sink->writer, sink->piece);
  sink->piece = NULL;
}

static gm_status sink_take(gm__save_sink *sink, const unsigned char *lent, gm_error *err) {
  const gm_status status = gm__save_writer_take(sink->writer, lent != NULL, &sink->piece, err);
  if (status) return status;
  sink->piece->from = lent ? lent : sink->piece->host;
  sink->piece->at = sink->at;
  sink->piece->bytes = 0;
  return GM_OK;
}

/* Where the next bytes go, and how many of `most` go there. */
static gm_status sink_room(gm__save_sink *sink, uint64_t most, unsigned char **out, uint64_t *out_bytes,
                           gm_error *err) {
  if (sink->piece && sink->piece->bytes == sink->piece_bytes) sink_give(sink);
  if (!sink->piece) {
    const gm_status status = sink_take(sink, NULL, err);
    if (status) return status;
  }
  *out = sink->piece->host + sink->piece->bytes;
  *out_bytes = gm__min(most, sink->piece_bytes - sink->piece->bytes);
  return GM_OK;
}

static void sink_advance(gm__save_sink *sink, const unsigned char *bytes, uint64_t count) {
  if (sink->has_crc) sink->crc = gm__crc32(sink->crc, bytes, count);
  sink->piece->bytes += count;
  sink->at += count;
}

gm_status gm__save_sink_fill(gm__save_sink *sink, uint64_t count, gm__save_read read, void *user, gm_error *err) {
  for (uint64_t done = 0, bytes; done < count; done += bytes) {
    unsigned char *to;
    gm_status status = sink_room(sink, count - done, &to, &bytes, err);
    if (!status) status = read(user, done, to, bytes, err);
    if (status) return status;
    sink_advance(sink, to, bytes);
  }
  return GM_OK;
}

static gm_status sink_copy(void *user, uint64_t at, void *to, uint64_t bytes, gm_error *err) {
  (void)err;
  memcpy(to, (const unsigned char *)user + at, (size_t)bytes);
  return GM_OK;
}

gm_status gm__save_sink_write(gm__save_sink *sink, const void *bytes, uint64_t count, gm_error *err) {
  return gm__save_sink_fill(sink, count, sink_copy, (void *)(uintptr_t)bytes, err);
}

bool gm__save_sink_may_lend(const gm__save_sink *sink, uint64_t count) {
  enum { LEAST = 1 << 20 };
  return count >= gm__min(sink->piece_bytes, LEAST);
}

bool gm__save_sink_lends(const gm__save_sink *sink, const void *from, uint64_t count) {
  enum { PAGE = GM__DATA_FILE_DIRECT };
  return gm__save_sink_may_lend(sink, count) && sink->at % PAGE == 0 && (uintptr_t)from % PAGE == 0;
}

/* The last piece ends at a page, too, so it goes as it is. */
gm_status gm__save_sink_lend(gm__save_sink *sink, const void *from, uint64_t count, gm_error *err) {
  if (sink->piece) sink_give(sink);
  const gm_status status = sink_take(sink, from, err);
  if (status) return status;
  sink_advance(sink, from, count);
  sink_give(sink);
  return GM_OK;
}

static gm_status sink_zero(void *user, uint64_t at, void *to, uint64_t bytes, gm_error *err) {
  (void)user;
  (void)at;
  (void)err;
  memset(to, 0, (size_t)bytes);
  return GM_OK;
}

gm_status gm__save_sink_pad(gm__save_sink *sink, uint64_t align, gm_error *err) {
  return gm__save_sink_fill(sink, gm__round_up(sink->at, align) - sink->at, sink_zero, NULL, err);
}

/* The rest of the last piece, behind whole pages, goes through the page cache. */
static gm_status sink_end_piece(gm__save_sink *sink, gm_error *err) {
  unsigned char rest[GM__DATA_FILE_DIRECT];
  gm__save_piece *piece = sink->piece;
  const uint64_t bytes = piece ? piece->bytes % sizeof rest : 0;
  if (piece) {
    piece->bytes -= bytes;
    memcpy(rest, piece->host + piece->bytes, (size_t)bytes);
    sink_give(sink);
  }
  if (sink->has_sums) gm__sums_add(&sink->sums, rest, bytes);
  const gm_status status = gm__save_writer_settle(sink->writer, err);
  return status ? status : gm__data_file_write(&sink->file->side, sink->file->path, sink->at - bytes, rest, bytes, err);
}

gm_status gm__save_sink_finish(gm__save_sink *sink, gm_error *err) {
  const gm_status status = sink_end_piece(sink, err);
  if (status || sink->reserved <= sink->at) return status;
  return gm__data_file_cut(&sink->file->side, sink->file->path, sink->at, err);
}

gm_status gm__save_sink_again(gm__save_sink *sink, uint64_t at, const void *bytes, uint64_t count, gm_error *err) {
  const gm__data_file *side = &sink->file->side;
  const gm_status status = gm__data_file_write(side, sink->file->path, at, bytes, count, err);
  if (status || !sink->has_sums) return status;
  return gm__sums_again(&sink->sums, side, sink->file->path, at, count, err);
}
