/* Strided copies of a transfer. A box goes by the calls of gm/copy.h, as a whole. */
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/block/rect.h"
#include "core/transfer/transfer.h"

static gm_status box_check_bytes(const gm_copy *asked, const char *op, gm_error *err) {
  const gm_rect *rect = asked->rect;
  const uint64_t bytes = gm__mul_sat(gm__mul_sat(rect->row_bytes, rect->rows), rect->slices);
  if (asked->codec) return gm__bad_argument(err, op, "`rect` and `codec` are both set");
  return asked->bytes == bytes ? GM_OK : gm__bad_argument(err, op, "`bytes` are not those of all rows of `rect`");
}

static gm_status box_check_inside(const gm__span_copy *to, const gm__span_copy *from, const gm_rect *rect,
                                  const char *op, gm_error *err) {
  const bool one = to->here.memory.handle == from->here.memory.handle;
  const uint64_t src = gm__add_sat(from->here.offset, rect->src_offset);
  const uint64_t dst = gm__add_sat(to->here.offset, rect->dst_offset);
  if (!one || !gm__rect_meets_itself(rect, src, dst)) return GM_OK;
  return gm__bad_argument(err, op, "the boxes overlap in one memory");
}

gm_status gm__transfer_plan_box(gm_transfer *t, gm__transfer_copy *copy, const gm_copy *asked, const char *op,
                                gm_error *err) {
  gm__transfer_ends *what = &copy->what;
  gm__span_copy to = {.op = op}, from = {.op = op};
  gm_rect rect;
  bool empty = false;
  gm_status status = box_check_bytes(asked, op, err);
  if (!status) status = gm__rect_read(asked->rect, op, &rect, &empty, err);
  if (status) return status;
  *what = (gm__transfer_ends){asked->to, asked->from, asked->bytes};
  copy->path = GM__TRANSFER_BOX;
  copy->rect = asked->rect;
  const uint64_t there = empty ? 0 : gm__add_sat(rect.dst_offset, gm__rect_dst_span(&rect));
  const uint64_t here = empty ? 0 : gm__add_sat(rect.src_offset, gm__rect_src_span(&rect));
  status = gm__transfer_plan_end(t, &what->to, &copy->to, there, "to", op, &to, err);
  if (!status) status = gm__transfer_plan_end(t, &what->from, &copy->from, here, "from", op, &from, err);
  if (status) return status;
  if (what->to.host && what->from.host) return gm__bad_argument(err, op, "no end is a block");
  copy->way = what->to.host ? GM__TRANSFER_DOWN : what->from.host ? GM__TRANSFER_UP : GM__TRANSFER_INSIDE;
  status = gm__transfer_plan_codec(t, copy, asked, op, err); /* it has none, and says so throughout */
  if (status || copy->way != GM__TRANSFER_INSIDE || empty) return status;
  return box_check_inside(&to, &from, &rect, op, err);
}

gm_status gm__transfer_submit_box(const gm_transfer *t, const gm__transfer_copy *copy, gm_point *point, gm_error *err) {
  const gm_end *to = &copy->what.to, *from = &copy->what.from;
  gm_point *out = t->stream ? point : NULL;
  gm_rect rect = *copy->rect;
  rect.dst_offset += to->offset;
  rect.src_offset += from->offset;
  if (copy->way == GM__TRANSFER_UP) {
    return gm_block_write_rect(to->pool, to->block, from->host, &rect, t->stream, out, err);
  }
  if (copy->way == GM__TRANSFER_DOWN) {
    return gm_block_read_rect(from->pool, from->block, to->host, &rect, t->stream, out, err);
  }
  return gm_block_copy_rect(to->pool, to->block, from->pool, from->block, &rect, t->stream, out, err);
}
