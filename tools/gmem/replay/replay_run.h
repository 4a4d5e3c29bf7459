/* Replaying a trace on a pool, several times, by one or several threads. */
#ifndef GM_TOOLS_GMEM_REPLAY_REPLAY_RUN_H
#define GM_TOOLS_GMEM_REPLAY_REPLAY_RUN_H

#include "gm/fragmentation.h"
#include "tools/gmem/replay/replay_events.h"

enum { REPLAY_STREAMS_MAX = 64 }; /* of all threads; that many threads at most */

typedef struct replay_params {
  uint32_t runs;
  uint32_t threads; /* each replays a copy of its own, on streams of its own */
  bool touch;       /* write every block when it is handed out */
  bool tail;        /* one more run, for p99_ns */
  bool holes;       /* fill in `holes` below: with one thread */
} replay_params;

typedef struct replay_result {
  double ns_per_event; /* of the last run: its time divided by the events of one thread */
  double p99_ns;       /* of single events, in one more run, else 0; without touching */
  uint64_t failed;     /* allocations that found no memory, in the run that had most */
  uint64_t driver_allocs_cold;
  uint64_t driver_allocs_warm;
  gm_stats stats;         /* of the pool, at the end */
  gm_fragmentation holes; /* with `holes`: of the pool at the end of the last run, with what the trace leaves alive */
} replay_result;

/* Each thread has as many streams as the events were read for. Errors of gm_stream_create; what gm_explain says about
 * an allocation that failed for another reason than a lack of memory. */
gm_status replay_run(gm_pool *pool, const replay_events *events, const replay_params *params, replay_result *out,
                     gm_error *err);

#endif
