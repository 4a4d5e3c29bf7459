/* Many small copies as few. Copies to blocks that lie next to each other become one copy. Copies of one size in equal
 * steps become one strided copy. For that they are sorted by their place on the device. The host gathers their bytes in
 * a slot in that order, or scatters them from there. */
#include <stdlib.h>
#include <string.h>

#include "core/base/saturate.h"
#include "core/block/span_copy.h"
#include "core/transfer/transfer.h"

/* The next copies of a load that are one: `rows` times `bytes`, each `step` behind the one before. */
typedef struct pack_run {
  const gm__access *first;
  uint64_t bytes, rows, step;
  unsigned char *place;
} pack_run;

unsigned char *gm__transfer_host(const gm__transfer_copy *copy, uint64_t at) {
  const gm_end *end = copy->way == GM__TRANSFER_UP ? &copy->what.from : &copy->what.to;
  return (unsigned char *)end->host + end->offset + at;
}

gm_status gm__transfer_open(const gm_transfer *t, const gm__transfer_copy *copy, uint64_t at, uint64_t bytes,
                            gm__access *out, gm_error *err) {
  const gm_end *end = copy->way == GM__TRANSFER_UP ? &copy->what.to : &copy->what.from;
  if (!t->fresh) return gm__access_open(end->pool, end->block, end->offset + at, bytes, "gm_transfer", out, err);
  *out = (gm__access){t->device, copy->memory, copy->memory_at + at, bytes};
  return GM_OK;
}

static int pack_by_place(const void *one, const void *other) {
  const gm__access *a = &((const gm__transfer_row *)one)->access, *b = &((const gm__transfer_row *)other)->access;
  if (a->memory.handle != b->memory.handle) return a->memory.handle < b->memory.handle ? -1 : 1;
  return (a->offset > b->offset) - (a->offset < b->offset);
}

/* The memory of each copy. */
static gm_status pack_open(const gm_transfer *t, const gm__transfer_load *load, uint64_t *out_failed, gm_error *err) {
  gm_status status = GM_OK;
  for (uint64_t i = load->first; i <= load->last && !status; i++) {
    const gm__transfer_copy *copy = &t->copies[i];
    gm__transfer_row *row = &t->rows[i - load->first];
    row->copy = *out_failed = i;
    status = gm__transfer_open(t, copy, copy->arrived, copy->what.bytes - copy->arrived, &row->access, err);
  }
  return status;
}

/* The bytes of an up-going load come into the slot, and each copy gets its place there. */
static void pack_places(const gm_transfer *t, const gm__transfer_load *load, uint64_t rows) {
  uint64_t place = 0;
  for (uint64_t i = 0; i < rows; i++) {
    gm__transfer_copy *copy = &t->copies[t->rows[i].copy];
    const uint64_t bytes = t->rows[i].access.bytes;
    copy->place = place;
    if (copy->way == GM__TRANSFER_UP) memcpy(load->slot->host + place, gm__transfer_host(copy, copy->arrived), bytes);
    place += bytes;
  }
}

/* How many rows from `begin` on lie next to each other; their bytes. */
static uint64_t pack_joined(const gm_transfer *t, uint64_t begin, uint64_t rows, uint64_t *out_bytes) {
  const gm__access *first = &t->rows[begin].access;
  uint64_t i = begin + 1, bytes = first->bytes;
  for (; i < rows; i++) {
    const gm__access *next = &t->rows[i].access;
    if (next->memory.handle != first->memory.handle || next->offset != first->offset + bytes) break;
    bytes += next->bytes;
  }
  *out_bytes = bytes;
  return i - begin;
}

