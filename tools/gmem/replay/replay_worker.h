/* One thread's part of a replay. */
#ifndef GM_TOOLS_GMEM_REPLAY_REPLAY_WORKER_H
#define GM_TOOLS_GMEM_REPLAY_REPLAY_WORKER_H

#include "gm/fragmentation.h"
#include "tools/gmem/replay/replay_events.h"

typedef struct replay_worker {
  gm_pool *pool;
  const replay_events *events;
  gm_block *blocks;   /* by slot; bytes 0: none */
  uint32_t *times_ns; /* of each event; NULL: not asked for */
  gm_stream **streams;
  bool touch;
  gm_fragmentation *holes; /* filled in before what the trace leaves alive is freed; NULL: not asked for */
  uint64_t told, to_tell;  /* events of earlier runs, and of all: the bar shows them. to_tell 0: this one tells none */
  uint64_t begin_ns, end_ns; /* of the run; while events are timed one by one, end - begin is their sum */
  uint64_t failed;
  gm_status status;
  gm_error error;
} replay_worker;

/* One run; sets what is below `to_tell`. */
void replay_worker_run(replay_worker *worker);

/* Fill `err` and answer `status`. */
gm_status replay_fail(gm_error *err, gm_status status, const char *message);

#endif
