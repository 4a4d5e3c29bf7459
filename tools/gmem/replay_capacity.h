/* The smallest capacity that is enough, by bisection. */
#ifndef GM_TOOLS_GMEM_REPLAY_CAPACITY_H
#define GM_TOOLS_GMEM_REPLAY_CAPACITY_H

#include <stdbool.h>

#include "gm/status.h"

/* Is that capacity enough? Other failures than a lack of memory are failures. */
typedef gm_status (*replay_trial)(void *user, uint64_t capacity, bool *out_enough, gm_error *err);

/* `floor`: what is needed at the least; `guess`: what may be enough. *out is enough, and known to a thousandth of
 * `floor`: somewhat less failed, or *out is `floor`. *out is 0 when nothing up to 64 times `floor` is enough. */
gm_status replay_min_capacity(replay_trial trial, void *user, uint64_t floor, uint64_t guess, uint64_t *out,
                              gm_error *err);

#endif
