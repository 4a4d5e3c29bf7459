#include "core/file/read_pace.h"

bool gm__read_pace_allows(const gm__read_pace *pace, uint64_t bytes) {
  if (!pace->under_way) return true;
  if (!pace->quickest || !pace->ns) return false;
  const double rate = (double)pace->bytes / (double)pace->ns, under_way = (double)pace->under_way;
  if (pace->quickest <= GM__READ_PACE_LATE_NS) return under_way + (double)bytes <= rate * GM__READ_PACE_NS;
  return under_way < rate * (double)pace->quickest * 1.25;
}

void gm__read_pace_claim(gm__read_pace *pace, uint64_t bytes) { pace->under_way += bytes; }

void gm__read_pace_drop(gm__read_pace *pace, uint64_t bytes) { pace->under_way -= bytes; }

static void pace_count(gm__read_pace *pace, uint64_t now) {
  if (pace->reading && now > pace->since) pace->ns += now - pace->since;
  pace->since = now;
}

void gm__read_pace_begin(gm__read_pace *pace, uint64_t now) {
  pace_count(pace, now);
  pace->reading++;
}

/* Reads older than the window count half. */
void gm__read_pace_end(gm__read_pace *pace, uint64_t bytes, uint64_t began, uint64_t now) {
  const uint64_t took = now > began ? now - began : 1;
  pace_count(pace, now);
  pace->reading--;
  pace->under_way -= bytes;
  pace->bytes += bytes;
  if (!pace->quickest || took < pace->quickest) pace->quickest = took;
  if (pace->ns < GM__READ_PACE_NS) return;
  pace->bytes /= 2;
  pace->ns /= 2;
}