/* The run that begins with row `begin`; returns the row behind it. */
static uint64_t pack_run_at(const gm_transfer *t, uint64_t begin, uint64_t rows, pack_run *out) {
  const gm__access *first = &t->rows[begin].access;
  uint64_t end = begin + pack_joined(t, begin, rows, &out->bytes);
  out->first = first;
  out->rows = 1;
  out->step = 0;
  while (end < rows) {
    const gm__access *next = &t->rows[end].access;
    uint64_t bytes;
    const uint64_t joined = pack_joined(t, end, rows, &bytes);
    const uint64_t step = (next->offset - first->offset) / out->rows;
    const bool fits = next->memory.handle == first->memory.handle && bytes == out->bytes && step >= bytes &&
                      next->offset == first->offset + out->rows * step && (out->rows == 1 || step == out->step);
    if (!fits) break;
    out->step = step;
    out->rows++;
    end += joined;
  }
  return end;
}

static gm_status pack_submit_box(const gm_transfer *t, bool up, const pack_run *run, gm_backend_point *point,
                                 gm_error *err) {
  const gm_device *device = t->device;
  const gm_backend_ops *ops = gm__submitting(device);
  gm_rect rect = {.row_bytes = run->bytes, .rows = run->rows, .slices = 1};
  const uint64_t tight = run->bytes, wide = run->step;
  rect.src_row_pitch = up ? tight : wide;
  rect.dst_row_pitch = up ? wide : tight;
  rect.src_slice_pitch = rect.src_row_pitch * run->rows;
  rect.dst_slice_pitch = rect.dst_row_pitch * run->rows;
  *(up ? &rect.dst_offset : &rect.src_offset) = run->first->offset;
  return up ? ops->rect_to_device(device->handle, t->stream->handle, &run->first->memory, run->place, &rect, point, err)
            : ops->rect_to_host(device->handle, t->stream->handle, &run->first->memory, run->place, &rect, point, err);
}

/* One copy after the other. */
static gm_status pack_submit_rows(const gm_transfer *t, bool up, const pack_run *run, gm_point *point, gm_error *err) {
  gm_status status = GM_OK;
  for (uint64_t i = 0; i < run->rows && !status; i++) {
    gm__access row = *run->first;
    unsigned char *place = run->place + i * run->bytes;
    row.offset += i * run->step;
    row.bytes = run->bytes;
    gm_point_release(t->device, point);
    status = up ? gm__access_write(&row, place, t->stream, point, "gm_transfer", err)
                : gm__access_read(&row, place, t->stream, point, "gm_transfer", err);
  }
  return status;
}

static gm_status pack_submit(gm_transfer *t, bool up, const pack_run *run, gm_point *point, gm_error *err) {
  gm_backend_point box = {0, 0};
  gm_status status = GM_ERR_NOT_SUPPORTED;
  if (run->rows > 1) status = pack_submit_box(t, up, run, &box, err);
  const bool boxed = status == GM_OK;
  if (boxed) *point = (gm_point){t->stream->id, box.handle, box.value};
  if (status == GM_ERR_NOT_SUPPORTED) status = pack_submit_rows(t, up, run, point, err);
  t->stats.link_copies += boxed ? 1 : run->rows;
  return status;
}

gm_status gm__transfer_pack(gm_transfer *t, gm__transfer_load *load, uint64_t *out_failed, gm_error *err) {
  const uint64_t rows = load->last - load->first + 1;
  const bool up = t->copies[load->first].way == GM__TRANSFER_UP;
  gm_status status = pack_open(t, load, out_failed, err);
  if (status) return status;
  qsort(t->rows, rows, sizeof *t->rows, pack_by_place);
  pack_places(t, load, rows);
  load->packed = true;
  for (uint64_t at = 0, next; at < rows && !status; at = next) {
    pack_run run = {.place = load->slot->host + t->copies[t->rows[at].copy].place};
    gm_point point = {0};
    next = pack_run_at(t, at, rows, &run);
    *out_failed = t->rows[at].copy;
    status = pack_submit(t, up, &run, &point, err);
    if (status) continue;
    gm_point_release(t->device, &load->point);
    load->point = point;
    t->stats.link_bytes += run.bytes * run.rows;
    t->stats.staged_bytes += run.bytes * run.rows;
  }
  if (status && gm__order_drain(t->stream, "gm_transfer", NULL)) gm_stream_sync(t->stream, NULL);
  return gm__error_of("gm_transfer", status, err);
}
