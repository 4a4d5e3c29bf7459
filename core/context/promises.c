#include "core/context/promises.h"

#include "core/base/clock.h"
#include "core/base/poll.h"

/* Invariant: a record lies in memory that the kernel zeroes in a forked child. So a lock that a thread of the parent
 * holds at the fork is no lock of the child's, which makes its own. Records live for ever. Whoever waits for another
 * thread sleeps: that thread may have less priority, and run on no other processor. */

enum { PROMISES_NEW, PROMISES_BEGUN, PROMISES_READY };

void gm__promises_prepare(gm__promises *promises) {
  uint32_t state = PROMISES_NEW;
  if (atomic_compare_exchange_strong(&promises->state, &state, PROMISES_BEGUN)) {
    gm__mutex_init(&promises->lock, GM__RANK_GROW);
    atomic_store(&promises->state, PROMISES_READY);
    return;
  }
  for (gm__poll poll = gm__poll_until(GM__NEVER); atomic_load(&promises->state) != PROMISES_READY;) {
    gm__poll_again(&poll);
  }
}
