/* From a trace to advice: rules of the library, and settings that a replay has shown to gain. */
#ifndef GM_TOOLS_GMEM_ADVISE_FIND_H
#define GM_TOOLS_GMEM_ADVISE_FIND_H

#include "gm/advice.h"
#include "tools/gmem/advise_trial.h"

enum { ADVISE_MOST = 6, ADVISE_VALUE = 1024 };

typedef struct advise_item {
  const char *what;   /* "strategy", "coalesce", "warm_up", "max_pool_bytes", "leak" */
  char why[256];      /* one sentence */
  char gain[256];     /* measured */
  char setting[1280]; /* "key = value"; "": there is none to set */
} advise_item;

typedef struct advise_report {
  gm_trace_profile profile;
  advise_result before; /* by default */
  advise_result after;  /* with every setting of `items` */
  char strategy[16];    /* the value that after has; "": the default */
  char warm_up[ADVISE_VALUE];
  char max_pool_bytes[32];
  advise_item items[ADVISE_MOST];
  size_t count;
} advise_report;

/* `report->profile` is read. Errors: those of the replays. */
gm_status advise_find(const replay_events *events, uint64_t capacity, advise_report *report, gm_error *err);

#endif
