/* Many small copies as few. Copies to blocks that lie next to each other become one copy. Copies of one size in equal
 * steps become one strided copy. For that they are sorted by their place on the device. The host gathers their bytes in
 * a slot in that order, or scatters them from there. */
#include <stdlib.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/saturate.h"
#include "core/block/span_copy.h"
#include "core/transfer/transfer.h"

enum { PACK_WORD = 16 };

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
  for (uint64_t i = boxed ? run->rows : 1, bytes = i * run->bytes; i <= run->rows && !status; i++) {
    gm__traffic_count(t->device, up ? GM__TRAFFIC_UP : GM__TRAFFIC_DOWN, bytes, bytes);
  }
  return status;
}

/* ---- irregular places ---- */

/* How many copies the rows would be. */
static uint64_t pack_boxes(const gm_transfer *t, uint64_t rows) {
  uint64_t boxes = 0;
  pack_run box;
  for (uint64_t at = 0; at < rows; at = pack_run_at(t, at, rows, &box)) boxes++;
  return boxes;
}

/* The rows as runs, each at a place in the slot that lies as its target does to words of 16 bytes. */
static uint64_t pack_runs(const gm_transfer *t, uint64_t rows, gm__transfer_run *runs) {
  uint64_t count = 0, place = 0, bytes;
  for (uint64_t at = 0; at < rows; count++) {
    const gm__access *first = &t->rows[at].access;
    const uint64_t end = at + pack_joined(t, at, rows, &bytes);
    place = gm__round_up(place, PACK_WORD) + first->offset % PACK_WORD;
    runs[count] = (gm__transfer_run){first->memory, first->offset, bytes, place};
    for (; at < end; at++) {
      t->copies[t->rows[at].copy].place = place;
      place += t->rows[at].access.bytes;
    }
  }
  return count;
}

/* The gaps between the runs in the slot go over the link, too. */
static gm_status pack_submit_runs(gm_transfer *t, const gm__transfer_load *load, const gm__access *beside,
                                  const gm__transfer_run *runs, uint64_t count, gm_point *point, gm_error *err) {
  const bool up = t->copies[load->first].way == GM__TRANSFER_UP;
  uint64_t useful = 0;
  for (uint64_t i = load->first; i <= load->last && up; i++) {
    const gm__transfer_copy *copy = &t->copies[i];
    memcpy(load->slot->host + copy->place, gm__transfer_host(copy, copy->arrived), copy->what.bytes - copy->arrived);
  }
  const gm_status status = gm__transfer_scatter(t, load->slot, up, beside, runs, count, point, err);
  if (status) return status;
  for (uint64_t i = 0; i < count; i++) useful += runs[i].bytes;
  gm__traffic_count(t->device, up ? GM__TRAFFIC_UP : GM__TRAFFIC_DOWN, beside->bytes, useful);
  t->stats.link_bytes += beside->bytes;
  t->stats.staged_bytes += beside->bytes;
  t->stats.link_copies++;
  return GM_OK;
}

/* False: the device does not scatter these. *status is that of the submission. */
static bool pack_scatter(gm_transfer *t, gm__transfer_load *load, uint64_t boxes, gm_status *status, gm_error *err) {
  const gm_services *services = gm__context_services(t->device->ctx);
  const uint64_t rows = load->last - load->first + 1;
  gm__access beside;
  if (boxes < GM__TRANSFER_SCATTERS) return false;
  gm__transfer_run *runs = gm__alloc_array(services, rows, sizeof *runs);
  const uint64_t count = runs ? pack_runs(t, rows, runs) : 0;
  const bool scatters = runs && gm__transfer_scatters(t, load->slot, runs, count, &beside);
  if (scatters) *status = pack_submit_runs(t, load, &beside, runs, count, &load->point, err);
  gm__release(services, runs, rows * sizeof *runs);
  return scatters;
}

static gm_status pack_submit_boxes(gm_transfer *t, gm__transfer_load *load, uint64_t rows, uint64_t *out_failed,
                                   gm_error *err) {
  const bool up = t->copies[load->first].way == GM__TRANSFER_UP;
  gm_status status = GM_OK;
  pack_places(t, load, rows);
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
  return status;
}

gm_status gm__transfer_pack(gm_transfer *t, gm__transfer_load *load, uint64_t *out_failed, gm_error *err) {
  const uint64_t rows = load->last - load->first + 1;
  gm_status status = pack_open(t, load, out_failed, err);
  if (status) return status;
  qsort(t->rows, rows, sizeof *t->rows, pack_by_place);
  load->packed = true;
  *out_failed = load->first;
  const uint64_t boxes = pack_boxes(t, rows);
  if (!pack_scatter(t, load, boxes, &status, err)) {
    if (4 * boxes > rows) return GM_ERR_NOT_SUPPORTED; /* any two copies of one size are a box */
    status = pack_submit_boxes(t, load, rows, out_failed, err);
  }
  if (status && gm__order_drain(t->stream, "gm_transfer", NULL)) gm_stream_sync(t->stream, NULL);
  return gm__error_of("gm_transfer", status, err);
}
