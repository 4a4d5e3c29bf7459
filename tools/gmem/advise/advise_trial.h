/* Replaying a trace under settings: what an advice gains is measured, not guessed. */
#ifndef GM_TOOLS_GMEM_ADVISE_ADVISE_TRIAL_H
#define GM_TOOLS_GMEM_ADVISE_ADVISE_TRIAL_H

#include "gm/fragmentation.h"
#include "gm/relocation.h"
#include "tools/gmem/replay/replay_events.h"
#include "tools/gmem/session/session.h"

/* The run that is advised for. */
typedef struct advise_target {
  session_choice choice; /* "null": addresses without memory */
  uint64_t capacity;     /* of a null device, 0: its default; elsewhere a cap of the pool, 0: none */
  bool no_vmm;           /* driver allocations only */
} advise_target;

/* Values of the keys that advice may set; NULL: the default. */
typedef struct advise_settings {
  const char *strategy;        /* allocation_strategy */
  const char *memory_fraction; /* memory_fraction */
  const char *min_free_bytes;  /* min_free_bytes */
  const char *warm_up;         /* warmup */
  const char *max_pool_bytes;  /* max_pool_bytes */
} advise_settings;

typedef struct advise_result {
  gm_stats stats;          /* after one run, the warm-up before it included; of several, those that reserved most */
  uint64_t driver_allocs;  /* in the run: those of a warm-up come before */
  uint64_t warm_up_allocs; /* driver allocations before the run */
  uint64_t failed;         /* allocations that found no memory */
  gm_fragmentation holes;  /* of the pool at the end of the run, with what the trace leaves alive */
} advise_result;

bool advise_on_null(const advise_target *target);

/* How often each trial replays, each time on a new pool, the worst of each figure counting: once on null, where nothing
 * varies. */
unsigned advise_times(const advise_target *target);

/* The device, and whether pools map pages there. Errors of session_open. */
gm_status advise_look(const advise_target *target, gm_device_info *out_info, bool *out_mapped, gm_error *err);

/* Replay under the settings, whatever the environment sets. */
gm_status advise_trial(const replay_events *events, const advise_target *target, const advise_settings *settings,
                       advise_result *out, gm_error *err);

/* The effect that a compaction at the end of the run has on what the trace leaves alive. */
typedef struct advise_compaction {
  gm_fragmentation before; /* after a trim */
  gm_fragmentation after;
  gm_compact_report report;
} advise_compaction;

/* Replays the run once in buffers that can move (GM_RELOCATABLE), in the order of one stream, and compacts the pool. */
gm_status advise_try_compaction(const replay_events *events, const advise_target *target,
                                const advise_settings *settings, advise_compaction *out, gm_error *err);

/* The share of what was reserved at the peak that the run, with `peak_live` bytes at its own, had no use for. */
double advise_unused(const advise_result *result, uint64_t peak_live);

#endif
