/* The ladder of a request: what was tried after no pooled memory served, how often and how long. It lies on the stack
 * of the call, and is noted with the refusal. A request that is served soon writes two members of it. */
#ifndef GM_CORE_PROVIDER_LADDER_H
#define GM_CORE_PROVIDER_LADDER_H

#include <stdatomic.h>

#include "core/base/clock.h"
#include "gm/explain.h"

enum { GM__RUNG_COUNT = GM_RUNG_WAIT + 1 };

typedef struct gm__ladder {
  bool began;             /* the rungs are set */
  gm_refusal_cause cause; /* what the code that refused knows for certain; NONE: the figures tell */
  gm_status behind;       /* of the last try, where a deadline passed */
  uint64_t waited_ns;
  gm_rung_work rungs[GM__RUNG_COUNT];
} gm__ladder;

/* The figures of all requests of a pool on each rung. */
typedef struct gm__rung_total {
  _Atomic uint64_t count, bytes, ns;
} gm__rung_total;

static inline void gm__ladder_begin(gm__ladder *ladder) {
  ladder->began = false;
  ladder->cause = GM_CAUSE_NONE;
}

/* Counts a try of a rung that began at `began`. `ladder` may be NULL. */
void gm__ladder_step(gm__ladder *ladder, gm_rung rung, uint64_t began, uint64_t bytes);

/* Adds a request that has ended, if it climbed. */
void gm__ladder_add_rungs(gm__rung_total *totals, const gm__ladder *ladder);
static inline void gm__ladder_add(gm__rung_total *totals, const gm__ladder *ladder) {
  if (ladder->began) gm__ladder_add_rungs(totals, ladder);
}

/* The refusal that follows has this cause, whatever the figures say. NONE: a new try. `ladder` may be NULL. */
static inline void gm__ladder_blame(gm__ladder *ladder, gm_refusal_cause cause) {
  if (ladder) ladder->cause = cause;
}

/* The ladder, complete: rungs that were not reached are 0. `ladder` may be NULL. */
gm__ladder gm__ladder_copy(const gm__ladder *ladder);

#endif
