/* Threads that ask for futures of one pool, look, and cancel those of each other. Needs cmocka.h included before. */
#ifndef GM_TESTS_TRANSFER_FUTURE_CROWD_H
#define GM_TESTS_TRANSFER_FUTURE_CROWD_H

#include <stdatomic.h>

#include "core/base/thread.h"
#include "support/random.h"
#include "transfer/future_scene.h"

enum { HANDS = 3 };

typedef struct crowd {
  future_scene s;
  size_t turns;
  _Atomic size_t yours, not_yours, with_callback;
  _Atomic unsigned called, wrong;
} crowd;

typedef struct crowd_hand {
  gm__thread thread;
  crowd *crowd;
  uint64_t random;
} crowd_hand;

static inline void crowd_count(void *user, gm_future *future) {
  (void)future;
  atomic_fetch_add((_Atomic unsigned *)user, 1);
}

/* A future ends with a block or without. One that was not cancelled has called back. */
static inline void crowd_end(crowd *c, gm_future *future, bool called) {
  const bool yours = gm_acquired(future->answer);
  atomic_fetch_add(yours ? &c->yours : &c->not_yours, 1);
  if (called && future->status != GM_ERR_CANCELLED) atomic_fetch_add(&c->with_callback, 1);
  if (yours != !future->status) atomic_fetch_add(&c->wrong, 1);
  if (!yours && future->status != GM_ERR_CANCELLED && future->status != GM_ERR_TIMEOUT) atomic_fetch_add(&c->wrong, 1);
  if (yours && gm_free(c->s.pool, &future->block, NULL)) atomic_fetch_add(&c->wrong, 1);
}

static inline void crowd_turn(crowd *c, uint64_t what) {
  gm_future future;
  gm_request request = {.bytes = (1 + what % 8) * UNIT, .deadline_ns = what >> 8 & 7 ? 0 : 1 + (what >> 16) % 50000};
  gm_block held;
  const gm_request plain = {.bytes = UNIT};
  const bool holds = what >> 12 & 1 && gm_acquired(gm_alloc(c->s.pool, &plain, &held));
  gm_alloc_async(c->s.pool, &request, &future);
  const bool calls = what >> 13 & 1;
  if (calls && gm_future_on_done(&future, crowd_count, &c->called, NULL)) atomic_fetch_add(&c->wrong, 1);
  if (what >> 14 & 1) gm_future_done(&future);
  if (what >> 15 & 1) gm_context_poll(c->s.w.ctx, NULL);
  if (holds && gm_free(c->s.pool, &held, NULL)) atomic_fetch_add(&c->wrong, 1);
  if (what >> 24 & 1) {
    if (gm_future_cancel(&future, NULL)) atomic_fetch_add(&c->wrong, 1);
  } else if (gm_future_wait(&future, UINT64_MAX, NULL)) {
    atomic_fetch_add(&c->wrong, 1);
  }
  crowd_end(c, &future, calls);
}

static inline void crowd_run(void *arg) {
  crowd_hand *hand = arg;
  for (size_t i = 0; i < hand->crowd->turns; i++) crowd_turn(hand->crowd, test_random(&hand->random));
}

#endif
