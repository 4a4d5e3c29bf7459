#include "core/block/rect.h"

#include <inttypes.h>

#include "core/base/error.h"
#include "core/base/saturate.h"

/* Hostile boxes are checked here once. Invariants of a checked box: every pitch is set, rows and slices do not overlap
 * among themselves, and no offset of a byte wraps around. */

static bool rect_is_empty(const gm_rect *rect) { return !rect->row_bytes || !rect->rows || !rect->slices; }

/* Bytes from the first to the last one of a slice. */
static uint64_t rect_slice_span(const gm_rect *rect, uint64_t row_pitch) {
  return gm__add_sat(gm__mul_sat(rect->rows - 1, row_pitch), rect->row_bytes);
}

static uint64_t rect_span(const gm_rect *rect, uint64_t row_pitch, uint64_t slice_pitch) {
  return gm__add_sat(gm__mul_sat(rect->slices - 1, slice_pitch), rect_slice_span(rect, row_pitch));
}

uint64_t gm__rect_src_span(const gm_rect *rect) { return rect_span(rect, rect->src_row_pitch, rect->src_slice_pitch); }

uint64_t gm__rect_dst_span(const gm_rect *rect) { return rect_span(rect, rect->dst_row_pitch, rect->dst_slice_pitch); }

/* A pitch that is 0 is tight. */
static void rect_normalise(gm_rect *rect) {
  if (!rect->src_row_pitch) rect->src_row_pitch = rect->row_bytes;
  if (!rect->dst_row_pitch) rect->dst_row_pitch = rect->row_bytes;
  if (!rect->src_slice_pitch) rect->src_slice_pitch = gm__mul_sat(rect->src_row_pitch, rect->rows);
  if (!rect->dst_slice_pitch) rect->dst_slice_pitch = gm__mul_sat(rect->dst_row_pitch, rect->rows);
}

static gm_status rect_check_pitches(const gm_rect *rect, uint64_t row_pitch, uint64_t slice_pitch, const char *side,
                                    const char *op, gm_error *err) {
  if (rect->rows > 1 && row_pitch < rect->row_bytes) {
    return gm__bad_argument(err, op, "`rect->%s_row_pitch` is %" PRIu64 ", less than the %" PRIu64 " bytes of a row",
                            side, row_pitch, rect->row_bytes);
  }
  const uint64_t slice = rect_slice_span(rect, row_pitch);
  if (rect->slices == 1 || slice_pitch >= slice) return GM_OK;
  return gm__bad_argument(err, op, "`rect->%s_slice_pitch` is %" PRIu64 ", less than the %" PRIu64 " bytes of a slice",
                          side, slice_pitch, slice);
}

gm_status gm__rect_read(const gm_rect *given, const char *op, gm_rect *out, bool *out_empty, gm_error *err) {
  if (!given) return gm__bad_argument(err, op, "`rect` is NULL");
  *out = *given;
  *out_empty = rect_is_empty(given);
  if (*out_empty) return GM_OK;
  rect_normalise(out);
  const gm_status status = rect_check_pitches(out, out->src_row_pitch, out->src_slice_pitch, "src", op, err);
  return status ? status : rect_check_pitches(out, out->dst_row_pitch, out->dst_slice_pitch, "dst", op, err);
}

gm_status gm__rect_check_host(const void *pointer, uint64_t offset, uint64_t span, const char *name, const char *op,
                              gm_error *err) {
  if (!pointer) return gm__bad_argument(err, op, "`%s` is NULL", name);
  if (gm__add_sat(offset, span) <= UINTPTR_MAX - (uintptr_t)pointer) return GM_OK;
  return gm__bad_argument(err, op, "the box reaches beyond the last address behind `%s`", name);
}

static uint64_t rect_apart(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

/* Do rows that begin `distance` apart share bytes, in boxes of equal pitches? */
static bool rect_rows_meet(const gm_rect *rect, uint64_t distance) {
  const uint64_t row = distance / rect->src_row_pitch;
  for (uint64_t i = row; i <= row + 1 && i < rect->rows; i++) {
    if (rect_apart(distance, i * rect->src_row_pitch) < rect->row_bytes) return true;
  }
  return false;
}

bool gm__rect_meets_itself(const gm_rect *rect, uint64_t src, uint64_t dst) {
  if (dst >= gm__add_sat(src, gm__rect_src_span(rect)) || src >= gm__add_sat(dst, gm__rect_dst_span(rect)))
    return false;
  const bool rows_alike = rect->rows == 1 || rect->src_row_pitch == rect->dst_row_pitch;
  const bool slices_alike = rect->slices == 1 || rect->src_slice_pitch == rect->dst_slice_pitch;
  if (!rows_alike || !slices_alike) return true; /* they may, and nobody has a use for it */
  const uint64_t distance = rect_apart(src, dst), slice = rect->slices == 1 ? 0 : distance / rect->src_slice_pitch;
  for (uint64_t i = slice; i <= slice + 1 && i < rect->slices; i++) {
    if (rect_rows_meet(rect, rect_apart(distance, i * rect->src_slice_pitch))) return true;
  }
  return false;
}
