/* Small copies that the device scatters itself. Their bytes go up as one copy, into memory of the device beside the
 * slot; one submission takes each to its place. Down it is the other way round. */
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/transfer/transfer.h"

/* Invariants. The part of the device's memory that belongs to a slot is used by who has the slot, and until the slot's
 * point has passed. */

static const char scatter_op[] = "gm_transfer";

bool gm__transfer_scatters(const gm_transfer *t, const gm__ring_slot *slot, const gm__transfer_run *runs,
                           uint64_t count, gm__access *out_beside) {
  if (count < GM__TRANSFER_SCATTERS) return false;
  *out_beside =
      (gm__access){.device = t->device, .offset = (uint64_t)gm__ring_number(t->ring, slot) * GM__TRANSFER_ROOM};
  out_beside->bytes = runs[count - 1].place + runs[count - 1].bytes;
  if (out_beside->bytes > GM__TRANSFER_ROOM || out_beside->bytes > slot->bytes) return false;
  const uint64_t most = gm__transfer_scatter_bytes(t->device, t->ring, &out_beside->memory);
  for (uint64_t i = 0; i < count; i++) {
    if (runs[i].bytes > most) return false;
  }
  return out_beside->offset + GM__TRANSFER_ROOM <= out_beside->memory.bytes;
}

/* On a stream without an order of its own the second step waits for the first. */
static gm_status scatter_order(const gm_transfer *t, gm_error *err) {
  return t->stream->kind == GM_STREAM_FIFO ? GM_OK : gm_stream_barrier(t->stream, err);
}

/* The items between memory of the device and one other memory. */
static gm_status scatter_submit_one(const gm_transfer *t, const gm_copy_item *items, uint64_t count, gm_point *point,
                                    gm_error *err) {
  const gm_device *device = t->device;
  gm_backend_point many = {0, 0};
  const gm_status status =
      gm__submitting(device)->copy_many(device->handle, t->stream->handle, items, (uint32_t)count, &many, err);
  if (status) return status;
  gm_point_release(t->device, point);
  *point = (gm_point){t->stream->id, many.handle, many.value};
  return GM_OK;
}

/* Runs are sorted by their memory. */
static gm_status scatter_submit_all(const gm_transfer *t, const gm_copy_item *items, const gm__transfer_run *runs,
                                    uint64_t count, gm_point *point, gm_error *err) {
  gm_status status = GM_OK;
  for (uint64_t at = 0, end; at < count && !status; at = end) {
    end = at + 1;
    while (end < count && runs[end].memory.handle == runs[at].memory.handle) end++;
    status = scatter_submit_one(t, items + at, end - at, point, err);
  }
  return status;
}

static gm_status scatter_submit(const gm_transfer *t, const gm__ring_slot *slot, bool up, const gm__access *beside,
                                const gm_copy_item *items, const gm__transfer_run *runs, uint64_t count,
                                gm_point *point, gm_error *err) {
  gm_status status = GM_OK;
  if (up) status = gm__access_write(beside, slot->host, t->stream, point, scatter_op, err);
  if (up && !status) status = scatter_order(t, err);
  if (!status) status = scatter_submit_all(t, items, runs, count, point, err);
  if (up || status) return status;
  status = scatter_order(t, err);
  gm_point_release(t->device, point);
  return status ? status : gm__access_read(beside, slot->host, t->stream, point, scatter_op, err);
}

static gm_copy_item *scatter_items(const gm_transfer *t, const gm__access *beside, bool up,
                                   const gm__transfer_run *runs, uint64_t count) {
  gm_copy_item *items = gm__alloc_array(gm__context_services(t->device->ctx), count, sizeof *items);
  for (uint64_t i = 0; items && i < count; i++) {
    const gm__transfer_run *run = &runs[i];
    const uint64_t place = beside->offset + run->place;
    items[i] = up ? (gm_copy_item){&beside->memory, place, &run->memory, run->offset, run->bytes}
                  : (gm_copy_item){&run->memory, run->offset, &beside->memory, place, run->bytes};
  }
  return items;
}

gm_status gm__transfer_scatter(const gm_transfer *t, const gm__ring_slot *slot, bool up, const gm__access *beside,
                               const gm__transfer_run *runs, uint64_t count, gm_point *point, gm_error *err) {
  gm_copy_item *items = scatter_items(t, beside, up, runs, count);
  if (!items) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, scatter_op, "no host memory to scatter small copies");
  const gm_status status = scatter_submit(t, slot, up, beside, items, runs, count, point, err);
  gm__release(gm__context_services(t->device->ctx), items, count * sizeof *items);
  return status;
}
