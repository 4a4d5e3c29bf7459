/* Invariants: a piece lies within one stretch of piece_bytes that begins at a multiple of them, so whole blocks around
 * it fit into piece_bytes. No byte outside of the parts' places is written. */
#include "core/file/read_piece.h"

#include <string.h>

#include "core/base/error.h"
#include "core/base/mapping.h"
#include "core/base/saturate.h"

enum { BLOCK = GM__INPUT_BLOCK };

static uint64_t block_down(uint64_t at) { return at / BLOCK * BLOCK; }
static uint64_t block_up(uint64_t at) { return block_down(at + BLOCK - 1); }

gm__read_part gm__read_row_part(const gm__read_row *rows, const gm__read_piece *piece, uint64_t index) {
  const gm__read_row *row = &rows[piece->first + index];
  const uint64_t from = index ? 0 : piece->skip;
  if (piece->run_bytes) return (gm__read_part){.range = row->number, .from = from, .bytes = piece->run_bytes};
  const uint64_t left = row->range.bytes - from, room = piece->at + piece->bytes - (row->range.at + from);
  return (gm__read_part){.range = row->number, .from = from, .bytes = left < room ? left : room};
}

/* The next bytes that lie side by side, of a part of which `done` are done. */
static uint64_t run_beside(const gm__read_range *range, const gm__read_part *part, uint64_t done) {
  const uint64_t left = part->bytes - done;
  return range->run ? gm__min(left, range->run - (part->from + done) % range->run) : left;
}

/* 16 bytes in a register. */
typedef unsigned char run_unit __attribute__((vector_size(16)));

/* Copies as memmove does, where `to` is not behind `from`. The C library copies up to half a MiB by "rep movsb". On
 * AMD's processors that takes up to three times as long where the addresses lie differently to a cache line. */
static void run_copy(unsigned char *to, const unsigned char *from, uint64_t bytes) {
  const uint64_t head = gm__min(bytes, (0 - (uintptr_t)to) % sizeof(run_unit));
  memmove(to, from, (size_t)head);
  uint64_t at = head;
  for (run_unit unit[4]; bytes - at >= sizeof unit; at += sizeof unit) {
    memcpy(&unit[0], from + at, sizeof unit[0]);
    memcpy(&unit[1], from + at + sizeof unit[0], sizeof unit[0]);
    memcpy(&unit[2], from + at + 2 * sizeof unit[0], sizeof unit[0]);
    memcpy(&unit[3], from + at + 3 * sizeof unit[0], sizeof unit[0]);
    memcpy(to + at, &unit[0], sizeof unit[0]);
    memcpy(to + at + sizeof unit[0], &unit[1], sizeof unit[0]);
    memcpy(to + at + 2 * sizeof unit[0], &unit[2], sizeof unit[0]);
    memcpy(to + at + 3 * sizeof unit[0], &unit[3], sizeof unit[0]);
  }
  memmove(to + at, from + at, (size_t)(bytes - at));
}

/* A part out of the piece's bytes, which begin at `data`, to `to`; both may overlap where `to` is not behind. */
static void run_gather(const gm__read_run *run, const gm__read_range *range, const gm__read_part *part,
                       const unsigned char *data, unsigned char *to) {
  for (uint64_t done = 0, bytes; done < part->bytes; done += bytes) {
    bytes = run_beside(range, part, done);
    run_copy(to + done, data + (gm__read_range_at(range, part->from + done) - run->piece->at), bytes);
  }
}

/* ---- through the page cache ---- */

static gm_status run_read_cached(gm__read_run *run, uint64_t at, unsigned char *to, uint64_t bytes, gm_error *err) {
  const gm_file *file = run->piece->file;
  for (uint64_t done = 0, got = 0; done < bytes; done += got) {
    run->failed_at = at + done;
    const gm_status status =
        gm__input_file_read_some(&file->input, file->path, at + done, to + done, bytes - done, &got, err);
    if (status != GM_OK) return status;
    if (got == 0) {
      return gm__fail(err, GM_ERR_IO, "pread", "%.300s: ends at byte %llu, it had %llu when it was opened", file->path,
                      (unsigned long long)(at + done), (unsigned long long)file->input.bytes);
    }
  }
  return GM_OK;
}

