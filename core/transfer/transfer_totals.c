/* What all that moves bytes has moved over a device's link. */
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/sized.h"
#include "core/staging/staging.h"
#include "core/transfer/transfer.h"

static uint64_t totals_read(const _Atomic uint64_t *count) { return atomic_load_explicit(count, memory_order_relaxed); }

/* The shares, once the links were measured. */
static void totals_shares(gm_transfer_totals *totals, double up, double down) {
  totals->up = (double)totals->up_bytes / up;
  totals->down = (double)totals->down_bytes / down;
  const double seconds = totals->seconds, both = totals->up + totals->down;
  const double least = totals->up < totals->down ? totals->up : totals->down;
  if (seconds <= 0) return;
  totals->up_utilisation = totals->up / seconds;
  totals->down_utilisation = totals->down / seconds;
  totals->overhead = seconds > both ? (seconds - both) / seconds : 0;
  if (least > 0 && both > seconds) totals->overlap = both - seconds < least ? (both - seconds) / least : 1;
}

gm_status gm_device_transfer_totals(gm_device *device, gm_transfer_totals *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_device_transfer_totals";
  gm_status status = gm__device_check(device, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  const gm__traffic *traffic = &device->traffic;
  double up, down;
  uint64_t ns;
  gm_transfer_totals totals = {.struct_size = sizeof totals,
                               .users = gm__traffic_users(device, gm__now_ns(), &ns),
                               .up_bytes = totals_read(&traffic->bytes[GM__TRAFFIC_UP]),
                               .down_bytes = totals_read(&traffic->bytes[GM__TRAFFIC_DOWN]),
                               .up_copies = totals_read(&traffic->copies[GM__TRAFFIC_UP]),
                               .down_copies = totals_read(&traffic->copies[GM__TRAFFIC_DOWN]),
                               .useful_bytes = totals_read(&traffic->useful_bytes)};
  totals.seconds = (double)ns * 1e-9;
  if (gm__staging_links(device, &up, &down)) totals_shares(&totals, up, down);
  gm__sized_out(out, &totals, sizeof totals);
  return GM_OK;
}
