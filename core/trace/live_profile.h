/* A profile of a pool that runs: what a recording would say, without a file. It takes the events of a recorder, arena
 * by arena, and keeps sums. */
#ifndef GM_CORE_TRACE_LIVE_PROFILE_H
#define GM_CORE_TRACE_LIVE_PROFILE_H

#include "core/base/map.h"
#include "core/track/recorder.h"
#include "gm/advice.h"

/* The sum of the parts of a profile. */
typedef struct gm__profile_sum {
  gm_trace_profile figures;
  gm__map allocs;  /* bytes → allocations of that size */
  gm__map live;    /* bytes → blocks of that size that are alive */
  gm__map streams; /* ids, without the host's 0 */
} gm__profile_sum;

/* Opens a recorder that keeps a profile. OUT_OF_HOST_MEMORY. */
gm_status gm__live_profile_open(const gm_services *services, gm__recorder **out, gm_error *err);

void gm__profile_sum_begin(gm__profile_sum *sum, const gm_services *services);
void gm__profile_sum_end(gm__profile_sum *sum);

/* Adds what the event buffer has told so far; its chunk becomes empty. NULL: nothing. REQUIRES: the lock of the event
 * buffer. OUT_OF_HOST_MEMORY: the sum is not whole. */
gm_status gm__live_profile_add(gm__recorder *recorder, gm__event_buffer *events, gm__profile_sum *sum);

#endif
