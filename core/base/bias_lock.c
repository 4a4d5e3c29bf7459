#include "core/base/bias_lock.h"

#include "core/base/barrier.h"

/* Invariants: `owner` changes only under the mutex, to NULL or to `home`. Who holds the mutex has made sure that the
 * owner is out: it cleared `owner`, had a barrier run in all threads, after which the owner either is seen busy or will
 * see that it is the owner no more, and waited until it was not busy. Only the home thread ever writes `busy`, so that
 * a thread that lost the lock between its two looks can put back nobody's mark but its own; that is why another thread
 * becomes home only when the one before has ended. */

enum { BIAS_STREAK = 64 }; /* a barrier costs microseconds: the owner must have earned it back */

void gm__bias_init(gm__bias_lock *lock) {
  *lock = (gm__bias_lock){.streak = 0};
  gm__mutex_init(&lock->mutex);
}

void gm__bias_destroy(gm__bias_lock *lock) { gm__mutex_destroy(&lock->mutex); }

void gm__bias_settle(gm__bias_lock *lock, const void *home) {
  lock->home = home;
  lock->streak = BIAS_STREAK; /* alone so far: the owner from its first time on */
}

static void bias_revoke(gm__bias_lock *lock) {
  if (!atomic_load_explicit(&lock->owner, memory_order_relaxed)) return;
  atomic_store(&lock->owner, NULL);
  gm__barrier_all();
  while (atomic_load_explicit(&lock->busy, memory_order_acquire)) gm__thread_yield();
}

void gm__bias_lock_slow(gm__bias_lock *lock, const void *self) {
  gm__mutex_lock(&lock->mutex);
  bias_revoke(lock);
  lock->by_mutex = true;
  if (lock->home != self) lock->streak = 0;
}

void gm__bias_unlock_slow(gm__bias_lock *lock, const void *self) {
  lock->by_mutex = false;
  if (lock->home && lock->home == self && lock->streak++ >= BIAS_STREAK && gm__barrier_ready()) {
    lock->streak = 0;
    atomic_store_explicit(&lock->owner, self, memory_order_release);
  }
  gm__mutex_unlock(&lock->mutex);
}
