/* The smallest capacity that is enough, by bisection. */
#ifndef GM_TOOLS_GMEM_REPLAY_REPLAY_CAPACITY_H
#define GM_TOOLS_GMEM_REPLAY_REPLAY_CAPACITY_H

#include <stdbool.h>

#include "gm/status.h"

enum { REPLAY_CAPACITY_TIMES = 64 };

/* Is that capacity enough? Other failures than a lack of memory are failures. */
typedef gm_status (*replay_trial)(void *user, uint64_t capacity, bool *out_enough, gm_error *err);

/* `floor`: what is needed at the least; `guess`: what may be enough; `most`: no trial is larger, nor larger than
 * REPLAY_CAPACITY_TIMES `floor`. *out is enough, and known to a thousandth of `floor`: somewhat less failed, or *out is
 * `floor`. *out is 0 when nothing is enough. */
gm_status replay_min_capacity(replay_trial trial, void *user, uint64_t floor, uint64_t guess, uint64_t most,
                              uint64_t *out, gm_error *err);

#endif
