/* Replaying a trace under settings, on addresses without memory: what an advice gains is measured, not guessed. */
#ifndef GM_TOOLS_GMEM_ADVISE_TRIAL_H
#define GM_TOOLS_GMEM_ADVISE_TRIAL_H

#include "gm/pool.h"
#include "tools/gmem/replay_events.h"

/* Values of the keys that advice may set; NULL: the default. */
typedef struct advise_settings {
  const char *strategy;       /* allocation_strategy */
  const char *warm_up;        /* warmup */
  const char *max_pool_bytes; /* max_pool_bytes */
} advise_settings;

typedef struct advise_result {
  gm_stats stats;         /* after one run, the warm-up before it included */
  uint64_t driver_allocs; /* in the run: those of a warm-up come before */
  uint64_t failed;        /* allocations that found no memory */
} advise_result;

/* One run on a null device of `capacity` bytes (0: its default), whatever the environment sets. */
gm_status advise_trial(const replay_events *events, uint64_t capacity, const advise_settings *settings,
                       advise_result *out, gm_error *err);

/* The share of what was reserved at the peak that the run, with `peak_live` bytes at its own, had no use for. */
double advise_fragmentation(const advise_result *result, uint64_t peak_live);

#endif
