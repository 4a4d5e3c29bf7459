/* Boxes: the entries of the seam, group 14. */
#include "backends/shared/runtime/runtime_copy.h"
#include "backends/shared/runtime/runtime_entries.h"
#include "backends/shared/runtime/runtime_stream.h"

/* The drivers' boxes are narrower than gm's. A row is at most as long as its pitch, and a pitch has a limit (2^31 - 1
 * and less). CUDA's slice is a whole number of rows. HIP's box has one slice. gm cuts what does not fit into slices, or
 * into rows, which are plain copies. */

enum { RECT_MOST_PITCH = 1 << 30 };

static gm__runtime_side rect_side(uint64_t at, bool host, uint64_t row_pitch, uint64_t slice_pitch,
                                  const gm_rect *rect) {
  gm__runtime_side side = {.at = at, .row_pitch = row_pitch, .slice_pitch = slice_pitch, .host = host};
  if (side.row_pitch == 0) side.row_pitch = rect->row_bytes;
  if (side.slice_pitch == 0) side.slice_pitch = side.row_pitch * rect->rows;
  if (rect->rows == 1) side.row_pitch = rect->row_bytes; /* there is no second row: the pitch may be anything */
  return side;
}

/* gm's page-locked and managed memory is given as the host's. */
static uint64_t rect_address(const gm_memory *memory) {
  return memory->host ? (uintptr_t)memory->host : memory->address;
}

static gm__runtime_side rect_src(uint64_t base, bool host, const gm_rect *rect) {
  return rect_side(base + rect->src_offset, host, rect->src_row_pitch, rect->src_slice_pitch, rect);
}

static gm__runtime_side rect_dst(uint64_t base, bool host, const gm_rect *rect) {
  return rect_side(base + rect->dst_offset, host, rect->dst_row_pitch, rect->dst_slice_pitch, rect);
}

static bool rect_rows_fit(const gm__runtime_side *side, const gm_rect *rect) {
  return side->row_pitch >= rect->row_bytes && side->row_pitch <= RECT_MOST_PITCH;
}

static bool rect_slices_fit(const gm__runtime_side *side, const gm_rect *rect) {
  return side->slice_pitch % side->row_pitch == 0 && side->slice_pitch / side->row_pitch >= rect->rows;
}

static int rect_enqueue(const gm__runtime_device *device, void *stream, const gm__runtime_box *box) {
  const gm__runtime_way way = gm__runtime_way_of(box->src.host, box->dst.host);
  if (box->rows > 1 || box->slices > 1) return device->api->copy_box(device, box, stream);
  return device->api->copy(device, way, box->dst.at, box->src.at, box->row_bytes, stream);
}

static int rect_run(const gm__runtime_device *device, void *stream, const gm_rect *rect, const gm__runtime_side *src,
                    const gm__runtime_side *dst) {
  gm__runtime_box box = {.src = *src, .dst = *dst, .row_bytes = rect->row_bytes, .rows = 1, .slices = 1};
  int code = GM__RUNTIME_SUCCESS;
  if (rect->row_bytes == 0 || rect->rows == 0 || rect->slices == 0) return code;
  if (rect_rows_fit(src, rect) && rect_rows_fit(dst, rect)) {
    box.rows = rect->rows;
    if (device->api->box_slices && rect_slices_fit(src, rect) && rect_slices_fit(dst, rect)) box.slices = rect->slices;
  }
  for (uint64_t slice = 0; slice < rect->slices && code == GM__RUNTIME_SUCCESS; slice += box.slices) {
    for (uint64_t row = 0; row < rect->rows && code == GM__RUNTIME_SUCCESS; row += box.rows) {
      box.src.at = src->at + slice * src->slice_pitch + row * src->row_pitch;
      box.dst.at = dst->at + slice * dst->slice_pitch + row * dst->row_pitch;
      code = rect_enqueue(device, stream, &box);
    }
  }
  return code;
}

static gm_status rect_submit(gm__runtime_device *device, void *stream, const gm_rect *rect, gm__runtime_side src,
                             gm__runtime_side dst, gm_backend_point *out, gm_error *err) {
  gm__runtime_job job;
  const gm_status status = gm__runtime_begin(device, stream, &job, err);
  if (status != GM_OK) return status;
  const int code = rect_run(device, job.stream, rect, &src, &dst);
  return gm__runtime_end(device, &job, code, device->api->copy_box_op, out, err);
}

gm_status gm__runtime_rect_to_device(void *device, void *stream, const gm_memory *dst, const void *src,
                                     const gm_rect *rect, gm_backend_point *out, gm_error *err) {
  return rect_submit(device, stream, rect, rect_src((uintptr_t)src, true, rect),
                     rect_dst(rect_address(dst), dst->host, rect), out, err);
}

gm_status gm__runtime_rect_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                                   gm_backend_point *out, gm_error *err) {
  return rect_submit(device, stream, rect, rect_src(rect_address(src), src->host, rect),
                     rect_dst((uintptr_t)dst, true, rect), out, err);
}

gm_status gm__runtime_rect_copy(void *device, void *stream, const gm_memory *dst, const gm_memory *src,
                                const gm_rect *rect, gm_backend_point *out, gm_error *err) {
  return rect_submit(device, stream, rect, rect_src(rect_address(src), src->host, rect),
                     rect_dst(rect_address(dst), dst->host, rect), out, err);
}
