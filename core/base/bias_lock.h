/* A lock that costs its owner, one thread, a few plain instructions, and everybody else a mutex and a barrier in all
 * threads. Not recursive, must not move. Whoever comes often becomes the owner only if it is the lock's home thread. */
#ifndef GM_CORE_BASE_BIAS_LOCK_H
#define GM_CORE_BASE_BIAS_LOCK_H

#include <stdatomic.h>

#include "core/base/thread.h"

/* `self` everywhere: something that no other living thread passes (core/base/thread_here.h). */
typedef struct gm__bias_lock {
  _Atomic(const void *) owner; /* may enter without the mutex; NULL: nobody */
  _Atomic uint32_t busy;       /* the owner is inside, or about to see that it is the owner no more */
  uint32_t streak;             /* how often in a row the home thread came with the mutex */
  uint32_t needed;             /* so often makes it the owner */
  uint64_t since;              /* it is, in the nanoseconds of clock.h */
  bool by_mutex;               /* who is inside holds the mutex */
  const void *home;            /* the only thread that can be the owner; NULL: none can */
  gm__mutex mutex;             /* its rank is the lock's */
} gm__bias_lock;

void gm__bias_init(gm__bias_lock *lock, gm__rank rank);
void gm__bias_destroy(gm__bias_lock *lock);

/* The home thread is another one from now on. Called inside; the one before has ended, or never was. */
void gm__bias_settle(gm__bias_lock *lock, const void *home);

/* The way in of the home thread, which nobody else may try (so the owner can be nobody else); false while it is not the
 * owner, and nothing has happened. */
static inline bool gm__bias_enter(gm__bias_lock *lock) {
  atomic_store_explicit(&lock->busy, 1, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst); /* the processor's part is the barrier of who takes the lock away */
  if (__builtin_expect(atomic_load_explicit(&lock->owner, memory_order_relaxed) != NULL, 1)) {
    gm__rank_expect(lock->mutex.rank);
    gm__rank_enter(lock->mutex.rank);
    return true;
  }
  atomic_store_explicit(&lock->busy, 0, memory_order_release);
  return false;
}

/* Out of a lock that gm__bias_enter opened. */
static inline void gm__bias_leave(gm__bias_lock *lock) {
  gm__rank_leave(lock->mutex.rank);
  atomic_store_explicit(&lock->busy, 0, memory_order_release);
}

void gm__bias_lock_slow(gm__bias_lock *lock, const void *self);
void gm__bias_unlock_slow(gm__bias_lock *lock, const void *self);

static inline void gm__bias_lock_in(gm__bias_lock *lock, const void *self) {
  const bool own = atomic_load_explicit(&lock->owner, memory_order_relaxed) == self;
  if (!own || !gm__bias_enter(lock)) gm__bias_lock_slow(lock, self);
}

static inline void gm__bias_lock_out(gm__bias_lock *lock, const void *self) {
  if (__builtin_expect(lock->by_mutex, 0)) {
    gm__bias_unlock_slow(lock, self);
  } else {
    gm__bias_leave(lock);
  }
}

#endif
