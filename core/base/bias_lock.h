/* A lock that costs its owner thread a few plain instructions. Every other thread pays for a mutex and a barrier in all
 * threads. Only the lock's home thread can become the owner, when it enters often. Not recursive, must not move. */
#ifndef GM_CORE_BASE_BIAS_LOCK_H
#define GM_CORE_BASE_BIAS_LOCK_H

#include <stdatomic.h>

#include "core/base/thread.h"

/* Every `self` is gm__thread_self of the calling thread. A home thread has a sign of life. Whoever makes it the home
 * thread holds a reference to that until there is another one. So no other thread is taken for it. */
typedef struct gm__bias_lock {
  _Atomic(const void *) owner; /* the thread that may enter without the mutex; NULL: none */
  _Atomic uint32_t busy;       /* the owner is inside, or about to see that it is not the owner any more */
  uint32_t streak;             /* the number of times in a row that the home thread entered with the mutex */
  uint32_t needed;             /* after this streak the home thread becomes the owner */
  _Atomic uint32_t sleepers;   /* threads that sleep until they get the mutex */
  uint64_t since;              /* when it became the owner, in nanoseconds (clock.h) */
  const void *by_mutex;        /* the thread inside, if it holds the mutex */
  const void *home;            /* the only thread that can be the owner; NULL: none can */
  gm__mutex mutex;             /* its rank is the rank of this lock */
} gm__bias_lock;

void gm__bias_init(gm__bias_lock *lock, gm__rank rank);
void gm__bias_destroy(gm__bias_lock *lock);

/* Set the home thread. The thread before has ended, or there was none. REQUIRES: this lock. */
void gm__bias_settle(gm__bias_lock *lock, const void *home);

/* Enter as the owner. Only the home thread may call it, so no other thread can be the owner. False: the home thread is
 * not the owner, and nothing has happened. */
static inline bool gm__bias_enter(gm__bias_lock *lock) {
  atomic_store_explicit(&lock->busy, 1, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst); /* a thread that takes the lock away runs the processor's barrier */
  if (__builtin_expect(atomic_load_explicit(&lock->owner, memory_order_relaxed) != NULL, 1)) {
    gm__rank_expect(lock->mutex.rank);
    gm__rank_enter(lock->mutex.rank);
    return true;
  }
  atomic_store_explicit(&lock->busy, 0, memory_order_release);
  return false;
}

/* Leave a lock that gm__bias_enter has entered. */
static inline void gm__bias_leave(gm__bias_lock *lock) {
  gm__rank_leave(lock->mutex.rank);
  atomic_store_explicit(&lock->busy, 0, memory_order_release);
}

void gm__bias_lock_slow(gm__bias_lock *lock, const void *self);
void gm__bias_unlock_slow(gm__bias_lock *lock);

static inline void gm__bias_lock_in(gm__bias_lock *lock, const void *self) {
  const bool own = atomic_load_explicit(&lock->owner, memory_order_relaxed) == self;
  if (!own || !gm__bias_enter(lock)) gm__bias_lock_slow(lock, self);
}

static inline void gm__bias_lock_out(gm__bias_lock *lock) {
  if (__builtin_expect(lock->by_mutex != NULL, 0)) {
    gm__bias_unlock_slow(lock);
  } else {
    gm__bias_leave(lock);
  }
}

/* Leaves the lock and enters it again. A thread that sleeps before the lock gets it in between. */
void gm__bias_breathe(gm__bias_lock *lock, const void *self);

#endif
