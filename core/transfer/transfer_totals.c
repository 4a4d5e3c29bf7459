/* Totals of what went over a device's link. */
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/sized.h"
#include "core/staging/staging.h"
#include "core/transfer/shares.h"
#include "core/transfer/transfer.h"

static uint64_t totals_read(const _Atomic uint64_t *count) { return atomic_load_explicit(count, memory_order_relaxed); }

gm__shares gm__shares_of(gm_device *device, uint64_t up_bytes, uint64_t down_bytes, double seconds) {
  gm__shares shares = {.up = 0};
  double up, down;
  if (!gm__staging_links(device, &up, &down)) return shares;
  shares.up = (double)up_bytes / up;
  shares.down = (double)down_bytes / down;
  const double both = shares.up + shares.down, least = shares.up < shares.down ? shares.up : shares.down;
  if (seconds <= 0) return shares;
  shares.up_utilisation = shares.up / seconds;
  shares.down_utilisation = shares.down / seconds;
  shares.overhead = seconds > both ? (seconds - both) / seconds : 0;
  if (least > 0 && both > seconds) shares.overlap = both - seconds < least ? (both - seconds) / least : 1;
  return shares;
}

gm_status gm_device_transfer_totals(gm_device *device, gm_transfer_totals *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_device_transfer_totals";
  gm_status status = gm__device_check(device, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  const gm__traffic *traffic = &device->traffic;
  uint64_t ns;
  gm_transfer_totals totals = {.struct_size = sizeof totals,
                               .users = gm__traffic_users(device, gm__now_ns(), &ns),
                               .up_bytes = totals_read(&traffic->bytes[GM__TRAFFIC_UP]),
                               .down_bytes = totals_read(&traffic->bytes[GM__TRAFFIC_DOWN]),
                               .up_copies = totals_read(&traffic->copies[GM__TRAFFIC_UP]),
                               .down_copies = totals_read(&traffic->copies[GM__TRAFFIC_DOWN]),
                               .useful_bytes = totals_read(&traffic->useful_bytes)};
  totals.seconds = (double)ns * 1e-9;
  const gm__shares shares = gm__shares_of(device, totals.up_bytes, totals.down_bytes, totals.seconds);
  totals.up = shares.up;
  totals.down = shares.down;
  totals.up_utilisation = shares.up_utilisation;
  totals.down_utilisation = shares.down_utilisation;
  totals.overhead = shares.overhead;
  totals.overlap = shares.overlap;
  gm__sized_out(out, &totals, sizeof totals);
  return GM_OK;
}
