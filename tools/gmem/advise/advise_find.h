/* From a trace to advice: rules of the library, and settings that a replay has shown to gain. */
#ifndef GM_TOOLS_GMEM_ADVISE_ADVISE_FIND_H
#define GM_TOOLS_GMEM_ADVISE_ADVISE_FIND_H

#include "gm/advice.h"
#include "tools/gmem/advise/advise_trial.h"

enum { ADVISE_MOST = 8, ADVISE_VALUE = 1024, ADVISE_CHANGES = 4, ADVISE_TEXT = 512 };

/* One figure of the replays that the setting changes; the lower the better. */
typedef struct advise_change {
  const char *what;
  char before[16], after[16];
  bool is_gain;
} advise_change;

typedef struct advise_item {
  const char *what;   /* "strategy", "coalesce", "memory_fraction", "min_free_bytes", … */
  char why[256];      /* one sentence */
  char note[256];     /* what is gained beside the changes; "": nothing */
  char setting[1280]; /* "key = value"; "": there is none to set */
  bool measured;      /* by replays without it and with it, which are: */
  advise_result before, after;
  advise_change changes[ADVISE_CHANGES];
  size_t change_count;
} advise_item;

typedef struct advise_report {
  gm_trace_profile profile;
  gm_device_info info;     /* what was replayed on */
  bool mapped;             /* pools map pages there */
  unsigned times;          /* that each trial replayed */
  uint32_t used_streams;   /* of the trace */
  uint32_t opened_streams; /* of the device, on which those were replayed */
  advise_result before;    /* by default */
  advise_result after;     /* with every setting of `items` */
  uint64_t least_capacity; /* of a device on which no request fails with them; 0: none was looked for or found */
  char strategy[16];       /* the value that after has; "": the default */
  char memory_fraction[8], min_free_bytes[8];
  char warm_up[ADVISE_VALUE];
  char max_pool_bytes[32];
  advise_item items[ADVISE_MOST];
  size_t count;
} advise_report;

/* Note and changes that are gains, or those that cost something, as one line; "": there are none. */
void advise_item_line(const advise_item *item, bool gains, char *out, size_t capacity);

/* `report->profile` is read. Errors: those of the replays. */
gm_status advise_find(const replay_events *events, const advise_target *target, advise_report *report, gm_error *err);

#endif