/* A part of a range to `to`, without what lies between its runs. */
static gm_status run_cached_part(gm__read_run *run, uint64_t index, unsigned char *to, gm_error *err) {
  const gm__read_range *range = &run->rows[run->piece->first + index].range;
  const gm__read_part part = gm__read_row_part(run->rows, run->piece, index);
  gm_status status = GM_OK;
  for (uint64_t done = 0, bytes; done < part.bytes && status == GM_OK; done += bytes) {
    bytes = run_beside(range, &part, done);
    status = run_read_cached(run, gm__read_range_at(range, part.from + done), to + done, bytes, err);
  }
  return status;
}

static gm_status run_cached(gm__read_run *run, gm_error *err) {
  gm__read_piece *piece = run->piece;
  piece->way = GM_WAY_CACHE;
  if (piece->memory.host) {
    piece->data = piece->memory.host;
    if (piece->run_bytes) return run_cached_part(run, 0, piece->memory.host, err);
    return run_read_cached(run, piece->at, piece->memory.host, piece->bytes, err);
  }
  gm_status status = GM_OK;
  for (uint64_t i = 0; i < piece->count && status == GM_OK; i++) {
    const gm__read_part part = gm__read_row_part(run->rows, piece, i);
    status = run_cached_part(run, i, run->rows[piece->first + i].range.to + part.from, err);
  }
  return status;
}

/* ---- past it ---- */

/* `at` is at a block, `to` is aligned for direct reads and has room for whole blocks. The page cache has what a direct
 * read does not bring: after an error, and behind a read that ended within a block. */
static gm_status run_read_direct(gm__read_run *run, const gm__input_file *direct, uint64_t at, unsigned char *to,
                                 uint64_t bytes, gm_error *err) {
  uint64_t done = 0, got = 0;
  bool failed = false;
  while (done < bytes && done % BLOCK == 0 && !failed) {
    failed = gm__input_file_read_some(direct, run->piece->file->path, at + done, to + done, block_up(bytes - done),
                                      &got, NULL) != GM_OK;
    if (!failed && got == 0) break;
    done += got;
  }
  const gm_status status = done < bytes ? run_read_cached(run, at + done, to + done, bytes - done, err) : GM_OK;
  if (status == GM_OK) run->direct_failures += failed;
  return status;
}

/* Whole blocks around the piece, into memory for them. */
static gm_status run_direct_blocks(gm__read_run *run, const gm__input_file *direct, unsigned char *memory,
                                   gm_error *err) {
  gm__read_piece *piece = run->piece;
  const uint64_t begin = block_down(piece->at), lead = piece->at - begin;
  piece->data = memory + lead;
  return run_read_direct(run, direct, begin, memory, lead + piece->bytes, err);
}

/* The middle goes straight into its place, head and tail through the page cache. */
static gm_status run_direct_place(gm__read_run *run, const gm__input_file *direct, unsigned char *to, gm_error *err) {
  const gm__read_piece *piece = run->piece;
  const uint64_t end = piece->at + piece->bytes, from = block_up(piece->at), until = block_down(end);
  if (from >= until) return run_cached(run, err);
  gm_status status = run_read_cached(run, piece->at, to, from - piece->at, err);
  if (!status) status = run_read_direct(run, direct, from, to + (from - piece->at), until - from, err);
  if (!status) status = run_read_cached(run, until, to + (until - piece->at), end - until, err);
  return status;
}

static gm_status run_need_bounce(gm__read_run *run, gm_error *err) {
  if (!run->bounce) run->bounce = gm__mapping_new((size_t)run->piece_bytes);
  if (run->bounce) return GM_OK;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "mmap", "no host memory for %llu bytes",
                  (unsigned long long)run->piece_bytes);
}

/* From `data` into the places of all parts. */
static void run_spread(const gm__read_run *run, const unsigned char *data) {
  for (uint64_t i = 0; i < run->piece->count; i++) {
    const gm__read_range *range = &run->rows[run->piece->first + i].range;
    const gm__read_part part = gm__read_row_part(run->rows, run->piece, i);
    run_gather(run, range, &part, data, range->to + part.from);
  }
}

