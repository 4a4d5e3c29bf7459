#include "core/provider/ladder.h"

#include <string.h>

static void ladder_make(gm__ladder *ladder) {
  if (ladder->began) return;
  ladder->began = true;
  ladder->behind = GM_OK;
  ladder->waited_ns = 0;
  memset(ladder->rungs, 0, sizeof ladder->rungs);
}

void gm__ladder_step(gm__ladder *ladder, gm_rung rung, uint64_t began, uint64_t bytes) {
  if (!ladder) return;
  ladder_make(ladder);
  gm_rung_work *work = &ladder->rungs[rung];
  work->count++;
  work->bytes += bytes;
  work->ns += gm__now_ns() - began;
}

void gm__ladder_add_rungs(gm__rung_total *totals, const gm__ladder *ladder) {
  for (int i = 0; i < GM__RUNG_COUNT; i++) {
    if (!ladder->rungs[i].count) continue;
    atomic_fetch_add_explicit(&totals[i].count, ladder->rungs[i].count, memory_order_relaxed);
    atomic_fetch_add_explicit(&totals[i].bytes, ladder->rungs[i].bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&totals[i].ns, ladder->rungs[i].ns, memory_order_relaxed);
  }
}

gm__ladder gm__ladder_copy(const gm__ladder *ladder) {
  gm__ladder copy = {.began = false};
  if (ladder && ladder->began) copy = *ladder;
  if (ladder) copy.cause = ladder->cause;
  return copy;
}

#define X(name, value, text) \
  case name: return text;

const char *gm_refusal_cause_name(gm_refusal_cause cause) {
  switch (cause) { GM_REFUSAL_CAUSE_MAP(X) }
  return "?";
}

const char *gm_change_name(gm_change change) {
  switch (change) { GM_CHANGE_MAP(X) }
  return "?";
}

const char *gm_rung_name(gm_rung rung) {
  switch (rung) { GM_RUNG_MAP(X) }
  return "?";
}
