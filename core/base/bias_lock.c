#include "core/base/bias_lock.h"

#include "core/base/barrier.h"
#include "core/base/clock.h"

/* Invariants: `owner` changes only under the mutex, to NULL or to `home`. A thread with the mutex has made sure that
 * the owner is not inside. First it cleared `owner` and ran a barrier in all threads. Since then the owner is either
 * seen busy, or sees that it is not the owner any more. Then it waited until the owner was not busy. Only the home
 * thread writes `busy`: a thread that lost the lock between its two looks clears only its own flag. For that reason a
 * thread becomes home only after the home thread before it has ended. No later thread has the same `self`. */

/* A barrier costs microseconds, so the home thread must earn its ownership. It needs twice the streak when its last
 * ownership was shorter than some hundred barriers. */
enum { BIAS_STREAK = 64, BIAS_STREAK_MOST = 1 << 16 };
static const uint64_t bias_long_ns = UINT64_C(1000000);

enum { BIAS_LOOKS = 200 }; /* some microseconds, before a thread sleeps */

void gm__bias_init(gm__bias_lock *lock, gm__rank rank) {
  *lock = (gm__bias_lock){.needed = BIAS_STREAK};
  gm__mutex_init(&lock->mutex, rank);
}

void gm__bias_destroy(gm__bias_lock *lock) { gm__mutex_destroy(&lock->mutex); }

void gm__bias_settle(gm__bias_lock *lock, const void *home) {
  lock->home = home;
  lock->streak = lock->needed = BIAS_STREAK; /* the home thread is alone so far, and the owner from its first time on */
}

static void bias_revoke(gm__bias_lock *lock) {
  if (!atomic_load_explicit(&lock->owner, memory_order_relaxed)) return;
  atomic_store(&lock->owner, NULL);
  const bool soon = gm__now_ns() < lock->since + bias_long_ns;
  lock->needed = !soon ? BIAS_STREAK : lock->needed < BIAS_STREAK_MOST ? lock->needed * 2 : lock->needed;
  gm__barrier_all();
  for (int i = 0; atomic_load_explicit(&lock->busy, memory_order_acquire); i++) {
    if (i < BIAS_LOOKS) {
      gm__thread_pause();
    } else {
      gm__thread_yield(); /* the owner does not run: maybe this thread keeps it from its processor */
    }
  }
}

/* A thread stays inside for less time than a sleep takes: it calls no driver there (core/base/rank.h). */
static void bias_wait(gm__bias_lock *lock) {
  for (int i = 0; i < BIAS_LOOKS; i++) {
    if (gm__mutex_try_lock(&lock->mutex)) return;
    gm__thread_pause();
  }
  atomic_fetch_add_explicit(&lock->sleepers, 1, memory_order_relaxed);
  gm__mutex_lock(&lock->mutex);
  atomic_fetch_sub_explicit(&lock->sleepers, 1, memory_order_relaxed);
}

void gm__bias_lock_slow(gm__bias_lock *lock, const void *self) {
  gm__rank_expect(lock->mutex.rank);
  bias_wait(lock);
  bias_revoke(lock);
  lock->by_mutex = self;
  if (lock->home != self) lock->streak = 0;
}

void gm__bias_unlock_slow(gm__bias_lock *lock) {
  const void *self = lock->by_mutex;
  lock->by_mutex = NULL;
  if (lock->home && lock->home == self && lock->streak++ >= lock->needed && gm__barrier_ready()) {
    lock->streak = 0;
    lock->since = gm__now_ns();
    atomic_store_explicit(&lock->owner, self, memory_order_release);
  }
  gm__mutex_unlock(&lock->mutex);
}

/* A sleeper needs some time to wake up. A thread that leaves the lock for a moment only would always be there first. */
void gm__bias_breathe(gm__bias_lock *lock, const void *self) {
  gm__bias_lock_out(lock);
  const uint32_t sleepers = atomic_load_explicit(&lock->sleepers, memory_order_relaxed);
  for (int i = 0; i < BIAS_LOOKS && sleepers; i++) {
    if (atomic_load_explicit(&lock->sleepers, memory_order_relaxed) != sleepers) break;
    gm__thread_yield();
  }
  gm__bias_lock_in(lock, self);
}
