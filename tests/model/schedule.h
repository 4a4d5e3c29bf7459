/* Many short random schedules on the late driver, each with a pool of its own. */
#ifndef GM_TESTS_MODEL_SCHEDULE_H
#define GM_TESTS_MODEL_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/pool.h"

typedef struct schedule_params {
  uint64_t seed; /* of the first; the next ones have seed + 1, seed + 2, … */
  uint64_t count;
  uint32_t threads;  /* that share the schedules, each with a context of its own */
  bool any_strategy; /* `strategy` is drawn */
  gm_strategy strategy;
  bool no_vmm; /* never; else it is drawn */
  bool aloud;  /* say what is done */
} schedule_params;

/* Prints what it did, and the seed of each schedule that failed; true: none did. */
bool schedules_run(const schedule_params *params);

#endif
