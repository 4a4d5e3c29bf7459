/* Those who are told of the blocks of a pool: its tracker, its recorder, the quotas of its tags. Plain data. */
#ifndef GM_CORE_TRACK_OBSERVERS_H
#define GM_CORE_TRACK_OBSERVERS_H

#include <stdatomic.h>

#include "core/track/quota_book.h"
#include "core/track/recorder.h"
#include "core/track/tracker.h"

typedef struct gm__observers {
  _Atomic(gm_tracker *) tracker; /* NULL: nothing has ever been tracked; else there until the pool ends */
  _Atomic uint32_t track_turns;  /* how often tracking began or ended: odd while it is on. Changes with gate and lock */
  gm__recorder *recorder;        /* NULL: the pool is not recorded. Changes with gate and lock */
  _Atomic(gm__quotas *) quotas;  /* NULL: no tag has ever had one. Changes once, with gate and lock */
} gm__observers;

static inline bool gm__observers_track(const gm__observers *observers) {
  return atomic_load_explicit(&observers->track_turns, memory_order_seq_cst) & 1;
}

/* NULL: no tag has a quota (yet). REQUIRES: lock. */
static inline gm__quotas *gm__observers_quotas(const gm__observers *observers) {
  return atomic_load_explicit(&observers->quotas, memory_order_relaxed);
}

#endif
