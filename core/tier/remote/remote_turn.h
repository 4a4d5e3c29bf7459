/* Whose turn it is to talk to a remote tier's servers, and the tier's figures. Thread-safe. */
#ifndef GM_CORE_TIER_REMOTE_TURN_H
#define GM_CORE_TIER_REMOTE_TURN_H

#include "core/tier/remote/remote_tier.h"

/* Waits for the thread's turn to talk, at most the tier's time-out. TIMEOUT. */
gm_status gm__remote_enter(gm__remote_tier *tier, const char *op, gm_error *err);

/* Ends the turn, and gives the caller tier->trouble for a failure. */
gm_status gm__remote_leave(gm__remote_tier *tier, gm_status status, gm_error *err);

/* The figures that a call adds. */
typedef enum gm__remote_figure {
  GM__REMOTE_PUTS,
  GM__REMOTE_GETS,
  GM__REMOTE_MISSES,
  GM__REMOTE_REMOVES,
  GM__REMOTE_DAMAGED
} gm__remote_figure;
void gm__remote_count(gm__remote_tier *tier, gm__remote_figure figure);

#endif
