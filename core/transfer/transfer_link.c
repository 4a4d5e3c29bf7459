/* How fast the ways between the host and a device are at best. */
#include <inttypes.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/device/device_alloc.h"
#include "core/staging/link_file.h"
#include "core/staging/staging.h"
#include "core/transfer/transfer.h"

/* 64 MiB go through the slots of the ring, into and out of memory of one slot's size. The best of three turns counts.
 */

enum { LINK_BYTES = 64 << 20, LINK_TURNS = 3 };

typedef struct link {
  gm_device *device;
  gm__ring *ring;
  gm_stream *stream;
  gm_memory memory;
} link;

static const char link_op[] = "gm_transfer_measure";

static gm_status link_copy(const link *l, bool up, gm_error *err) {
  gm__ring_slot *slot = NULL;
  gm_point point = {0};
  gm_status status = gm__ring_take(l->ring, GM__NEVER, &slot, err);
  if (status) return status;
  const gm__access access = {l->device, l->memory, 0, slot->bytes};
  status = up ? gm__access_write(&access, slot->host, l->stream, &point, link_op, err)
              : gm__access_read(&access, slot->host, l->stream, &point, link_op, err);
  gm__ring_give(l->ring, slot, &point);
  return status;
}

static gm_status link_turn(const link *l, bool up, double *best, gm_error *err) {
  const uint64_t begun = gm__now_ns();
  uint64_t bytes = 0;
  gm_status status = GM_OK;
  for (; bytes < LINK_BYTES && !status; bytes += l->memory.bytes) status = link_copy(l, up, err);
  if (!status) status = gm_stream_sync(l->stream, err);
  const double rate = (double)bytes * 1e9 / (double)(gm__now_ns() - begun + 1);
  if (!status && rate > *best) *best = rate;
  return status;
}

static gm_status link_run(const link *l, gm_transfer_links *out, gm_error *err) {
  gm_status status = link_turn(l, true, &out->up, err); /* the slots are made */
  out->up = 0;
  for (int i = 0; i < LINK_TURNS && !status; i++) {
    status = link_turn(l, true, &out->up, err);
    if (!status) status = link_turn(l, false, &out->down, err);
  }
  return status;
}

static gm_status link_open(link *l, gm_error *err) {
  gm__ring_info info;
  gm_status status = gm__ring_grow(l->ring, 1, err);
  if (!status) status = gm_stream_create(l->device, &l->stream, err);
  if (status) return status;
  gm__ring_figures(l->ring, &info);
  const gm__device_request request = {.bytes = info.slot_bytes};
  status = gm__device_alloc(l->device, &request, &l->memory, err);
  l->memory.bytes = info.slot_bytes;
  return status;
}

static gm_status link_measure(gm_device *device, gm__ring *ring, gm_transfer_links *out, gm_error *err) {
  link l = {.device = device, .ring = ring};
  gm_status status = link_open(&l, err);
  if (!status) status = link_run(&l, out, err);
  if (l.memory.handle) gm__device_free(device, &l.memory, NULL);
  const gm_status closed = gm_stream_close(l.stream, status ? NULL : err);
  return status ? status : closed;
}

/* Reads what is known of the links. False: nothing is. */
static bool link_known(gm_device *device, double *out_up, double *out_down) {
  return gm__staging_links(device, out_up, out_down) || gm__link_file_find(device, out_up, out_down);
}

/* Measures, and keeps the better of both. */
static gm_status link_better(gm_device *device, gm__ring *ring, gm_transfer_links *known, gm_error *err) {
  gm_transfer_links now = {.struct_size = sizeof now};
  const gm_status status = link_measure(device, ring, &now, err);
  if (status) return status;
  const bool better = now.up > known->up || now.down > known->down;
  if (now.up > known->up) known->up = now.up;
  if (now.down > known->down) known->down = now.down;
  if (better) gm__link_file_keep(device, known->up, known->down);
  return GM_OK;
}

static gm_status link_tell(gm_device *device, bool again, gm_transfer_links *out, const char *op, gm_error *err) {
  gm_transfer_links links = {.struct_size = sizeof links};
  gm__ring *ring = NULL;
  gm_status status = gm__device_check(device, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (!status) status = gm__staging_open(device, &ring, err);
  if (status) return status;
  const bool known = link_known(device, &links.up, &links.down);
  if (again || !known) status = link_better(device, ring, &links, err);
  if (!status) gm__staging_set_links(device, links.up, links.down);
  gm__staging_close(device);
  if (!status) gm__sized_out(out, &links, sizeof links);
  return gm__error_of(op, status, err);
}

gm_status gm_transfer_measure(gm_device *device, gm_transfer_links *out, gm_error *err) {
  GM__UNCANCELLED();
  return link_tell(device, false, out, link_op, err);
}

gm_status gm_transfer_measure_again(gm_device *device, gm_transfer_links *out, gm_error *err) {
  GM__UNCANCELLED();
  return link_tell(device, true, out, "gm_transfer_measure_again", err);
}
