#include "core/tier/remote/remote_turn.h"

#include "core/base/clock.h"
#include "core/base/error.h"

/* Invariant: one thread at a time talks to the servers, and holds no lock meanwhile. */

gm_status gm__remote_enter(gm__remote_tier *tier, const char *op, gm_error *err) {
  const uint64_t deadline = gm__deadline_after(tier->timeout_ns);
  bool mine = true;
  gm__mutex_lock(&tier->lock);
  while (tier->busy && mine) mine = gm__cond_wait_until(&tier->turn, &tier->lock, deadline);
  mine = !tier->busy;
  if (mine) tier->busy = true;
  gm__mutex_unlock(&tier->lock);
  if (!mine) return gm__fail(err, GM_ERR_TIMEOUT, op, "other threads waited for the server all the time");
  tier->op = op;
  return GM_OK;
}

gm_status gm__remote_leave(gm__remote_tier *tier, gm_status status, gm_error *err) {
  tier->trouble.status = status;
  if (status && err) *err = tier->trouble;
  gm__mutex_lock(&tier->lock);
  tier->stats.read_bytes = tier->read_bytes;
  tier->stats.written_bytes = tier->written_bytes;
  tier->stats.retries = tier->retries;
  tier->busy = false;
  gm__cond_signal(&tier->turn);
  gm__mutex_unlock(&tier->lock);
  return status;
}

void gm__remote_count(gm__remote_tier *tier, gm__remote_figure figure) {
  uint64_t *const figures[] = {&tier->stats.puts, &tier->stats.gets, &tier->stats.misses, &tier->stats.removes,
                               &tier->stats.damaged};
  gm__mutex_lock(&tier->lock);
  ++*figures[figure];
  gm__mutex_unlock(&tier->lock);
}
