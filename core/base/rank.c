#include "core/base/rank.h"

#ifndef NDEBUG

#include <assert.h>
#include <stdint.h>

#include "core/base/thread_data.h"

/* The locks that the calling thread holds, in debug builds. */

enum { RANK_DEPTH = 16 };

static _Thread_local struct {
  uint32_t count;
  gm__rank ranks[RANK_DEPTH];
} rank_held GM__THREAD_DATA;

void gm__rank_expect(gm__rank rank) {
  for (uint32_t i = 0; i < rank_held.count; i++) {
    assert(rank_held.ranks[i] < rank && "locks are taken by rising rank: docs/design.md, Locks");
  }
}

void gm__rank_enter(gm__rank rank) {
  assert(rank_held.count < RANK_DEPTH);
  rank_held.ranks[rank_held.count++] = rank;
}

void gm__rank_leave(gm__rank rank) {
  uint32_t at = rank_held.count;
  while (at > 0 && rank_held.ranks[at - 1] != rank) at--;
  assert(at > 0 && "the lock was not held by this thread");
  for (; at < rank_held.count; at++) rank_held.ranks[at - 1] = rank_held.ranks[at];
  rank_held.count--;
}

void gm__rank_check_submit(void) {
  for (uint32_t i = 0; i < rank_held.count; i++) {
    assert(rank_held.ranks[i] <= GM__RANK_TURNS && "only turns are held where a driver or a hook is called to submit");
  }
}

#else
typedef int rank_is_of_debug_builds; /* C does not allow an empty file */
#endif