/* The runs of a piece side by side in its memory. */
static void run_close_up(const gm__read_run *run, const unsigned char *data) {
  gm__read_piece *piece = run->piece;
  const gm__read_part part = gm__read_row_part(run->rows, piece, 0);
  run_gather(run, &run->rows[piece->first].range, &part, data, piece->memory.host);
  piece->data = piece->memory.host;
}

static gm_status run_direct(gm__read_run *run, const gm__input_file *direct, gm_error *err) {
  gm__read_piece *piece = run->piece;
  piece->way = GM_WAY_DIRECT;
  gm_status status = GM_OK;
  if (piece->memory.host) {
    status = run_direct_blocks(run, direct, piece->memory.host, err);
    if (status == GM_OK && piece->run_bytes) run_close_up(run, piece->data);
    return status;
  }
  const gm__read_part part = gm__read_row_part(run->rows, piece, 0);
  unsigned char *to = run->rows[piece->first].range.to + part.from;
  const bool single = piece->count == 1 && part.bytes == piece->bytes;
  if (single && ((uintptr_t)to - piece->at) % direct->align == 0) return run_direct_place(run, direct, to, err);
  status = run_need_bounce(run, err);
  if (status == GM_OK) status = run_direct_blocks(run, direct, run->bounce, err);
  if (status == GM_OK) run_spread(run, piece->data);
  piece->data = NULL;
  return status;
}

/* ---- by a mapping ---- */

static gm_status run_mapped(gm__read_run *run, gm_error *err) {
  gm__read_piece *piece = run->piece;
  const gm_file *file = piece->file;
  const unsigned char *data = (const unsigned char *)file->mapping + piece->at;
  piece->way = GM_WAY_MAP;
  run->failed_at = piece->at;
  const gm_status status = gm__input_file_touch(&file->input, file->path, file->mapping, piece->at, piece->bytes, err);
  if (status != GM_OK) return status;
  if (run->rows[piece->first].range.to) {
    run_spread(run, data);
  } else if (piece->run_bytes) {
    run_close_up(run, data);
  } else {
    piece->data = data;
  }
  return GM_OK;
}

/* ---- into far memory ---- */

/* The middle goes straight into its place; head and tail come through the page cache, and lie in the memory as all of
 * it would. False: nothing was read. */
static bool run_far(gm__read_run *run, gm_status *out, gm_error *err) {
  gm__read_piece *piece = run->piece;
  const gm__read_range *range = &run->rows[piece->first].range;
  if (!range->far || !piece->memory.host) return false;
  piece->far_bytes = range->far->read(range->far->user, range, piece->skip, piece->bytes, &piece->far_front);
  if (!piece->far_bytes) return false;
  const uint64_t tail = piece->far_front + piece->far_bytes;
  unsigned char *to = piece->memory.host;
  piece->way = GM_WAY_CACHE;
  piece->data = to;
  *out = run_read_cached(run, piece->at, to, piece->far_front, err);
  if (*out == GM_OK) *out = run_read_cached(run, piece->at + tail, to + tail, piece->bytes - tail, err);
  return true;
}

/* ---- one of them ---- */

static gm_status run_read(gm__read_run *run, gm_error *err) {
  gm__read_piece *piece = run->piece;
  const gm__input_file *direct = NULL;
  gm_status status = GM_OK;
  run->failed_at = piece->at;
  if (run_far(run, &status, err)) return status;
  const gm_way way = gm__file_way(piece->file, piece->at, piece->bytes);
  if (way == GM_WAY_MAP) return run_mapped(run, err);
  if (way != GM_WAY_DIRECT) return run_cached(run, err);
  status = gm__file_direct(piece->file, &direct, err);
  if (status != GM_OK) return status;
  return direct ? run_direct(run, direct, err) : run_cached(run, err);
}

gm_status gm__read_run_piece(gm__read_run *run, gm_error *err) {
  const gm__read_piece *piece = run->piece;
  gm_error changed = {.status = GM_OK};
  gm_status status = run_read(run, err);
  if (status == GM_OK) status = gm__input_file_check_unchanged(&piece->file->input, piece->file->path, &changed);
  if (changed.status == GM_OK) return status;
  run->failed_at = piece->at;
  return gm__fail_native(err, status, changed.native_code, changed.op, "%.300s, while bytes %llu to %llu were read",
                         changed.message, (unsigned long long)piece->at,
                         (unsigned long long)(piece->at + piece->bytes));
}
