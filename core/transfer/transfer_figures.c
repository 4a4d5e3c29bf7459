/* Times and shares of a transfer. */
#include "core/base/clock.h"
#include "core/base/saturate.h"
#include "core/transfer/transfer.h"

static double figures_seconds(uint64_t from, uint64_t to) { return to > from ? (double)(to - from) * 1e-9 : 0; }

void gm__transfer_time(gm_transfer *t, const gm__transfer_load *load) {
  const uint64_t now = gm__now_ns();
  t->busy[t->copies[load->first].way] += figures_seconds(gm__max(load->submitted_ns, t->end_ns), now);
  t->end_ns = now;
}

static double figures_utilisation(const gm_transfer *t, gm__transfer_way way) {
  const double possible = t->ceiling[way] * t->busy[way];
  return possible > 0 ? (double)t->ended_bytes[way] / possible : 0;
}

void gm__transfer_times(gm_transfer *t, uint64_t now) {
  gm_transfer_stats *stats = &t->stats;
  stats->seconds = figures_seconds(t->begun_ns, now);
  stats->up = t->busy[GM__TRANSFER_UP];
  stats->down = t->busy[GM__TRANSFER_DOWN];
  stats->inside = t->busy[GM__TRANSFER_INSIDE];
  stats->up_utilisation = figures_utilisation(t, GM__TRANSFER_UP);
  stats->down_utilisation = figures_utilisation(t, GM__TRANSFER_DOWN);
  const double busy = stats->up + stats->down + stats->inside;
  stats->overhead = stats->seconds > busy ? (stats->seconds - busy) / stats->seconds : 0;
}
